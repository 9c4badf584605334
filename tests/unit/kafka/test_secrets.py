"""Secrets outside the database: a tenant reaches its own files and variables, and nothing else by any name or link."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lagscale.domain.tenancy import is_name
from lagscale.errors import SecretReferenceBroken
from lagscale.kafka import safe_open
from lagscale.kafka.secrets import (
    MAX_SECRET_BYTES,
    SecretReference,
    SecretSources,
    build_variable_name,
    resolve_secrets,
)
from lagscale.settings import find_unknown_names, read_tenant_variables

CANARY = "canary-of-another"


@pytest.fixture
def secret_sources(tmp_path: Path) -> SecretSources:
    """Two tenants' directories, and a secret that is nobody's beside them."""
    for tenant in ("shop", "shop-eu"):
        (tmp_path / tenant).mkdir()
        (tmp_path / tenant / "password").write_text(f"of {tenant}")
    (tmp_path / "nobodys").write_text(CANARY)
    return SecretSources(tmp_path, {"LAGSCALE_TENANT_SHOP__PASSWORD": "of shop", "LAGSCALE_SECRET_KEYS": CANARY})


def opened(secret_sources: SecretSources, name: str, tenant: str = "shop") -> str:
    return resolve_secrets(tenant, {}, {"password": {"file": name}}, secret_sources)["password"]


def broken(secret_sources: SecretSources, name: str) -> str:
    with pytest.raises(SecretReferenceBroken) as caught:
        opened(secret_sources, name)
    assert CANARY not in caught.value.message
    assert str(secret_sources.directory) not in caught.value.message
    return caught.value.message


def test_a_tenant_reads_its_own_file_and_what_was_sealed_stays(secret_sources: SecretSources) -> None:
    found = resolve_secrets("shop", {"key": "k", "password": "old"}, {"password": {"file": "password"}}, secret_sources)
    assert found == {"key": "k", "password": "of shop"}
    assert opened(secret_sources, "password", "shop-eu") == "of shop-eu"


def test_a_changed_file_counts_at_once(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    assert opened(secret_sources, "password") == "of shop"
    (secret_sources.directory / "shop/password").write_text("rotated\n")
    assert opened(secret_sources, "password") == "rotated"


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "/etc/passwd", "../shop-eu/password", "a/../../shop-eu/password", "..data/password", ".hidden",
        "a//b", "a/", "/", "a\0b", "a\nb", "a b", "a\\b", "\u202e", "\u00e9", "x" * 254, "a/b/c/d/e", "~root", "%2e%2e",
    ],
)  # fmt: skip
def test_names_that_could_lead_elsewhere_are_none(secret_sources: SecretSources, name: str) -> None:
    with pytest.raises(ValueError, match="relative to the tenant's directory"):
        SecretReference.parse({"file": name})
    # Also where somebody wrote it past the API.
    broken(secret_sources, name)


@pytest.mark.parametrize(
    "given", [None, "x", {}, {"file": 1}, {"file": "a", "env": "B"}, {"url": "x"}, ["file"], {"env": None}]
)
def test_what_is_no_reference_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        SecretReference.parse(given)


def as_kubernetes_mounts(folder: Path, files: dict[str, str]) -> Callable[[dict[str, str]], None]:
    """A mounted Secret: `password` -> `..data/password`, `..data` -> a dated directory that is swapped atomically."""
    number = itertools.count()

    def put(content: dict[str, str]) -> None:
        dated = folder / f"..2030_01_01_{next(number)}"
        dated.mkdir()
        for name, text in content.items():
            (dated / name).write_text(text)
        fresh = folder / "..data_tmp"
        fresh.symlink_to(dated.name)
        fresh.rename(folder / "..data")

    folder.mkdir()
    put(files)
    for name in files:
        (folder / name).symlink_to(f"..data/{name}")
    return put


def test_the_links_of_a_mounted_secret_are_followed_and_its_update_counts(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    put = as_kubernetes_mounts(secret_sources.directory / "shop/kafka", {"password": "first", "ca.crt": "pem"})
    assert opened(secret_sources, "kafka/password") == "first"
    put({"password": "second", "ca.crt": "pem"})
    assert opened(secret_sources, "kafka/password") == "second"


def test_one_secret_with_a_path_for_each_tenant_works_too(tmp_path: Path) -> None:
    # A projected volume links the tenants' directories themselves.
    dated = tmp_path / "..2030"
    (dated / "shop").mkdir(parents=True)
    (dated / "shop/password").write_text("p")
    (tmp_path / "..data").symlink_to("..2030")
    (tmp_path / "shop").symlink_to("..data/shop")
    assert opened(SecretSources(tmp_path), "password") == "p"


@pytest.mark.parametrize(
    "target",
    [
        "../nobodys", "../shop-eu/password", "/etc/passwd", "/proc/self/environ", "x/../../nobodys",
        "../shop/../nobodys", "loop",
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_directory", [False, True])
def test_links_that_lead_out_of_the_tenants_directory_are_refused(
    secret_sources: SecretSources, target: str, by_directory: bool
) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    (shop / "x").mkdir()
    if by_directory:
        (shop / "loop").symlink_to(str(Path(target).parent) if target != "loop" else "loop")
        name = f"loop/{Path(target).name}"
    else:
        (shop / "loop").symlink_to(target)
        name = "loop"
    assert "outside the tenant's directory" in broken(secret_sources, name)


def test_a_link_to_itself_that_ends_inside_is_fine_and_dots_stay_inside(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    (shop / "x").mkdir()
    (shop / "x/up").symlink_to("../password")
    (shop / "around").symlink_to("x/../x/./up")
    assert opened(secret_sources, "around") == "of shop"


def test_a_tenants_directory_that_leads_out_is_refused(
    secret_sources: SecretSources, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert secret_sources.directory is not None
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "password").write_text(CANARY)
    (secret_sources.directory / "rogue").symlink_to(elsewhere)
    with pytest.raises(SecretReferenceBroken, match="outside"):
        opened(secret_sources, "password", "rogue")


@pytest.mark.parametrize("tenant", ["", ".", "..", "shop/x", "../shop", "SHOP"])
def test_what_is_no_tenant_has_no_directory(secret_sources: SecretSources, tenant: str) -> None:
    with pytest.raises(SecretReferenceBroken):
        opened(secret_sources, "nobodys", tenant)
    with pytest.raises(SecretReferenceBroken):
        resolve_secrets(tenant, {}, {"password": {"env": "PASSWORD"}}, secret_sources)


def test_what_is_no_plain_file_is_refused_without_waiting(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    os.mkfifo(shop / "pipe")
    (shop / "folder").mkdir()
    assert "not a regular file" in broken(secret_sources, "pipe")
    assert "directory" in broken(secret_sources, "folder") or "not a regular file" in broken(secret_sources, "folder")
    assert "file not found" in broken(secret_sources, "missing")
    assert "file not found" in broken(secret_sources, "password/below")


def test_a_device_is_not_even_opened(secret_sources: SecretSources, monkeypatch: pytest.MonkeyPatch) -> None:
    assert secret_sources.directory is not None
    os.mkfifo(secret_sources.directory / "shop/pipe")
    tried = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: tried.append(path) or real(path, *rest, **more))
    broken(secret_sources, "pipe")
    assert "pipe" not in tried


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"a\0b", "not valid UTF-8"),
        (b"\xff\xfe", "not valid UTF-8"),
        (b"x" * (MAX_SECRET_BYTES + 1), "larger"),
    ],
)
def test_what_is_no_secret_is_refused(secret_sources: SecretSources, content: bytes, reason: str) -> None:
    assert secret_sources.directory is not None
    (secret_sources.directory / "shop/odd").write_bytes(content)
    assert reason in broken(secret_sources, "odd")


def test_one_new_line_at_the_end_is_no_part_of_a_secret(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    for content, wanted in ((b"a b\r\n", "a b"), (b"a\n\n", "a\n"), (b"x" * MAX_SECRET_BYTES, "x" * MAX_SECRET_BYTES)):
        (secret_sources.directory / "shop/odd").write_bytes(content)
        assert opened(secret_sources, "odd") == wanted


def test_a_name_that_is_swapped_for_a_link_meanwhile_never_leads_out(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    (shop / "in").mkdir()
    (shop / "in/nobodys").write_text("mine")
    swapping = threading.Event()

    def swap() -> None:
        # The same name is now a directory inside, now a link to the outside.
        while not swapping.is_set():
            (shop / "in").rename(shop / "kept")
            (shop / "in").symlink_to("..")
            (shop / "in").unlink()
            (shop / "kept").rename(shop / "in")

    thread = threading.Thread(target=swap)
    thread.start()
    found = set()
    try:
        for _ in range(3000):
            try:
                found.add(opened(secret_sources, "in/nobodys"))
            except SecretReferenceBroken:
                found.add("refused")
    finally:
        swapping.set()
        thread.join()
    assert CANARY not in found
    assert found <= {"mine", "refused"}


def test_a_file_swapped_after_the_look_is_judged_by_what_was_opened(
    secret_sources: SecretSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    real = os.stat

    def stat_and_swap(path: str, **more: object) -> os.stat_result:
        seen = real(path, **more)  # type: ignore[call-overload]
        if path == "password":
            (shop / "password").unlink()
            (shop / "password").symlink_to("../nobodys")
        return seen  # type: ignore[no-any-return]

    monkeypatch.setattr(safe_open.os, "stat", stat_and_swap)
    assert "outside" in broken(secret_sources, "password")


def test_a_directory_swapped_after_the_look_is_not_followed(
    secret_sources: SecretSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secret_sources.directory is not None
    shop = secret_sources.directory / "shop"
    (shop / "in").mkdir()
    real = os.readlink

    def look_and_swap(path: str, **more: object) -> str:
        try:
            return real(path, **more)  # type: ignore[call-overload, no-any-return]
        finally:
            if path == "in" and not (shop / "in").is_symlink():
                (shop / "in").rmdir()
                (shop / "in").symlink_to("..")

    monkeypatch.setattr(safe_open.os, "readlink", look_and_swap)
    broken(secret_sources, "in/nobodys")


def test_no_descriptor_is_left_open(secret_sources: SecretSources) -> None:
    assert secret_sources.directory is not None
    (secret_sources.directory / "shop/a").mkdir()
    (secret_sources.directory / "shop/a/out").symlink_to("../../nobodys")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        opened(secret_sources, "password")
        broken(secret_sources, "a/out")
        broken(secret_sources, "a/missing")
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_a_directory_files_are_nowhere_and_say_so() -> None:
    with pytest.raises(SecretReferenceBroken, match="password: LAGSCALE_SECRET_DIR is not set"):
        opened(SecretSources(), "password")


def test_a_variable_is_read_by_the_tenants_prefix_only(secret_sources: SecretSources) -> None:
    found = resolve_secrets("shop", {}, {"password": {"env": "PASSWORD"}}, secret_sources)
    assert found == {"password": "of shop"}
    for name in ("LAGSCALE_SECRET_KEYS", "SECRET_KEYS", "MISSING"):
        with pytest.raises(SecretReferenceBroken) as caught:
            resolve_secrets("shop", {}, {"password": {"env": name}}, secret_sources)
        assert CANARY not in caught.value.message


@pytest.mark.parametrize(
    "name", ["", "a", "A-B", "A__B", "_A", "A_", "1A", "A=B", "A\0", "LAGSCALE_TENANT_SHOP__A", "A" * 201]
)
def test_names_of_variables_cannot_reach_into_another_tenants(name: str) -> None:
    with pytest.raises(ValueError, match="without its prefix"):
        SecretReference.parse({"env": name})


def test_no_two_tenants_have_a_variable_in_common() -> None:
    # Tenants whose names begin alike, also with doubled hyphens, and names that look like the rest of a tenant's.
    tenants = [name for name in ("shop", "shop-eu", "shop--eu", "shop-eu-1", "s", "a--b", "a", "a-b") if is_name(name)]
    parts = ["EU", "A", "B", "1"]
    names = ["_".join(some) for size in (1, 2, 3) for some in itertools.product(parts, repeat=size)]
    names = [name for name in names if name[0].isalpha()]
    seen: dict[str, tuple[str, str]] = {}
    for tenant, name in itertools.product(tenants, names):
        SecretReference.parse({"env": name})
        assert seen.setdefault(build_variable_name(tenant, name), (tenant, name)) == (tenant, name)
    assert len(seen) == len(tenants) * len(names) > 300


def test_tenants_variables_are_no_unknown_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGSCALE_TENANT_SHOP__PASSWORD", "x")
    monkeypatch.setenv("LAGSCALE_TENANTS", "x")
    assert "LAGSCALE_TENANT_SHOP__PASSWORD" in read_tenant_variables()
    assert "LAGSCALE_TENANTS" not in read_tenant_variables()
    assert [fault.field for fault in find_unknown_names({"LAGSCALE_TENANT_SHOP__PASSWORD", "LAGSCALE_TENANTS"})] == [
        "LAGSCALE_TENANTS"
    ]
