#!/usr/bin/env bash
# Creates .venv, installs the locked dependencies and the project. Called by `make install`.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "Python 3.11 or newer is required; set PYTHON=/path/to/python3.11" >&2
  exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing python3-venv"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
  else
    echo "Python's venv module is missing: install python3-venv" >&2
    exit 1
  fi
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "installing the lock into .venv (pyspark alone is 440 MB; later runs use the cache)"
.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.lock
.venv/bin/uv pip sync --require-hashes requirements/dev.lock
.venv/bin/uv pip install -q --no-deps --no-build-isolation -e .
