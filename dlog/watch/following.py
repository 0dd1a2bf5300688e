"""What `dlog watch` follows: outputs, or the answers to questions; from now on, or as of a round of the stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dlog.arguments import MAX_COUNT
from dlog.dataclass import dataclass
from dlog.engine.compile.past import is_declared
from dlog.engine.ir.rules import Program
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions import Session
from dlog.sessions.follow.envelopes import Form
from dlog.sessions.follow.subscriptions import Subscription

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*:(?![-=])\s*(?!\{)(.*)", re.DOTALL)
"""A question with a name before it; what `:` and a brace follow is an aggregate."""


def watched(program: Program) -> list[str]:
    """The outputs or, if the program names none, all relations that follow from rules."""
    outputs = dict.fromkeys(io.relation for io in program.io if io.action == "output")
    return list(outputs) or [name for name in program.derived if is_declared(name)]


def followed(program: Program, questions: Sequence[str]) -> dict[str, str]:
    """By name what is followed: questions or, without any, outputs. Raises DlogError where two have a name."""
    if not questions:
        return {name: name for name in watched(program)}
    found: dict[str, str] = {}
    for number, text in enumerate(questions, 1):
        named = _NAMED.fullmatch(text)
        name, question = (named[1], named[2]) if named else (f"query{number}" if number > 1 else "query", text)
        if name in found or name in program.relations:
            what = "another question" if name in found else "a relation"
            note = f"write another name before it: --query 'name: {question.strip()}'"
            raise DlogError(Diagnostic("bad-query", f"a question has the name of {what}: `{name}`", notes=(note,)))
        found[name] = f"?- {question.strip().removeprefix('?-').strip()}"
    return found


def columns_of(given: Sequence[str], names: Iterable[str], what: str, code: str) -> dict[str, list[str]]:
    """Columns by relation, of `what`: keys or orders. Raises DlogError, with a code, for what is none."""
    found = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if not equals or not columns or name not in names:
            notes = (f"changes are written of {', '.join(names)}",) if equals and columns else ()
            raise DlogError(Diagnostic(code, f"`{text}` is no {what}: write relation=column,column", notes=notes))
        found[name] = columns.split(",")
    return found


@dataclass(frozen=True, slots=True)
class Forms:
    """In which form changes are told: `--key`, `--envelope` and `--order`."""

    keys: Sequence[str]
    envelope: Form
    orders: Sequence[str]


class Following:
    """Subscriptions by name."""

    def __init__(self, session: Session, questions: Sequence[str], forms: Forms, snapshot: bool) -> None:
        self.followed = followed(session.program, questions)
        self.keys = columns_of(forms.keys, self.followed, "key", "bad-key")
        self.orders = columns_of(forms.orders, self.followed, "order", "bad-order")
        if forms.envelope != "upsert" and not self.keys:
            message = f"`--envelope {forms.envelope}` is about keys: name some, --key relation=column"
            raise DlogError(Diagnostic("bad-key", message))
        self._session, self._envelope, self._snapshot = session, forms.envelope, snapshot
        self.subscriptions: dict[str, Subscription] = {}
        """There are none before it begins."""

    def begin(self, round: int | None = None) -> None:
        """Begins as of a round of the session, by default the present one."""
        for name, what in self.followed.items():
            envelope = self._envelope if name in self.keys else None
            form = {"key": self.keys.get(name), "envelope": envelope, "order": self.orders.get(name)}
            terms: dict[str, Any] = {"snapshot": self._snapshot, "as_of": round, "limit": MAX_COUNT, **form}
            self.subscriptions[name] = self._session.subscribe(what, **terms)


def labels_from(session: Session, wanted: int, last: int, clocked: bool) -> dict[int, int]:
    """The rounds of the stream by those of the session, from the one on as of which `wanted` is, one of those up to `last`.
    Where they are those of a clock (`clocked`), it has passed others in between. Raises DlogError where history does not go
    back so far."""
    marks = session.marks()
    before = [round for round, mark in marks.items() if mark <= wanted]
    start = max(before) if before else _before_marks(session, marks, wanted, last)
    if clocked:
        following = min((round for round in marks if round > start), default=session.round + 1)
        start = max(start, min(wanted, following - 1))
        return {start: wanted, **{round: mark for round, mark in marks.items() if round > start}}
    found, label = {start: wanted}, wanted
    for round in range(start + 1, session.round + 1):
        found[round] = label = marks.get(round, label)
    return found


def _before_marks(session: Session, marks: Mapping[int, int], wanted: int, last: int) -> int:
    """The round of the session before the first one of the stream, if all are kept."""
    first = min(marks, default=None)
    if first is not None:
        try:
            session.at(0).close()
        except DlogError:
            pass
        else:
            return first - 1
    kept = f"rounds {marks[first]} to {last}" if first is not None and marks[first] < last else f"round {last}"
    notes = ("`--history ROUNDS` has a state keep past rounds from then on; it is said again whenever they are to be read",)
    raise DlogError(Diagnostic("unknown-round", f"round {wanted} cannot be read: the state has {kept}", notes=notes))
