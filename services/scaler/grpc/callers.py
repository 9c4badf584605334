"""Who calls: the KEDA instance, from the client certificate of the connection. The servicer asks here."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import structlog
from cryptography import x509

from lagscale.domain.tenancy import DEFAULT_INSTANCE

log = structlog.get_logger(__name__)

Context = Any  # grpc has no types
#: The instance of a call; None where nobody is bound to what the caller shows.
CallerIdentifier = Callable[[Context], str | None]
_CERTIFICATE: Final = "x509_pem_cert"
#: A KEDA instance has one certificate, and for a while the one before.
_CACHE_SIZE: Final = 1024


def identify_default(_context: Context) -> str | None:
    """Of a process that asks no client for a certificate: there is one instance."""
    return DEFAULT_INSTANCE


def identify_by_certificate(context: Context) -> str | None:
    """Of a process that asks for certificates at one address, and at another one does not."""
    return _identify(context) if _read_certificates(context) else DEFAULT_INSTANCE


def identify_by_required_certificate(context: Context) -> str | None:
    """Of a process that requires a certificate of every client."""
    return _identify(context)


def _read_certificates(context: Context) -> list[bytes]:
    return list(context.auth_context().get(_CERTIFICATE, ()))


def _identify(context: Context) -> str | None:
    certificates = _read_certificates(context)
    return read_instance(certificates[0]) if certificates else None


@lru_cache(maxsize=_CACHE_SIZE)
def read_instance(certificate: bytes) -> str | None:
    """The first URI of a client certificate's alternative names, else the first DNS name, as it is written there.

    Args:
        certificate: PEM, verified by the handshake.

    Returns:
        None without any, and for the name that callers without a certificate have: a certificate must not lend it.
    """
    try:
        names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension, x509.InvalidVersion) as error:
        log.warning("client_certificate_without_name", error=type(error).__name__)
        return None
    candidates = [
        *names.value.get_values_for_type(x509.UniformResourceIdentifier),
        *names.value.get_values_for_type(x509.DNSName),
    ]
    if not candidates or not candidates[0] or candidates[0] == DEFAULT_INSTANCE:
        log.warning("client_certificate_without_name", error="no URI or DNS name that can be bound")
        return None
    return candidates[0]
