"""A session as it is read: its relations, as of the last round or one that a view keeps, questions, and proofs.

Reading takes no lock, but for what has to be evaluated or found in the past, and gives the last committed round, also while
another thread commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import TYPE_CHECKING, cast

from dlog.arguments import whole
from dlog.codec import Codec, Row
from dlog.engine.compile.past import Moment, is_declared, moment
from dlog.engine.ir import rules
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.trace.values import ANY, Values
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.relation import Relation, unknown_relation
from dlog.sessions.follow.changes import Changes
from dlog.sessions.follow.followers import Followers
from dlog.sessions.follow.history import changes_of
from dlog.sessions.follow.views import Diff, View
from dlog.sessions.mistakes import closed_session, unreadable_round
from dlog.sessions.options import Options
from dlog.sessions.queries.answers import Tables
from dlog.sessions.queries.compiled import Question
from dlog.sessions.queries.questions import Questions
from dlog.sessions.text import Text
from dlog.tabular import Previewable

if TYPE_CHECKING:
    from dlog.proofs import Proof, WhyNot
    from dlog.spark import Remote


class Reading(Previewable):
    """The part of a session that is read: a mapping from the names of the relations to `Relation`s as of the last round."""

    _text: Text

    def __init__(self, chosen: Options) -> None:
        self._options = chosen
        self._lock = RLock()
        self._closed = self._restored = False
        self._followers = Followers(chosen.history)

    def _use(self, engine: RoundsEngine, program: rules.Program) -> None:
        """Everything that goes with an engine. Its own program may take rows for more relations than this one."""
        self._engine = engine
        self._program = program
        self._codec = Codec(program, engine.symbols, engine.records)
        self._has_hidden = not all(map(is_declared, program.relations))
        """Whether there are relations that no text declares: past rounds, and what rounds feed."""
        self._tell(engine.changes, lambda: engine.touched)
        self._open_relations: dict[str, Relation] = {}
        self._questions = Questions(self._text, engine, self._codec, self._options.threads, self._options.memory)

    def _tell(self, changes: Callable[[str], Updates], touched: Callable[[], Iterable[str]]) -> None:
        """Sets the functions that give the last commit's changes of a relation, and the relations that it may have changed."""
        self._changes, self._touched = changes, touched

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
        return self._followers.last_round

    @property
    def restored(self) -> bool:
        """Whether the session goes on with rounds of an earlier one, from its state."""
        return self._restored

    def __getitem__(self, relation: str) -> Relation:
        read = self._open_relations  # a commit in another thread puts an empty one in its place
        found = read.get(relation) if isinstance(relation, str) else None
        if found is None:
            declared = self._relation(relation)
            found = read[relation] = self._row_source(declared)
        return found

    def _row_source(self, relation: rules.Relation) -> Relation:
        if self._engine.elsewhere:
            from dlog.spark import RemoteRelation

            return RemoteRelation(relation, cast("Remote", self._engine), self._codec)
        return Relation(relation, self._engine.table(relation.name), self._codec)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._program.relations if is_declared(name))

    def __len__(self) -> int:
        return sum(is_declared(name) for name in self._program.relations)

    def __contains__(self, relation: object) -> bool:
        return isinstance(relation, str) and relation in self._program.relations and is_declared(relation)

    def rows(self, relation: str) -> int:
        """How many rows a relation has now."""
        return self._engine.rows(self._relation(relation).name)

    def changes(self, relation: str) -> Changes:
        """The changes of a relation by the last commit."""
        return Changes(self._relation(relation), self._changes(relation), self._codec)

    @property
    def touched(self) -> Iterable[str]:
        """The relations that the last commit may have changed: no others have."""
        self._check_open()
        touched = self._touched()
        return [name for name in touched if is_declared(name)] if self._has_hidden else touched

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

    def diff(self, earlier: int, later: int | None = None) -> Diff:
        """What changed from one round to another, by default the present one, all in all: the changes of each relation.

        >>> import dlog
        >>> s = dlog.session(".decl seen(x: number)\\n", {"seen": [(1,)]}, history=10)
        >>> for x in (2, 3):
        ...     s.insert("seen", (x,))
        ...     s.remove("seen", (x - 1,))
        ...     _ = s.commit()
        >>> sorted(s.diff(1, 3)["seen"]), sorted(s.diff(3, 2)["seen"])
        ([((1,), -1), ((3,), 1)], [((2,), 1), ((3,), -1)])
        """
        begin = self.at(earlier)
        return Diff(begin, self.at(later))

    def why(self, relation: str, row: Row, limit: int = 10) -> Proof:
        """The proof that a row is in a relation now: a tree of rules down to facts, each row by the derivation that comes
        first. Of what an aggregate counts or adds up, the first `limit` matches are premises.

        >>> import dlog
        >>> s = dlog.session(".decl a(x: number) .decl b(x: number)\\nb(x + 1) :- a(x), x > 1. a(1). a(2).")
        >>> print(s.why("b", (3,)))
        b(3)  by b(x + 1) :- a(x), x > 1.
        |-- a(2)  fact
        `-- 2 > 1
        """
        from dlog.proofs import prove  # what only some sessions ask for is imported then

        whole("limit", limit, 0, "a number of premises, 0 or more")
        with self._lock:
            name = self._relation(relation).name
            return prove(self._engine, self._codec, self.at(self._followers.last_round).table, self._lock, name, row, limit)

    def why_not(self, relation: str, row: Row) -> WhyNot:
        """The explanation of a row that is not in a relation now: what fails first in each rule, for the bindings that get
        furthest."""
        from dlog.proofs import refute

        with self._lock:
            name = self._relation(relation).name
            return refute(self._engine, self._codec, self.at(self._followers.last_round).table, self._lock, name, row)

    def explain(self, question: str | None = None) -> str:
        """The plan by which the program is maintained or, with a question, by which that is answered now."""
        self._check_open()
        if question is None:
            return self._engine.explain()
        with self._lock, self.at() as view:
            return self._questions.explain(self._questions.compiled(question), view.table)

    # -------------------------------------------------------------------------------------------------------------- inside

    def _relation(self, name: str) -> rules.Relation:
        self._check_open()
        found = self._program.relations.get(name) if isinstance(name, str) and is_declared(name) else None
        if found is None:
            raise unknown_relation(name, self, self._program.inline)
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise closed_session()

    def _table_at(self, name: str, round: int, values: Values = ANY) -> Table:
        """A relation as of a round that a view keeps readable, or the part of it that has these values, and perhaps others.
        Waits for a commit of another thread only while that is being noted, or to read the past."""
        if (found := moment(name)) is not None:
            return self._moment_at(found, round, values)
        if name in self._program.timed:
            with self._lock:
                return self._engine.table(name)
        relation, engine = self._relation(name), self._engine
        if self._followers.last_round == round:
            table = engine.table(name)
            if engine is self._engine and engine.round == round:
                return table
        with self._lock:
            self._followers.check(round, name)
            return self._followers.history.table(relation, lambda: self._engine.table(name), round, values)

    def _moment_at(self, moment: Moment, round: int, values: Values) -> Table:
        """A moment as of a round that a view keeps readable: one that rules read is there, also where history is not."""
        if moment.name in self._program.relations:
            with self._lock:
                if round == self._engine.round or moment.round >= 0:
                    return self._engine.table(moment.name)
        return self._table_at(moment.base, self._round_of(moment, round), values)

    def _round_of(self, moment: Moment, now: int) -> int:
        """The round that a moment is for who reads as of another one. Raises DlogError where it cannot be read."""
        round = moment.round if moment.round >= 0 else now + moment.round
        with self._lock:
            if round > now:
                raise unreadable_round(round, min(self._followers.oldest(moment.base), now), now, moment.base)
            self._followers.check(round, moment.base)
        return round

    def _changes_between(self, name: str, earlier: int, later: int) -> Changes:
        """The changes of a relation from one round that views keep readable to another."""
        relation = self._relation(name)
        first, last = sorted((earlier, later))
        with self._lock:
            self._followers.check(first, name)
            updates = changes_of(relation, self._followers.history.net(relation, first, last), later)
        return Changes(relation, updates if earlier <= later else updates.negated(), self._codec)

    def _relation_at(self, name: str, round: int) -> Relation:
        return Relation(self._relation(name), self._table_at(name, round), self._codec)

    def _derive_pending(self) -> None:
        """Derives what has not been since the state was opened: only what is there can be asked for as of a past round."""
        for name in self._engine.pending:
            self._engine.rows(name)
            return

    def _answer_over(self, question: Question, tables: Tables) -> Table:
        """The rows of the answers to a question over tables."""
        return self._questions.answer(question, tables).table

    def _answer(self, question: str, view: View) -> Relation:
        if view.round != self._followers.last_round:
            with self._lock:
                self._derive_pending()
        questions = self._questions
        compiled = questions.compiled(question)
        if not compiled.makes_records and not compiled.evaluates:
            return questions.answer(compiled, view.table)
        with self._lock:  # records are made by one thread at a time, and what is evaluated may not be of several rounds
            return questions.answer(questions.compiled(question), view.table)
