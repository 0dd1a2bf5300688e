"""Lowering of paths whose changes come in runs (kernels/static/runs.py): a second code beside a path's own, for iterations that
have many changes.

It is for paths that read a column of their changes nowhere but in the sink, as its last value: the values of a run then lie
close to each other in the sink's bitmap.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Variable
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Operation
from dlog.engine.runtime.lowering.liveness import reads
from dlog.engine.runtime.lowering.lower import PathLowering, Storage
from dlog.engine.runtime.lowering.lowered import LoweredPath, Tables
from dlog.engine.runtime.lowering.sweeping import has_bitmap, is_plain
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.native import Struct, words

RUNS_LEAST = 2048
"""Fewest changes of an iteration that are sorted."""
_START, _COUNT = -1, -2
"""What a path carries beside its variables: where a run begins, and its length."""


def add_runs(lowered: Iterable[LoweredPath], storage: Storage, tables: Tables) -> list[Struct]:
    """Gives the paths that can have it a code for runs; returns the structs of the runs, for the loop to sort."""
    made: dict[str, tuple[int, Struct]] = {}
    for path in lowered:
        column = late_column(path.path, storage)
        if column is None:
            continue
        seed = path.path.seed
        assert isinstance(seed, nodes.Scan)
        if seed.relation not in made:
            made[seed.relation] = column, _runs(path.path, column, storage)
        chosen, runs = made[seed.relation]
        if chosen == column:
            twin = RunLowering(path.path, column, storage, tables).lower()
            path.code += twin.code
            path.struct.point(L.path.runs, runs)
            path.struct.point(L.path.run_code, words(c.address for c in twin.code))
    return [runs for _, runs in made.values()]


def late_column(path: nodes.Path, storage: Storage) -> int | None:
    """The column of a path's changes that only the sink reads, as its last value, None where there is none."""
    seed = path.seed
    if not isinstance(seed, nodes.Scan) or not seed.changes or not path.steps or not is_plain(path.sink, storage):
        return None
    relation = storage.relation(seed.relation)
    if not has_bitmap(relation) or relation.pinned:
        return None
    assert isinstance(path.sink, nodes.Insert)
    if not path.sink.terms:
        return None
    last = path.sink.terms[-1]
    columns = [column for column, variable in seed.binds if last == Variable(variable)]
    if len(columns) != 1 or len(seed.binds) < 2 or path.sink.terms.count(last) != 1:
        return None
    assert isinstance(last, Variable)
    return None if any(last.id in reads(step) for step in path.steps) else columns[0]


def _runs(path: nodes.Path, column: int, storage: Storage) -> Struct:
    assert isinstance(path.seed, nodes.Scan)
    relation = storage.relation(path.seed.relation)
    relation.sorted_by = ()
    runs = Struct(L.runs.size)
    runs.point(L.runs.relation, relation.struct)
    runs[L.runs.column] = next(c for c, _ in path.seed.binds if c != column)
    runs[L.runs.least] = RUNS_LEAST
    return runs


class RunLowering(PathLowering):
    """Lowers a path for the runs of its changes that differ in `column`."""

    def __init__(self, path: nodes.Path, column: int, storage: Storage, tables: Tables) -> None:
        super().__init__(path, storage, tables)
        self.column = column
        self.needed = [needed | {_START, _COUNT} for needed in self.needed]

    def _seed(self) -> None:
        assert isinstance(self.path.seed, nodes.Scan)
        relation = self.storage.relation(self.path.seed.relation)
        start, count = self.code.bind(_START), self.code.bind(_COUNT)
        others = [(c, v) for c, v in self.path.seed.binds if c != self.column]
        pairs = [w for column, variable in others for w in (column, self.code.bind(variable, relation.kinds[column]))]
        head = I.ScanRuns.operands(relation=relation.address, starts=start, counts=count, bound=len(others))
        self.code.emit(Operation.RUNS, *head, *pairs)

    def _swept(self, step: nodes.HalfJoin, arrangement: StoredArrangement) -> None:
        return None

    def _sink(self) -> None:
        assert isinstance(self.path.seed, nodes.Scan) and isinstance(self.path.sink, nodes.Insert)
        seed = self.storage.relation(self.path.seed.relation)
        place = len(self.path.sink.terms) - 1
        start, count = self.code.registers[_START], self.code.registers[_COUNT]
        self._sweep_level(Operation.SWEEP_RUNS, seed.address, start, self.column, place, count)
