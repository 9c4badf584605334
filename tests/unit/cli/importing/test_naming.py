"""Names of registered objects are unique in a tenant and do not depend on the order of the manifests."""

from __future__ import annotations

from services.cli.importing.conversion import assign_names, normalize_name


def test_names_do_not_depend_on_the_order() -> None:
    things = {1: ("shop", ("a.b", "x-a.b")), 2: ("shop", ("a_b", "y-a_b")), 3: ("other", ("a.b",)), 4: ("shop", ("c",))}
    names = assign_names(things)
    assert names == {1: "x-a-b", 2: "y-a-b", 3: "a-b", 4: "c"}
    assert assign_names(dict(reversed(things.items()))) == names


def test_names_that_cannot_be_told_apart_get_digits() -> None:
    names = assign_names({1: ("shop", ("a.b",)), 2: ("shop", ("a_b",))})
    assert len(set(names.values())) == 2
    assert all(name.startswith("a-b-") and len(name) == 12 for name in names.values())


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one, two = normalize_name("x" * 80 + "1"), normalize_name("x" * 80 + "2")
    assert len(one) == len(two) == 63
    assert one != two
