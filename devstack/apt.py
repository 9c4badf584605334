"""Debian packages: the mirror in the machine's apt sources, and the installation of packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_SOURCES = Path("/etc/apt")


def os_release(text: str | None = None) -> dict[str, str]:
    """The fields of os-release."""
    if text is None:
        path = Path("/etc/os-release")
        text = path.read_text() if path.exists() else ""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name: value.strip().strip('"') for name, value in pairs}


def debian_mirror(texts: Iterable[str] | None = None) -> str | None:
    """The first mirror of the machine's sources that carries Debian's main archive, not its security archive."""
    if texts is None:
        files = [_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))]
        texts = [file.read_text() for file in files if file.suffix in {".list", ".sources"} and file.is_file()]
    for text in texts:
        for address, suites in _entries(text):
            if any(re.fullmatch(r"[a-z]+", suite) for suite in suites) and _is_debian(address):
                return address
    return None


def _entries(text: str) -> Iterable[tuple[str, list[str]]]:
    """(address, suites) of one-line and of deb822 sources."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in lines:
        match = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
        if match:
            yield match[1], [match[2]]
    for stanza in "\n".join(lines).split("\n\n"):
        fields = dict(re.findall(r"^(\w[\w-]*):\s*(.+)$", stanza, re.MULTILINE))
        if "deb" in fields.get("Types", "").split():
            for address in fields.get("URIs", "").split():
                yield address, fields.get("Suites", "").split()


def _is_debian(address: str) -> bool:
    return address.rstrip("/").endswith("/debian")


def is_root() -> bool:
    """Whether this process runs as root: it can install packages and start processes of other users."""
    return os.geteuid() == 0


def install(*packages: str) -> None:
    """Install Debian packages.

    Raises:
        RuntimeError: apt is missing or failed; with the end of its output.
    """
    if shutil.which("apt-get") is None:
        raise RuntimeError(f"{', '.join(packages)} is missing and there is no apt-get to install it")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:] or done.stdout[-2000:]}")
