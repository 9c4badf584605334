"""The body of a cluster's request -> the cluster as it shall be, with every fault of security and properties at once."""

from __future__ import annotations

from lagscale.errors import Fault, InvalidInput
from lagscale.kafka.properties import checked
from lagscale.store.registry.clusters import ClusterSpec
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.security import Canonical, canonical


def cluster_spec(name: str, given: ClusterIn, *, platform: bool) -> ClusterSpec:
    """The cluster that the body describes.

    Args:
        name: the cluster's.
        given: the body; its secrets left out keep what is stored, everything else left out is empty.
        platform: whether a platform administrator gives it.

    Raises:
        InvalidInput: with every fault.
    """
    faults: list[Fault] = []
    found = Canonical({}, None, None)
    try:
        found = canonical(given.security, given.secrets, platform=platform)
    except InvalidInput as wrong:
        faults += wrong.faults
    properties, of_properties = checked(given.properties, platform=platform)
    faults += of_properties
    if faults:
        raise InvalidInput(faults)
    return ClusterSpec(
        name, tuple(given.bootstrap_servers), found.security, found.secrets, found.references, properties, platform
    )
