"""Invalid and foreign documents are reported or skipped, and do not affect the others."""

from __future__ import annotations

import pytest

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.yaml_text import parse_documents

OPTIONS = ImportOptions(TriggerOptions())
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


@pytest.mark.parametrize(
    "text",
    [
        "- " * 3_000,
        "\x00",
        "%YAML 9.9\n---\nkind: x",
        "kind: ScaledObject\n\tmetadata: {}",
        "just a text",
    ],
)
def test_what_is_no_manifest_is_told_and_spares_the_others(text: str) -> None:
    conversion = convert_all(list(parse_documents(f"{text}\n---\n{GOOD}", "odd")), OPTIONS)
    assert [one.resource.name for one in conversion.converted_objects] == ["good"]
    assert len(conversion.unreadable) == 1
    assert conversion.unreadable[0][0].startswith("odd:1")


@pytest.mark.parametrize("text", ["kind: &again {a: [*again]}", "kind: !!python/object/apply:os.system ['true']", "{}"])
def test_an_object_of_no_kind_is_passed_over(text: str) -> None:
    conversion = convert_all(list(parse_documents(f"{text}\n---\n{GOOD}", "odd")), OPTIONS)
    assert [one.resource.name for one in conversion.converted_objects] == ["good"]
