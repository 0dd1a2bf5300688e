"""Recovery: the engine of a program is made from what a state has, at the round of that.

It goes on from an image of an earlier engine, if there is one for the program, with what the inputs have become since then as
one round; without one, or where much has changed, everything is derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Program, Relation, with_inputs
from dlog.engine.rounds_engine import Image, IncompatibleImage, RoundsEngine, StartingPoint
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.state.files import damaged
from dlog.engine.state.store import Store
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.pipeline import stage
from dlog.sessions.engines import Engines
from dlog.sessions.follow.changes import all_of, between
from dlog.sessions.persistence.external_relation import empty
from dlog.sessions.persistence.external_relations import FOLLOWING, is_after
from dlog.sessions.persistence.references import References

MIN_ROWS_PER_CHANGE = 8
"""Rows of inputs per row changed since an image, from which on going on from it is taken to cost less than deriving all
anew."""
Loaded: TypeAlias = "tuple[Updates, list[tuple[Any, int]]] | None"
"""See `RoundsEngine.loaded`."""


class Rows(Protocol):
    """The external rows of all relations as of a round, and the last image."""

    @property
    def round(self) -> int: ...
    def externals(self) -> Iterable[str]: ...
    def external(self, relation: str, kinds: tuple[Kind, ...]) -> Table: ...
    def lotted(self, relation: str) -> bool: ...
    def since(self, round: int, relation: str, kinds: tuple[Kind, ...]) -> Updates | None: ...
    def image(self, fingerprint: str) -> Image | None: ...


@dataclass(frozen=True, slots=True)
class Recovery:
    """Makes engines of a program. `again`: the rows have been derived from before. `restored` are the timed relations that it
    had when its last round was logged."""

    program: Program
    engines: Engines
    fingerprint: str
    symbols: SymbolTable
    records: RecordTables
    again: bool
    restored: frozenset[str] = frozenset()

    def from_image(self, rows: Rows) -> RoundsEngine | None:
        """The engine that goes on from the last image; None where there is none, or it is better to derive everything. Raises
        IncompatibleImage where it cannot be gone on from."""
        image = rows.image(self.fingerprint)
        if image is None:
            return None
        made = self.engines.resumed(replace(self.program, facts={}), image, self._starting_point(rows.round - 1))
        if made is None:
            return None
        try:
            changed = self._changed_since(image.round, rows, made)
            inputs = self.program.relations.keys() - self.program.derived.keys()
            many = MIN_ROWS_PER_CHANGE * sum(u.rows for u in changed.values()) > sum(made.rows(name) for name in inputs)
            if not (changed and many):
                made.commit(changed)
                return made
        except BaseException:
            made.close()
            raise
        made.close()
        return None

    def _changed_since(self, image: int, rows: Rows, engine: RoundsEngine) -> dict[str, Updates]:
        """The changes of the external rows since the round of an image, as of which the engine has them."""
        found = {}
        for name in (name for name in rows.externals() if name in self.program.relations):
            kinds = self.program.relations[name].kinds
            changes = rows.since(image, name, kinds)
            if changes is None:
                changes = between(engine.external(name), rows.external(name, kinds), rows.round)
            if changes.rows:
                found[name] = changes
        return found

    def from_rows(self, rows: Rows, loaded: Callable[[str, RoundsEngine], Loaded]) -> RoundsEngine:
        """An engine that derives everything. Rows in bulk changes are `loaded` by an engine that can."""
        names = [name for name in rows.externals() if name in self.program.relations]
        lotted = {name for name in names if rows.lotted(name)}
        given = {name: self._all_of(rows, name) for name in names if name not in lotted}
        fed = {name for name, updates in given.items() if updates.rows} | lotted
        program = with_inputs(replace(self.program, facts={}), fed | self.program.facts.keys())
        made = self.engines.make(program, self._starting_point(max(rows.round - 1, 0)))
        if not rows.round:
            return made
        try:
            frames = {}
            for name in lotted:
                found = loaded(name, made)
                if found is None:
                    given[name] = self._all_of(rows, name)
                else:
                    given[name], frames[name] = found
            made.commit({name: updates for name, updates in given.items() if updates.rows}, frames or None)
        except BaseException:
            made.close()
            raise
        return made

    def from_checkpoint(
        self,
        lotted: Callable[[str], bool],
        image: Callable[[str], Image | None],
        copied_records: Callable[[], RecordTables],
        store: Store,
    ) -> RoundsEngine | None:
        """An engine as of the last checkpoint, made by another thread than that which commits: it shares the symbols with all
        others, and has its own records. None where rows are in bulk changes, which `lotted` says, or there are records which
        only this engine has."""
        records = copied_records()
        sizes = records.sizes
        references = References(self.program.types, self.symbols, records, {})
        rows = CheckpointRows(store, self.program.relations, references, lotted, image)
        if any(map(lotted, rows.externals())):
            return None
        with stage("evaluation"):
            engine = replace(self, records=records)._from_either(rows)
        if records.sizes != sizes:
            engine.close()
            return None
        return engine

    def _from_either(self, rows: Rows) -> RoundsEngine:
        try:
            resumed = self.from_image(rows)
        except IncompatibleImage:
            resumed = None
        return resumed or self.from_rows(rows, lambda name, engine: None)

    def _all_of(self, rows: Rows, name: str) -> Updates:
        return all_of(rows.external(name, self.program.relations[name].kinds), rows.round)

    def _starting_point(self, round: int) -> StartingPoint:
        return StartingPoint(self.symbols, self.records, round, again=self.again, restored=self.restored)


class CheckpointRows:
    """The rows that the last checkpoint of a state wrote, whatever has come since: those of a program's `relations`, whose ids
    are of what `references` has."""

    def __init__(
        self,
        store: Store,
        relations: Mapping[str, Relation],
        references: References,
        lotted: Callable[[str], bool],
        image: Callable[[str], Image | None],
    ) -> None:
        self.round = store.checkpoint_round
        self.lotted, self.image = lotted, image
        self._store, self._relations, self._references = store, relations, references

    def externals(self) -> Iterable[str]:
        return [name for name in self._store.written if not name.endswith(FOLLOWING) and not is_after(name)]

    def external(self, relation: str, kinds: tuple[Kind, ...]) -> Table:
        """Raises DlogError where the rows hold ids of nothing: the file may be one that the session has not read, and that
        somebody else has written."""
        stored = self._store.stored(relation)
        table = empty(kinds) if stored is None or stored.kinds != kinds else stored.table()
        if not self._references.hold([type for _, type in self._relations[relation].attributes], table.columns):
            place = self._store.path / self._store.layers(relation)[0]
            raise damaged(place, f"rows of `{relation}` make no sense (they hold ids of nothing)")
        return table

    def since(self, round: int, relation: str, kinds: tuple[Kind, ...]) -> Updates | None:
        """Not known: there have been checkpoints in between."""
        return None
