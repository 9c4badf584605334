"""Which network addresses may be spoken to on a tenant's behalf: an allow list, and private ranges refused.

Rules judge addresses that a name was resolved to, never its spelling: `0x7f.1`, `2130706433` and a name that somebody
points at 127.0.0.1 are all the same address here.
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

#: Says neither which address was found nor which rule refuses it.
ADDRESS_REFUSED = "does not lead to an address that this system may connect to; ask the platform's administrators"
_NAME = re.compile(r"(?!\d+(\.|$))[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class AddressRefused(Exception):
    """The rules refuse an address; `str()` names neither a resolved address nor why it is refused."""


@dataclass(frozen=True, slots=True)
class _AllowListEntry:
    """One entry of the allow list: a network or the end of a host's name, and perhaps one port."""

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
    """What may be connected to. Without an allow list and with private ranges allowed, everything may be.

    An address passes when a network of the list holds it, or when its name ends as the list allows; but a name alone
    never leads to this machine, to link-local addresses (where clouds serve credentials) or to multicast ones.
    Without a list every address passes that is reached over the public network, or any where private ones may be.
    """

    entries: tuple[_AllowListEntry, ...] = ()
    private_refused: bool = False

    @classmethod
    def read(cls, allowed: str | Sequence[str], private_refused: bool = False) -> Self:
        """Read an allow list: networks (`10.2.0.0/16`), ends of names (`kafka.example`), each with a port if wanted.

        Raises:
            ValueError: with the entry that cannot be read.
        """
        parts = allowed.split(",") if isinstance(allowed, str) else allowed
        return cls(tuple(_parse_entry(part.strip()) for part in parts if part.strip()), private_refused)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The rules again that `text` wrote."""
        private, _, allowed = text.partition(";")
        return cls.read(allowed, private == "public")

    @property
    def text(self) -> str:
        """The rules on one line, for a process that shares no memory with this one."""
        return ("public;" if self.private_refused else "any;") + ",".join(entry.text for entry in self.entries)

    @property
    def limited(self) -> bool:
        """Whether anything can be refused at all."""
        return bool(self.entries) or self.private_refused

    def admits(self, ip: str | Ip, port: int, host: str = "") -> bool:
        """Whether this resolved address may be connected to, asked for under this host's name."""
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
        """Whether this host is refused whatever its name leads to; without a look-up."""
        if not self.limited:
            return False
        literal = _find_literal_address(host)
        if literal is not None:
            return not self.admits(literal, port)
        networks = any(entry.network is not None for entry in self.entries)
        name = _normalize_host(host)
        named = any(
            _is_in_domain(name, entry.suffix)
            for entry in self.entries
            if entry.network is None and entry.port in {None, port}
        )
        return bool(self.entries) and not networks and not named

    def resolve(self, host: str, port: int) -> list[ResolvedAddress]:
        """The addresses of a host, all of which may be connected to. It waits for the resolver.

        Raises:
            AddressRefused: one of them may not. A name that the list refuses in any case is not looked up.
            OSError: there is none.
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
        """A connection to a checked address: the one that was checked, so no second look-up can lead elsewhere.

        Raises:
            AddressRefused: the rules refuse one of the host's addresses.
            OSError: nobody answers.
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


#: No limits at all.
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
    invalid = ValueError(f"{text[:80]!r} is neither a network, as in 10.2.0.0/16, nor the end of a host's name")
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
    """A host's name in one spelling: small letters, international ones encoded, no dot at either end."""
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
    """The address that a host is written as, in any spelling that the system reads; None for a name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return str(found[0][4][0])


def _parse_ip(text: str | Ip) -> Ip:
    # A zone, as in fe80::1%eth0, says by which interface; the address is the same.
    return ipaddress.ip_address(text.partition("%")[0]) if isinstance(text, str) else text


def _list_reached_addresses(ip: Ip) -> Iterable[Ip]:
    """The addresses that are really reached: an IPv4 address inside an IPv6 one counts as what it is."""
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
    """Never a broker's by name alone: this machine, link-local, multicast, unspecified and reserved addresses."""
    local = ip.is_loopback or ip.is_link_local or ip.is_unspecified
    # "This network" leads to this machine on Linux.
    zero = isinstance(ip, ipaddress.IPv4Address) and int(ip) >> 24 == 0
    return local or zero or ip.is_multicast or ip.is_reserved


def _is_public(ip: Ip) -> bool:
    site_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not site_local and not _is_special(ip)
