"""A session on the rules that collections have become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.arguments import bad_argument, by_relation
from dlog.as_rules.bodies import Stored
from dlog.as_rules.numbers import MAX_NUMBER, FewChanges, ManyChanges, Numbers, Pending, RoundChanges, by_round
from dlog.as_rules.rows import as_set, counted, few_in, stored_of, stream_of, words_in
from dlog.codec import value_preview
from dlog.dataflow.rows import Row, whole_numbers
from dlog.engine.ir import rules
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.relation import Relation
from dlog.sessions import Round, Session
from dlog.sessions.ingest.row_reader import RowReader
from dlog.sessions.ingest.staged_relation import Words, bytes_of
from dlog.sessions.marks import Marking

if TYPE_CHECKING:
    from dlog.sessions.persistence.durable import Durable


class CollectionsSession(Session):
    """A `dlog.Session` whose relations are inputs and outputs of collections. Rows of inputs that are no sets count: each
    `insert` adds one, each `remove` takes one away. How often they are there is kept in columns, too, from the first change of
    an input on."""

    def __init__(
        self,
        text: str,
        inputs: Mapping[str, Stored],
        outputs: Mapping[str, Stored],
        facts: Mapping[str, Any] | None,
        **options: Any,
    ) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._numbers: dict[str, Numbers] = {}
        self._pending: dict[str, Pending] = {}
        self._readers: dict[str, RowReader] = {}
        super().__init__(text, None, **options)
        if facts is not None and not self.restored:
            try:
                for name, rows in facts.items():
                    self.insert(name, rows)
                self.commit()
            except BaseException:
                self.close()
                raise

    def _use(self, engine: RoundsEngine, program: rules.Program, durable: Durable | None = None) -> None:
        super()._use(engine, program, durable)
        self._numbers, self._readers = {}, {}
        self._pending = {name: pending for name, pending in self._pending.items() if name in program.relations}

    def counts(self, name: str) -> dict[Row, int]:
        """How often each row of an output, or an input, is there."""
        return counted(stored_of(name, self._inputs, self._outputs), self[name])

    # ------------------------------------------------------------------------------------------------------------- staging

    def insert(self, relation: str, rows: Any) -> None:
        """Stages rows, once each."""
        self.update(relation, rows, 1)

    def remove(self, relation: str, rows: Any) -> None:
        """Stages that rows are taken away, once each; of inputs that are sets, those that are not there do not matter."""
        self.update(relation, rows, -1)

    def update(self, relation: str, rows: Any, diffs: Any) -> None:
        """Stages changes of how often rows are there, by one number or one for each row."""
        stored = self._inputs.get(relation) if isinstance(relation, str) else None
        if stored is None or not stored.weighted:
            self._update_set(relation, stored, rows, diffs)
            return
        with self._lock:
            self._check_open()
            reader = self._reader(stored)
            few = few_in(reader, stored, rows)
            if few is None:
                columns, number = words_in(reader, stored, rows)
                self._put(relation, columns, whole_numbers("diffs", diffs, number))
            else:
                is_unit = type(diffs) is int and diffs in (1, -1)
                numbers = [diffs] * len(few) if is_unit else whole_numbers("diffs", diffs, len(few)).tolist()
                self._pending_of(stored).put_few(few, numbers)

    def _put(self, relation: str, columns: tuple[np.ndarray, ...], diffs: np.ndarray) -> None:
        waiting = sum(pending.nbytes for pending in self._pending.values())
        self._staged_changes.check_room(waiting + bytes_of(columns, diffs))
        self._pending_of(self._inputs[relation]).put(columns, diffs)

    def _pending_of(self, stored: Stored) -> Pending:
        found = self._pending.get(stored.name)
        if found is None:
            found = self._pending[stored.name] = Pending(len(stored.names))
        return found

    def _reader(self, stored: Stored) -> RowReader:
        """The reader of rows without their numbers."""
        found = self._readers.get(stored.name)
        if found is None:
            relation = self._staged_changes.row_reader(stored.name).relation
            bare = replace(relation, attributes=relation.attributes[:-1])
            found = self._readers[stored.name] = RowReader(bare, self._codec)
        return found

    def _update_set(self, relation: str, stored: Stored | None, rows: Any, diffs: Any) -> None:
        if not isinstance(diffs, int) or diffs not in (1, -1):
            raise bad_argument("diffs", "1 or -1, for an input that is a set", diffs)
        given = rows if stored is None else as_set(stored, rows)
        (super().insert if diffs > 0 else super().remove)(relation, given)

    def upsert(self, relation: str, rows: Any, key: Sequence[str] | str | None = None) -> None:
        """Stages rows that are to take the place of all rows with the same key, by default the first column."""
        self._check_set(relation)
        super().upsert(relation, rows, key)

    def load(self, relation: str, path: Any, **parameters: str) -> None:
        """Stages the rows of a file."""
        self._check_set(relation)
        super().load(relation, path, **parameters)

    def commit_rounds(self, changes: Mapping[str, Any], mark: Marking = None) -> Round:
        """Commits the changes of many rounds at once, by input: as tables or dicts of columns with `round` and `diff` among
        them, or as (round, row, diff) tuples."""
        with self._lock:
            self._check_open()
            changed: dict[str, RoundChanges] = {}
            given = {}
            for name, each in by_relation("changes", changes, "changes by the name of their input").items():
                stored = self._inputs.get(name)
                if stored is None or not (stored.weighted or {float, bool} & set(stored.kinds)):
                    given[name] = each
                elif stored.weighted:
                    changed[name] = found = self._numbered(stored, *stream_of(each))
                    columns, rounds, diffs = found.replacing()
                    given[name] = Updates(columns, diffs, rounds)
                else:
                    rows, rounds, diffs = stream_of(each)
                    given[name] = {**as_set(stored, rows), "round": rounds, "diff": diffs}
            began = self.round
            try:
                done = super().commit_rounds(given, mark)
            except BaseException:
                self._numbers = self._numbers if self.round == began else {}  # some rounds may be done
                raise
            self._keep(changed)
            return done

    def _numbered(self, stored: Stored, rows: Any, rounds: Any, diffs: Any) -> RoundChanges:
        """How often rows of an input are there, round by round."""
        columns, number = words_in(self._reader(stored), stored, rows)
        marks = whole_numbers("round", rounds, number), whole_numbers("diff", diffs, number)
        found = by_round(columns, *marks, self._numbers_of(stored))
        self._check(stored, found.wrong())
        return found

    def _check_set(self, relation: Any) -> None:
        stored = self._inputs.get(relation) if isinstance(relation, str) else None
        if stored is not None and stored.weighted:
            notes = ("change it by `insert`, `remove` or `update`, or make it a set: `rules(sets=...)`",)
            message = f"rows of `{relation}` have numbers, which this would not keep"
            raise DlogError(Diagnostic("not-a-set", message, notes=notes))

    # -------------------------------------------------------------------------------------------------------------- rounds

    def _forget_staged(self) -> None:
        super()._forget_staged()
        self._pending = {}

    def _staged_now(self) -> Callable[[], None]:
        restore, before = super()._staged_now(), {name: pending.copy() for name, pending in self._pending.items()}

        def restore_all() -> None:
            restore()
            self._pending = before

        return restore_all

    def _commit(self, mark: int | None = None) -> Round:
        if not self._pending:
            return super()._commit(mark)
        self._check_open()
        began, staged = self.round, self._staged_changes.copied()
        changed = {name: self._changed(self._inputs[name], pending) for name, pending in self._pending.items()}
        try:
            for name, changes in changed.items():
                changes.stage(self._staged_changes, name)
            return super()._commit(mark)
        finally:
            if self.round == began:
                self._staged_changes.restore(staged)
            else:
                self._pending = {}
                self._keep(changed)

    def _changed(self, stored: Stored, pending: Pending) -> FewChanges | ManyChanges:
        changes = pending.changes(self._numbers_of(stored))
        self._check(stored, changes.wrong())
        return changes

    def _numbers_of(self, stored: Stored) -> Numbers:
        """How often the rows of an input are there: those of the relation, when they are first asked for."""
        found = self._numbers.get(stored.name)
        if found is None:
            found, table = Numbers(len(stored.names)), self._engine.external(stored.name)
            if table.rows:
                *columns, numbers = (words(column) for column in table.columns)
                found.add(tuple(columns), numbers)
            self._numbers[stored.name] = found
        return found

    def _keep(self, changed: Mapping[str, FewChanges | ManyChanges | RoundChanges]) -> None:
        """What has been committed. Where that is interrupted, the relations are asked again."""
        found, self._numbers = self._numbers, {}
        for name, changes in changed.items():
            changes.keep(found[name])
        self._numbers = found

    def _check(self, stored: Stored, wrong: tuple[Words, int] | None) -> None:
        """Raises DlogError for a row that cannot be there so often."""
        if wrong is None:
            return
        row, number = wrong
        relation = self._staged_changes.row_reader(stored.name).relation
        columns = tuple(from_words(np.array([word]), kind) for word, kind in zip((*row, 1), relation.kinds, strict=True))
        [shown] = counted(stored, Relation(relation, Table(relation.kinds, columns), self._codec))
        message = f"row {value_preview(shown)} of `{stored.name}` would be there {number} times"
        if number > MAX_NUMBER:
            raise DlogError(Diagnostic("diff-overflow", message))
        note = "it is removed more often than it was inserted"
        raise DlogError(Diagnostic("negative-multiplicity", message, notes=(note,)))
