"""Source and sink under one name, importable wherever Spark runs Python."""

from __future__ import annotations

import gc

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from services.scraper.engine.options import EngineOptions
from services.scraper.spark.sink import SampleWriter
from services.scraper.spark.source import TickReader

NAME = "lagscale"


class LagDataSource(DataSource):
    """The poll as a source, the store as a sink."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> str:
        """The columns."""
        from services.scraper.engine.rows import SCHEMA

        return SCHEMA

    def streamReader(self, schema: StructType) -> TickReader:
        """The poll."""
        return TickReader(EngineOptions.read(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> SampleWriter:
        """The store."""
        return SampleWriter(EngineOptions.read(self.options))


# Every call of Spark's into Python ends with a collection; without this it would walk all of pyspark again each time.
gc.freeze()
