"""Between source and sink: what is written at all."""

from __future__ import annotations

from pyspark.sql import DataFrame

from services.scraper.engine.rows import COLUMNS


def select_written(polled: DataFrame) -> DataFrame:
    """Rows that tell something, in the columns that the sink knows."""
    return polled.where("code is not null").select(*COLUMNS)
