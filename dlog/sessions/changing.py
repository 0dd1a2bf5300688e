"""A session whose inputs change: what is staged takes effect together at a commit, and whoever follows is told.

One lock serializes everything that changes the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dlog.arguments import MAX_COUNT, bad_argument, by_relation, check_function_or_none, texts, truth, whole, whole_or_none
from dlog.arguments import path as file_path
from dlog.codec import Row
from dlog.engine.compile.past import moments
from dlog.engine.interruption import Delayed
from dlog.engine.ir import rules
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.updates import Updates, joined
from dlog.pipeline import stage
from dlog.sessions.commits import Round, Transaction
from dlog.sessions.feeds import Feeds
from dlog.sessions.follow.changes import none, split
from dlog.sessions.follow.envelopes import Form, envelope_of
from dlog.sessions.follow.followers import Committed
from dlog.sessions.follow.history import Journal, window
from dlog.sessions.follow.sources import Answers, Named, Source
from dlog.sessions.follow.subscriptions import LIMIT, Callback, Slow, Subscription, SubscriptionTerms
from dlog.sessions.ingest.staged_changes import StagedChanges
from dlog.sessions.ingest.streams import by_relation_of, rounds_of
from dlog.sessions.ingest.written_facts import rows_of_facts
from dlog.sessions.marks import Marking, marks_of
from dlog.sessions.mistakes import busy, mistake
from dlog.sessions.options import Options
from dlog.sessions.past_rounds import feed
from dlog.sessions.reading import Reading
from dlog.sessions.text import is_name

if TYPE_CHECKING:
    from dlog.dataflow import Collection
    from dlog.dataflow.collection import Arrangement
    from dlog.sessions.dataflows import SessionDataflow, SessionDataflows
    from dlog.sessions.persistence.durable import Durable


class Changing(Reading):
    """The part of a session that changes rows."""

    def __init__(self, chosen: Options) -> None:
        super().__init__(chosen)
        self._committing = False
        self._transaction: Transaction | None = None
        self._mark: int | None = None
        self._dataflows: SessionDataflows | None = None
        self._feeds = Feeds()

    def _use(self, engine: RoundsEngine, program: rules.Program, durable: Durable | None = None) -> None:
        super()._use(engine, program)
        self._moving = [m for m in moments(program.relations) if m.round < 0]
        self._durable = durable
        self._staged_changes = StagedChanges(engine, self._codec, self._options.memory)

    @property
    def mark(self) -> int | None:
        """The mark of the last commit that had one, also in an earlier session with the same state."""
        return self._mark if self._durable is None else self._durable.last_mark

    def marks(self) -> dict[int, int]:
        """The marks of the rounds that came with one, as far as `history` goes, by round.

        >>> import dlog
        >>> s = dlog.session(".decl seen(x: number)\\n", history=10)
        >>> for minute in (540, 555):
        ...     s.insert("seen", (minute,))
        ...     _ = s.commit(mark=minute)
        >>> s.marks()
        {1: 540, 2: 555}
        """
        with self._lock:
            self._check_open()
            found = self._followers.history.marks()
            return dict(zip(found.rounds.tolist(), found.columns[0].tolist(), strict=True))

    # ------------------------------------------------------------------------------------------------------------- staging

    def taking(self, relation: str) -> rules.Relation:
        """A relation that takes rows. Raises DlogError where there is none of the name, or it follows from rules."""
        return self._staged_changes.row_reader(relation).relation

    @property
    def elsewhere(self) -> bool:
        """Whether workers have the rows, and take DataFrames without this process."""
        return self._staged_changes.elsewhere

    def insert(self, relation: str, rows: Any) -> None:
        """Stages rows that are to be in a relation: one tuple, tuples, a dict of columns, or a table."""
        with self._lock:
            self._check_open()
            self._staged_changes.stage(relation, rows, 1)

    def remove(self, relation: str, rows: Any) -> None:
        """Stages rows that are to be no longer in a relation; those that are not in it do not matter."""
        with self._lock:
            self._check_open()
            self._staged_changes.stage(relation, rows, -1)

    def written(self, facts: str, shown: str | None = None) -> list[tuple[str, Row]]:
        """Rows that are written out, with their relations, as values that `insert` and `remove` take. Messages quote `shown`,
        a text of the same length, if it is given.

        >>> import dlog
        >>> dlog.session(".decl edge(x: number, y: number)\\n").written("edge(1, 2). edge(2, 3).")
        [('edge', (1, 2)), ('edge', (2, 3))]
        """
        self._check_open()
        return rows_of_facts(self._text, facts, shown)

    def upsert(self, relation: str, rows: Any, key: Sequence[str] | str | None = None) -> None:
        """Stages rows that are to take the place of all rows with the same key, by default the first column.

        >>> import dlog
        >>> s = dlog.session(".decl price(item: symbol, euros: number)\\n", {"price": [("tea", 3), ("rum", 9)]})
        >>> s.upsert("price", ("tea", 4))
        >>> sorted(s.commit().changes("price"))
        [(('tea', 3), -1), (('tea', 4), 1)]
        """
        with self._lock:
            self._check_open()
            self._staged_changes.upsert(relation, rows, key)

    def load(self, relation: str, path: str | Path, **parameters: str) -> None:
        """Stages the rows of a file in any format that `.input` reads, with its parameters: `delimiter=","`."""
        with self._lock:
            self._check_open()
            self._staged_changes.load(
                relation, Path(file_path("path", path, "the name of a file")), parameters, self._options.threads
            )

    @property
    def staged(self) -> dict[str, int]:
        """How many changes of each relation wait for the commit."""
        return {name: len(staged) for name, staged in self._staged_changes.staged.items() if len(staged)}

    # -------------------------------------------------------------------------------------------------------------- rounds

    def commit(self, mark: int | None = None) -> Round:
        """Makes what is staged the next round.

        With a state the round is on disk when this returns. A `mark` is kept with it: a number that says how far the source of
        the changes has been read, so that whoever opens the state again knows where to go on. The history keeps marks, too
        (`marks`).

        If it fails, for want of memory, say, or by an interruption, the session is at its last round and what is staged stays
        so; `rollback` forgets it. What the last round changed cannot be read any more then."""
        if self._followers.waits:
            self._wait_for_room()
        with self._lock:
            if self._transaction is not None:
                raise mistake("commit-inside-transaction", "a transaction is open", "it commits at the end of its block")
            return self._commit(mark)

    def rollback(self) -> None:
        """Forgets what is staged, but for what comes of collections (`feed`), which have it."""
        with self._lock:
            self._check_open()
            self._forget_staged()
            self._feeds.stage_again(self)

    def _forget_staged(self) -> None:
        self._staged_changes.restore({})

    def _staged_now(self) -> Callable[[], None]:
        """What brings back what is staged now."""
        return partial(self._staged_changes.restore, self._staged_changes.copied())

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A block whose changes are committed at its end or, if it or the commit raises, forgotten. What was staged before is
        committed with it, or stays staged, and so does what comes of collections (`feed`). Other threads that change the
        session wait.

        >>> import dlog
        >>> s = dlog.session(".decl account(owner: symbol, cents: number)\\n", {"account": [("Ada", 500), ("Bo", 0)]})
        >>> with s.transaction() as transfer:
        ...     s.upsert("account", ("Ada", 400))
        ...     s.upsert("account", ("Bo", 100))
        >>> transfer.round, sorted(s["account"])
        (<dlog.Round 2>, [('Ada', 400), ('Bo', 100)])
        """
        if self._followers.waits:
            self._wait_for_room()
        with self._lock:
            self._check_open()
            if self._transaction is not None:
                raise mistake("nested-transaction", "a transaction is open already")
            restore, fed, began = self._staged_now(), self._feeds.staged, self._engine.round
            try:
                self._transaction = Transaction()
                yield self._transaction
                with Delayed():
                    self._transaction.round = self._commit()
            except BaseException:
                with Delayed():
                    self._transaction = None
                    if self._engine.round == began:
                        restore()
                        self._feeds.stage_again(self, fed)
                raise
            self._transaction = None

    def commit_rounds(self, changes: Mapping[str, Any], mark: Marking = None) -> Round:
        """Commits the changes of many rounds at once, by relation: as tables or dicts of columns with `round` and `diff` among
        them, as (round, row, diff) tuples, or as the `Changes` of a session. All rounds are later than the present one. A
        `mark` is that of the last of them; a dict has marks by round.

        >>> import dlog
        >>> s = dlog.session('''
        ... .decl edge(x: number, y: number)
        ... .decl degree(x: number, n: number)
        ... degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
        ... ''')
        >>> done = s.commit_rounds({"edge": {"x": [7, 7], "y": [1, 2], "round": [1, 3]}})
        >>> for round, changes in done.changes("degree").by_round():
        ...     print(round, sorted(changes))
        1 [((7, 1), 1)]
        3 [((7, 1), -1), ((7, 2), 1)]
        """
        if self._followers.waits:
            self._wait_for_room()
        with self._lock:
            self._check_open()
            by_relation("changes", changes, "changes of rounds by the name of their relation")
            if self._staged_changes.staged or self._transaction is not None:
                raise mistake("staged-changes", "changes are staged", "commit them first, or roll them back")
            now = self._engine.round
            inputs = {name: rounds_of(self._staged_changes.row_reader(name), given, now) for name, given in changes.items()}
            self._staged_changes.forget_indexes()
            return self._advance_each(inputs, mark) if self._moving else self._advance(inputs, mark=mark)

    def apply(self, stream: Iterable[tuple[int, str, int, Row]], mark: Marking = None) -> Round:
        """Commits a stream of changes at once: (round, relation, diff, row)."""
        return self.commit_rounds(by_relation_of(stream), mark)

    def subscribe(
        self,
        what: str,
        callback: Callback | None = None,
        *,
        snapshot: bool = True,
        as_of: int | None = None,
        up_to: int | None = None,
        progress: bool = False,
        key: str | Sequence[str] | None = None,
        envelope: Form | None = None,
        order: str | Sequence[str] | None = None,
        limit: int = LIMIT,
        slow: Slow = "end",
    ) -> Subscription:
        """Follows a relation, or the answers to a question: pairs of a round and its changes, for ever later rounds.

        Parameters
        ----------
        what
            The name of a relation, or a question.
        callback
            Called with each pair, in the thread that commits, after the commit; it may stage changes, but not commit. Without
            one the subscription is iterated (`for`, `async for`), or asked by `fetch`.
        snapshot
            Begin with all rows as of the first round, as insertions.
        as_of
            The first round, by default the present one: a past one as far as `history` goes, or one to come. Changes that come
            are those of later rounds.
        up_to
            End before this round.
        progress
            Deliver the first round, and the last one of every commit, even without changes: all up to there has come then.
        key
            Columns that tell rows apart: changes are `Upserts` then, for each key its row of now, or none.
        envelope
            With a key: "upsert", or "debezium" for `ChangeEvents`, which have the row before as well.
        order
            Columns by which the changes of a round are sorted, "-x" for descending.
        limit
            About how many changes wait to be taken at most.
        slow
            What happens when more would: "end" ends the subscription with an error, "wait" has the next commit wait.

        >>> import dlog
        >>> s = dlog.session(".decl seen(x: number)\\n", {"seen": [(1,)]})
        >>> seen = s.subscribe("seen")
        >>> s.insert("seen", (2,))
        >>> _ = s.commit()
        >>> [(round, list(changes)) for round, changes in seen.fetch()]
        [(1, [((1,), 1)]), (2, [((2,), 1)])]
        """
        check_function_or_none("callback", callback, "a function of a round and its changes")
        truth("snapshot", snapshot)
        truth("progress", progress)
        first, end = (
            whole_or_none(name, given, 0, "the number of a round") for name, given in (("as_of", as_of), ("up_to", up_to))
        )
        most = whole("limit", limit, 0, "a number of changes, 0 or more")
        if slow not in get_args(Slow):
            raise bad_argument("slow", f"one of {', '.join(get_args(Slow))}", slow)
        terms = SubscriptionTerms(snapshot, progress, end, most, slow)
        with self._lock:
            source = self._source(what)
            form = envelope_of(source.relation, _columns("key", key), _columns("order", order), envelope)
            subscription = Subscription(source.name, terms, form, callback)
            relation = source.name if isinstance(source, Named) else None
            self._followers.subscribe(subscription, source, relation, first, self._committed(self._engine.round))
            return subscription

    def _source(self, what: str) -> Source:
        """What a subscription is about."""
        self._check_open()
        if not isinstance(what, str) or is_name(what.strip()):
            return Named(self._relation(what.strip() if isinstance(what, str) else what))
        self._derive_pending()
        return Answers(what.strip(), lambda: self._questions.compiled(what), self._answer_over)

    def collection(self, relation: str) -> Collection:
        """A relation as a collection of a dataflow (`dlog.dataflow`): what is made of it follows after every commit. It is of
        one dataflow with all that are asked for before that; later ones are of another one, which begins with the rows of then.

        >>> import dlog
        >>> s = dlog.session(".decl edge(x: number, y: number)\\n")
        >>> degrees = s.collection("edge").count(by="x").capture()
        >>> s.insert("edge", [(1, 2), (1, 3)])
        >>> _ = s.commit()
        >>> degrees.counts()
        {(1, 2): 1}
        """
        with self._lock:
            self._check_open()
            known, dataflow = self._relation(relation), self._open_dataflow()
            found = dataflow.collection(known.name)
            if found is None:
                found = dataflow.add(known, self.subscribe(known.name, limit=MAX_COUNT))
            return found

    def import_(self, arrangement: Arrangement) -> Arrangement:
        """An index that was made of collections before a commit, for what is made of collections now: read, not copied.

        >>> import dlog
        >>> s = dlog.session(".decl edge(x: number, y: number)\\n")
        >>> by_x = s.collection("edge").arrange_by_key("x")
        >>> s.insert("edge", [(1, 2), (2, 3)])
        >>> _ = s.commit()
        >>> paths = s.import_(by_x).collection.join_map(s.collection("edge"), on={"x": "y"}, x="x_right", y="y").capture()
        >>> _ = s.commit()
        >>> paths.counts()
        {(1, 3): 1}
        """
        with self._lock:
            self._check_open()
            return self._open_dataflow().import_(arrangement)

    def _open_dataflow(self) -> SessionDataflow:
        """The dataflow to which collections can be added."""
        if self._dataflows is None:
            from dlog.sessions.dataflows import SessionDataflows

            self._dataflows = SessionDataflows()
        return self._dataflows.open()

    def feed(self, relation: str, collection: Collection) -> None:
        """Has a relation's rows be those that a collection has: its changes are staged as they come, for the next commit.

        Rows that are inserted beside it stay until they are removed, or until the collection loses them: the relation has a row
        once. Raises DlogError where another collection feeds the relation, or its columns are of other names or kinds."""
        from dlog.sessions.collections import feed as fed

        with self._lock:
            fed(self, self._feeds, self.taking(relation), collection)

    def history(self, rounds: int | timedelta) -> None:
        """How many past rounds `at` and `diff` can read from now on, or for how long."""
        with self._lock:
            self._check_open()
            self._followers.keep(replace(window(rounds), own=self._followers.history.window.own))

    def _wait_for_room(self) -> None:
        """Waits for slow subscribers, unless this is a callback of one."""
        if not self._committing:
            self._followers.wait_for_room()

    def _commit(self, mark: int | None = None) -> Round:
        self._check_open()
        return self._advance(self._staged_changes.updates(self._engine.round + 1), staged=True, mark=mark)

    def _advance_each(self, inputs: Mapping[str, Updates], mark: Marking) -> Round:
        """Commits rounds one by one: rules that read past ones have each read what came of those before."""
        given = {name: dict(split(updates)) for name, updates in inputs.items()}
        first, last = self._engine.round + 1, max((round for by in given.values() for round in by), default=0)
        marked = marks_of(mark, first, max(first, last))
        marks = {} if marked is None else dict(split(marked))
        changes: dict[str, list[Updates]] = {}
        for round in range(first, max(first, last) + 1):
            found = {name: by[round] for name, by in given.items() if round in by}
            self._advance(found, mark=int(marks[round].columns[0][0]) if round in marks else None)
            for name in self._touched():
                changes.setdefault(name, []).append(self._changes(name))
        whole = {name: joined(parts) for name, parts in changes.items()}
        program = self._program
        self._tell(lambda name: whole[name] if name in whole else none(program.relations[name].arity), lambda: whole)
        return Round(self, first, self._engine.round)

    def _advance(self, inputs: Mapping[str, Updates], staged: bool = False, mark: Marking = None) -> Round:
        """Commits to the engine and tells whoever follows."""
        if self._committing:
            raise busy()
        engine, history = self._engine, self._followers.history
        before = engine.round
        history.marking = marks = None if mark is None else marks_of(mark, before + 1, _last_round(inputs, before + 1))
        last_mark = None if marks is None else int(marks.columns[0][-1])
        if self._moving:
            inputs = {**inputs, **feed(self, self._program, self._moving, before)}
        late: BaseException | None = None
        if self._durable is not None:
            self._durable.mark = last_mark
        with Delayed():
            self._committing = True
            try:
                try:
                    frames = self._staged_changes.frames() if staged else None
                    last = engine.commit(inputs, frames)
                except BaseException as error:
                    if engine.round == before:
                        self._tell(_refuse_changes, lambda: self._program.relations)
                        with stage("evaluation"):
                            raise
                    late, last = error, engine.round  # something came when the round was committed already
                self._mark = self._mark if last_mark is None else last_mark
                if staged:
                    self._staged_changes.staged = {}
                    self._feeds.committed()
                self._tell(engine.changes, lambda: engine.touched)
                self._open_relations = {}
                if not self._followers.nobody(last):
                    commit = self._committed(before, engine)
                    self._followers.committed(commit)
                    if not engine.elsewhere:
                        self._followers.keep_rows(commit)
            finally:
                self._committing, history.marking = False, None
        if late is not None:
            raise late
        self._follow()
        return Round(self, before + 1, last)

    def _follow(self) -> None:
        """Has collections follow the rounds that are done. If what is made of them fails, they follow no longer, nor can they
        be read."""
        if self._dataflows is not None:
            self._dataflows.follow(self.round)

    def _committed(self, before: int, journal: Journal | None = None) -> Committed:
        engine, program = self._engine, self._program
        return Committed(before, engine.round, program, self._codec, self._changes, self._touched, engine.table, journal)


def _last_round(inputs: Mapping[str, Updates], next: int) -> int:
    """The last round that a commit of these does, by default just the next one."""
    return max((updates.last for updates in inputs.values() if updates.rows), default=next)


def _columns(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of columns."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    return texts(name, given, "the names of columns")


def _refuse_changes(relation: str) -> Updates:
    """The changes after a commit that failed: an engine may have restored its rows without remembering how they came."""
    note = "subscriptions and `history` keep what they were told"
    raise mistake("past-round", f"the last round's changes of `{relation}` are gone: a later commit failed", note)
