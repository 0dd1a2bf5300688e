"""A session on the rules that collections have become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from dlog.arguments import bad_argument, by_relation
from dlog.as_rules.bodies import Stored
from dlog.as_rules.rows import as_set, columns_of, counted, stored_of, stream_of, tuples_of, whole_numbers
from dlog.codec import value_preview
from dlog.dataflow.rows import Row
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions import Round, Session, Transaction

MAX_NUMBER = 2**63 - 1
"""How often a row can be there."""


class CollectionsSession(Session):
    """A `dlog.Session` whose relations are inputs and outputs of collections. Rows of inputs that are no sets count: each
    `insert` adds one, each `remove` takes one away. How often they are there is kept in memory, too."""

    def __init__(
        self,
        text: str,
        inputs: Mapping[str, Stored],
        outputs: Mapping[str, Stored],
        facts: Mapping[str, Any] | None,
        **options: Any,
    ) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._counts: dict[str, dict[Row, int]] = {}
        self._pending: dict[str, Counter[Row]] = {}
        super().__init__(text, None, **options)
        if facts is not None and not self.restored:
            try:
                for name, rows in facts.items():
                    self.insert(name, rows)
                self.commit()
            except BaseException:
                self.close()
                raise

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
        found = tuples_of(stored, rows)
        numbers = whole_numbers("diffs", diffs, len(found))
        with self._lock:
            self._check_open()
            pending = self._pending.setdefault(relation, Counter())
            for row, diff in zip(found, numbers, strict=True):
                pending[row] += diff

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

    def commit_rounds(self, changes: Mapping[str, Any], mark: int | None = None) -> Round:
        """Commits the changes of many rounds at once, by input: as tables or dicts of columns with `round` and `diff` among
        them, or as (round, row, diff) tuples."""
        with self._lock:
            counts: dict[str, dict[Row, int]] = {}
            given = {}
            for name, each in by_relation("changes", changes, "changes by the name of their input").items():
                stored = self._inputs.get(name)
                if stored is None or not (stored.weighted or {float, bool} & set(stored.kinds)):
                    given[name] = each
                elif stored.weighted:
                    given[name], counts[name] = self._numbered(stored, *stream_of(stored, each))
                else:
                    rows, rounds, diffs = stream_of(stored, each)
                    given[name] = columns_of(stored, rows, round=rounds, diff=diffs)
            found = super().commit_rounds(given, mark)
            for name, new in counts.items():
                self._keep(name, new)
            return found

    def _numbered(
        self, stored: Stored, rows: list[Row], rounds: list[int], diffs: list[int]
    ) -> tuple[dict[str, Any], dict[Row, int]]:
        """The changes of a relation that follow from those of how often rows are there, and how often they are in the end."""
        net: dict[tuple[int, Row], int] = {}
        for row, round, diff in zip(rows, rounds, diffs, strict=True):
            net[round, row] = net.get((round, row), 0) + diff
        counts, new = self._counts_of(stored), dict[Row, int]()
        changed: list[tuple[Row, int, int, int]] = []
        for round, row in sorted(net, key=itemgetter(0)):
            before = new.get(row, counts.get(row, 0))
            new[row] = _checked(stored, row, before + net[round, row])
            if net[round, row]:
                changed += [(row, n, round, d) for n, d in ((before, -1), (new[row], 1)) if n]
        columns = [list(column) for column in zip(*changed, strict=True)] or [[], [], [], []]
        others = {stored.attributes[-1]: columns[1], "round": columns[2], "diff": columns[3]}
        return dict(columns_of(stored, columns[0], **others)), new

    def _check_set(self, relation: Any) -> None:
        stored = self._inputs.get(relation) if isinstance(relation, str) else None
        if stored is not None and stored.weighted:
            notes = ("change it by `insert`, `remove` or `update`, or make it a set: `rules(sets=...)`",)
            message = f"rows of `{relation}` have numbers, which this would not keep"
            raise DlogError(Diagnostic("not-a-set", message, notes=notes))

    # -------------------------------------------------------------------------------------------------------------- rounds

    def rollback(self) -> None:
        """Forgets what is staged."""
        with self._lock:
            super().rollback()
            self._pending = {}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A block whose changes are committed at its end or, if it or the commit raises, forgotten."""
        with self._lock:
            before = {name: Counter(pending) for name, pending in self._pending.items()}
            began = self.round
            try:
                with super().transaction() as found:
                    yield found
            except BaseException:
                if self.round == began:
                    self._pending = before
                raise

    def _commit(self, mark: int | None = None) -> Round:
        if not self._pending:
            return super()._commit(mark)
        self._check_open()
        began, staged = self.round, self._staged_changes.copied()
        changed = {name: self._changed(self._inputs[name], pending) for name, pending in self._pending.items()}
        try:
            for name, (old, new) in changed.items():
                self._stage_numbers(self._inputs[name], old, new)
            return super()._commit(mark)
        finally:
            if self.round == began:
                self._staged_changes.restore(staged)
            else:
                self._pending = {}
                for name, (_, new) in changed.items():
                    self._keep(name, new)

    def _changed(self, stored: Stored, pending: Counter[Row]) -> tuple[dict[Row, int], dict[Row, int]]:
        """How often rows that change were there, and how often they are to be."""
        counts = self._counts_of(stored)
        old = {row: counts.get(row, 0) for row, diff in pending.items() if diff}
        new = {row: number + pending[row] for row, number in old.items()}
        for row, number in new.items():
            _checked(stored, row, number)
        return old, new

    def _stage_numbers(self, stored: Stored, old: dict[Row, int], new: dict[Row, int]) -> None:
        for numbers, stage in ((old, super().remove), (new, super().insert)):
            there = {row: number for row, number in numbers.items() if number}
            if there:
                stage(stored.name, columns_of(stored, there, **{stored.attributes[-1]: there.values()}))

    def _counts_of(self, stored: Stored) -> dict[Row, int]:
        if stored.name not in self._counts:
            self._counts[stored.name] = counted(stored, self[stored.name])
        return self._counts[stored.name]

    def _keep(self, name: str, new: dict[Row, int]) -> None:
        counts = self._counts[name]
        counts.update(new)
        for row, number in new.items():
            if not number:
                counts.pop(row, None)


def _checked(stored: Stored, row: Row, number: int) -> int:
    if 0 <= number <= MAX_NUMBER:
        return number
    message = f"row {value_preview(row)} of `{stored.name}` would be there {number} times"
    if number > MAX_NUMBER:
        raise DlogError(Diagnostic("diff-overflow", message))
    note = "it is removed more often than it was inserted"
    raise DlogError(Diagnostic("negative-multiplicity", message, notes=(note,)))
