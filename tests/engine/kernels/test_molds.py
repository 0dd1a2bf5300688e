"""Collections are made after molds, and leave nothing behind."""

from __future__ import annotations

import pytest

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct
from dlog.grammar.diagnostics import DlogError

KINDS = (Kind.NUMBER, Kind.FLOAT, Kind.SYMBOL)


def collection(role: Role, memory: Memory) -> Collection:
    scope = Struct(L.scope.size) if role in (Role.PARTIAL, Role.PARTIAL_CANDIDATES) else None
    return Collection("c", KINDS, role, memory, scope)


@pytest.mark.parametrize("role", Role)
def test_a_collection_gives_all_back(role: Role) -> None:
    memory = Memory(None)
    made = collection(role, memory)
    made.index((0,))
    made.index((2, 1))
    if role is Role.GROUPS:
        made.keep_sums(2)
        made.keep_heads()
    if role is Role.CANDIDATES:
        made.keep_records(L.CANDIDATE_WIDE)
    assert memory.used > 0
    made.free()
    assert memory.used == 0
    made.free()
    assert memory.used == 0


@pytest.mark.parametrize("role", Role)
def test_a_collection_for_which_memory_does_not_suffice_leaves_none(role: Role) -> None:
    whole = Memory(None)
    collection(role, whole)
    for limit in range(0, whole.used, 64):
        memory = Memory(limit)
        with pytest.raises(DlogError):
            collection(role, memory)
        assert memory.used == 0


@pytest.mark.parametrize("role", Role)
def test_parts_are_where_the_collection_points_to(role: Role) -> None:
    made = collection(role, Memory(None))
    other = collection(role, made.memory)
    assert made.widths[0].address == made.struct[L.relation.columns] != other.widths[0].address
    assert [made.widths[0][at] for at in made.widths[1]] == [4, 8, 4]
    for history in made.histories:
        assert history.address in (made.struct[L.collection.outer], made.struct[L.collection.inner])
        for field in (L.history.items, L.history.entries):
            part = history.keep[field]
            assert isinstance(part, Struct) and part.address == history[field] and part[L.items.words] > 0
    for field in (L.collection.log, L.collection.touched, L.collection.maybe_dead):
        assert (field in made.struct.keep) == (made.struct[field] != 0)
        if field in made.struct.keep:
            part = made.struct.keep[field]
            assert part is made.struct.keep[field] and isinstance(part, Struct) and part.address == made.struct[field]
    made.free()
    other.free()
    assert made.memory.used == 0
