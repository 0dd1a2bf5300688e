"""Functions of deltas as programs over columns, which a kernel runs: several that follow each other are one, and what they make
is written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.engine.kernels.codes import ColumnCode
from dlog.engine.kernels.column_structs import ColumnInstruction
from dlog.engine.kernels.column_structs import ColumnProgram as Header
from dlog.engine.kernels.trace.column_programs import CHUNK, apply_program, sum_program
from dlog.engine.operators.delta import Delta, empty, together
from dlog.engine.operators.operator import Function
from dlog.engine.trace.layer import FEW_SUMS, scratch_of_sums, sums_found
from dlog.engine.values.addresses import address_of
from dlog.engine.values.array_pool import RecurringBlocks

MOST_COPIED = 1 << 16
"""Updates up to which a program writes columns anew that stay as they are; it is called once in place of many functions."""
SUMMED = 1 << 12
"""Updates that are summed up at a time: registers stay in the cache. Where that leaves many it is more of them,"""
SHARE = 32
"""so many times as many as there were different ones."""
MOST_SCRATCH = 1 << 18
"""Words of memory that a program holds from call to call, at most."""
Node = int
"""A column of the updates, by its place, or what an instruction makes."""


class Building:
    """A program that is being built, for updates of so many columns."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.columns: list[Node] = [*range(arity)]
        """What comes out so far."""
        self.mask: Node | None = None
        self.factor: Node | None = None
        self.sign = 1
        self.weights: list[Node] = []
        """Of the components that are summed up: nothing follows then."""
        self.given: dict[Node, Callable[[Delta], np.ndarray]] = {}
        """Columns that are worked out before it runs."""
        self._made: list[tuple[ColumnCode, int, int] | None] = []
        self._nodes: dict[tuple[ColumnCode, int, int], Node] = {}

    def number(self, value: int) -> Node:
        """One word for all updates."""
        return self.apply(ColumnCode.FILL, value, 0)

    def apply(self, code: ColumnCode, left: int, right: int) -> Node:
        """What an instruction makes of two nodes; the same one of the same."""
        key = code, left, right
        if key not in self._nodes:
            self._nodes[key] = self.arity + len(self._made)
            self._made.append(key)
        return self._nodes[key]

    def give(self, words: Callable[[Delta], np.ndarray]) -> Node | None:
        """What a function makes of the updates, words for all of them; None where not all of them would be left by now."""
        if self.mask is not None:
            return None
        node = self.arity + len(self._made)
        self._made.append(None)
        self.given[node] = words
        return node

    def keep(self, condition: Node) -> None:
        """Keeps the updates for which a node is 1; it is 0 for the others."""
        self.mask = condition if self.mask is None else self.apply(ColumnCode.AND, self.mask, condition)

    def multiply(self, factor: Node) -> bool:
        """Multiplies diffs by a node, and keeps those that are not 0; false where that has been done already."""
        if self.factor is not None:
            return False
        self.factor = factor
        self.keep(self.apply(ColumnCode.DIFFERENT, factor, self.number(0)))
        return True

    @property
    def computes(self) -> bool:
        """Whether it does more than put columns in another order."""
        changed = self.mask is not None or self.sign < 0 or self.weights
        return bool(changed) or any(column >= self.arity for column in self.columns)

    def instructions(self) -> tuple[list[Node], list[tuple[Node, ColumnCode, int, int]]]:
        """The columns worked out before that something comes out of; and such instructions, with what each makes: first those
        that need no updates."""
        needed = {*self.columns, *self.weights} | {node for node in (self.mask, self.factor) if node is not None}
        found = []
        for node in range(self.arity + len(self._made) - 1, self.arity - 1, -1):
            if node in needed and (made := self._made[node - self.arity]) is not None:
                code, left, right = made
                found.append((node, code, left, right))
                needed |= set() if code is ColumnCode.FILL else {left, right}
        given = [node for node in self.given if node in needed]
        return given, sorted(found, key=lambda each: (each[1] is not ColumnCode.FILL, each[0]))


class ColumnProgram:
    """A program as a function of deltas."""

    def __init__(self, building: Building) -> None:
        given, code = building.instructions()
        self._given, self._fields = [building.given[node] for node in given], building.arity + len(given)
        places = {node: building.arity + k for k, node in enumerate([*given, *(node for node, *_ in code)])}
        register = [*range(building.arity)].__getitem__, places.__getitem__

        def of(node: Node | None) -> int:
            return -1 if node is None else register[node >= building.arity](node)

        self.arity, self.weights, self.registers = len(building.columns), len(building.weights), len(code)
        self.keeps_all = building.mask is None
        self._shown = np.array([*map(of, (*building.columns, *building.weights))], np.int64)
        fills = sum(each is ColumnCode.FILL for _, each, _, _ in code)
        words = [self._fields, len(code), fills, len(code), of(building.mask), of(building.factor), building.sign]
        words += [self.arity, self.weights, address_of(self._shown)]
        for node, each, left, right in code:
            words += [each, left, 0, of(node)] if each is ColumnCode.FILL else [each, of(left), of(right), of(node)]
        assert len(words) == Header.place.code + ColumnInstruction.place.size * len(code)
        self._words = np.array(words, np.int64)
        self._address = address_of(self._words)
        self._scratch = np.empty(0, np.int64)
        self._blocks = RecurringBlocks()

    def __call__(self, delta: Delta) -> Delta | None:
        """What comes out of updates, of which there are some; None where that is left to functions."""
        if delta.rows > MOST_COPIED and self.keeps_all and not self.weights:
            return None
        block, held = delta.block(), None
        if self._given:
            fields = [*(delta.fields() if block is None else block)]
            given = (np.ascontiguousarray(words(delta), np.int64) for words in self._given)
            block, held = None, [*fields[: delta.arity], *given, *fields[delta.arity :]]
        elif block is None:
            held = delta.fields()
        at = 0 if block is None else address_of(block)
        return self._summed(delta, at, held) if self.weights else self._changed(delta, at, held)

    def _changed(self, delta: Delta, block: int, held: list[np.ndarray] | None) -> Delta | None:
        fields, rows, depth = self.arity + delta.depth + 1, delta.rows, delta.depth
        places, written, _ = self._room(delta, held, (self.registers + 1) * min(rows, CHUNK), 0)
        found = self._blocks.block(fields, rows)
        kept = apply_program(self._address, block, places, depth, rows, written, address_of(found))
        if kept == rows:
            return Delta.of_block(found, self.arity)
        if kept < 0:
            return None
        made = found.reshape(-1)[: fields * kept].reshape(fields, kept)
        return Delta.of_block(made.copy() if 2 * kept < rows else made, self.arity)

    def _summed(self, delta: Delta, block: int, held: list[np.ndarray] | None) -> Delta | None:
        arity, depth, rows = self.arity, delta.depth, delta.rows
        shape, at, most, start, parts = (arity, depth, self.weights), self._fields + depth + 1, SUMMED, 0, []
        while start < rows:
            count = min(most, rows - start)
            summing = scratch_of_sums(arity + depth, self.weights, count)
            places, written, scratch = self._room(delta, held, (self.registers + 1) * count, summing)
            found = np.empty((arity + depth + 3) * FEW_SUMS, np.int64)
            given = block, places, depth, rows, start, count, written, scratch
            sums = sum_program(self._address, *given, FEW_SUMS, address_of(found))
            if sums < 0:
                return None
            if sums:
                parts.append(Delta.of_block(sums_found(places + 8 * at, shape, scratch, found, sums), arity + 2))
            start, most = start + count, max(SUMMED, SHARE * (sums // self.weights))
        return together(parts) if parts else empty(arity + 2, depth)

    def _room(self, delta: Delta, held: list[np.ndarray] | None, written: int, summing: int) -> tuple[int, int, int]:
        """Where the addresses of fields are, with those of the fields that are held; where registers are, and where sums are
        worked out: until it is asked for again."""
        places = 2 * (self._fields + delta.depth + 1) + self.arity + self.weights
        size = places + written + summing
        if not size <= len(self._scratch) <= max(size, MOST_SCRATCH):
            self._scratch = np.empty(size, np.int64)
        if held is not None:
            self._scratch[: len(held)] = [address_of(field) for field in held]
        at = address_of(self._scratch)
        return at, at + 8 * places, at + 8 * (places + written)


class Programmed:
    """A function of deltas that can be part of a program, too: `extend` adds it to one that is built, or returns false."""

    def __init__(self, function: Function, extend: Callable[[Building], bool]) -> None:
        self.function, self.extend = function, extend

    def __call__(self, delta: Delta) -> Delta:
        return self.function(delta)


class Chain:
    """Functions, one after the other, of which adjacent ones become programs when the first delta has come."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._parts: list[Function] | None = None

    def __call__(self, delta: Delta) -> Delta:
        if self._parts is None:
            return self._prepare(delta)
        for part in self._parts:
            if not delta.rows:
                break
            delta = part(delta)
        return delta

    def _prepare(self, delta: Delta) -> Delta:
        """Applies the functions, and finds out which ones go together: what a delta has come to be says how many columns there
        are. Where nothing is left half way, the next delta will tell."""
        parts: list[Function] = []
        at, end = 0, len(self._functions)
        while at < end and delta.rows:
            building, start = Building(delta.arity), at
            while at < end and _extended(building, self._functions[at]):
                at += 1
            at = max(at, start + 1)
            chosen = self._functions[start:at]
            found = [_Fused(chosen, ColumnProgram(building))] if building.computes else chosen
            for part in found:
                delta = part(delta)
            parts += found
        if at == end:
            self._parts = parts
        return delta


def _extended(building: Building, function: Function) -> bool:
    return isinstance(function, Programmed) and not building.weights and function.extend(building)


class _Fused:
    """Functions as one program, or one by one."""

    def __init__(self, functions: Sequence[Function], program: ColumnProgram) -> None:
        self._functions, self._program = functions, program

    def __call__(self, delta: Delta) -> Delta:
        found = self._program(delta)
        if found is not None:
            return found
        for function in self._functions:
            if not delta.rows:
                break
            delta = function(delta)
        return delta
