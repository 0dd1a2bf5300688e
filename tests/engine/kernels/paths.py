"""Paths of the plan run on relations made by a test, without planner or executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.static.chains import grow_arrangement
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lowered import Tables
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from tests.engine.kernels.workbench import Row, loaded, rows_of


class Store:
    """Relations by name, given as rows; arrangements of those named in `growing` are growing ones."""

    def __init__(self, relations: Mapping[str, tuple[int, Sequence[Row]]], growing: frozenset[str] = frozenset()) -> None:
        self.relations = {name: loaded(rows, arity) for name, (arity, rows) in relations.items()}
        self.growing = growing
        self.arrangements: dict[nodes.Arrangement, StoredArrangement] = {}

    def relation(self, name: str) -> StoredRelation:
        return self.relations[name]

    def set_of(self, name: str) -> StoredRelation:
        self.relations[name].ensure_set()
        return self.relations[name]

    def records(self, arity: int) -> StoredRelation:
        raise KeyError(arity)  # paths of these tests have none

    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement:
        if wanted not in self.arrangements:
            relation = self.relations[wanted.relation]
            made = StoredArrangement(relation, wanted.key, wanted.order, wanted.relation in self.growing)
            if made.growing:
                made.start(-1)
                assert grow_arrangement(relation.memory.control.address, made.address, relation.rows)
            else:
                made.build(range(relation.arity))
            self.arrangements[wanted] = made
        return self.arrangements[wanted]


def run(store: Store, seed: nodes.Scan, steps: Sequence[nodes.Step], head: Sequence[int], budget: int = 2**24) -> list[Row]:
    """The rows, with repetitions, that a path appends: the variables `head` of each match."""
    store.relations["out"] = StoredRelation("out", (Kind.FLOAT,) * len(head), Memory(None))
    sink = nodes.Insert("out", tuple(Variable(v) for v in head), distinct=False)
    tables = Tables()
    lowered = PathLowering(nodes.Path(0, seed, tuple(steps), sink, 10), store, tables).lower()  # type: ignore[arg-type]
    worker = Worker(Memory(None))
    worker.prepare(tables)
    worker.control[L.control.budget] = budget
    pauses: list[None] = []
    worker.run_path(lowered, lambda call, args: args[0], lambda: pauses.append(None))
    if budget < 600 and store.relations["out"].rows > 2000:
        assert len(pauses) > 2
    return rows_of(store.relations["out"])
