"""Which addresses the rules admit: networks, names, private ranges, and every way to write an address differently."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRefused, AddressRules, split_server

PUBLIC_ONLY = AddressRules.parse("", private_refused=True)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, list[str]]], list[str]]:
    """Give names addresses; the answer is a list of the names that are looked up."""
    real, asked = socket.getaddrinfo, []

    def give(known: dict[str, list[str]]) -> list[str]:
        def look_up(host: str, *rest: object, **named: object) -> object:
            if named.get("flags", 0) == socket.AI_NUMERICHOST:
                return real(host, *rest, **named)  # type: ignore[arg-type]
            asked.append(host)
            if host not in known:
                raise socket.gaierror(socket.EAI_NONAME, "not known")
            return [
                (socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, rest[0]))
                for ip in known[host]
            ]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        return asked

    return give


@pytest.mark.parametrize(
    "ip",
    [
        "127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "0.1.2.3", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "100.64.0.1", "169.254.169.254", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "224.0.1.1",
        "ff02::1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1",
    ],
)  # fmt: skip
def test_what_is_not_public_is_refused_where_private_addresses_are(ip: str) -> None:
    assert not PUBLIC_ONLY.admits(ip, 9092)
    assert ANY_ADDRESS.admits(ip, 9092)


@pytest.mark.parametrize("ip", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"])
def test_public_addresses_pass_where_private_ones_are_refused(ip: str) -> None:
    assert PUBLIC_ONLY.admits(ip, 9092)


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0x7f000001", "[::1]", "::ffff:7f00:1"]
)
def test_another_spelling_of_an_address_is_that_address(host: str) -> None:
    assert PUBLIC_ONLY.refuses(host, 9092)
    assert AddressRules.parse("10.0.0.0/8").refuses(host, 9092)
    with pytest.raises(AddressRefused):
        PUBLIC_ONLY.resolve(host, 9092)


def test_a_list_of_networks_admits_these_and_nothing_else() -> None:
    rules = AddressRules.parse("10.2.0.0/16, 2001:db8::/32 ,192.0.2.7")
    assert [
        ip for ip in ("10.2.3.4", "::ffff:10.2.3.4", "2001:db8::1", "192.0.2.7") if not rules.admits(ip, 9092)
    ] == []
    assert [ip for ip in ("10.3.0.1", "8.8.8.8", "2001:db9::1", "192.0.2.8", "::1") if rules.admits(ip, 9092)] == []


def test_a_network_of_the_list_may_be_private_where_private_ones_are_refused() -> None:
    rules = AddressRules.parse("10.2.0.0/16", private_refused=True)
    assert rules.admits("10.2.0.1", 9092)
    assert not rules.admits("10.3.0.1", 9092)


@pytest.mark.parametrize("entry", ["kafka.example", ".kafka.example", "*.kafka.example", "Kafka.Example."])
def test_a_name_of_the_list_means_itself_and_what_lies_below(entry: str) -> None:
    rules = AddressRules.parse(entry)
    for name in ("kafka.example", "b-1.kafka.example", "B-1.KAFKA.example.", "a.b.kafka.example"):
        assert rules.admits("10.0.0.1", 9092, name), name
    for name in ("kafka.example.evil", "notkafka.example", "example", "", "kafka-example"):
        assert not rules.admits("10.0.0.1", 9092, name), name


@pytest.mark.parametrize("ip", ["127.0.0.1", "169.254.169.254", "::1", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1"])
def test_a_name_alone_never_leads_to_this_machine_or_to_link_local_addresses(ip: str) -> None:
    assert not AddressRules.parse("kafka.example").admits(ip, 9092, "b.kafka.example")
    assert AddressRules.parse(f"kafka.example,{ip.removeprefix('::ffff:')}").admits(ip, 9092, "b.kafka.example")


def test_an_international_name_is_compared_in_one_spelling() -> None:
    rules = AddressRules.parse("bücher.example")
    assert rules.admits("10.0.0.1", 9092, "b1.xn--bcher-kva.example")
    assert rules.admits("10.0.0.1", 9092, "B1.BÜCHER.example")
    assert not rules.admits("10.0.0.1", 9092, "b1.bucher.example")


def test_an_entry_may_be_good_for_one_port() -> None:
    rules = AddressRules.parse("10.0.0.0/8:9092,kafka.example:9093,[2001:db8::/32]:9094")
    assert rules.admits("10.0.0.1", 9092)
    assert not rules.admits("10.0.0.1", 22)
    assert rules.admits("192.0.2.1", 9093, "kafka.example")
    assert not rules.admits("192.0.2.1", 9092, "kafka.example")
    assert rules.admits("2001:db8::1", 9094)
    assert not rules.admits("2001:db8::1", 9092)


@pytest.mark.parametrize(
    "entry",
    ["10.0.0.1/8", "10.0.0.0/33", "a b", "http://x", "10.0.0.0/8:0", "10.0.0.0/8:99999", "x:y", "/8", "[::1", "-a"],
)
def test_an_entry_that_is_neither_network_nor_name_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="neither a network"):
        AddressRules.parse(f"kafka.example,{entry}")


@pytest.mark.parametrize("allowed", ["", "10.0.0.0/8:9092,kafka.example,[2001:db8::/32]:1,k.example:2,fd00::/8"])
@pytest.mark.parametrize("private_refused", [True, False])
def test_rules_travel_as_text(allowed: str, private_refused: bool) -> None:
    rules = AddressRules.parse(allowed, private_refused)
    assert AddressRules.from_text(rules.text) == rules
    assert AddressRules.from_text("") == ANY_ADDRESS


def test_one_refused_address_of_a_name_refuses_the_name(names: Callable[..., list[str]]) -> None:
    names({"mixed.test": ["93.184.216.34", "10.0.0.1"], "fine.test": ["93.184.216.34"]})
    assert PUBLIC_ONLY.resolve("fine.test", 9092) == [(socket.AF_INET, ("93.184.216.34", 9092))]
    with pytest.raises(AddressRefused) as refused:
        PUBLIC_ONLY.resolve("mixed.test", 9092)
    assert "10.0.0.1" not in str(refused.value)


def test_a_name_off_a_list_of_names_is_not_even_looked_up(names: Callable[..., list[str]]) -> None:
    asked = names({"db.internal": ["10.0.0.1"]})
    for name in ("db.internal", "nothing.internal"):
        with pytest.raises(AddressRefused):
            AddressRules.parse("kafka.example").resolve(name, 9092)
    assert asked == []


def test_a_name_without_an_address_is_no_refusal(names: Callable[..., list[str]]) -> None:
    names({})
    with pytest.raises(OSError, match="not known"):
        PUBLIC_ONLY.resolve("nothing.test", 9092)


def test_a_connection_goes_to_the_address_that_was_checked(names: Callable[..., list[str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        asked = names({"here.test": ["127.0.0.1"]})
        with AddressRules.parse("127.0.0.0/8").connect("here.test", port, 5) as connected:
            assert connected.getpeername() == ("127.0.0.1", port)
        assert asked == ["here.test"]
        with pytest.raises(AddressRefused):
            PUBLIC_ONLY.connect("here.test", port, 5)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("kafka.example:9093", ("kafka.example", 9093)),
        ("kafka.example", ("kafka.example", 9092)),
        ("[2001:db8::1]:9093", ("2001:db8::1", 9093)),
        ("SASL_SSL://kafka.example:9093", ("kafka.example", 9093)),
        (" 10.0.0.1:1 ", ("10.0.0.1", 1)),
    ],
)
def test_a_bootstrap_server_is_read_as_the_client_reads_it(text: str, server: tuple[str, int]) -> None:
    assert split_server(text) == server
