"""What tests of Spark share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of DataFrames come to the driver, each time."""
    classic = pytest.importorskip("pyspark.sql.classic.dataframe")
    found: list[int] = []
    for name in ("toArrow", "collect", "toPandas"):
        real = getattr(classic.DataFrame, name)

        def counted(self: Any, real: Any = real) -> Any:
            rows = real(self)
            found.append(len(rows))
            return rows

        monkeypatch.setattr(classic.DataFrame, name, counted)
    return found
