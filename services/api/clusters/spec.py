"""The body of a cluster's request -> the cluster as it shall be, with every fault of security and properties at once."""

from __future__ import annotations

from lagscale.errors import FieldError, InvalidInput
from lagscale.kafka.properties import check_properties
from lagscale.store.registry.clusters import ClusterSpec
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.security import CanonicalSecurity, canonicalize


def build_cluster_spec(name: str, given: ClusterIn, *, platform: bool) -> ClusterSpec:
    """The cluster that the body describes.

    Args:
        name: the cluster's.
        given: the body; its secrets left out keep what is stored, everything else left out is empty.
        platform: whether a platform administrator gives it.

    Raises:
        InvalidInput: with every fault.
    """
    field_errors: list[FieldError] = []
    canonical_security = CanonicalSecurity({}, None, None)
    try:
        canonical_security = canonicalize(given.security, given.secrets, platform=platform)
    except InvalidInput as error:
        field_errors += error.field_errors
    properties, property_faults = check_properties(given.properties, platform=platform)
    field_errors += property_faults
    if field_errors:
        raise InvalidInput(field_errors)
    return ClusterSpec(
        name,
        tuple(given.bootstrap_servers),
        canonical_security.security,
        canonical_security.secrets,
        canonical_security.references,
        properties,
        platform,
    )
