"""The tables of TPC-H, from `tpchgen-cli`, and their refresh: orders that come and orders that go in each round.

The generator has no refresh functions, so some of its orders are kept back at first: a tenth of a percent is inserted with its
items in each round (RF1), and as many of those that are there are deleted (RF2). Which ones, a seed says.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.tpch.queries import one_in

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, with the column that has the order."""
ONE_IN = 1000
"""One of so many orders comes in a round, and one goes."""
SEED = 22

Tables = dict[str, pa.Table]


def generator() -> str | None:
    """The command that makes the tables, of this environment or of the PATH."""
    beside = str(Path(sysconfig.get_path("scripts")))
    return shutil.which("tpchgen-cli", path=beside) or shutil.which("tpchgen-cli")


MISSING = f"tpchgen-cli is not installed: {Path(sys.executable).name} -m pip install '.[dev]', or tpchgen-cli alone"


def generate(folder: Path, scale: float) -> Path:
    """The folder with a Parquet file for each table, made if it is not there."""
    command = generator()
    if not folder.is_dir():
        if command is None:
            raise FileNotFoundError(MISSING)
        unfinished = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run([command, "parquet", "-s", f"{scale:g}", "-o", str(unfinished)], check=True, capture_output=True)
        unfinished.rename(folder)
    return folder


def read(folder: Path, scale: float) -> Tables:
    """All tables as dlog is given them: decimals as numbers of hundredths; and the parameter `least` of the eleventh query."""
    tables = {name: _plain(pq.read_table(folder / f"{name}.parquet")) for name in TABLES}
    return tables | {"least": pa.table({"one_in": [one_in(scale)]})}


def _plain(table: pa.Table) -> pa.Table:
    return pa.table({name: numbers(column) for name, column in zip(table.column_names, table.columns, strict=True)})


def numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column with decimals as numbers of units of the last digit."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return pa.array(_unscaled(column))
    return column.cast(pa.int64()) if pa.types.is_integer(kind) else column.cast(pa.string()) if _is_text(kind) else column


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_large_string(kind)


def _unscaled(column: pa.ChunkedArray) -> np.ndarray:
    """The low halves of 128 bits, which are all of amounts like these."""
    parts = [np.frombuffer(c.buffers()[1], np.int64)[2 * c.offset : 2 * (c.offset + len(c)) : 2] for c in column.chunks]
    return np.concatenate([*parts, np.empty(0, np.int64)])


@dataclass(frozen=True, slots=True)
class Refresh:
    """What happens to orders: `comes` and `goes` have the round of each order in `keys`, or 0 where it is there from the
    beginning, or stays."""

    keys: np.ndarray
    comes: np.ndarray
    goes: np.ndarray

    @classmethod
    def of(cls, orders: pa.Table, rounds: int, one_in: int = ONE_IN) -> Refresh:
        keys = orders["o_orderkey"].to_numpy()
        many = max(1, len(keys) // one_in)
        chosen = np.random.default_rng(SEED).permutation(len(keys))[: 2 * many * rounds]
        numbers = np.repeat(np.arange(1, rounds + 1), many)
        comes, goes = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        comes[chosen[: many * rounds]] = numbers
        goes[chosen[many * rounds :]] = numbers
        return cls(keys, comes, goes)

    def first(self, tables: Tables) -> Tables:
        """What is there before the first round."""
        return {n: t.filter(self._when(n, t, self.comes, 0)) if n in KEYS else t for n, t in tables.items()}

    def rounds(self, tables: Tables) -> Iterator[tuple[Tables, Tables]]:
        """What is inserted and what is deleted, round by round."""
        for number in range(1, int(self.comes.max()) + 1):
            inserted, deleted = (
                {name: tables[name].filter(self._when(name, tables[name], rounds, number)) for name in KEYS}
                for rounds in (self.comes, self.goes)
            )
            yield inserted, deleted

    def _when(self, name: str, table: pa.Table, rounds: np.ndarray, number: int) -> pa.Array:
        return pc.is_in(table[KEYS[name]], value_set=pa.array(self.keys[rounds == number]))
