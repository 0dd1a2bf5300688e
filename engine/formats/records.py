"""The tables of records, as the formats see them."""

from __future__ import annotations

from dlog.engine.values.shapes import Tables as RecordTables

__all__ = ["RecordTables"]
