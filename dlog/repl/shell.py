"""Executes statements on a session: clauses change its program, changes its inputs, queries ask it, commands do the rest.

Every change is a round of its own, but between `begin` and `commit`. Whatever goes wrong is told, and the session goes on as of
its last round. The session, and with it the engine, is made when it is first needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dlog.dataclass import dataclass
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError
from dlog.repl.screen import UNNAMED
from dlog.repl.statements import Kind, Statement, grouped, joined

if TYPE_CHECKING:
    from dlog.engine.state.sync import Sync
    from dlog.relation import Relation
    from dlog.repl.screen import Screen
    from dlog.sessions import Round, Session

LIMIT: Final = 20


@dataclass(frozen=True, slots=True)
class ReplOptions:
    """The options of `dlog repl`."""

    program: Path | None = None
    facts: str | None = None
    include: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    threads: int | None = None
    memory: int | None = None
    max_iterations: int | None = None
    state: Path | None = None
    sync: Sync = "always"
    modules: tuple[str, ...] = ()
    module_folders: tuple[str, ...] = ()


@dataclass
class Shell:
    """One REPL. `interactive` says that there is somebody who goes on after an interruption; `limit` is how many rows are
    shown; `staging` is true after `begin`; `seconds` is what the last statement took; `obey` executes a
    command (`commands.obey`); `statement` is the present one."""

    options: ReplOptions
    screen: Screen
    obey: Callable[[Shell], None] = field(repr=False)
    interactive: bool = False
    limit: int = LIMIT
    staging: bool = False
    failed: bool = False
    done: bool = False
    seconds: float = 0.0
    statement: Statement = field(default=Statement("program", ""), repr=False)
    _session: Session | None = field(default=None, repr=False)
    _declared: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)
    _scripts: list[str] = field(default_factory=list, repr=False)

    @property
    def session(self) -> Session:
        if self._session is None:
            from dlog.sessions import Session

            o = self.options
            limits: dict[str, Any] = {"memory": o.memory, "max_iterations": o.max_iterations}
            limits |= {"state": o.state, "sync": o.sync}
            if o.modules:
                from dlog.functors import load_modules

                limits["functors"] = load_modules(o.modules, o.module_folders)
            self._session = Session(o.program, o.facts, threads=o.threads, include=o.include, macros=o.macros, **limits)
        return self._session

    def open(self) -> None:
        """Makes the session now. Raises what is wrong with the program or its inputs."""
        _ = self.session

    def relations(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """The relations there are with names and types of their attributes, for completion."""
        if self._session is None:
            return dict(self._declared)
        found = [self._session.program.relations[name] for name in self._session]
        return {r.name: tuple((name, type.name) for name, type in r.attributes) for r in found}

    def check_program(self) -> None:
        """Compiles the program that was given, without an engine yet. Raises what is wrong with it."""
        from dlog.engine.compile.past import is_declared
        from dlog.pipeline import compile_program

        assert self.options.program is not None
        program = compile_program(self.options.program, self.options.include, self.options.macros)
        for relation in (r for r in program.relations.values() if is_declared(r.name)):
            self._declared[relation.name] = tuple((name, type.name) for name, type in relation.attributes)

    # ----------------------------------------------------------------------------------------------------------- statements

    def run(self, statements: Iterable[Statement]) -> None:
        """Executes statements; what fails is told and does not keep the others from running."""
        for group in grouped(statements):
            if self.done:
                return
            self._guarded(partial(self._execute_group, group))
            self.screen.flush()

    def run_script(self, name: str, statements: Iterable[Statement]) -> None:
        """`run` of the statements of a file, which messages name."""
        outer, around = self.screen.source, self.statement
        if name in self._scripts:
            raise DlogError(Diagnostic("endless-script", f"{name} reads itself"))
        self._scripts.append(name)
        self.screen.source = name
        try:
            self.run(statements)
        finally:
            self._scripts.pop()
            self.screen.source, self.statement = outer, around

    def _execute_group(self, group: Sequence[Statement]) -> None:
        """Executes parts of a program together or, if some are wrong, the others."""
        try:
            self.execute(joined(group))
        except DlogError:
            if len(group) == 1:
                raise
            self._by_parts(group)

    def _by_parts(self, group: Sequence[Statement]) -> None:
        """Executes parts of a program one by one; what comes too early once more after the others."""
        while True:
            failed: list[Statement] = []
            mistakes: dict[Diagnostic, None] = {}
            for statement in group:
                try:
                    self.execute(statement)
                except DlogError as error:
                    failed.append(statement)
                    mistakes |= dict.fromkeys(error.diagnostics)
            if not failed:
                return
            if len(failed) == len(group):
                raise DlogError(list(mistakes))
            group = failed

    def execute(self, statement: Statement) -> None:
        """Executes one statement; mistakes are raised."""
        started = time.perf_counter()
        self.statement = statement
        try:
            _EXECUTE[statement.kind](self, statement)
        except DlogError as error:
            raise error if self.interactive else _located(error, statement) from None
        finally:
            self.seconds = time.perf_counter() - started

    def _guarded(self, action: Callable[[], object]) -> None:
        """Runs an action. An interruption stops it and no more than that, but in a pipe, where nobody would go on."""
        try:
            action()
        except DlogError as error:
            self.failed = True
            self.screen.error(error)
        except KeyboardInterrupt:
            self.failed = True
            self.screen.complain("interrupted")
            if not self.interactive:
                raise
        except InternalError as error:
            self._broken(str(error))
        except BrokenPipeError:
            raise
        except Exception as error:
            self._broken(f"internal error in the REPL: {type(error).__name__}: {error}")

    def _broken(self, text: str) -> None:
        self.failed = True
        self.screen.complain(f"{text}\nthe session goes on")

    def close(self) -> int:
        """Ends the session; returns the exit code."""
        if self._session is not None:
            self._session.close()
        return int(self.failed)

    # -------------------------------------------------------------------------------------------------------------- program

    def change_program(self, statement: Statement) -> None:
        """Rules, declarations and facts typed in. Facts alone are rows to insert."""
        if _only_facts(statement.text) and self._insert(statement):
            return
        if self.staging:
            note = "a change of the program is a round of its own: commit or roll back first"
            raise DlogError(Diagnostic("program-inside-transaction", "changes are staged", notes=(note,)))
        self.announce(self.session.add_rules(statement.placed + "\n"), always=False)

    def _insert(self, statement: Statement) -> bool:
        """Inserts facts; false if that is not all there is to it: of a relation with rules they are part of the program."""
        rows = self.session.written(statement.placed)
        from dlog.watch.watch import changeable

        open_ones = changeable(self.session.program)
        if any(name not in open_ones for name, _ in rows):
            return False
        self.change([(name, row, 1) for name, row in rows])
        return True

    # ----------------------------------------------------------------------------------------------------------------- rows

    def change_rows(self, statement: Statement) -> None:
        """`+edge(1, 2), edge(2, 3).` and `-edge(1, 2).`"""
        sign = 1 if statement.text[0] == "+" else -1
        text = statement.placed
        place = text.index(statement.text[0])
        facts = _apart(f"{text[:place]} {text[place + 1 :]}")
        self.change([(name, row, sign) for name, row in self.session.written(facts, text)])

    def change(self, rows: Sequence[tuple[str, Any, int]]) -> None:
        """Stages changes and, outside of `begin`, commits them."""
        for name in {name for name, _, _ in rows}:
            self.session.insert(name, [])  # raises where none may be changed, before any is
        for name, row, sign in rows:
            (self.session.insert if sign > 0 else self.session.remove)(name, row)
        self.settle()

    def settle(self) -> None:
        """Commits what is staged, unless the user is going to."""
        if self.staging:
            waiting = sum(self.session.staged.values())
            self.screen.line(("note", f"{waiting} {_plural(waiting, 'change')} staged"))
        else:
            self.commit()

    def commit(self) -> None:
        """Commits and tells what changed. A commit that fails leaves nothing staged, but after `begin`."""
        try:
            round = self.session.commit()
        except BaseException:
            self.forget()
            raise
        self.staging = False
        self.announce(round)

    def forget(self) -> None:
        """Outside of `begin`, what a failed statement staged is forgotten."""
        if not self.staging and self._session is not None:
            with suppress(DlogError):
                self._session.rollback()

    def announce(self, round: Round, always: bool = True) -> None:
        """Shows the changes of a round: how many everywhere, and the rows themselves in the relations of interest. A change of
        the program that changes no rows goes without saying."""
        from dlog.watch.following import watched

        counts = []
        for name in round:
            changes = round.changes(name)
            came = int((changes.diffs > 0).sum())
            signs = [f"+{came}"] * bool(came) + [f"-{len(changes) - came}"] * (came < len(changes))
            counts.append(f"{name} {' '.join(signs)}")
        if counts or always:
            self.screen.line(("note", f"round {int(round)}{': ' if counts else ''}{', '.join(counts)}"))
        for name in watched(self.session.program):
            self._show_changes(round, name)

    def _show_changes(self, round: Round, name: str) -> None:
        from dlog.proofs.wording import row_text

        changes = round.changes(name)
        shown = changes if len(changes) <= 1000 else changes.head(self.limit)
        for row, diff in islice(sorted(shown, key=_sortable), self.limit):
            style, sign = ("good", "+") if diff > 0 else ("bad", "-")
            self.screen.line((style, f"{sign} {row_text(name, row)}"))
        if len(changes) > self.limit:
            self.screen.line(("note", f"... {len(changes) - self.limit:,} more changes of {name}"))

    # -------------------------------------------------------------------------------------------------------------- queries

    def query(self, statement: Statement) -> None:
        """`?- path(1, X).`: the answers as a table, or yes or no where nothing is asked for."""
        answers = self.session.query(statement.placed)
        if answers.attributes:
            self.show(answers)
        else:
            self.screen.line("yes" if answers.rows else "no")

    def show(self, relation: Relation) -> None:
        """The first rows of a relation, in order where there are not too many, and how many there are."""
        from dlog.proofs.wording import literal_of

        few = relation.rows <= 10_000
        rows = list(islice(sorted(relation, key=_sortable) if few else relation.head(self.limit), self.limit))
        if rows and relation.attributes:
            right = [isinstance(value, int | float) for value in rows[0]]
            self.screen.table(relation.attributes, ([literal_of(value) for value in row] for row in rows), right)
        more = f", {len(rows)} shown" if len(rows) < relation.rows else ""
        self.screen.line(("note", f"{relation.rows:,} {_plural(relation.rows, 'row')}{more}"))

    # ------------------------------------------------------------------------------------------------------------- commands

    def command(self, statement: Statement) -> None:
        self.obey(self)


_EXECUTE: Final[dict[Kind, Callable[[Shell, Statement], None]]] = {
    "program": Shell.change_program,
    "query": Shell.query,
    "change": Shell.change_rows,
    "command": Shell.command,
}


def _located(error: DlogError, statement: Statement) -> DlogError:
    """The mistakes, those without a place at the statement."""
    place, line = f"{UNNAMED}:{statement.line}:1", statement.text.partition("\n")[0]
    return DlogError([d if d.labels or d.place else replace(d, place=place, line=line) for d in error.diagnostics])


def _only_facts(text: str) -> bool:
    """Whether clauses are facts all of them."""
    from dlog.repl.statements import tokens

    marks = [token.text for token in tokens(text) if token.kind not in ("space", "comment", "string")]
    return ":-" not in marks and "<=" not in marks and not text.startswith((".", "#")) and "." in marks


def _apart(facts: str) -> str:
    """`a(1), b(2).` as `a(1). b(2).`"""
    from dlog.repl.statements import tokens

    depth = 0
    pieces = []
    for token in tokens(facts):
        if token.kind == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
        pieces.append("." if token.kind == "mark" and token.text == "," and depth == 0 else token.text)
    return "".join(pieces)


def _sortable(row: Any) -> tuple[str, ...] | Any:
    """A key by which rows of any values can be sorted: numbers by value, anything else by its text."""
    return tuple(_key(value) for value in row)


def _key(value: Any) -> tuple[int, Any]:
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case tuple():
            return 3, tuple(_key(inner) for inner in value)
        case _:
            return 2, str(value)


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
