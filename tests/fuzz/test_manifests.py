"""Manifests with arbitrary values anywhere: an import always ends with a report, and converts the others."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import yaml

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.output import build_files
from services.cli.importing.yaml_text import parse_documents
from tests.conventions.keda_schemas import validate
from tests.unit.cli.importing.manifests_fixture import PATHS
from tests.unit.cli.importing.test_yaml_text import GOOD

pytestmark = pytest.mark.fuzz

OPTIONS = ImportOptions(TriggerOptions())
ODD: tuple[Any, ...] = (
    None,
    "",
    " ",
    "x",
    0,
    -1,
    1.5,
    True,
    [],
    [None],
    ["x"],
    {},
    {"a": {}},
    [[]],
    "ä\u2028",
    "a: b # c",
)


def places(node: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [way, *(deeper for key, child in children for deeper in places(child, (*way, key)))]


def put(node: Any, way: tuple[Any, ...], value: Any) -> None:
    for step in way[:-1]:
        node = node[step]
    node[way[-1]] = value


def readable() -> list[list[Any]]:
    found = []
    for path in PATHS:
        try:
            items = [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if isinstance(item, dict)]
        except (yaml.YAMLError, ValueError, TypeError):
            continue
        found.append(items)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_whatever_stands_anywhere_the_good_one_is_converted(seed: int) -> None:
    chance = random.Random(seed)
    shapes = readable()
    assert len(shapes) >= 30
    for _ in range(50):
        items: list[Any] = yaml.safe_load(yaml.safe_dump(chance.choice(shapes)))
        for _ in range(chance.randint(1, 3)):
            ways = [way for way in places(items) if len(way) > 1]
            put(items, chance.choice(ways), copy.deepcopy(chance.choice(ODD)))
        text = yaml.safe_dump_all(items, allow_unicode=True) + "---\n" + GOOD
        conversion = convert_all(list(parse_documents(text, "odd")), OPTIONS)
        texts, report = build_files(conversion, OPTIONS, "out")
        good = [one for one in report["objects"] if one["name"] == "good"]
        assert [one["converted"] for one in good] == [True], text
        assert texts["report.md"]
        (new,) = yaml.safe_load_all(texts["batch-001/new/good_scaledobject_good.yaml"])
        validate(new)
