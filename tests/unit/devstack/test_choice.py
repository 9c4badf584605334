"""Which database and which Java a machine gets."""

from __future__ import annotations

import pytest

from devstack.apt import debian_mirror, os_release
from devstack.java import java_major
from devstack.postgres import Source, best_source

_MIRROR = "http://mirror.example/debian"
_ONE_LINE = """
# deb http://old.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [signed-by=/usr/share/keyrings/some.gpg arch=amd64] http://mirror.example/debian bookworm main contrib
deb http://other.example/debian bookworm main
"""
_STANZAS = """
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

# The archive.
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


@pytest.mark.parametrize("text", [_ONE_LINE, _STANZAS], ids=["one line each", "stanzas"])
def test_the_mirror_is_the_first_that_carries_the_main_archive(text: str) -> None:
    assert debian_mirror([text]) == _MIRROR


@pytest.mark.parametrize(
    "text",
    [
        "",
        "deb-src http://mirror.example/debian bookworm main",
        "deb http://security.example/debian-security bookworm-security main",
        "deb http://vendor.example/postgres bookworm main",
        "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: bookworm\n",
    ],
)
def test_sources_without_the_main_archive_give_no_mirror(text: str) -> None:
    assert debian_mirror([text]) is None


def test_the_release_is_read_without_its_quotes() -> None:
    assert os_release('ID=debian\nVERSION_ID="12"\n\n') == {"ID": "debian", "VERSION_ID": "12"}


_DEBIAN_12, _DEBIAN_13 = {"ID": "debian", "VERSION_ID": "12"}, {"ID": "debian", "VERSION_ID": "13"}


@pytest.mark.parametrize(
    ("release", "mirror", "root", "source"),
    [
        (_DEBIAN_12, _MIRROR, True, Source.ROOTFS),
        (_DEBIAN_12, None, True, Source.WHEEL),
        (_DEBIAN_12, _MIRROR, False, Source.WHEEL),
        (_DEBIAN_13, _MIRROR, True, Source.PACKAGE),
        (_DEBIAN_13, None, True, Source.PACKAGE),
        (_DEBIAN_13, _MIRROR, False, Source.WHEEL),
        ({"ID": "ubuntu", "VERSION_ID": "24.04"}, _MIRROR, True, Source.WHEEL),
        ({}, None, False, Source.WHEEL),
    ],
)
def test_the_best_database_depends_on_the_machine(
    release: dict[str, str], mirror: str | None, root: bool, source: Source
) -> None:
    assert best_source({}, release, mirror, root=root) is source
    assert best_source({"LAGSCALE_DATABASE_URL": ""}, release, mirror, root=root) is source


def test_an_address_from_the_environment_beats_all() -> None:
    given = {"LAGSCALE_DATABASE_URL": "postgresql://elsewhere/lagscale"}
    for release in (_DEBIAN_12, _DEBIAN_13, {}):
        assert best_source(given, release, _MIRROR, root=True) is Source.EXTERNAL


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_javas_version_is_read_in_all_its_spellings(said: str, major: int | None) -> None:
    assert java_major(said) == major
