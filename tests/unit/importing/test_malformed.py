"""Manifests with anything anywhere: whatever stands there, an import ends with a report, and spares the others."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import yaml

from services.cli.importing.conversion import converted
from services.cli.importing.documents import documents
from services.cli.importing.options import Asking, Options
from services.cli.importing.writing import files
from tests.house.keda_schemas import validate
from tests.unit.importing.shapes import PATHS

OPTIONS = Options(Asking())
GOOD = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: good, namespace: good}
spec:
  scaleTargetRef: {name: good}
  minReplicaCount: 1
  triggers:
    - type: kafka
      metadata: {bootstrapServers: 'good:9092', consumerGroup: good, topic: good}
"""
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


@pytest.mark.parametrize("seed", range(8))
def test_whatever_stands_anywhere_the_good_one_is_converted(seed: int) -> None:
    chance = random.Random(seed)
    shapes = readable()
    assert len(shapes) >= 30
    for _ in range(25):
        items: list[Any] = yaml.safe_load(yaml.safe_dump(chance.choice(shapes)))
        for _ in range(chance.randint(1, 3)):
            ways = [way for way in places(items) if len(way) > 1]
            put(items, chance.choice(ways), copy.deepcopy(chance.choice(ODD)))
        text = yaml.safe_dump_all(items, allow_unicode=True) + "---\n" + GOOD
        conversion = converted(list(documents(text, "odd")), OPTIONS)
        texts, report = files(conversion, OPTIONS, "out")
        good = [one for one in report["objects"] if one["name"] == "good"]
        assert [one["converted"] for one in good] == [True], text
        assert texts["report.md"]
        (new,) = yaml.safe_load_all(texts["batch-001/new/good_scaledobject_good.yaml"])
        validate(new)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 3_000 + "}" * 3_000,
        "- " * 3_000,
        "\x00",
        "%YAML 9.9\n---\nkind: x",
        "kind: ScaledObject\n\tmetadata: {}",
        "just a text",
    ],
)
def test_what_is_no_manifest_is_told_and_spares_the_others(text: str) -> None:
    conversion = converted(list(documents(f"{text}\n---\n{GOOD}", "odd")), OPTIONS)
    assert [one.scaled.name for one in conversion.done] == ["good"]
    assert len(conversion.unreadable) == 1
    assert conversion.unreadable[0][0].startswith("odd:1")


@pytest.mark.parametrize("text", ["kind: &again {a: [*again]}", "kind: !!python/object/apply:os.system ['true']", "{}"])
def test_an_object_of_no_kind_is_passed_over(text: str) -> None:
    conversion = converted(list(documents(f"{text}\n---\n{GOOD}", "odd")), OPTIONS)
    assert [one.scaled.name for one in conversion.done] == ["good"]
