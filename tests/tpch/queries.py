"""The 22 queries: a program of rules and a text of SQL each, which name their columns alike.

A relation is a set without order, so the program keeps all rows of the answer, and `ORDER BY` and `LIMIT`, which the text of
SQL has at its end, are done on what is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

import pyarrow as pa

from tests.conftest import ROOT

PROGRAMS = ROOT / "programs" / "tpch"
SQL = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class Query:
    """A query by its name, `q1`, at a scale: the eleventh one depends on it."""

    name: str
    scale: float

    @property
    def program(self) -> Path:
        return PROGRAMS / f"{self._stem}.dl"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tables that the program reads."""
        [names] = re.findall(r"^\.input (.*)$", self.program.read_text(encoding="ascii"), re.MULTILINE)
        return tuple(names.split(", "))

    @property
    def sql(self) -> str:
        return Template((SQL / f"{self._stem}.sql").read_text(encoding="ascii")).substitute(one_in=self._one_in)

    @property
    def whole_sql(self) -> str:
        """The same without `LIMIT`."""
        return re.sub(r"limit \d+\s*$", "", self.sql)

    @property
    def limit(self) -> int | None:
        found = re.search(r"limit (\d+)\s*$", self.sql)
        return int(found[1]) if found else None

    @property
    def order(self) -> list[tuple[str, str]]:
        """The columns of `ORDER BY`, each `ascending` or `descending`."""
        found = re.search(r"\norder by ([^\n]*)\n(limit \d+\s*)?$", self.sql)
        parts = [part.split() for part in found[1].split(",")] if found else []
        return [(name, "descending" if how else "ascending") for name, *how in parts]

    def presented(self, rows: pa.Table) -> pa.Table:
        """Rows in the order that is asked for, and no more."""
        ordered = rows.sort_by(self.order) if self.order else rows
        return ordered.slice(0, self.limit)

    @property
    def _stem(self) -> str:
        return f"q{int(self.name[1:]):02}"

    @property
    def _one_in(self) -> int:
        return one_in(self.scale)


def one_in(scale: float) -> int:
    """Which part of the stock counts in the eleventh query."""
    return max(1, round(10_000 * scale))


NAMES = tuple(f"q{number}" for number in range(1, 23))
