"""Structs against memory made by hand, as compiled and as plain Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from dlog.engine.kernels import instructions
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.structs import Array, Inside, Pointer, Struct, i32, i64, u8, u32


class Part(Struct):
    old: i64
    new: i64
    following: Part


Parts = Array[Part]


class PartList(Struct):
    data: Array[i64]
    count: i64


class TypedParts(PartList):
    data: Parts  # type: ignore[assignment]


class Short(Struct):
    first: i32
    second: u32
    third: i32


class Whole(Struct):
    rows: i64
    small: Array[i32]
    bytes: Array[u8]
    first: Part
    parts: Parts
    named: Array[Pointer[Part]]
    within: Inside[Short]
    last: i64
    rest: Inside[Array[i64]]


class Larger(Whole):
    more: i64


Words = Array[i64]


@kernel
def sums(whole: Whole):
    total = 0
    for row in range(whole.rows):
        total += whole.small[row] + whole.bytes[row]
    part = whole.first
    while part:
        part.old += 1
        total += part.old
        part = part.following
    return total


@kernel
def change(whole: Whole):
    whole.parts[1].new = 5
    whole.named[1] = whole.parts[2]
    whole.named[1].old -= 3
    whole.within.third = -7
    whole.within.second = 4294967295
    whole.rest[1] = whole.within.second
    whole.small[2] = whole.within.third
    whole.first = Part(0)


@kernel
def add(field: Words, value):
    field[0] += value


@kernel
def count(whole: Whole):
    add(whole.ref.last, 4)
    return whole.address


@kernel
def second(parts: TypedParts):
    return parts.data[1].new + Part.size


@kernel
def same(left: Part, right: Part):
    return left == right, left != right, not left, 1 if right else 0


@kernel
def of_larger(larger: Larger):
    return sums(larger) + larger.more


class Memory:
    """A `Whole`, and all that it points at, in arrays."""

    def __init__(self) -> None:
        place = Whole.place
        self.small = np.array([1, -2, 3], np.int32)
        self.bytes = np.array([200, 100, 50], np.uint8)
        self.parts = np.zeros((3, 3), np.int64)
        self.parts[0] = 10, 20, self.parts[2].ctypes.data
        self.named = np.zeros(2, np.int64)
        self.words = np.zeros(Larger.place.size + 2, np.int64)
        self.words[place.rows] = 3
        for name in ("small", "bytes", "parts", "named"):
            self.words[getattr(place, name)] = getattr(self, name).ctypes.data
        self.words[place.first] = self.parts.ctypes.data
        self.words[Larger.place.more] = 1000

    @property
    def address(self) -> int:
        return int(self.words.ctypes.data)


EITHER = pytest.mark.parametrize(
    "run", [lambda made: made, lambda made: getattr(made, "py_func", made)], ids=["compiled", "plain"]
)
"""Kernels as they are called, and the functions that they are made of."""


def test_fields_lie_where_they_are_declared() -> None:
    assert vars(Part.place) == {"old": 0, "new": 1, "following": 2, "size": 3}
    assert (Short.size, Short.place.third, Part.size, Larger.place.rows) == (12, 2, 24, 0)
    assert Whole.place.last == Whole.place.within + 2, "a struct within takes whole words"
    assert Whole.place.rest == Whole.place.size == Larger.place.more


@EITHER
def test_loads(run: Any) -> None:
    memory = Memory()
    assert run(sums)(Whole(memory.address)) == 2 + 350 + 11 + 1
    assert memory.parts[:, 0].tolist() == [11, 0, 1]


@EITHER
def test_stores(run: Any) -> None:
    memory = Memory()
    run(change)(Whole(memory.address))
    assert memory.parts[:, :2].tolist() == [[10, 20], [0, 5], [-3, 0]]
    assert memory.named.tolist() == [0, memory.parts[2].ctypes.data]
    assert memory.small.tolist() == [1, -2, -7]
    assert memory.words[Whole.place.rest + 1] == 4294967295, "not sign-extended"
    assert memory.words[Whole.place.first] == 0


@EITHER
def test_a_field_by_its_address(run: Any) -> None:
    memory = Memory()
    assert int(run(count)(Whole(memory.address))) == memory.address
    assert memory.words[Whole.place.last] == 4


@EITHER
def test_a_field_declared_again_points_at_something_else(run: Any) -> None:
    memory = Memory()
    memory.parts[1, 1] = 7
    listed = np.array([memory.parts.ctypes.data, 3], np.int64)
    assert run(second)(TypedParts(listed.ctypes.data)) == 7 + 24


@EITHER
def test_null_and_equality(run: Any) -> None:
    part, null = Part(Memory().parts.ctypes.data), Part(0)
    assert tuple(run(same)(part, null)) == (False, True, False, 0)
    assert tuple(run(same)(null, null)) == (True, False, True, 0)
    assert tuple(run(same)(part, part)) == (True, False, False, 1)


def test_a_struct_that_begins_like_another_goes_for_it() -> None:
    assert of_larger(Larger(Memory().address)) == 364 + 1000


def test_python_passes_addresses() -> None:
    assert sums(Memory().address) == sums(np.int64(Memory().address)) == 364


def test_python_reads_and_writes() -> None:
    memory = Memory()
    whole = Whole(memory.address)
    whole.first.new += 1
    whole.parts[2].old = 9
    assert (whole.rows, whole.small[1], whole.bytes[0], whole.first.new) == (3, -2, 200, 21)
    assert memory.parts[2, 0] == 9
    assert ctypes.c_int64.from_address(int(whole.ref.rows.address)).value == 3


def test_two_structs_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two structs are called Part"):
        type("Part", (Struct,), {"__module__": "dlog.engine.kernels.core.structs"})


def test_a_field_must_not_hide_what_structs_have() -> None:
    with pytest.raises(TypeError, match=r"Broken\.size: every struct has this name"):
        type("Broken", (Struct,), {"__module__": __name__, "__annotations__": {"size": i64}})


def test_operands_are_written_in_the_order_of_the_declaration() -> None:
    head = instructions.Join.operands(bound=4, carried=3, group=2, arrangement=1)
    assert head == [1, 2, 3, 4]
    assert instructions.Join.place.moves == 2 + len(head), "lists follow"


@pytest.mark.parametrize("named", [{"arrangement": 1}, {"arrangement": 1, "group": 2, "keys": 3}])
def test_an_operand_too_few_or_too_many_is_refused(named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="FindGroup has the operands arrangement, group, not "):
        instructions.FindGroup.operands(**named)
