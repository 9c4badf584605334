"""A file that declares a shop: tenant, cluster, monitors, binding; and how a test changes it."""

from __future__ import annotations

from pathlib import Path

SHOP = """
kind: Tenant
metadata: {{name: {tenant}}}
spec: {{displayName: The shop}}
---
kind: List
items:
  - kind: Monitor
    metadata: {{name: orders, tenant: {tenant}}}
    spec: &orders
      cluster: main
      consumerGroup: readers
      topics: [orders]
      policy: {{lagThreshold: 500, sustainSeconds: 120}}
  - kind: Monitor
    metadata: {{name: refunds, tenant: {tenant}}}
    spec: {{<<: *orders, topics: "refunds, returns", overridable: true}}
---
- kind: Cluster
  metadata: {{name: main, tenant: {tenant}}}
  spec:
    bootstrapServers: kafka-0:9092,kafka-1:9092
    security: {{sasl: scram_sha512, tls: enable, username: lagscale}}
    secrets: {{password: {{valueFrom: {{env: KAFKA_PASSWORD}}}}}}
- kind: Binding
  metadata: {{tenant: {tenant}}}
  spec: {{namespace: {tenant}}}
"""


def tenant_in(file: Path) -> str:
    """The tenant that the file declares."""
    return file.read_text().partition("{name: ")[2].partition("}")[0]


def change(file: Path, old: str, new: str) -> None:
    """Write something else into the file."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
