"""A program some of whose strata cannot be maintained: these are computed anew when what they read changes, all others are
maintained.

The strata are cut to parts, each with an engine of its own. What a commit changes in a relation is, for the parts that read it
from another one, a change from outside: so a part none of whose inputs change is not visited, whatever the rest does. Reading
waits while a commit runs. A commit that fails is taken back by deriving all parts anew, from the inputs as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import TypeVar, cast

import numpy as np

from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Program
from dlog.engine.plan.incremental.layers import Part, parts
from dlog.engine.plan.incremental.passing import passing_relations
from dlog.engine.rounds_engine import Frames, Image, IncompatibleImage, PlainRounds, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.batches.changes import insertions, no_updates
from dlog.engine.runtime.incremental.engines.following import Before, Following, Layer, all_of
from dlog.engine.runtime.incremental.engines.kept import Kept
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.engine.runtime.incremental.engines.timed import Changed, Fed, Rows, Shown
from dlog.engine.runtime.incremental.engines.viewed import keeper_of
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.differences import apply_changes, words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError

Reply = TypeVar("Reply")
FEEDING: dict[str, type[Fed]] = {"shown": Shown, "changed": Changed, "kept": Kept}


class Layered(PlainRounds):
    """See `dlog.engine.rounds_engine.RoundsEngine`. `reasons` says by stratum why it cannot be maintained."""

    here = True
    """Whether engines of parts are in this process: they let rows pass, and take over from others."""

    def __init__(
        self,
        program: Program,
        reasons: Mapping[int, str],
        *,
        threads: int = 1,
        memory: int | None = None,
        max_iterations: int | None = None,
        old: RoundsEngine | StartingPoint | None = None,
    ) -> None:
        self.program = program
        self._options = {"threads": threads, "memory": memory, "max_iterations": max_iterations}
        self.symbols: SymbolTable = SymbolTable() if old is None else old.symbols
        self.records = RecordTables(Memory(None)) if old is None else old.records
        self.round = 0 if old is None else old.round
        self._again = isinstance(old, StartingPoint) and old.again
        self._lock = RLock()
        self._parts = parts(program, reasons, passing_relations(program, reasons) if self.here else ())
        self._following = self._goes_on(old) if self.here and isinstance(old, Layered) and old._commits else None
        self._layers = self._following.layers if self._following else [self._build_layer(p, self._again) for p in self._parts]
        self._ruled = program.derived.keys()
        self._owner = {name: number for number, part in enumerate(self._parts) for name in part.owns}
        self._commits: int = old._commits if self._following and isinstance(old, Layered) else 0
        self._forgotten = False
        """Whether the engine is at its last round without knowing what that changed."""
        self._old = old
        """What the first commit goes on from."""
        self._resumed = False
        """Whether that is an image: what has come since then comes with the first commit."""
        self._owing: Callable[[], None] | None = None
        """How to go back to the last round, where a commit failed and so did the way back."""
        self._reused: frozenset[str] = frozenset()
        self._lent: list[tuple[Layer, Maintained]] = []
        """Layers from whose engines others have taken over, while the engine of another program goes on from this one."""
        self._ruled_before: dict[str, Table] = {}
        """External rows of relations with rules, before they changed in the first commit of that."""

    def _build_layer(self, part: Part, again: bool) -> Layer:
        if part.timed:
            fed = FEEDING[self.program.timed[part.timed].how](part.program, part.timed, self.round, part.passing)
            return Layer(part, cast("RoundsEngine", fed), fed)  # of which Layered asks no more than it has
        return Layer(part, self._part_engine(part, StartingPoint(self.symbols, self.records, self.round, again=again)))

    def _goes_on(self, old: Layered) -> Following:
        """What is taken over from another engine."""
        old._go_back()
        before = Before(old.program, old._layers, old.table, old.external)
        return Following(before, self._parts, self._follow_layer)

    def _follow_layer(self, part: Part, engine: Maintained | None) -> Layer:
        if engine is None:
            return self._build_layer(part, False)
        made = Maintained(part.program, old=engine, **self._options)  # type: ignore[arg-type]
        made.round = self.round  # of the other one, the last that it had a share in
        return Layer(part, made)

    def _part_engine(self, part: Part, start: StartingPoint) -> RoundsEngine:
        """The engine of a part with rules."""
        engine = Maintained if part.why is None else Recompute
        return engine(part.program, old=start, **self._options)  # type: ignore[arg-type]

    # -------------------------------------------------------------------------------------------------------------- commit

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        with self._lock, Delayed():
            self._go_back()
            given = {name: updates for name, updates in inputs.items() if updates.rows}
            last = max((updates.last for updates in given.values()), default=self.round + 1)
            begun = bool(self._commits)
            ruled = {name: self._external(name) for name in given if name in self._ruled and self._following is None}
            self._commits += 1
            try:
                if self._following is not None:
                    self._begin_following(self._following, given)
                for layer in self._layers:
                    self._commit_layer(layer, given, frames, last, begun)
            except BaseException:
                if self._following is not None:
                    self._undo_following()
                    raise
                self._owing = lambda: self._take_back(begun, ruled)
                self._go_back()
                raise
            if self._following is not None:
                self._reused = frozenset(self._following.reused_relations())
            self.round, self._forgotten, self._old, self._resumed, self._following = last, False, None, False, None
            return last

    def _commit_layer(
        self, layer: Layer, given: Mapping[str, Updates], frames: Frames | None, last: int, begun: bool
    ) -> None:
        """Has a part go on to the last round of a commit."""
        following = self._following
        new = following.is_new(layer) if following is not None else not begun
        share = self._share(layer, given, last)
        own = {name: frames[name] for name in layer.part.inputs if name in frames} if frames else None
        if layer.fed is not None:
            before, again = self._before(layer.fed) if self._resumed or new else (None, False)
            if layer.fed.advance(share, last, before, again):
                layer.committed = self._commits
            if type(layer.fed) is Shown and layer.fed.crowded:
                layer.fed.restore(self.table(layer.fed.timed.source), last)
        elif share or own or new or self._resumed:
            layer.committed = self._commits
            self._commit_part(layer.engine, share, own, last)

    def _commit_part(self, engine: RoundsEngine, share: Mapping[str, Updates], frames: Frames | None, last: int) -> None:
        """Has the engine of a part commit its share of the changes up to a round."""
        engine.commit(share)

    def _before(self, fed: Fed) -> tuple[Rows | None, bool]:
        """What had come of a relation that another one follows when the first commit comes: rows of the engine before, or all
        that there are."""
        old = self._old
        if self._following is not None:
            return self._following.source_of(fed), False
        if old is None:
            return None, False
        if isinstance(old, StartingPoint):
            return None, fed.name in old.restored
        if fed.name not in old.program.timed:
            return None, False
        table = old.table(fed.timed.source)
        return (tuple(words(column) for column in table.columns), table.rows), False

    def _share(self, layer: Layer, given: Mapping[str, Updates], last: int) -> dict[str, Updates]:
        """The changes for a part, those before it having committed."""
        if self._following is not None:
            return self._first_share(self._following, layer, given, last)
        found = {name: given[name] for name in layer.part.inputs if name in given}
        for name in layer.part.reads:
            updates = self._changes_of(name)
            if updates is not None and updates.rows:
                found[name] = updates
        return found

    def _first_share(
        self, following: Following, layer: Layer, given: Mapping[str, Updates], last: int
    ) -> dict[str, Updates]:
        """The same in the first commit after another engine: whoever has no rows gets all of them."""
        found = following.given(layer, given, last)
        for name in layer.part.reads:
            owner = self._layers[self._owner[name]]
            if following.has(layer, name):
                updates = following.changes(owner, name, self._changes_of(name), self._table_at(name, last), last)
            elif owner.fed is not None and owner.fed.passing:
                updates = owner.fed.last
            else:
                updates = all_of(self._table_at(name, last), last)
            if updates.rows:
                found[name] = updates
        return found

    def _changes_of(self, relation: str) -> Updates | None:
        """The changes of a relation by this commit so far; None where its part had no share in it."""
        layer = self._layers[self._owner[relation]]
        return layer.engine.changes(relation) if layer.committed == self._commits else None

    # --------------------------------------------------------------------------------------------------------- succession

    @property
    def inherited(self) -> frozenset[str]:
        return frozenset() if self._following is None else self._following.inherited

    @property
    def reused_relations(self) -> frozenset[str]:
        return self._reused

    def _begin_following(self, following: Following, given: Mapping[str, Updates]) -> None:
        old = self._old
        assert isinstance(old, Layered)
        following.begin()
        old._lent = following.followed
        old._ruled_before = {name: old._external(name) for name in given if name in old._ruled}

    def _undo_following(self) -> None:
        """The first commit has failed: the engine before is as it was, and this one of no use."""
        old = self._old
        assert isinstance(old, Layered)
        old.take_back(cast("RoundsEngine", self))

    def take_back(self, successor: RoundsEngine) -> None:
        successor = keeper_of(successor)
        if not isinstance(successor, Layered):
            return
        with self._lock:
            for layer, engine in self._lent:
                if engine.has_rows:  # else it has not begun, or has failed and given all of them back
                    layer.engine.take_back(cast("RoundsEngine", engine))
            if any(layer.engine.round > self.round for layer in self._layers):
                ruled, self._commits = self._ruled_before, successor._commits
                self._owing = lambda: self._take_back(True, ruled)
                self._go_back()
            self._lent, self._ruled_before = [], {}

    # ------------------------------------------------------------------------------------------------------------- failure

    def _take_back(self, begun: bool, ruled: Mapping[str, Table]) -> None:
        """Gets all parts back to the last round, from the inputs as they were; from nothing where the first commit failed.
        `ruled` are external rows of relations with rules, before the commit."""
        fed = dict.fromkeys(name for part in self._parts for name in part.inputs)
        tables = {name: ruled[name] if name in ruled else self._external_before(name) for name in fed} if begun else {}
        before = {name: table for name, table in tables.items() if table.rows}
        self._owing = lambda: self._rebuild(before, begun)
        self._owing()

    def _external(self, relation: str) -> Table:
        return self._feeding(relation).engine.external(relation)

    def _feeding(self, relation: str) -> Layer:
        """The first part that takes a relation's external rows."""
        if relation in self.program.timed:
            return self._layers[self._owner[relation]]
        return next(layer for layer in self._layers if relation in layer.part.inputs)

    def _external_before(self, relation: str) -> Table:
        """The external rows before the commit that failed: those that there are, less its changes if the part has had it."""
        layer, table = self._feeding(relation), self._external(relation)
        if relation in self._ruled or layer.committed != self._commits or layer.engine.round <= self.round:
            return table
        changes = layer.engine.changes(relation)
        columns = tuple(words(column) for column in table.columns)
        backwards = tuple(column[::-1] for column in changes.columns)
        columns, rows = apply_changes(columns, table.rows, backwards, -changes.diffs[::-1])
        return Table(table.kinds, columns, rows)

    def _rebuild(self, before: Mapping[str, Table], begun: bool) -> None:
        for layer in self._layers:
            layer.engine.close()
        round, self.round = self.round, max(self.round - 1, 0) if begun else self.round
        try:
            self._layers = [self._build_layer(part, begun or self._again) for part in self._parts]
            if begun:
                given = {n: insertions(tuple(words(c) for c in t.columns), t.rows, round) for n, t in before.items()}
                for layer in self._layers:
                    layer.committed = self._commits
                    share = self._share(layer, given, round)
                    if layer.fed is not None:
                        layer.fed.advance(share, round, None, True)
                    else:
                        layer.engine.commit(share)
        finally:
            self.round = round
        self._commits = self._commits if begun else 0
        self._forgotten = True

    def _go_back(self) -> None:
        if self._owing is not None:
            self._owing()
            self._owing = None

    # -------------------------------------------------------------------------------------------------------------- images

    def image(self) -> Image | None:
        """The images of all parts with rules, where each has one: they tell what rounds have fed, too."""
        with self._lock:
            layers = self._with_rules if self._commits and self._owing is None else []
            return _of_parts(self.round, layers, [layer.engine.image() for layer in layers])

    def image_bytes(self) -> int | None:
        with self._lock:
            parts = [layer.engine.image_bytes() for layer in self._with_rules]
        sizes = [size for size in parts if size is not None]
        return sum(sizes) if len(sizes) == len(parts) else None

    def copied_image(self, most: int) -> Image | None:
        """Of one part after the other, so that no commit waits for more than a piece."""
        with self._lock:
            commits, layers = self._commits, self._with_rules if self._owing is None else []
        copies: list[Image | None] = []
        for layer in layers:
            copies.append(copy := layer.engine.copied_image(most) if self._commits == commits else None)
            most -= 0 if copy is None else copy.bytes
        with self._lock:
            return _of_parts(self.round, layers, copies) if self._commits == commits else None

    @property
    def _with_rules(self) -> list[Layer]:
        return [layer for layer in self._layers if layer.fed is None]

    def resume(self, image: Image) -> None:
        """Takes over everything that an image has, before the first commit. Raises IncompatibleImage where that is not of the
        same parts, DlogError where memory does not suffice; then the engine is of no use."""
        told, arrays = image.head.get("parts", ()), list(image.arrays)
        layers = self._with_rules
        if len(told) != len(layers):
            raise IncompatibleImage("the program has other parts")
        for layer, one in zip(layers, told, strict=True):
            own, arrays = arrays[: one["arrays"]], arrays[one["arrays"] :]
            cast("Maintained", layer.engine).resume(Image(one["round"], one["head"], own))
        for layer in self._layers:
            if layer.fed is not None:
                layer.fed.restore(self._rows_for(layer.fed), image.round)
        self._commits, self._resumed = 1, True

    def _rows_for(self, fed: Fed) -> Table:
        """What one that goes on needs: what it shows rows of, or else its own rows, as who reads them has them."""
        if fed.timed.how == "shown":
            return self.table(fed.timed.source)
        reader = next(layer for layer in self._layers if fed.name in layer.part.reads and not layer.part.timed)
        return reader.engine.external(fed.name)

    # ------------------------------------------------------------------------------------------------------------- reading

    def _of(self, relation: str, question: Callable[[RoundsEngine], Reply]) -> Reply:
        """The reply of the engine that derives a relation, or is given it."""
        with self._lock:
            self._go_back()
            return question(self._layers[self._owner[relation]].engine)

    def changes(self, relation: str) -> Updates:
        with self._lock:
            self._go_back()
            if self._forgotten:
                message = f"the changes of round {self.round} are no longer kept: a later commit failed"
                raise DlogError(Diagnostic("changes-gone", message, notes=("subscribe to a relation to see every round",)))
            found = self._changes_of(relation) if self._commits else None
            return no_updates(self.program.relations[relation].arity) if found is None else found

    @property
    def touched(self) -> Iterable[str]:
        with self._lock:
            layers = [layer for layer in self._layers if layer.committed == self._commits]
            found = {name for layer in layers for name in layer.engine.touched if name in layer.part.owns}
        return [name for name in self.program.relations if name in found]

    def table(self, relation: str) -> Table:
        timed = self.program.timed.get(relation)
        if timed is not None and timed.how == "shown":
            with self._lock:
                return _shown(self.table(timed.source), self.round)
        return self._of(relation, lambda engine: engine.table(relation))

    def _table_at(self, relation: str, round: int) -> Table:
        """The rows of a relation, where the commit of a round has come by it."""
        timed = self.program.timed.get(relation)
        if timed is not None and timed.how == "shown":
            return _shown(self.table(timed.source), round)
        return self._layers[self._owner[relation]].engine.table(relation)

    def external(self, relation: str) -> Table:
        with self._lock:
            self._go_back()
            return self._external(relation)

    def rows(self, relation: str) -> int:
        if relation in self.program.timed:
            return self.table(relation).rows
        return self._of(relation, lambda engine: engine.rows(relation))

    def ranks(self, relation: str) -> np.ndarray | None:
        return self._of(relation, lambda engine: engine.ranks(relation))

    def explain(self) -> str:
        with self._lock:
            return "\n".join(_explained(layer) for layer in self._layers)

    def close(self) -> None:
        with self._lock:
            for layer in self._layers:
                layer.engine.close()


def _shown(table: Table, round: int) -> Table:
    """The rows of which the last two columns say that they are there in a round."""
    chosen = (table.columns[-2] <= round) & (table.columns[-1] > round)
    return Table(table.kinds, tuple(column[chosen] for column in table.columns), int(np.count_nonzero(chosen)))


def _of_parts(round: int, layers: Sequence[Layer], images: Sequence[Image | None]) -> Image | None:
    """The image of all parts with rules, of which there are some; None where one has none."""
    taken = [image for image in images if image is not None]
    if not taken or len(taken) < len(layers):
        return None
    given = {n for layer, i in zip(layers, taken, strict=True) for n in i.head["given"] if n in layer.part.inputs}
    told = [{"round": image.round, "head": image.head, "arrays": len(image.arrays)} for image in taken]
    return Image(round, {"given": sorted(given), "parts": told}, [array for image in taken for array in image.arrays])


def _explained(layer: Layer) -> str:
    if layer.part.why is None:
        return layer.engine.explain()
    names = ", ".join(layer.part.program.derived)
    return f"{names}: computed anew in each round that changes what is read\n  {layer.part.why}\n"
