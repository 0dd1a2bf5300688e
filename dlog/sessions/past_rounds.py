"""Past rounds in the rules of a session: `edge@-1(x, y)`, `edge@17(x, y)`, and how long their relations' history has to be.

A moment of a relation (`engine/compile/past`) is an input that the session feeds: with every round the relation as of so many
rounds before gets one round later. A certain round stays as it is; its rows are put in when a rule that reads it is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dlog.engine.compile.past import Moment, moments
from dlog.engine.ir.rules import Program
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.sessions.follow.changes import from_table, none
from dlog.sessions.follow.followers import Followers
from dlog.sessions.mistakes import mistake
from dlog.sessions.text import Text

_QUALIFIER = "history("


class SessionWithPast(Protocol):
    """A session, as its past rounds are read."""

    @property
    def _followers(self) -> Followers: ...
    def _table_at(self, name: str, round: int) -> Table: ...


def own_windows(text: Text, program: Program) -> dict[str, int]:
    """How many past rounds relations are to keep whatever the session's history: what they are declared with, and what rules
    ask for."""
    declared = (item for item in text.expanded if isinstance(item, syntax.RelationDecl))
    found: dict[str, int] = {}
    for item in declared:
        for qualifier in item.qualifiers:
            if qualifier.startswith(_QUALIFIER):
                found |= dict.fromkeys(item.names, syntax.round_number(qualifier[len(_QUALIFIER) : -1]))
    for moment in moments(program.relations):
        if moment.round < 0:
            found[moment.base] = max(found.get(moment.base, 0), -moment.round)
    return {name: rounds for name, rounds in found.items() if rounds}


def feed(session: SessionWithPast, program: Program, moving: Iterable[Moment], now: int) -> dict[str, Updates]:
    """The changes of moments in the round after `now`: those that their relations had so many rounds before."""
    found = {}
    for moment in moving:
        round = now + 1 + moment.round
        if round >= 1:
            session._followers.check(round - 1, moment.base)
            updates = session._followers.history.between(program.relations[moment.base], round - 1, round)
            if updates.rows:
                found[moment.name] = Updates(updates.columns, updates.diffs, updates.rounds - moment.round)
    return found


def first_rows(session: SessionWithPast, before: Program, program: Program, now: int) -> dict[str, Updates]:
    """The rows of moments that a program has and the one before had not, in the round after `now`. Raises DlogError for a round
    that cannot be read."""
    found = {}
    for moment in moments(program.relations.keys() - before.relations.keys()):
        round = moment.round if moment.round >= 0 else now + 1 + moment.round
        if moment.base in before.relations and round >= 0:
            _check(session, program, moment, round)
            table = session._table_at(moment.base, round)
            found[moment.name] = _all_of(table, now + 1)
        else:
            found[moment.name] = none(program.relations[moment.name].arity)
    return found


def check_first(session: SessionWithPast, program: Program) -> None:
    """Raises DlogError where rules of a session that begins read a round that is still to come."""
    for moment in moments(program.relations):
        if moment.round > 0:
            _check(session, program, moment, moment.round)


def _check(session: SessionWithPast, program: Program, moment: Moment, round: int) -> None:
    try:
        session._followers.check(round, moment.base)
    except DlogError as error:
        label = Label(program.relations[moment.name].span)
        raise DlogError(
            [Diagnostic(d.code, d.message, (label,), d.notes, program.source) for d in error.diagnostics]
        ) from None


def refuse_new(before: Program, program: Program) -> None:
    """Raises DlogError where a program that a state is opened with reads past rounds that the state's own program does not."""
    new = moments(program.relations.keys() - before.relations.keys())
    if new:
        message = f"rules about `{new[0].name}` cannot be new where a state is opened: its history begins with the program"
        raise mistake("past-atom", message, "open it with its own program (None), and add them with `add_rules`")


def _all_of(table: Table, round: int) -> Updates:
    return from_table(tuple(words(column) for column in table.columns), table.rows, round)
