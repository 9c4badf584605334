"""Names of the product: one class for a name, verbs for functions, the field's words, American spelling."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

#: Words of everyday speech that were names here once -> the field's word.
EVERYDAY_WORDS: Mapping[str, str] = {
    "beneath": "below",
    "beside": "out of band",
    "breaker": "backoff",
    "course": "series",
    "fly": "run",
    "giant": "oversized",
    "kept": "stored, cached",
    "landed": "resolved",
    "lane": "poller",
    "moment": "point in time",
    "payloads": "schemas",
    "pulse": "broadcast",
    "scratch": "local cache",
    "seal": "encrypt",
    "sealed": "encrypted",
    "stretch": "window",
    "tell": "answer, report",
    "told": "answer, decision",
    "untold": "undetermined",
    "wakes": "activates from zero",
    "waking": "activation",
    "wall": "tenant context",
    "wanted": "requested, expected",
}
#: A name -> why it has one of these words: it is not ours to choose.
GIVEN_NAMES: Mapping[str, str] = {
    "samples_kept": "the table in the database",
    "KEPT": "the word of the import's report",
}
#: British forms by their stems; American English has z, -or, -er, one l. (`cancelled` is asyncio's and gRPC's spelling.)
BRITISH = re.compile(
    r"""(?ix)
    \b \w* (
        behaviour | colour | favour | honour | neighbour | labelled | labelling | modelled | modelling
      | judgement | catalogue | centre | licenc | grey(?!s) | programme
      | (?: optim | organ | real | recogn | normal | serial | initial | final | general | summar | minim | maxim | prior
          | author | categor | custom | synchron | stabil | character | emphas | standard ) is (?: e[ds]? | ing | er | ation )
      | analyse | fulfil(?![l]) | artefact | whilst
    ) \w* \b
    """
)
#: Where words of others stand: licenses, recorded data, generated code, locks, and what KEDA and Kafka call their things.
OTHERS = ("LICENSE", "requirements/", "tests/data/", "services/scaler/grpc/proto/", "tests/conventions/test_names.py")
TEXT = {".py", ".md", ".sql", ".toml", ".yaml", ".yml", ".sh", ".ini", ""}


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Names that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_a_class_name_exists_once(product: Mapping[str, ast.Module]) -> None:
    places = defaultdict(list)
    for path, tree in product.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_names_are_in_the_words_of_the_field(product: Mapping[str, ast.Module]) -> None:
    wrong = set()
    for path, tree in product.items():
        for name in {*identifiers(tree), Path(path).stem}:
            for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name):
                if word.lower() in EVERYDAY_WORDS and name not in GIVEN_NAMES:
                    wrong.add(f"{path}: {name} ({EVERYDAY_WORDS[word.lower()]})")
    assert wrong == set()


def test_the_list_of_given_names_is_not_stale(product: Mapping[str, ast.Module]) -> None:
    assert set(GIVEN_NAMES) <= {name for tree in product.values() for name in identifiers(tree)}


def test_spelling_is_american(root: Path, tracked: tuple[str, ...]) -> None:
    wrong = []
    for path in tracked:
        if path.startswith(OTHERS) or Path(path).suffix not in TEXT:
            continue
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{path}:{number}: {found[0]}" for found in BRITISH.finditer(line)]
    assert wrong == []


@pytest.mark.parametrize("word", ["judgement", "Serialiser", "normalised", "colour", "stabilisation", "behaviours"])
def test_british_words_are_found(word: str) -> None:
    assert BRITISH.search(f"a {word} here")


@pytest.mark.parametrize("word", ["judgment", "serializer", "raise", "advise", "promise", "CancelledError", "canceled"])
def test_american_words_are_none_of_them(word: str) -> None:
    assert not BRITISH.search(f"a {word} here")
