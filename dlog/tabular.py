"""The common methods of everything with rows that dlog hands out: become a table of another library, show the first rows.

Arrow is the way out: `__arrow_c_stream__` is what polars, pyarrow, pandas and DuckDB look for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from dlog.display import preview

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Previewable(ABC):
    """Something that a prompt and a notebook show as a few rows."""

    @abstractmethod
    def _preview(self) -> preview.Preview: ...

    def __repr__(self) -> str:
        return self._preview().text()

    def _repr_html_(self) -> str:
        return self._preview().html()


class Tabular(Previewable):
    """Rows with named columns. A class says what they are as an Arrow table, how many there are and what they are called;
    `_first`, too, where a few rows cost less than all."""

    no_rows: ClassVar[str] = ""
    """What to do where rows are to be given, of what says more than which rows there are."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _title(self) -> str:
        """A description in a line: `dlog.Relation path(x, y), 6 rows`."""

    def _first(self, rows: int) -> pa.Table | None:
        """The first so many rows; None where even those would take long to get."""
        return self.to_arrow().slice(0, rows)

    def to_numpy(self) -> dict[str, np.ndarray]:
        """One array for each column: int64, uint64, float64, or objects."""
        table = self.to_arrow()
        return {name: column.to_numpy() for name, column in zip(table.column_names, table.columns, strict=True)}

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame (polars must be installed)."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The rows for whatever speaks Arrow: `pl.DataFrame(it)`, `pa.table(it)`, `duckdb.sql("from it")`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        table = self.to_arrow()
        if not table.num_columns:
            return iter([()] * table.num_rows)
        return zip(*(column.to_pylist() for column in table.columns), strict=True)

    def _preview(self) -> preview.Preview:
        first = self._first(preview.SHOWN_ROWS)
        return preview.Preview(self._title()) if first is None else preview.of_table(self._title(), first, len(self))

