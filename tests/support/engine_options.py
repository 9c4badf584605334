"""Options of the scraper's stream with the defaults of its settings, for tests that need few of them."""

from __future__ import annotations

from typing import Any

from services.scraper.engine.options import EngineOptions
from services.scraper.settings import ScraperSettings

_FIELDS = ScraperSettings.model_fields
TENANT_PARTITIONS: int = _FIELDS["scraper_max_tenant_partitions_per_tick"].default


def build_options(database_url: str, holder: str, tick_ms: int, **others: Any) -> EngineOptions:
    """Reports go nowhere; any address is allowed."""
    defaults = {
        "secret_keys": "",
        "slots": 2,
        "reports": "nobody/hears",
        "topics_seconds": _FIELDS["scraper_topic_discovery_interval_seconds"].default,
        "topics_limit": _FIELDS["scraper_max_topics_per_monitor"].default,
        "addresses": "",
        "secret_directory": "",
        "clients_limit": _FIELDS["scraper_max_kafka_clients"].default,
        "tenant_partitions": TENANT_PARTITIONS,
    }
    return EngineOptions(database_url=database_url, holder=holder, tick_ms=tick_ms, **{**defaults, **others})
