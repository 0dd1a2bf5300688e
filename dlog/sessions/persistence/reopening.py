"""Opening a state with a program: is it the one that the state was left with, and what becomes of the rows if not?

Rows that came from outside are kept, so the program must still declare their relations with the same types; it is refused if
it does not. Facts that the text has gained or lost come and go. Where the last session's engine can be gone on from, relations
that follow from the same rules as before are kept; whatever else has rules is derived anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Program, Relation, Type
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.runtime.storage.fact_encoder import ConstantRows
from dlog.engine.values.differences import apply_changes, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.functors import FunctorSource, for_stored_program
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source
from dlog.sessions.engines import Engines
from dlog.sessions.follow.changes import all_of
from dlog.sessions.mistakes import remark
from dlog.sessions.past_rounds import refuse_new
from dlog.sessions.persistence.durable import Durable
from dlog.sessions.persistence.folder import State
from dlog.sessions.replacing import reopened
from dlog.sessions.text import Text, stored_text

_SHOWN_CLAUSES = 10
"""So many clauses are named."""


def reopen(state: State, given: Text | None, engines: Engines, functors: FunctorSource) -> tuple[Text, Durable]:
    """The program that was given, or the state's own, on a state. Raises DlogError where they do not fit."""
    left = None if state.text is None else stored_text(state.text, state.path)
    # Whoever can write there has chosen the state's own program, and what it calls.
    own = replace(left, functors=for_stored_program(functors)) if left else Text(Source("\n"), (), functors)
    text = given or own
    program = text.compiled()
    if left is None or not state.round or Counter(left.formatted) == Counter(text.formatted):
        return text, Durable(state, text, program, engines)
    before = left.checked()
    refuse_new(before, program)
    state.means(before)
    gone, came = _rows_gone(state, before, program), _more(program, before)
    old, inner, round = Durable(state, left, before, engines), None, state.round
    if old.resumes:
        inner = reopened(old, before, replace(program, facts=dict(came)), gone, engines)
    durable = Durable(state, text, program, engines, inner, before)
    durable.change_program(came, gone)
    remark(*_change_notice(left, text, round, [] if inner is None else _as_before(inner, program)))
    return text, durable


# ----------------------------------------------------------------------------------------------------------------- inputs


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of an attribute's values: its kind and, of a record, all types in it."""

    kind: Kind
    records: frozenset[Type]


def _rows_gone(state: State, before: Program, now: Program) -> dict[str, Updates]:
    """The rows that go: facts that are not in the text any more. Refuses a program in which others have no place."""
    lost = state.interned.encoder.updates(before, _more(before, now), -1, state.round + 1)
    found, missing, wrong = {}, [], []
    held = set(state.externals())
    for old in (relation for relation in before.relations.values() if relation.name in held):
        new = now.relations.get(old.name)
        if new is not None and _layouts(old, before.types) == _layouts(new, now.types):
            if old.name in lost:
                found[old.name] = lost[old.name]
            continue
        table = state.external(old.name, old.kinds)
        if old.name not in before.timed and _beyond(table, before, old.name, state):
            missing += [old] if new is None else []
            wrong += [] if new is None else [_another(state, old, new, now)]
        elif table.rows:
            found[old.name] = all_of(table, state.round + 1).negated()
    if missing or wrong:
        raise DlogError([*([_missing(state, missing)] if missing else []), *wrong])
    return found


def _beyond(table: Table, program: Program, relation: str, state: State) -> bool:
    """Whether a relation has rows besides the facts of the program's text."""
    facts = {relation: program.facts[relation]} if relation in program.facts else {}
    columns = tuple(words(column) for column in table.columns)
    rows = table.rows
    for updates in state.interned.encoder.updates(program, facts, -1, 0).values():
        _, rows = apply_changes(columns, rows, updates.columns, updates.diffs)
    return rows > 0


def _layouts(relation: Relation, types: Mapping[str, Type]) -> list[_Layout]:
    return [_Layout(type.kind, frozenset(_records(type, types))) for _, type in relation.attributes]


def _records(type: Type, types: Mapping[str, Type]) -> Iterator[Type]:
    """The record types that values of a type are made of."""
    seen, waiting = set[str](), [type]
    while waiting:
        found = waiting.pop()
        if found.kind is Kind.RECORD and found.name not in seen:
            seen.add(found.name)
            yield found
            waiting += [types[name] for name in (*found.branches, *(field for _, field in found.fields))]


def _missing(state: State, lost: list[Relation]) -> Diagnostic:
    names = [f"`{relation.name}`" for relation in lost]
    listed = " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
    message = f"the state has rows of {listed}, which the program does not declare"
    declared = tuple(f"in the state it is {declaration(relation)}" for relation in lost)
    note = "is it the state of another program? open it without a program to go on with its own"
    return Diagnostic("state-program", message, notes=(*declared, note), place=str(state.path))


def _another(state: State, old: Relation, new: Relation, now: Program) -> Diagnostic:
    message = f"the state has rows of {declaration(old)}, which the program declares as {declaration(new)}"
    notes = (f"the state is {state.path}",)
    label = Label(new.span, "declared here with other types")
    return Diagnostic("state-program", message, (label,), notes, now.source)


def declaration(relation: Relation) -> str:
    """`edge(x: number, y: number)`"""
    return f"{relation.name}({', '.join(f'{name}: {type.name}' for name, type in relation.attributes)})"


# ---------------------------------------------------------------------------------------------------------------- changes


def _more(some: Program, others: Program) -> ConstantRows:
    """The facts that some text has and another has not."""
    found = {name: tuple(r for r in rows if r not in set(others.facts.get(name, ()))) for name, rows in some.facts.items()}
    return {name: rows for name, rows in found.items() if rows}


def _as_before(engine: RoundsEngine, program: Program) -> list[str]:
    """The relations with rules that an engine has taken over."""
    return sorted(engine.reused_relations & program.derived.keys())


def _change_notice(left: Text, text: Text, round: int, kept: Sequence[str]) -> list[str]:
    """The notice of a changed program: its differences, and what is done about them."""
    before, now = Counter(left.formatted), Counter(text.formatted)
    lines = ["the program is not the one that the state was left with"]
    for sign, items in (("-", before - now), ("+", now - before)):
        listed = list(items.elements())
        lines += [f"  {sign} {item}" for item in listed[:_SHOWN_CLAUSES]]
        lines += [f"  {sign} {len(listed) - _SHOWN_CLAUSES} more"] * (len(listed) > _SHOWN_CLAUSES)
    named = f", and so is what follows as before ({', '.join(kept)})" if kept else ""
    return [*lines, f"  its inputs are kept{named}, everything else was derived anew: round {round + 1}"]

