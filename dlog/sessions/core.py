"""A session: a program whose inputs change, and whose relations follow round by round.

It is read (`reading`), its rows change (`changing`: `insert`, `remove`, `commit`), and so does its program (`replacing`). What
maintains the program is behind `dlog.engine.rounds_engine.RoundsEngine`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from dlog.display.preview import Preview
from dlog.engine.compile.timed.findings import given_relations
from dlog.engine.garbage import uncollected
from dlog.engine.interruption import Delayed, delayed
from dlog.engine.ir import rules
from dlog.engine.rounds_engine import StartingPoint
from dlog.engine.state.sync import Sync
from dlog.functors import FunctorSource
from dlog.grammar.diagnostics import DlogError
from dlog.relation import overview
from dlog.sessions import text as program_text
from dlog.sessions.changing import Changing
from dlog.sessions.commits import Round
from dlog.sessions.follow.history import Window
from dlog.sessions.follow.views import present_relations
from dlog.sessions.mistakes import busy, mistake
from dlog.sessions.options import ProgramSource, StateSource, check_facts, options, read
from dlog.sessions.past_rounds import check_first, feed, first_rows, own_windows
from dlog.sessions.replacing import go_back, let_go, succeed


class Session(Changing):
    """A program kept up to date while its inputs change. Made by `dlog.session`; a context manager that closes it.

    A mapping from the names of the relations to `Relation`s as of the last round: `s["path"]`.
    """

    def __init__(
        self,
        program: ProgramSource | None,
        facts: StateSource = None,
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        max_iterations: int | None = None,
        history: int | timedelta = 0,
        include: Sequence[str] = (),
        macros: Sequence[str] = (),
        state: str | Path | None = None,
        sync: Sync = "always",
        engine: str = "embedded",
        spark: Any = None,
        workers: int | None = None,
        functors: FunctorSource = None,
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
            functors=functors,
        )
        check_facts(facts)
        super().__init__(chosen)
        if chosen.state is not None:
            given = None if program is None else read(program, chosen)
            self._engines = chosen.engines()
            self._reopen(given, facts)
            return
        self._begin("\n" if program is None else program)
        try:
            self._open(facts)
        except BaseException:
            self.close()
            raise

    @uncollected
    def _begin(self, program: ProgramSource) -> None:
        """An engine without rows."""
        chosen = self._options
        self._text = read(program, chosen)
        self._engines = chosen.engines()
        compiled = self._text.compiled()
        self._keep_windows(self._text, compiled)
        check_first(self, compiled)
        self._use(self._engines.make(compiled), compiled)

    def _reopen(self, given: program_text.Text | None, facts: StateSource) -> None:
        """Goes on where the state was left. A new one begins as any session does."""
        # Imported here: sessions without a state start sooner, and are smaller.
        from dlog.sessions.persistence.folder import State
        from dlog.sessions.persistence.reopening import reopen

        chosen, state = self._options, None
        try:
            with Delayed():
                state = State(cast("str | Path", chosen.state), chosen.sync, chosen.memory)
            self._text, engine = reopen(state, given, self._engines, chosen.functors)
            self._keep_windows(self._text, engine.program)
            self._use(engine, engine.program, engine)
            self._followers.last_round = engine.round
            engine.keep_history(self._followers.history)
            self._restored = engine.round > 0
            if not self._restored:  # files that a program names which comes from the folder are not read
                self._open(None if given is None and isinstance(facts, str | Path) else facts)
                engine.keep_program()
        except BaseException:
            if state is not None:
                state.close()
            raise

    def _open(self, facts: StateSource) -> None:
        """The first round, if there is anything without a change from outside."""
        if isinstance(facts, str | Path):
            chosen = self._options
            self._staged_changes.load_inputs(str(facts), chosen.threads, chosen.engine == "spark", chosen.spark, chosen.memory)
        elif facts is not None:
            for name, rows in facts.items():
                self.insert(name, rows)
        if self._staged_changes.staged or _says_something(self.program):
            if isinstance(facts, str | Path):
                self._have_come(given_relations(self._program))
            self._commit()

    def _have_come(self, relations: frozenset[str]) -> None:
        """What these timed relations follow comes with the first round, and had come already."""
        if self._durable is not None:
            self._durable.have_come(relations)
        elif relations:
            staged = self._staged_changes.staged
            start = StartingPoint(self._engine.symbols, self._engine.records, 0, restored=relations)
            self._use(self._engines.make(self._program, start), self._program)
            self._staged_changes.staged = staged

    # ------------------------------------------------------------------------------------------------------------- program

    def add_rules(self, text: ProgramSource) -> Round:
        """Adds the rules, declarations and directives of a text, or of a file (a Path), to the program; facts among them are
        inserted. It is a round of its own.

        >>> import dlog
        >>> s = dlog.session(".decl edge(x: number, y: number)\\n", {"edge": [(1, 2)]})
        >>> round = s.add_rules(".decl back(x: number, y: number) back(y, x) :- edge(x, y).")
        >>> list(round.changes("back"))
        [((2, 1), 1)]
        """
        if self._followers.waits:
            self._wait_for_room()
        with self._lock:
            self._check_open()
            whole = program_text.added(self._text, text, *self._options.preprocessing)
            facts = program_text.new_facts(self._text, whole)
            rows = whole.compiled((*whole.declarations, *facts)).facts if facts else {}
            return self._replace(whole, rows)

    def drop_rules(self, which: str) -> Round:
        """Drops the rules that are written out, or all rules of the relation that is named. It is a round of its own."""
        with self._lock:
            self._check_open()
            return self._replace(program_text.without_rules(self._text, which), {})

    def drop_relation(self, *relations: str) -> Round:
        """Drops relations that no rule of others reads any more, their rules included. It is a round of its own."""
        with self._lock:
            self._check_open()
            return self._replace(program_text.without_relations(self._text, relations), {})

    @delayed
    def _replace(self, text: program_text.Text, facts: Mapping[str, Any]) -> Round:
        """Goes on with another program: the inputs keep their rows, and what is staged stays so."""
        if self._transaction is not None:
            raise mistake("program-inside-transaction", "a transaction changes rows; change the program outside of it")
        if self._committing:
            raise busy()
        old, before, staged = self._engine, self._program, self._staged_changes.staged
        program = replace(text.compiled(), facts=dict(facts))
        self._followers.history.settle()
        window = self._keep_windows(text, program)
        try:
            more = first_rows(self, before, program, old.round)
            more |= feed(self, before, [m for m in self._moving if m.name in program.relations], old.round)
            next_one = succeed(old, before, program, self._engines, more)
        except BaseException:
            self._followers.keep(window)
            raise
        try:
            durable, engine = self._durable, next_one.engine
            durable = None if durable is None else durable.succeeded_by(engine, text, program, next_one.changes, more)
        except BaseException:
            self._followers.keep(window)
            go_back(old, next_one.engine)
            raise
        self._text = text
        self._use(next_one.engine if durable is None else durable, program, durable)
        self._tell(next_one.changes, lambda: program.relations)
        self._followers.history.drop(before.relations.keys() - program.relations.keys())
        self._staged_changes.staged = {name: changes for name, changes in staged.items() if name in next_one.kept_relations}
        self._feeds.keep(next_one.kept_relations)
        self._followers.committed(self._committed(next_one.round - 1))
        let_go(old)
        self._follow()
        return Round(self, next_one.round, next_one.round)

    def _keep_windows(self, text: program_text.Text, program: rules.Program) -> Window:
        """Has relations keep as many past rounds as a program asks for; returns the window of before."""
        window = self._followers.history.window
        own = own_windows(text, program)
        if own != window.own:
            self._followers.keep(replace(window, own=own))
        return window

    # ------------------------------------------------------------------------------------------------------------- closing

    @delayed
    def close(self) -> None:
        """Ends the session; what is staged is lost. Relations that were read stay readable. Where one part of it cannot be
        closed, all others are before that is raised: nobody could close them later."""
        with self._lock, ExitStack() as parts:
            if not self._closed:
                self._closed = True
                parts.callback(self._engines.close)
                parts.callback(self._engine.close)
                parts.callback(self._followers.close)
                self._staged_changes.restore({})
                self._open_relations = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Closes it. An error on its way out is not hidden by one of closing."""
        try:
            self.close()
        except DlogError as other:
            if error is None:
                raise
            error.add_note(f"and the session could not be closed: {other}")

    def _preview(self) -> Preview:
        if self._closed:
            return Preview("dlog.Session, closed")
        return overview(f"dlog.Session at round {self.round}", present_relations(self._program), self.rows)


def _says_something(program: rules.Program) -> bool:
    """Whether any relation has rows though no input has: from facts, or from rules that read nothing positively."""
    every = (rule for stratum in program.strata for rule in stratum.rules)
    return bool(program.facts) or any(not any(isinstance(b, rules.Atom) for b in rule.body) for rule in every)
