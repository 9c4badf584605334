"""The command that grants a permission, and the principal that it names."""

from __future__ import annotations

import shlex

import pytest

from devstack.certificates import Authority
from lagscale.kafka.probe.access import build_acl_command, describe_principal


def test_the_line_that_grants_is_one_command_whatever_the_names_are() -> None:
    name = "my group'; rm -rf /"
    argv = shlex.split(build_acl_command("User:CN=a b,O=c", "kafka:9092", "group", name))
    assert argv[0] == "kafka-acls"
    assert argv[-2:] == ["--group", name]
    assert "User:CN=a b,O=c" in argv
    assert shlex.split(build_acl_command("User:a", "k:1", "topic", ""))[-1] == "*"
    assert build_acl_command("User:a", "k:1", "cluster", "").endswith("--operation Describe --cluster")


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        ({"protocol": "SASL_SSL", "username": "lagscale", "certificate": "x"}, "User:lagscale"),
        ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "User:<subject of the token>"),
        ({"protocol": "SSL", "certificate": "x"}, "User:<subject of the certificate>"),
        ({"protocol": "SSL"}, "User:ANONYMOUS"),
        ({}, "User:ANONYMOUS"),
    ],
)
def test_the_principal_is_what_the_cluster_knows_this_client_by(security: dict[str, str], principal: str) -> None:
    assert describe_principal(security) == principal


def test_the_principal_of_a_client_certificate_is_its_subject() -> None:
    certificate = Authority.make().pair("reader").certificate
    assert describe_principal({"protocol": "SSL", "certificate": certificate}) == "User:CN=reader"
