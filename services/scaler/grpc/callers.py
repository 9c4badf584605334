"""Identifies the caller: the KEDA instance, by the client certificate of the connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import structlog
from cryptography import x509

from lagscale.domain.tenancy import DEFAULT_INSTANCE

log = structlog.get_logger(__name__)

Context = Any  # grpc has no types
#: Returns the KEDA instance of a call; None for a certificate that no binding can match.
CallerIdentifier = Callable[[Context], str | None]
_CERTIFICATE: Final = "x509_pem_cert"
#: Cached certificates: each KEDA instance has one, or two during rotation.
_CACHE_SIZE: Final = 1024


def identify_default(_context: Context) -> str | None:
    """For a scaler that requests no client certificates: the one default instance."""
    return DEFAULT_INSTANCE


def identify_by_certificate(context: Context) -> str | None:
    """For a scaler that requires client certificates at one of its two addresses."""
    return identify_by_required_certificate(context) if context.auth_context().get(_CERTIFICATE) else DEFAULT_INSTANCE


def identify_by_required_certificate(context: Context) -> str | None:
    """For a scaler that requires client certificates at every address."""
    certificates = list(context.auth_context().get(_CERTIFICATE, ()))
    return read_instance(certificates[0]) if certificates else None


@lru_cache(maxsize=_CACHE_SIZE)
def read_instance(certificate: bytes) -> str | None:
    """The first URI of a verified client certificate's alternative names (PEM), else its first DNS name, unchanged.

    None without such a name, and for `default`, which only callers without a certificate may have.
    """
    try:
        extensions = x509.load_pem_x509_certificate(certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension, x509.InvalidVersion) as error:
        log.warning("client_certificate_without_name", reason=type(error).__name__)
        return None
    candidates = names.get_values_for_type(x509.UniformResourceIdentifier) or names.get_values_for_type(x509.DNSName)
    if not candidates or not candidates[0] or candidates[0] == DEFAULT_INSTANCE:
        log.warning("client_certificate_without_name", reason="certificate has no URI or DNS name that can be bound")
        return None
    return candidates[0]
