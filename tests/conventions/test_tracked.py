"""What must not be in a tracked file: a machine's paths, registries' addresses, secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

#: Text that was not written here, or that must hold such words.
FOREIGN = ("LICENSE", "tests/data/", "tests/conventions/test_tracked.py")
FORBIDDEN = {
    "a home or a workplace": re.compile(r"(?<![\w.])/(root|home/\w+|Users/\w+|work)/"),
    "a package registry": re.compile(
        r"pypi\.org|files\.pythonhosted|repo1?\.maven|repository\.apache\.org|deb\.debian\.org|ghcr\.io|docker\.io|quay\.io"
    ),
    "a choice of a package index": re.compile(r"(?<!no-emit-)index-url|extra-index"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/]{20}"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str, root: Path, tracked: tuple[str, ...]) -> None:
    found = []
    for path in tracked:
        if path.startswith(FOREIGN):
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if FORBIDDEN[what].search(line):
                found.append(f"{path}:{number}: {line.strip()[:100]}")
    assert found == []


def test_locks_carry_versions_and_hashes_and_no_address(root: Path, tracked: tuple[str, ...]) -> None:
    for path in (path for path in tracked if path.endswith(".lock")):
        text = (root / path).read_text(encoding="utf-8")
        assert "://" not in text, path
        for requirement in re.findall(r"^[a-zA-Z0-9][^\n]*(?:\n    [^\n]*)*", text, re.MULTILINE):
            assert re.match(r"[\w.\-\[\]]+==\S+", requirement), (path, requirement[:80])
            assert "--hash=sha256:" in requirement, (path, requirement[:80])
