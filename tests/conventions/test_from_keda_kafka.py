"""docs/from-keda-kafka.md against the code: every key of KEDA's `kafka` trigger is described, with its defaults."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import PersistenceScope
from lagscale.errors import InvalidInput
from services.scaler.triggers.metadata import EXTERNAL_SCALER_KEYS, IGNORED_KEYS, TRIGGER_KEYS, TriggerReader

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-keda-kafka.md").read_text(encoding="utf-8")
LISTED = ROOT / "tests" / "data" / "keda" / "kafka-trigger-keys.txt"
OURS = set(KEYS_BY_NAME) | {key.name for key in TRIGGER_KEYS}
#: Ignored as a key, and no key of KEDA's: a value of `sasl`.
NO_KEY = {"gssapi"}


def kedas() -> dict[str, str]:
    """KEDA's key -> its default, empty without one."""
    lines = [line.split() for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {name: " ".join(default) for name, *default in lines}


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def compared() -> dict[str, tuple[str, str, str]]:
    """Key -> (KEDA's default, ours, judgment) of the table of keys."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*)\| ([^|]*)\| (\w+) \|", section("Key by key"), re.MULTILINE)
    return {name: (theirs.strip(), ours.strip(), judgment) for name, theirs, ours, judgment in rows}


def settled() -> set[str]:
    """Keys of the table of what the cluster defines."""
    firsts = re.findall(r"^\| (`[^|]+) \|", section("Defined by the cluster"), re.MULTILINE)
    return {name for first in firsts for name in re.findall(r"`(\w+)`", first)}


def importing() -> dict[str, str]:
    """The metadata of the example."""
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    metadata: dict[str, str] = yaml.safe_load(block[1])["triggers"][0]["metadata"]
    return metadata


def test_every_key_of_kedas_trigger_is_told_once() -> None:
    assert set(compared()) & settled() == set()
    assert set(compared()) | settled() == set(kedas())


def test_keys_that_are_compared_are_those_that_we_read() -> None:
    assert set(compared()) == (set(kedas()) & OURS) | {"excludePersistentLag"}
    assert {judgment for _, _, judgment in compared().values()} == {"same", "better", "different"}


def test_keys_that_are_settled_elsewhere_are_those_that_we_pass_over() -> None:
    ours = set(IGNORED_KEYS) - NO_KEY - {"excludePersistentLag"}
    assert settled() == ours | {"unsafeSsl"}
    assert "unsafeSsl" in EXTERNAL_SCALER_KEYS


def test_both_defaults_are_right() -> None:
    ours = {name: KEYS_BY_NAME[name].default_text if name in KEYS_BY_NAME else "" for name in compared()}
    assert {name: given for name, (_, given, _) in compared().items()} == ours
    assert {name: given for name, (given, _, _) in compared().items()} == {n: kedas()[n] for n in compared()}


def test_the_example_judges_as_keda_does() -> None:
    metadata = importing()
    trigger = TriggerReader(tick_seconds=5).read(metadata)
    policy = parse_policy(trigger.given)
    assert (policy.persistence_scope, policy.activation_sustain_ms) == (PersistenceScope.TOTAL, 0)
    # Every default of KEDA's that a policy knows is written out; `all` partitions is no text of either.
    written = {
        name: default for name, default in kedas().items() if name in KEYS_BY_NAME and default not in {"", "all"}
    }
    assert {name: metadata.get(name) for name in written} == written


def test_a_whole_trigger_of_kedas_is_read_without_a_fault() -> None:
    copied = {name: "x" for name in settled()} | importing() | {"excludePersistentLag": "false"}
    assert TriggerReader(tick_seconds=5).read(copied).group == "orders"


def test_what_is_said_to_be_refused_is_refused() -> None:
    field_errors = set()
    for name, text in (("excludePersistentLag", "true"), ("topic", "a,b")):
        try:
            TriggerReader(tick_seconds=5).read(importing() | {name: text, "partitionLimitation": "1,3"})
        except InvalidInput as invalid:
            field_errors |= {fault.field for fault in invalid.field_errors}
    assert field_errors == {"excludePersistentLag", "partitionLimitation"}
