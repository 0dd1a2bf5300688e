"""Explanations of absent rows: for each rule, how far its body gets, literal after literal as it was written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.codec import Row
from dlog.dataclass import dataclass
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Rule, Unpack, Variable
from dlog.pipeline import stage
from dlog.proofs import wording
from dlog.proofs.aggregates import reduced
from dlog.proofs.forms import Form
from dlog.proofs.search import Search, is_fresh
from dlog.proofs.solve import EVERYTHING, Solver, ready
from dlog.proofs.stored import BLOCK
from dlog.proofs.terms import Frame
from dlog.proofs.why_not import Failure, WhyNot

SHOWN_MISSES = 3
"""Near misses shown of each rule."""


def absence(search: Search, relation: str, row: Row) -> WhyNot:
    """Explains that a row is not there, which the caller has checked."""
    with search.snapshot.lock, stage("proofs"):
        encoded = search.encoded(relation, row)
        failures = [_failure(search, rule, encoded) for rule in _rules(search, relation)]
        return WhyNot(relation, row, tuple(failures), tuple(_closest(search, relation, encoded)))


def _rules(search: Search, relation: str) -> list[Rule]:
    return [rule for stratum in search.program.strata for rule in stratum.rules if rule.head.relation == relation]


def _closest(search: Search, relation: str, row: tuple[int, ...]) -> list[Row]:
    """The first rows that have most columns in common with the row."""
    table = search.rows(relation)
    if not table.rows or not row:
        return []
    common = np.zeros(table.rows, np.int64)
    for column, word in zip(table.columns, row, strict=True):
        common += column == word
    best = int(common.max())
    if best == 0:
        return []
    return [search.decoded(relation, table.row(place)) for place in np.flatnonzero(common == best)[:SHOWN_MISSES].tolist()]


# ------------------------------------------------------------------------------------------------------------------ one rule


@dataclass(slots=True)
class _Deepest:
    """The furthest that the body got: literals that held, the one that failed, and the bindings then."""

    matched: tuple[Literal, ...] = ()
    literal: Literal | None = None
    frame: Frame | None = None


def _failure(search: Search, rule: Rule, row: tuple[int, ...]) -> Failure:
    """The failure of that form of a rule which gets furthest."""
    found = [_attempt(search, form, row) for form in search.forms(rule)]
    return max(found, key=lambda failure: (failure.misses > 0, len(failure.matched)))


def _attempt(search: Search, form: Form, row: tuple[int, ...]) -> Failure:
    rule = form.rule
    solver = search.solver(form, EVERYTHING, False)
    frame = form.frame(row, solver.terms)
    if frame is None:
        return Failure(rule.text, None, ("the head does not match",), (), 0, ())
    deepest = _Deepest()
    _descend(solver, list(form.body), frame, (), deepest)
    assert deepest.frame is not None
    frame = deepest.frame
    met = tuple(_written(search, form, x) for x in deepest.matched if not _is_implicit(form, x))
    shown = range(min(frame.rows, SHOWN_MISSES))
    bindings = tuple(search.bindings(form, frame, place) for place in shown)
    if deepest.literal is None:
        lattice = rule.head.relation in search.program.lattices
        kept = "only the best value is kept" if lattice else "the relation does not keep the row"
        return Failure(rule.text, None, (f"the body holds, but {kept}",), bindings, frame.rows, met)
    pieces = [frame.take(np.array([place])) for place in shown]
    reasons = tuple(_reason(search, solver, form, deepest.literal, piece) for piece in pieces)
    return Failure(rule.text, _written(search, form, deepest.literal), reasons, bindings, frame.rows, met)


def _descend(solver: Solver, body: list[Literal], frame: Frame, met: tuple[Literal, ...], deepest: _Deepest) -> None:
    """Follows the bindings through the body in the order of the text, as far as that can be."""
    if not body:
        deepest.matched, deepest.literal, deepest.frame = met, None, frame
        return
    literal = next((x for x in body if ready(x, set(frame.values))), body[0])
    rest = [x for x in body if x is not literal]
    nothing = True
    for piece in solver.step(literal, frame):
        for low in range(0, piece.rows, BLOCK):
            nothing = False
            part = piece.take(np.arange(low, min(low + BLOCK, piece.rows)))
            _descend(solver, rest, part, (*met, literal), deepest)
    if nothing and (deepest.frame is None or len(met) > len(deepest.matched)):
        deepest.matched, deepest.literal, deepest.frame = met, literal, frame


def _is_implicit(form: Form, literal: Literal) -> bool:
    """Whether a literal is not in the text but was made of a head's or an atom's computed argument."""
    match literal:
        case Compare(left=Variable() as left) | Unpack(value=left):
            return is_fresh(form.rule, left)
        case Atom() | Negation() | Compare() | Generator() | Aggregate():
            return False


def _reason(search: Search, solver: Solver, form: Form, literal: Literal, frame: Frame) -> str:
    """The reason why a literal fails under the bindings of a frame of one row."""
    names = search.names(form, frame)
    match literal:
        case Atom(relation=name) if name in search.program.timed:
            shown = search.program.timed[name].how == "shown"
            return "no such row is there in this round" if shown else "no event has met that"
        case Atom():
            return f"there is no {Printer(_blank(names, frame)).atom(literal)}"
        case Negation(atom=atom):
            return f"there is {Printer(names).atom(atom)}"
        case Aggregate():
            return _value_reason(search, solver, form, literal, frame)
        case Compare(op="=", left=left, right=right) if form.through is not None and left == form.through.result:
            return f"this match has {Printer(names).term(right)}, not {Printer(names).term(left)}"
        case Compare(op="=", left=left, right=right) if _is_implicit(form, literal):
            return f"{Printer(names).alone(right)} is not {Printer(names).term(left)}"
        case Compare():
            return f"{Printer(names).compare(literal)} is false"
        case Generator(function=function, args=args):
            return f"{Printer(names).call(function, args)} does not give {Printer(_blank(names, frame)).results(literal)}"
        case Unpack():
            return f"{wording.literal_text(literal, names, search.program.source)} does not match"


def _value_reason(search: Search, solver: Solver, form: Form, aggregate: Aggregate, frame: Frame) -> str:
    values, has_value = reduced(solver, aggregate, frame)
    if not has_value[0]:
        return f"`{wording.aggregate_text(aggregate, search.program.source)}` has no match"
    found = frame.bind(aggregate.result.id, values)
    value, wanted = (wording.literal_of(search.value(form, aggregate.result.id, f)) for f in (found, frame))
    return f"`{wording.aggregate_text(aggregate, search.program.source)}` is {value}, not {wanted}"


def _blank(names: Sequence[str], frame: Frame) -> list[str]:
    """Variables without a value as `_`."""
    return [name if number in frame.values else "_" for number, name in enumerate(names)]


def _written(search: Search, form: Form, literal: Literal) -> str:
    """The literal as it stands in the program, without its values."""
    match literal:
        case Compare(left=left) if form.through is not None and left == form.through.result:
            return wording.literal_text(form.through, form.rule.variables, search.program.source)
        case Compare(left=Variable() as left, right=right) if _is_implicit(form, literal):
            return Printer(form.rule.variables).alone(right)
        case Unpack(value=value, fields=fields) if is_fresh(form.rule, value):
            return f"[{', '.join(Printer(_all_names(form)).term(f) for f in fields)}]"
        case _:
            return wording.literal_text(literal, form.rule.variables, search.program.source)


def _all_names(form: Form) -> list[str]:
    return [*form.rule.variables, *(["_"] * (len(form.kinds) - len(form.rule.variables)))]
