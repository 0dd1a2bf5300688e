"""The schedule of batches: tasks in topological order, the readers of every log, the seeds of recursive scopes.

See kernels/incremental/loop/activation.py for what this is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TypeAlias

from dlog.dataclass import immutable
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.lowering.lowered import LoweredPath, Reading
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct, words
from dlog.grammar.diagnostics import InternalError


@immutable
class Step:
    """A task of a batch (`TaskKind`) that is no path, at an address. `completes` is the collection that it makes changes of."""

    kind: int
    address: int
    reads: tuple[Reading, ...] = ()
    completes: Collection | None = None


@immutable
class Visits:
    """The work of batches so far: tasks that ran, paths that had changes to go through (of recursive scopes too), and
    collections of recursive scopes that had rows to look at in an iteration."""

    tasks: int
    paths: int
    collections: int

    def since(self, before: Visits) -> Visits:
        return Visits(self.tasks - before.tasks, self.paths - before.paths, self.collections - before.collections)


Task: TypeAlias = LoweredPath | Step


def connect(tasks: Sequence[Task], logs: Iterable[Struct], others: Iterable[Reading] = ()) -> Struct:
    """Tells the logs their readers, which are tasks by number or `others`, and collections the tasks that complete them.
    Returns the words of all readers, which the logs point to."""
    readers: dict[int, list[int]] = {}
    for number, task in enumerate(tasks, 1):
        if isinstance(task, LoweredPath):  # by far the most
            if task.log is not None:
                readers.setdefault(task.log.address, []).extend((number, 0))
            continue
        for reading in task.reads:
            readers.setdefault(reading.log.address, []).extend((number, _address(reading.seed)))
        if task.completes is not None:
            task.completes.struct[L.collection.derivation_flush] = number
    for reading in others:
        readers.setdefault(reading.log.address, []).extend((0, _address(reading.seed)))
    made = words(word for own in readers.values() for word in own)
    starts = dict(zip(readers, accumulate(map(len, readers.values()), initial=0), strict=False))
    for log in logs:
        own = readers.get(log.address, ())
        log[L.log.reader_words] = len(own)
        if own:
            log[L.log.readers] = made.address + 8 * starts[log.address]
    return made


def _address(seed: Struct | None) -> int:
    return 0 if seed is None else seed.address


def connect_scope(
    loop: Struct, enter: Sequence[LoweredPath], body: Sequence[LoweredPath], own: Sequence[Collection]
) -> tuple[Reading, ...]:
    """Gives a recursive scope its seeds; returns what it reads. `own` are its collections."""
    entering, looping = _by_log(enter), _by_log(body)
    unit = _seed(loop, None, entering.pop(0), False) if 0 in entering else None
    imports = [_seed(loop, _log_of(paths[0]), paths, False) for paths in entering.values()]
    inner = [_seed(loop, log, looping.pop(log.address, ()), True) for log in map(_inner_log, own)]
    if looping:
        raise InternalError("schedule", "a path within a recursion is not seeded by one of its relations")
    for seed in inner:
        log = seed.keep[L.seed.list]
        assert isinstance(log, Struct)
        log[L.log.seed] = seed.address
    loop.keep[-1] = (unit, imports, inner)
    loop.point(L.scope.imports, words(seed.address for seed in imports))
    loop[L.scope.import_count] = len(imports)
    loop[L.scope.unit] = _address(unit)
    loop.point(L.scope.changed, Struct(len(imports)))
    loop.point(L.scope.seeds, Struct(max(len(imports) + 1, len(own))))
    loop.point(L.scope.touched, Struct(len(own)))
    loop.point(L.scope.own, words(collection.address for collection in own))
    loop[L.scope.own_count] = len(own)
    return tuple(Reading(_log_of(paths[0]), seed) for paths, seed in zip(entering.values(), imports, strict=True))


def _by_log(paths: Sequence[LoweredPath]) -> dict[int, list[LoweredPath]]:
    """Paths by the address of what seeds them, 0 for nothing."""
    found: dict[int, list[LoweredPath]] = {}
    for path in paths:
        found.setdefault(_address(path.log), []).append(path)
    return found


def _log_of(path: LoweredPath) -> Struct:
    assert path.log is not None
    return path.log


def _inner_log(collection: Collection) -> Struct:
    found = collection.struct.keep[L.collection.inner_log]
    assert isinstance(found, Struct)
    return found


def _seed(loop: Struct, log: Struct | None, paths: Sequence[LoweredPath], own: bool) -> Struct:
    made = Struct(L.seed.size)
    if log is not None:
        made.point(L.seed.list, log)
    made.point(L.seed.paths, words(path.address for path in paths))
    made[L.seed.path_count] = len(paths)
    made[L.seed.scope] = loop.address
    made[L.seed.own] = int(own)
    return made
