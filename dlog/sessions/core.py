"""A session: a program whose inputs change, and whose relations follow round by round.

Changes are staged by `insert`, `remove`, `upsert` and `load`, and take effect together at `commit`. One lock serializes
everything that changes the session; reading takes no lock and gives the last committed round, also while another thread
commits. What maintains the program is behind `dlog.engine.rounds.RoundsEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from dlog.api import Relation
from dlog.arguments import by_relation, check_function_or_none, truth, whole, whole_or_none
from dlog.arguments import path as file_path
from dlog.engine.embedded.interruption import Delayed
from dlog.engine.program import rules
from dlog.engine.rounds import RoundsEngine
from dlog.engine.trace.store import Sync
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar import syntax
from dlog.pipeline import stage
from dlog.proofs import Proof, WhyNot, prove, refute
from dlog.sessions import text as program_text
from dlog.sessions.changes import Changes
from dlog.sessions.desk import Desk
from dlog.sessions.durable import Durable
from dlog.sessions.followers import Committed, Followers, check_history
from dlog.sessions.mistakes import busy, closed_session, mistake, unknown_relation
from dlog.sessions.options import Given, Program, check_facts, options, read
from dlog.sessions.past import undone
from dlog.sessions.questions import Questions
from dlog.sessions.reopening import reopen
from dlog.sessions.replacing import let_go, succeed
from dlog.sessions.rounds import Round, Transaction
from dlog.sessions.state import State
from dlog.sessions.streams import by_relation_of, rounds_of
from dlog.sessions.subscriptions import Callback, Subscription
from dlog.sessions.views import View
from dlog.sessions.written import written_rows
from dlog.values import Codec, Row

if TYPE_CHECKING:
    from dlog.engine.spark.rounds import SparkRounds


class Session:
    """A program kept up to date while its inputs change. Made by `dlog.session`; a context manager that closes it.

    A mapping from the names of the relations to `Relation`s as of the last round: `s["path"]`.
    """

    def __init__(
        self,
        program: Program | None,
        facts: Given = None,
        *,
        threads: int | None = None,
        memory: int | None = None,
        max_iterations: int | None = None,
        history: int = 0,
        include: Sequence[str] = (),
        macros: Sequence[str] = (),
        state: str | Path | None = None,
        sync: Sync = "always",
        engine: str = "embedded",
        spark: Any = None,
        workers: int | None = None,
    ) -> None:
        chosen = options(
            threads=threads,
            memory=memory,
            max_iterations=max_iterations,
            history=history,
            include=include,
            macros=macros,
            state=state,
            sync=sync,
            engine=engine,
            spark=spark,
            workers=workers,
        )
        check_facts(facts)
        self._lock = RLock()
        self._closed = self._committing = self._restored = False
        self._transaction: Transaction | None = None
        self._mark: int | None = None
        self._followers = Followers(chosen.history)
        self._options = chosen
        given = None if program is None else read(program, chosen.preprocessing)
        self._engines = chosen.engines()
        if chosen.state is not None:
            self._reopen(State(chosen.state, chosen.sync, chosen.memory), given, facts)
            return
        self._text = given or read("\n", ((), ()))
        compiled = self._text.compiled()
        self._use(self._engines.made(compiled), compiled)
        try:
            self._open(facts)
        except BaseException:
            self.close()
            raise

    def _reopen(self, state: State, given: program_text.Text | None, facts: Given) -> None:
        """Goes on where the state was left. A new one begins as any session does."""
        try:
            self._text, engine = reopen(state, given, self._engines)
            self._use(engine, engine.program)
            self._followers.noted = engine.round
            self._restored = engine.round > 0
            if not self._restored:
                self._open(facts)
        except BaseException:
            state.close()
            raise

    def _use(self, engine: RoundsEngine, program: rules.Program) -> None:
        """Everything that goes with an engine. Its own program may take rows for more relations than this one."""
        self._engine = engine
        self._program = program
        self._codec = Codec(program, engine.symbols, engine.records)
        self._desk = Desk(engine, self._codec)
        self._changes: Callable[[str], Updates] = engine.changes
        self._read: dict[str, Relation] = {}
        self._questions = Questions(self._text, engine, self._codec, self._options.threads, self._options.memory)

    def _open(self, facts: Given) -> None:
        """The first round, if there is anything without a change from outside."""
        if isinstance(facts, str | Path):
            chosen = self._options
            self._desk.load_inputs(str(facts), chosen.threads, chosen.engine == "spark", chosen.spark)
        elif facts is not None:
            for name, rows in facts.items():
                self.insert(name, rows)
        if self._desk.staged or _says_something(self.program):
            self._commit()

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def program(self) -> rules.Program:
        """The typed program."""
        return self._program

    @property
    def codec(self) -> Codec:
        """Between the engine's columns and values of Python, NumPy and Arrow."""
        return self._codec

    @property
    def text(self) -> str:
        """The program's text as it is now, in the layout of `dlog fmt`."""
        return str(self._text)

    @property
    def round(self) -> int:
        """The last committed round; 0 if there is none."""
        return self._followers.noted

    @property
    def restored(self) -> bool:
        """Whether the session goes on with rounds of an earlier one, from its state."""
        return self._restored

    @property
    def mark(self) -> int | None:
        """The mark of the last commit that had one, also in an earlier session with the same state."""
        return self._engine.last_mark if isinstance(self._engine, Durable) else self._mark

    def __getitem__(self, relation: str) -> Relation:
        read = self._read  # a commit in another thread puts an empty one in its place
        found = read.get(relation) if isinstance(relation, str) else None
        if found is None:
            declared = self._relation(relation)
            found = read[relation] = self._row_source(declared)
        return found

    def _row_source(self, relation: rules.Relation) -> Relation:
        if self._engine.elsewhere:
            from dlog.spark import RemoteRelation

            engine = self._engine.inner if isinstance(self._engine, Durable) else self._engine
            return RemoteRelation(relation, cast("SparkRounds", engine), self._codec)
        return Relation(relation, self._engine.table(relation.name), self._codec)

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.relations)

    def __len__(self) -> int:
        return len(self._program.relations)

    def __contains__(self, relation: object) -> bool:
        return relation in self._program.relations

    def rows(self, relation: str) -> int:
        """How many rows a relation has now."""
        return self._engine.rows(self._relation(relation).name)

    def changes(self, relation: str) -> Changes:
        """What the last commit changed in a relation."""
        return Changes(self._relation(relation), self._changes(relation), self._codec)

    def query(self, question: str) -> Relation:
        """The answers to a question: one row for each way to satisfy it, one column for each variable.

        >>> import dlog
        >>> s = dlog.session('''
        ... .decl edge(x: number, y: number)
        ... edge(1, 2). edge(2, 3). edge(3, 1).
        ... ''')
        >>> sorted(s.query("?- edge(X, Y), edge(Y, Z), Z != 1."))
        [(1, 2, 3), (3, 1, 2)]
        >>> bool(s.query("edge(2, 1)"))
        False

        Rules may come before the question, for relations that they declare. They are evaluated for it only, and relations that
        are asked for a few of their rows are computed no further.

        >>> sorted(s.query('''
        ... .decl far(x: number, y: number)
        ... far(x, z) :- edge(x, y), edge(y, z).
        ... far(x, z) :- far(x, y), edge(y, z).
        ... ?- far(2, X).'''))
        [(1,), (2,), (3,)]
        """
        self._check_open()
        with self.at() as view:
            return view.query(question)

    def at(self, round: int | None = None) -> View:
        """The present round, or a past one as far as `history` goes: all its relations, to be read as long as one likes while
        others commit.

        >>> import dlog
        >>> s = dlog.session(".decl seen(x: number)\\n", {"seen": [(1,)]})
        >>> before = s.at()
        >>> s.insert("seen", (2,))
        >>> _ = s.commit()
        >>> len(before["seen"]), len(s["seen"])
        (1, 2)
        """
        self._check_open()
        view = View(self)
        self._followers.read(view, round)
        return view

    def why(self, relation: str, row: Row, limit: int = 10) -> Proof:
        """Why a row is in a relation now: a tree of rules down to facts, each row by the derivation that comes first. Of what
        an aggregate counts or adds up, the first `limit` matches are premises.

        >>> import dlog
        >>> s = dlog.session(".decl a(x: number) .decl b(x: number)\\nb(x + 1) :- a(x), x > 1. a(1). a(2).")
        >>> print(s.why("b", (3,)))
        b(3)  by b(x + 1) :- a(x), x > 1.
        |-- a(2)  fact
        `-- 2 > 1
        """
        whole("limit", limit, 0, "a number of premises, 0 or more")
        with self._lock:
            name = self._relation(relation).name
            return prove(self._engine, self._codec, self.at(self._followers.noted).table, self._lock, name, row, limit)

    def why_not(self, relation: str, row: Row) -> WhyNot:
        """Why a row is not in a relation now: what fails first in each rule, for the bindings that get furthest."""
        with self._lock:
            name = self._relation(relation).name
            return refute(self._engine, self._codec, self.at(self._followers.noted).table, self._lock, name, row)

    def explain(self, question: str | None = None) -> str:
        """How the program is maintained or, with a question, how that is answered now."""
        self._check_open()
        if question is None:
            return self._engine.explain()
        with self._lock, self.at() as view:
            return self._questions.explain(self._questions.compiled(question), view.table)

    # ------------------------------------------------------------------------------------------------------------- staging

    def insert(self, relation: str, rows: Any) -> None:
        """Stages rows that are to be in a relation: one tuple, tuples, a dict of columns, or a table."""
        with self._lock:
            self._check_open()
            self._desk.stage(relation, rows, 1)

    def remove(self, relation: str, rows: Any) -> None:
        """Stages rows that are to be no longer in a relation; those that are not in it do not matter."""
        with self._lock:
            self._check_open()
            self._desk.stage(relation, rows, -1)

    def written(self, facts: str, shown: str | None = None) -> list[tuple[str, Row]]:
        """Rows that are written out, with their relations, as values that `insert` and `remove` take. Messages quote `shown`,
        a text of the same length, if it is given.

        >>> import dlog
        >>> dlog.session(".decl edge(x: number, y: number)\\n").written("edge(1, 2). edge(2, 3).")
        [('edge', (1, 2)), ('edge', (2, 3))]
        """
        self._check_open()
        return written_rows(self._text, facts, shown)

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
            self._desk.upsert(relation, rows, key)

    def load(self, relation: str, path: str | Path, **parameters: str) -> None:
        """Stages the rows of a file in any format that `.input` reads, with its parameters: `delimiter=","`."""
        with self._lock:
            self._check_open()
            self._desk.load(relation, Path(file_path("path", path, "the name of a file")), parameters, self._options.threads)

    @property
    def staged(self) -> dict[str, int]:
        """How many changes of each relation wait for the commit."""
        return {name: len(staged) for name, staged in self._desk.staged.items() if len(staged)}

    # -------------------------------------------------------------------------------------------------------------- rounds

    def commit(self, mark: int | None = None) -> Round:
        """Makes what is staged the next round.

        With a state the round is on disk when this returns. A `mark` is kept with it: a number that says how far the source of
        the changes has been read, so that whoever opens the state again knows where to go on.

        If it fails, for want of memory, say, or by an interruption, the session is at its last round and what is staged stays
        so; `rollback` forgets it. What the last round changed cannot be read any more then."""
        with self._lock:
            if self._transaction is not None:
                raise mistake("commit-inside-transaction", "a transaction is open", "it commits at the end of its block")
            return self._commit(mark)

    def rollback(self) -> None:
        """Forgets what is staged."""
        with self._lock:
            self._check_open()
            self._desk.restore({})

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A block whose changes are committed at its end or, if it or the commit raises, forgotten. What was staged before is
        committed with it, or stays staged. Other threads that change the session wait.

        >>> import dlog
        >>> s = dlog.session(".decl account(owner: symbol, cents: number)\\n", {"account": [("Ada", 500), ("Bo", 0)]})
        >>> with s.transaction() as transfer:
        ...     s.upsert("account", ("Ada", 400))
        ...     s.upsert("account", ("Bo", 100))
        >>> transfer.round, sorted(s["account"])
        (<dlog.Round 2>, [('Ada', 400), ('Bo', 100)])
        """
        with self._lock:
            self._check_open()
            if self._transaction is not None:
                raise mistake("nested-transaction", "a transaction is open already")
            before, began = self._desk.copied(), self._engine.round
            self._transaction = Transaction()
            try:
                yield self._transaction
                self._transaction.round = self._commit()
            except BaseException:
                if self._engine.round == began:
                    self._desk.restore(before)
                raise
            finally:
                self._transaction = None

    def commit_rounds(self, changes: Mapping[str, Any], mark: int | None = None) -> Round:
        """Commits the changes of many rounds at once, by relation: as tables or dicts of columns with `round` and `diff` among
        them, as (round, row, diff) tuples, or as the `Changes` of a session. All rounds are later than the present one.

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
        with self._lock:
            self._check_open()
            by_relation("changes", changes, "changes of rounds by the name of their relation")
            if self._desk.staged or self._transaction is not None:
                raise mistake("staged-changes", "changes are staged", "commit them first, or roll them back")
            now = self._engine.round
            inputs = {name: rounds_of(self._desk.intake(name), given, now) for name, given in changes.items()}
            self._desk.forget_indexes()
            return self._advance(inputs, mark=mark)

    def apply(self, stream: Iterable[tuple[int, str, int, Row]], mark: int | None = None) -> Round:
        """Commits a stream of changes at once: (round, relation, diff, row)."""
        return self.commit_rounds(by_relation_of(stream), mark)

    def subscribe(
        self,
        relation: str,
        callback: Callback | None = None,
        *,
        snapshot: bool = True,
        from_round: int | None = None,
        up_to: int | None = None,
        progress: bool = False,
    ) -> Subscription:
        """Follows a relation: pairs of a round and its changes, for ever later rounds.

        Parameters
        ----------
        callback
            Called with each pair, in the thread that commits, after the commit; it may stage changes, but not commit. Without
            one the subscription is iterated, or asked by `fetch`.
        snapshot
            Begin with all rows as of the first round, as insertions.
        from_round
            The first round, by default the present one: a past one as far as `history` goes, or one to come.
        up_to
            End before this round.
        progress
            Deliver the last round of every commit even if it changed nothing.

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
            whole_or_none(name, given, 0, "the number of a round")
            for name, given in (("from_round", from_round), ("up_to", up_to))
        )
        with self._lock:
            subscription = Subscription(self._relation(relation), callback, progress, end)
            self._followers.subscribe(subscription, snapshot, first, self._committed(self._engine.round))
            return subscription

    def history(self, rounds: int) -> None:
        """How many past rounds `at` can read from now on."""
        with self._lock:
            self._check_open()
            self._followers.history = check_history(rounds)
            self._followers.forget(self._engine.round)

    def _commit(self, mark: int | None = None) -> Round:
        self._check_open()
        return self._advance(self._desk.updates(self._engine.round + 1), staged=True, mark=mark)

    def _advance(self, inputs: Mapping[str, Updates], staged: bool = False, mark: int | None = None) -> Round:
        """Commits to the engine and tells whoever follows."""
        mark = whole_or_none("mark", mark, -(2**63), "a number of 64 bits", 2**63 - 1)
        if self._committing:
            raise busy()
        engine = self._engine
        before = engine.round
        late: BaseException | None = None
        if isinstance(engine, Durable):
            engine.mark = mark
        self._committing = True
        with Delayed():
            try:
                try:
                    frames = self._desk.frames() if staged else None
                    last = engine.commit(inputs, frames)
                except BaseException as error:
                    if engine.round == before:
                        self._changes = _gone
                        with stage("evaluation"):
                            raise
                    late, last = error, engine.round  # something came when the round was committed already
                self._mark = self._mark if mark is None else mark
                if staged:
                    self._desk.staged = {}
                self._changes = engine.changes
                self._read = {}
                if not self._followers.nobody(last):
                    self._followers.committed(self._committed(before))
            finally:
                self._committing = False
        if late is not None:
            raise late
        return Round(self, before + 1, last)

    def _committed(self, before: int) -> Committed:
        engine = self._engine
        return Committed(before, engine.round, self._program, self._codec, self._changes, engine.table)

    # ------------------------------------------------------------------------------------------------------------- program

    def add_rules(self, text: Program) -> Round:
        """Adds the rules, declarations and directives of a text, or of a file (a Path), to the program; facts among them are
        inserted. It is a round of its own.

        >>> import dlog
        >>> s = dlog.session(".decl edge(x: number, y: number)\\n", {"edge": [(1, 2)]})
        >>> round = s.add_rules(".decl back(x: number, y: number) back(y, x) :- edge(x, y).")
        >>> list(round.changes("back"))
        [((2, 1), 1)]
        """
        with self._lock:
            self._check_open()
            whole, new = program_text.added(self._text, text, *self._options.preprocessing)
            facts = tuple(item for item in new.items if isinstance(item, syntax.Clause) and item.body is None)
            return self._replace(whole, whole.compiled((*whole.declarations, *facts)).facts)

    def drop_rules(self, which: str) -> Round:
        """Drops the rules that are written out, or all rules of the relation that is named. It is a round of its own."""
        with self._lock:
            self._check_open()
            return self._replace(program_text.without_rules(self._text, which), {})

    def drop_relation(self, relation: str) -> Round:
        """Drops a relation that no rule reads any more, its rules included. It is a round of its own."""
        with self._lock:
            self._check_open()
            return self._replace(program_text.without_relation(self._text, relation), {})

    def _replace(self, text: program_text.Text, facts: Mapping[str, Any]) -> Round:
        """Goes on with another program: the inputs keep their rows, and what is staged stays so."""
        if self._transaction is not None:
            raise mistake("program-inside-transaction", "a transaction changes rows; change the program outside of it")
        if self._committing:
            raise busy()
        old, staged = self._engine, self._desk.staged
        program = replace(text.compiled(), facts=dict(facts))
        with Delayed():
            next_one = succeed(old, self._program, program, self._engines)
            new = next_one.engine
            try:
                if isinstance(old, Durable):
                    new = old.succeeded_by(new, text, program)
            except BaseException:
                next_one.undo()
                raise
            self._text = text
            self._use(new, program)
            self._changes = next_one.changes
            self._desk.staged = {name: changes for name, changes in staged.items() if name in next_one.kept}
            self._followers.committed(self._committed(next_one.round - 1))
        let_go(old)
        return Round(self, next_one.round, next_one.round)

    # ------------------------------------------------------------------------------------------------------------- closing

    def close(self) -> None:
        """Ends the session; what is staged is lost. Relations that were read stay readable."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._followers.close()
                self._desk.restore({})
                self._read = {}
                self._engine.close()
                self._engines.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "<dlog.Session, closed>"
        return f"<dlog.Session at round {self.round}: {', '.join(f'{name}: {self.rows(name)} rows' for name in self)}>"

    # -------------------------------------------------------------------------------------------------------------- inside

    def _relation(self, name: str) -> rules.Relation:
        self._check_open()
        found = self._program.relations.get(name) if isinstance(name, str) else None
        if found is None:
            raise unknown_relation(name, self._program.relations)
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise closed_session()

    def _table_at(self, name: str, round: int) -> Table:
        """A relation as of a round that a view keeps readable. Waits for a commit of another thread only while that is being
        noted, or to read the past."""
        relation = self._relation(name)
        engine = self._engine
        if self._followers.noted == round:
            table = engine.table(name)
            if engine is self._engine and engine.round == round:
                return table
        with self._lock:
            later = self._followers.past.since(round, name, relation.arity)
            return undone(self._relation(name), self._engine.table(name), later)

    def _relation_at(self, name: str, round: int) -> Relation:
        return Relation(self._relation(name), self._table_at(name, round), self._codec)

    def _answer(self, question: str, view: View) -> Relation:
        questions = self._questions
        compiled = questions.compiled(question)
        if not compiled.makes_records and not compiled.evaluates:
            return questions.answer(compiled, view.table)
        with self._lock:  # records are made by one thread at a time, and what is evaluated may not be of several rounds
            return questions.answer(questions.compiled(question), view.table)


def _says_something(program: rules.Program) -> bool:
    """Whether any relation has rows though no input has: from facts, or from rules that read nothing positively."""
    every = (rule for stratum in program.strata for rule in stratum.rules)
    return bool(program.facts) or any(not any(isinstance(b, rules.Atom) for b in rule.body) for rule in every)


def _gone(relation: str) -> Updates:
    """The changes after a commit that failed: an engine may have restored its rows without remembering how they came."""
    note = "subscriptions and `history` keep what they were told"
    raise mistake("past-round", f"the last round's changes of `{relation}` are gone: a later commit failed", note)
