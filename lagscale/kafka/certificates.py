"""PEM texts of a cluster: whether every block can be read. The Kafka client says only that it rejects the settings.

Stands alone because reading certificates belongs to no schema of the API.
"""

from __future__ import annotations

from cryptography import x509

_BEGIN = "-----BEGIN "
_NOT_PEM = "must be PEM, from -----BEGIN to END-----"


def find_pem_error(text: str, label: str) -> str | None:
    """Why a PEM text cannot be used; text between its blocks and CRLF are fine.

    Args:
        text: certificates, or a private key.
        label: `CERTIFICATE` or `PRIVATE KEY`, which some block must have at the end of its own.
    """
    if "\x00" in text:
        return "must not contain NUL"
    parts = text.split(_BEGIN)[1:]
    labels = [part.partition("-----")[0] for part in parts]
    if not any(one.endswith(label) for one in labels):
        return _NOT_PEM
    for number, (part, own_label) in enumerate(zip(parts, labels, strict=True), 1):
        which = f"block {number} of {len(parts)}"
        body, end, _ = part.partition(f"-----END {own_label}-----")
        if not end:
            return f"{which} has no -----END {own_label}-----: it is cut off"
        if label == "CERTIFICATE" and own_label.endswith("PRIVATE KEY"):
            return f"{which} is a private key; move it to `secrets.key`"
        if own_label == "CERTIFICATE":
            try:
                x509.load_pem_x509_certificate(f"{_BEGIN}{body}{end}\n".encode())
            except ValueError:
                return f"{which} is no readable certificate: it is cut off or damaged; copy it again"
    return None
