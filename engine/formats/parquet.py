"""Parquet files of this machine, opened by dlog: Arrow takes a name that begins with a scheme (`hdfs:data/e.parquet`) for an
address, though there is such a file, and for some of them it loads a library from the current folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def metadata(path: Path) -> Any:
    """What a file says of its columns and row groups. Raises OSError and ArrowException."""
    with pa.OSFile(str(path)) as file:
        return pq.read_metadata(file)


def read(path: Path, columns: Sequence[str] | None = None, packed: Sequence[str] = ()) -> pa.Table:
    """A file's rows: all columns or some; those that are `packed` stay in their dictionaries. Raises OSError and
    ArrowException."""
    with pa.OSFile(str(path)) as file:
        return pq.read_table(file, columns=None if columns is None else list(columns), read_dictionary=list(packed))
