"""CONTRIBUTING's recipes, carried out in a scratch copy: what a newcomer edits by hand for one dummy of each kind.

Each recipe edits files of the copy and returns their paths. Rendered pages and locks are written by commands, and so
are not among them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copy_tracked(target: Path) -> None:
    """Copy the tracked files, and make the copy a repository of its own, as conventions ask git which files there are."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\0")):
        if (ROOT / path).is_file():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target / path)
    # The tools of the environment are the repository's own.
    (target / ".venv").symlink_to(ROOT / ".venv")


def track(copy: Path) -> None:
    """Let git know every file of the copy."""
    for arguments in (["init", "-q"], ["add", "--all"]):
        subprocess.run(["git", *arguments], cwd=copy, capture_output=True, check=True)


class Copy:
    """A scratch copy and the files that were edited in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.edited: set[str] = set()

    def write(self, path: str, text: str) -> None:
        """Create a file."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
        self.edited.add(path)

    def append(self, path: str, text: str) -> None:
        """Add to the end of a file."""
        self.write(path, (self.root / path).read_text(encoding="utf-8") + text)

    def insert(self, path: str, before: str, text: str) -> None:
        """Insert text before the first occurrence of `before`."""
        content = (self.root / path).read_text(encoding="utf-8")
        assert before in content, f"{path} has no {before!r}"
        self.write(path, content.replace(before, text + before, 1))

    def derive(self, path: str, like: str, old: str, new: str) -> None:
        """Create a file from that of another service, with its name replaced."""
        text = (self.root / like).read_text(encoding="utf-8")
        self.write(path, text.replace(old, new).replace(old.upper(), new.upper()))


def add_metric(copy: Copy) -> None:
    """A counter of the scaler."""
    copy.append(
        "services/scaler/metrics.py",
        '\nDUMMIES = Counter("lagscale_scaler_dummies", "Dummies by outcome.", ["outcome"])\n',
    )
    copy.insert(
        "services/scaler/grpc/tls.py",
        "\n\ndef ",
        '\n\ndef count_dummy() -> None:\n    """Count one."""\n    metrics.DUMMIES.labels("ok").inc()\n',
    )


def add_policy_key(copy: Copy) -> None:
    """A key `dummySeconds`, read by a rule of the reference and named wherever a real one has to be."""
    copy.insert("lagscale/domain/policy/keys.py", ")  # fmt: skip\nKEYS_BY_NAME", _POLICY_KEY)
    copy.insert("lagscale/domain/policy/policy.py", "    sampling_ms: int\n", "    dummy_ms: int\n")
    copy.append("lagscale/domain/verdict/activity.py", _POLICY_RULE)
    copy.append("lagscale/store/verdicts/sql/judge_full.sql", "-- dummySeconds changes no verdict.\n")
    copy.append("tests/contract/table_value.py", "\n# dummySeconds changes no verdict.\n")
    copy.append("docs/persistence.md", "\n`dummySeconds` changes no verdict.\n")


def add_time_limit(copy: Copy) -> None:
    """A constant of the scraper, used by the thread that housekeeps."""
    copy.append(
        "services/scraper/deadlines.py", "\n#: Pause of dummies, in seconds.\nDUMMY_PAUSE_SECONDS: Final = 1.0\n"
    )
    copy.append(
        "services/scraper/housekeeping.py",
        '\n\ndef pause_dummy() -> float:\n    """The pause of dummies."""\n    return deadlines.DUMMY_PAUSE_SECONDS\n',
    )


def add_route(copy: Copy) -> None:
    """`GET /v1/tenants/{tenant}/dummy`."""
    copy.append("services/api/tenants/routes.py", _ROUTE)
    copy.append(
        "services/api/tenants/schemas.py",
        '\n\nclass DummyOut(ApiSchema):\n    """A dummy."""\n\n    name: str = Field(examples=["dummy"])\n',
    )
    copy.insert("services/api/tenants/routes.py", "    PolicyWarning,\n", "    DummyOut,\n")
    copy.insert(
        "docs/api.md",
        "| `GET /v1/tenants/{tenant}/quotas`",
        "| `GET /v1/tenants/{tenant}/dummy` | viewer | |\n",
    )
    copy.write("tests/integration/api/test_dummies.py", _ROUTE_TEST)


def add_service(copy: Copy) -> None:
    """A service `archiver` with settings, a metric, an image and a Deployment."""
    copy.write("services/archiver/__init__.py", '"""Archives dummies."""\n')
    copy.write("services/archiver/__main__.py", _MAIN)
    copy.write("services/archiver/settings.py", _SETTINGS)
    copy.write("services/archiver/metrics.py", _METRICS)
    copy.insert("lagscale/settings.py", "        # API\n", '        # archiver\n        "LAGSCALE_ARCHIVER_LISTEN",\n')
    copy.insert("pyproject.toml", "dev = [\n", 'archiver = ["httpx>=0.28"]\n')
    copy.insert("pyproject.toml", 'lagscale-api = "', 'lagscale-archiver = "services.archiver.__main__:main"\n')
    copy.insert("pyproject.toml", '"services.cli"]', '"services.archiver", ')
    copy.insert("Makefile", "api cli; do", "archiver ")
    copy.derive("docker/archiver.Dockerfile", "docker/api.Dockerfile", "api", "archiver")
    copy.insert("docker-compose.yml", "\nvolumes:\n  broker:", _COMPOSE)
    copy.derive("k8s/base/archiver.yaml", "k8s/base/api.yaml", "api", "archiver")
    manifest = (copy.root / "k8s/base/archiver.yaml").read_text(encoding="utf-8")
    manifest = re.sub(r"            - name: LAGSCALE_(SECRET_KEYS|ARCHIVER_ADMIN_KEY)\n(?: {14}.*\n)+", "", manifest)
    manifest = manifest.replace("key: archiver", "key: api").replace("archiverVersion", "apiVersion")
    copy.write("k8s/base/archiver.yaml", manifest)
    copy.insert("k8s/base/kustomization.yaml", "  - api.yaml\n", "  - archiver.yaml\n")
    copy.insert(
        "k8s/base/kustomization.yaml", "  - name: lagscale/api\n", "  - name: lagscale/archiver\n    newTag: 0.1.0\n"
    )
    copy.insert("docs/architecture.md", "| `services/cli` |", "| `services/archiver` | archives dummies | httpx |\n")
    # `make lock` writes it.
    shutil.copy2(copy.root / "requirements/cli.lock", copy.root / "requirements/archiver.lock")


_POLICY_KEY = """    PolicyKey("dummySeconds", "dummy_ms", ValueType.COUNT, "0", _SECONDS, 0, 60, "changes no verdict"),
"""
_POLICY_RULE = '''

def is_dummy(policy: Policy) -> bool:
    """Whether the dummy is on."""
    return policy.dummy_ms > 0
'''
_ROUTE = """

@router.get("/{tenant}/dummy", summary="Show a dummy")
async def show_dummy(tenant: Viewer) -> DummyOut:
    async with tenant.session() as session:
        return DummyOut(name=str(session.tenant["name"]))
"""
_ROUTE_TEST = '''"""The dummy of a tenant."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.integration
'''
_MAIN = '''"""`lagscale-archiver`: archives dummies. Settings are read and the parts are built here only."""

from __future__ import annotations

import argparse
import sys

import structlog

from lagscale.settings import load
from lagscale.telemetry import configure_logging
from services.archiver.metrics import ARCHIVED
from services.archiver.settings import ArchiverSettings

log = structlog.get_logger("services.archiver")


def main() -> int:
    """Archive nothing."""
    argparse.ArgumentParser(prog="lagscale-archiver", description="Archives dummies.").parse_args()
    settings = load(ArchiverSettings)
    configure_logging("archiver", settings.log_level, settings.log_format == "json")
    log.info("service_started", http_listen=settings.archiver_listen)
    ARCHIVED.inc()
    log.info("service_stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
_SETTINGS = '''"""The archiver's settings; `__main__` alone reads them."""

from __future__ import annotations

from pydantic import Field

from lagscale.settings import ListenAddress, ServiceSettings


class ArchiverSettings(ServiceSettings):
    """Settings of the archiver."""

    archiver_listen: ListenAddress = Field(default="0.0.0.0:8080", description="Listen address of health and metrics.")
'''
_METRICS = '''"""The archiver's Prometheus metrics."""

from __future__ import annotations

from prometheus_client import Counter

ARCHIVED = Counter("lagscale_archiver_archived", "Archived dummies.")
'''
_COMPOSE = """
  archiver:
    <<: *service
    build: {context: ., dockerfile: docker/archiver.Dockerfile}
    image: lagscale/archiver:0.1.0
    environment:
      <<: [*environment]
      LAGSCALE_ARCHIVER_LISTEN: 0.0.0.0:8080
    tmpfs: ["/cache:uid=10001,gid=10001"]
    healthcheck:
      <<: *ready
"""

#: Heading in CONTRIBUTING -> what carries it out.
RECIPES: Mapping[str, Callable[[Copy], None]] = {
    "A key of the policy": add_policy_key,
    "A time limit of the scraper": add_time_limit,
    "A metric": add_metric,
    "A route": add_route,
    "A service": add_service,
}
