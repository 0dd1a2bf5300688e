"""What kernel tests share: registers and scratch to call kernels on, domains of values, relations made from rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.static import sets
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation

EXAMPLES = 60 if JIT else 5
"""Examples per property: without the JIT a kernel is thousands of times slower."""
MANY = 20_000 if JIT else 1_500
"""Rows of the tests that let tables grow."""

MIN, MAX = -(2**63), 2**63 - 1
EXTREMES = (0, 1, -1, 2, -2, 7, -7, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**62, MAX - 1, MAX, MIN, MIN + 1)
WORDS = st.one_of(st.integers(MIN, MAX), st.sampled_from(EXTREMES), st.integers(-20, 20))
Row = tuple[int, ...]


@dataclass(frozen=True)
class Domain:
    """What is known of a column and some values it may hold: decides its width and, with the arity, the kind of set."""

    extent: Extent | None
    values: tuple[int, ...]


DOMAINS = {
    "few": Domain(Extent(-3, 6), tuple(range(-3, 7))),
    "few, 8 bytes": Domain(Extent(2**40 - 3, 2**40 + 3), tuple(range(2**40 - 3, 2**40 + 4))),
    "14 bits": Domain(Extent(-(2**13), 2**13 - 1), (-(2**13), -1, 0, 1, 511, 512, 513, 2**13 - 1)),
    "32 bits": Domain(Extent(-(2**31), 2**31 - 1), (-(2**31), -1, 0, 1, 65535, 2**31 - 1)),
    "64 bits": Domain(None, (MIN, -(2**32), -1, 0, 1, 2**32, MAX)),
}


@dataclass(frozen=True)
class Given:
    """Rows over one domain."""

    domain: Domain
    arity: int
    rows: list[Row]

    def relation(self, memory: Memory | None = None) -> StoredRelation:
        """An empty relation for such rows, without a set."""
        return relation_of([self.domain.extent] * self.arity, memory)


def row_lists(least: int = 0, greatest: int = 4) -> st.SearchStrategy[Given]:
    """Rows of one arity (from `least` to `greatest`) over one of the domains; many of them are equal."""

    def rows(name: str, arity: int) -> st.SearchStrategy[Given]:
        value = st.sampled_from(DOMAINS[name].values)
        listed = st.lists(st.tuples(*[value] * arity), max_size=40)
        return listed.map(lambda found: Given(DOMAINS[name], arity, found))

    return st.tuples(st.sampled_from(sorted(DOMAINS)), st.integers(least, greatest)).flatmap(lambda choice: rows(*choice))


def relation_of(extents: Sequence[Extent | None], memory: Memory | None = None) -> StoredRelation:
    made = StoredRelation("r", (Kind.NUMBER,) * len(extents), memory or Memory(None))
    made.shape(list(extents))
    return made


def loaded(rows: Sequence[Row], arity: int) -> StoredRelation:
    """A relation whose extents and widths follow from its rows, as after loading a file."""
    made = StoredRelation("r", (Kind.NUMBER,) * arity, Memory(None))
    made.load([np.array([r[c] for r in rows], np.int64) for c in range(arity)], len(rows))
    return made


def rows_of(relation: StoredRelation) -> list[Row]:
    columns = [relation.column(c).tolist() for c in range(relation.arity)]
    return list(zip(*columns, strict=True)) if columns else [()] * relation.rows


class Desk:
    """A control block with eight registers and three blocks of scratch."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.control = memory.new_control(L.control.size)
        self.registers = np.zeros((8, L.REGISTER), np.int64)
        self.scratch = np.zeros((3, L.BLOCK), np.int64)
        self.control[L.control.registers] = int(self.registers.ctypes.data)

    @property
    def address(self) -> int:
        return self.control.address

    def register(self, number: int) -> int:
        return int(self.registers[number].ctypes.data)

    def blocks(self, rows: Sequence[Row], arity: int, size: int = L.BLOCK) -> Iterator[tuple[Struct, int]]:
        """Puts `size` rows after another into registers 0, 1 ...: gives the list of registers and how many rows there are."""
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            for c in range(arity):
                self.registers[c, : len(block)] = [r[c] for r in block]
            yield words(range(arity)), len(block)

    def scratches(self) -> tuple[int, int, int]:
        return tuple(int(block.ctypes.data) for block in self.scratch)  # type: ignore[return-value]

    def insert(self, relation: StoredRelation, rows: Sequence[Row], size: int = L.BLOCK) -> int:
        """Inserts rows block by block; returns how many the kernel says were new."""
        codes, chosen, _ = self.scratches()
        return sum(
            sets.insert_block(self.address, relation.address, registers.address, n, codes, chosen)
            for registers, n in self.blocks(rows, relation.arity, size)
        )

    def found(self, relation: StoredRelation, rows: Sequence[Row]) -> list[int]:
        """What `find_rows` says of each of these keys."""
        _, scratch, found = self.scratches()
        result: list[int] = []
        for registers, n in self.blocks(rows, len(relation.key)):
            sets.find_rows(relation.address, self.address, registers.address, n, scratch, found)
            result += self.scratch[2, :n].tolist()
        return result
