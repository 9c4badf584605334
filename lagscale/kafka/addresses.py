"""Which network addresses may be connected to on behalf of a tenant: an allow list, and private ranges denied.

Rules apply to the addresses that a name resolves to, never to its spelling: `0x7f.1`, `2130706433` and a name that
resolves to 127.0.0.1 are the same address.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: An address that is ready to connect to: family, and what `socket.connect` takes.
ResolvedAddress = tuple[socket.AddressFamily, tuple[str, int]]

#: Names neither the resolved address nor the rule.
ADDRESS_REFUSED = "resolves to an address that is not allowed; ask a platform administrator"
_NAME = re.compile(r"(?!\d+(\.|$))[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class AddressRefused(Exception):
    """The rules refuse an address; the text names neither the resolved address nor the rule."""


@dataclass(frozen=True, slots=True)
class _AllowListEntry:
    """One entry of the allow list: a network or the suffix of a host name, optionally with a port."""

    network: Network | None
    suffix: str
    port: int | None

    @property
    def text(self) -> str:
        if self.network is None:
            return self.suffix if self.port is None else f"{self.suffix}:{self.port}"
        if self.port is None:
            return str(self.network)
        return f"[{self.network}]:{self.port}" if self.network.version == 6 else f"{self.network}:{self.port}"


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Allowed addresses. Without an allow list and with private ranges allowed, that is every address.

    An address passes if a network of the list contains it, or if its name has a suffix of the list; but a name alone
    never admits this machine, link-local addresses (where clouds serve credentials) or multicast addresses.
    Without a list every public address passes, and private ones unless they are denied.
    """

    entries: tuple[_AllowListEntry, ...] = ()
    private_refused: bool = False

    @classmethod
    def parse(cls, allowed: str | Sequence[str], private_refused: bool = False) -> Self:
        """Parse an allow list: networks (`10.2.0.0/16`), name suffixes (`kafka.example`), each optionally with a port.

        Raises:
            ValueError: with the invalid entry.
        """
        parts = allowed.split(",") if isinstance(allowed, str) else allowed
        return cls(tuple(_parse_entry(part.strip()) for part in parts if part.strip()), private_refused)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the form of `text`."""
        private, _, allowed = text.partition(";")
        return cls.parse(allowed, private == "public")

    @property
    def text(self) -> str:
        """The rules on one line, for another process."""
        return ("public;" if self.private_refused else "any;") + ",".join(entry.text for entry in self.entries)

    @property
    def limited(self) -> bool:
        """Whether the rules can refuse anything."""
        return bool(self.entries) or self.private_refused

    def admits(self, ip: str | Ip, port: int, host: str = "") -> bool:
        """Whether this resolved address of a host may be connected to."""
        if not self.limited:
            return True
        name = _normalize_host(host)
        return all(self._admits(form, port, name) for form in _list_reached_addresses(_parse_ip(ip)))

    def _admits(self, ip: Ip, port: int, name: str) -> bool:
        for entry in self.entries:
            if entry.port is not None and entry.port != port:
                continue
            if entry.network is not None and ip in entry.network:
                return True
            if entry.network is None and not _is_special(ip) and _is_in_domain(name, entry.suffix):
                return True
        if self.entries or _is_special(ip):
            return False
        return _is_public(ip) or not self.private_refused

    def refuses(self, host: str, port: int) -> bool:
        """Whether this host is refused whatever its name resolves to; without a lookup."""
        if not self.limited:
            return False
        literal = _find_literal_address(host)
        if literal is not None:
            return not self.admits(literal, port)
        name = _normalize_host(host)
        # Any network may contain the address.
        return bool(self.entries) and not any(
            entry.network is not None or (entry.port in {None, port} and _is_in_domain(name, entry.suffix))
            for entry in self.entries
        )

    def resolve(self, host: str, port: int) -> list[ResolvedAddress]:
        """Resolve a host to allowed addresses. Waits for the resolver.

        Raises:
            AddressRefused: an address is not allowed. A name that the list refuses in any case is not looked up.
            OSError: the name does not resolve.
        """
        if self.refuses(host, port):
            raise AddressRefused(ADDRESS_REFUSED)
        try:
            records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError as unknown:
            raise OSError(str(unknown)) from None
        found: list[ResolvedAddress] = [(family, (str(at[0]), int(at[1]))) for family, _, _, _, at in records]
        if not all(self.admits(at[0], port, host) for _, at in found):
            raise AddressRefused(ADDRESS_REFUSED)
        return found

    def connect(self, host: str, port: int, seconds: float) -> socket.socket:
        """Connect to a checked address, not to the name, so that no second lookup can lead elsewhere.

        Raises:
            AddressRefused: the rules refuse one of the host's addresses.
            OSError: no address accepts the connection.
        """
        failed: OSError | None = None
        for family, address in self.resolve(host, port):
            opened = socket.socket(family, socket.SOCK_STREAM)
            try:
                opened.settimeout(seconds)
                opened.connect(address)
            except OSError as refused:
                opened.close()
                failed = refused
            else:
                return opened
        raise failed or OSError("no address")


#: Without limits.
ANY_ADDRESS = AddressRules()


def split_server(text: str) -> tuple[str, int]:
    """Host and port of a bootstrap server as the client reads it; 9092 without a port."""
    server = text.strip().rpartition("://")[2]
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, int(port.removeprefix(":") or 9092)
    host, colon, port = server.rpartition(":")
    return (host, int(port)) if colon and port.isdecimal() else (server, 9092)


def _parse_entry(text: str) -> _AllowListEntry:
    match = re.fullmatch(r"\[(?P<six>[^\]]+)\](:(?P<p6>\d{1,5}))?|(?P<rest>[^\[\]]+)", text)
    invalid = ValueError(f"{text[:80]!r} is neither a network (10.2.0.0/16) nor a host name suffix (kafka.example)")
    if match is None:
        raise invalid
    body, port = (match["six"], match["p6"]) if match["six"] else (match["rest"], None)
    if match["six"] is None and body.count(":") == 1:
        body, _, port = body.partition(":")
    if port is not None and not (port.isdecimal() and 0 < int(port) < 65536):
        raise invalid
    number = None if port is None else int(port)
    try:
        return _AllowListEntry(ipaddress.ip_network(body, strict=True), "", number)
    except ValueError:
        suffix = _normalize_host(body.removeprefix("*"))
        if "/" in body or _NAME.fullmatch(suffix) is None:
            raise invalid from None
        return _AllowListEntry(None, suffix, number)


def _normalize_host(host: str) -> str:
    """A host name in canonical form: lower case, IDNA-encoded, without a dot at either end."""
    name = host.strip().strip(".").lower()
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return ""
    return name


def _is_in_domain(name: str, suffix: str) -> bool:
    return name == suffix or name.endswith(f".{suffix}")


def _find_literal_address(host: str) -> str | None:
    """The address of a host that is an address literal, in any spelling that the system reads; None for a name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return str(found[0][4][0])


def _parse_ip(text: str | Ip) -> Ip:
    # A zone, as in fe80::1%eth0, names an interface; the address is the same.
    return ipaddress.ip_address(text.partition("%")[0]) if isinstance(text, str) else text


def _list_reached_addresses(ip: Ip) -> Iterable[Ip]:
    """The addresses that are really reached: an IPv4 address embedded in an IPv6 address counts too."""
    if isinstance(ip, ipaddress.IPv4Address):
        return (ip,)
    if ip.ipv4_mapped is not None:
        return (ip.ipv4_mapped,)
    last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip in _COMPATIBLE and int(ip) > 1:
        return (ip, last)
    if ip in _NAT64:
        return (last,)
    inner = ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    return (ip,) if inner is None else (ip, inner)


def _is_special(ip: Ip) -> bool:
    """Whether no name alone admits it: this machine, link-local, multicast, unspecified and reserved addresses."""
    local = ip.is_loopback or ip.is_link_local or ip.is_unspecified
    # 0.0.0.0/8 ("this network") reaches this machine on Linux.
    zero = isinstance(ip, ipaddress.IPv4Address) and int(ip) >> 24 == 0
    return local or zero or ip.is_multicast or ip.is_reserved


def _is_public(ip: Ip) -> bool:
    site_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not site_local and not _is_special(ip)
