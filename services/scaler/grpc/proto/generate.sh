#!/usr/bin/env bash
# Generates the gRPC code beside its proto; with --check, says whether the committed code is what would be generated.
# It runs from the repository's root, so that the generated imports name the package as it is.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
here=services/scaler/grpc/proto
out=.
if [ "${1:-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
.venv/bin/python -m grpc_tools.protoc -I. --python_out="$out" --grpc_python_out="$out" $here/externalscaler.proto
if [ "$out" != . ]; then
  for file in externalscaler_pb2.py externalscaler_pb2_grpc.py; do
    diff -q "$out/$here/$file" "$here/$file" || { echo "run: make proto"; exit 1; }
  done
fi
