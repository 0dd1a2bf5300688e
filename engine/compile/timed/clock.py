"""`now()` in rules: the round, compared with what rows have.

    active(s) :- session(s, from, to), from <= now(), now() < to.
    ->
    due@(s, from, to) :- session(s, from, to).
    active(s) :- shown@(s, _, _).            shown@: the rows of due@ from round `from` on, until before round `to`

Only what gives the bounds their values goes to the rule of `due@`, so a rule may be recursive beside it; the bounds must not
depend on the rule's own relation. The last two columns are the bounds, the latest and the earliest of those that there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.strata.dependencies import read_by
from dlog.engine.compile.timed.rewriting import binds, compacted, digest, uses
from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.rules import (
    NOW,
    Atom,
    Compare,
    Constant,
    Functor,
    Kind,
    Literal,
    Rule,
    Term,
    Variable,
)
from dlog.engine.ir.traversal import functors, literal_variables, term_variables
from dlog.grammar.source import Span

FIRST_ROUND: Final = 1
"""The one round of a program that is run once, and the first one of a session."""
LAST: Final = 2**63 - 1
"""A round that is never reached."""
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_NOTES: Final = (
    "compare it, as it is, by `<`, `<=`, `>`, `>=` or `=`, beside the atoms of a rule: `from <= now(), now() < to + 10`",
    "what it is compared with has a value without it",
)


@dataclass(frozen=True, slots=True)
class Bounded:
    """The rows that a body gives, with the rounds from which on and until before which they are there."""

    due: Rule
    variables: tuple[int, ...]
    """Those of the rule that the rows have, in order, before the bounds."""
    span: Span


@dataclass(frozen=True, slots=True)
class _Comparison:
    literal: Compare
    lower: tuple[Term, ...]
    upper: tuple[Term, ...]

    @property
    def variables(self) -> set[int]:
        return {v for bound in (*self.lower, *self.upper) for v in term_variables(bound)}


def is_now(term: object) -> bool:
    return isinstance(term, Functor) and term.op == NOW


def clocks(rule: Rule) -> list[Functor]:
    """Every `now()` of a rule."""
    return [functor for functor in functors(rule) if functor.op == NOW]


def check_clock(rule: Rule, problems: Problems) -> bool:
    """Whether the rule asks for the round as it may."""
    compared = [x for x in rule.body if isinstance(x, Compare) and _comparison(x, _given(rule, x)) is not None]
    good = {id(side) for x in compared for side in (x.left, x.right) if is_now(side)}
    bad = [functor for functor in clocks(rule) if id(functor) not in good]
    for functor in bad:
        refuse(functor.span, problems)
    return not bad


def refuse(span: Span, problems: Problems) -> None:
    """`now()` stands where it has no meaning."""
    problems.add("now", "`now()` can only be compared, and not here", Label(span), notes=_NOTES)


def _given(rule: Rule, but: Literal) -> set[int]:
    """The variables that other literals give their values."""
    return {v for x in rule.body if x is not but for v in binds(x)}


def _comparison(compare: Compare, given: set[int]) -> _Comparison | None:
    """The bounds that a comparison with the round sets; None where it is none. `given` are variables with values."""
    op, bound = compare.op, compare.right
    if is_now(bound):
        op, bound = _MIRRORED.get(op, ""), compare.left
    elif not is_now(compare.left):
        return None
    asked = set(term_variables(bound))
    if op not in _MIRRORED or any(map(is_now, _parts(bound))) or not asked <= given:
        return None
    same, later = _as_number(bound, compare.kind, LAST), _following(bound, compare.kind)
    lower = {">=": (same,), ">": (later,), "=": (same,)}.get(op, ())
    upper = {"<=": (later,), "<": (same,), "=": (later,)}.get(op, ())
    return _Comparison(compare, lower, upper)


def _parts(term: Term) -> Iterator[Term]:
    yield term
    for arg in getattr(term, "args", ()):
        yield from _parts(arg)


def _call(name: str, *args: Term, kind: Kind) -> Functor:
    row = find_functor(name, len(args))
    assert row is not None
    op = row.overloads.get(kind, row.name)
    return Functor(op, args, kind, kind)


def _as_number(bound: Term, kind: Kind, most: int) -> Term:
    """A bound as a signed number; one that no round comes to is `most`."""
    if kind is Kind.NUMBER:
        return bound
    least = _call("min", bound, Constant(most, kind), kind=kind)
    return Functor("utoi", (least,), Kind.UNSIGNED, Kind.NUMBER)


def _following(bound: Term, kind: Kind) -> Term:
    """The round behind a bound; the last one has none."""
    if isinstance(bound, Constant) and isinstance(bound.value, int):
        return Constant(min(bound.value, LAST - 1) + 1, Kind.NUMBER)
    if kind is Kind.NUMBER:
        bound = _call("min", bound, Constant(LAST - 1, kind), kind=kind)
    else:
        bound = _as_number(bound, kind, LAST - 1)
    return _call("+", bound, Constant(1, Kind.NUMBER), kind=Kind.NUMBER)


# ------------------------------------------------------------------------------------------------------------------- split


def bounded(rule: Rule, cyclic: frozenset[str]) -> tuple[list[Bounded], list[Literal]]:
    """What a rule shows for some rounds, and the rest of its body. `cyclic` are the relations that depend on the rule's own:
    bounds are of other ones, where there is a choice."""
    found = [(x, _comparison(x, _given(rule, x))) for x in rule.body if isinstance(x, Compare)]
    comparisons = [made for _, made in found if made is not None]
    plain = [x for x in rule.body if all(x is not made.literal for made in comparisons)]
    givers = _givers(plain, cyclic)
    groups = _groups([(_support(c.variables, plain, givers), c) for c in comparisons])
    moved = {place for support, _ in groups for place in support}
    rest = [x for place, x in enumerate(plain) if place not in moved]
    wanted = {v for t in rule.head.args for v in term_variables(t)} | {v for x in rest for v in literal_variables(x)}
    made = []
    for support, members in groups:
        body = [plain[place] for place in sorted(support)]
        others = {v for place in moved - support for v in literal_variables(plain[place])}
        made.append(_bounded(rule, body, members, wanted | others))
    return made, rest


def _groups(supported: Iterable[tuple[set[int], _Comparison]]) -> list[tuple[set[int], list[_Comparison]]]:
    """Comparisons that share literals go together; those of constants go with any."""
    groups: list[tuple[set[int], list[_Comparison]]] = []
    for support, comparison in sorted(supported, key=lambda s: not s[0]):
        members = [comparison]
        shared = [g for g in groups if g[0] & support] if support else groups[:1]
        for group in shared:
            groups.remove(group)
            support, members = support | group[0], [*group[1], *members]
        groups.append((support, members))
    return groups


def _bounded(rule: Rule, body: list[Literal], members: list[_Comparison], wanted: set[int]) -> Bounded:
    own = dict.fromkeys(v for x in body for v in literal_variables(x))
    kept = tuple(v for v in own if v in wanted)
    lower = [bound for member in members for bound in member.lower] or [Constant(0, Kind.NUMBER)]
    upper = [bound for member in members for bound in member.upper] or [Constant(LAST, Kind.NUMBER)]
    first = lower[0] if len(lower) == 1 else _call("max", *lower, kind=Kind.NUMBER)
    end = upper[0] if len(upper) == 1 else _call("min", *upper, kind=Kind.NUMBER)
    due = compacted(rule, "", (*map(Variable, kept), first, end), body)
    named = compacted(due, f"due@{digest(due)}", due.head.args, due.body)
    return Bounded(named, kept, members[0].literal.span)


def _givers(body: Sequence[Literal], cyclic: frozenset[str]) -> dict[int, int]:
    """For each variable the place of the literal that gives it its values: one outside of the cycle if there is any."""
    found: dict[int, int] = {}
    for inside in (False, True):
        chosen = [p for p, x in enumerate(body) if inside or cyclic.isdisjoint(read_by(x))]
        _give(body, [p for p in chosen if isinstance(body[p], Atom)], found)
        others = [p for p in chosen if not isinstance(body[p], Atom)]
        while _give(body, [p for p in others if uses(body[p]) <= found.keys()], found):
            pass
    return found


def _give(body: Sequence[Literal], places: Iterable[int], found: dict[int, int]) -> bool:
    """Notes what literals give; whether that was news."""
    known = len(found)
    for place in places:
        for variable in binds(body[place]):
            found.setdefault(variable, place)
    return len(found) > known


def _support(asked: Iterable[int], body: Sequence[Literal], givers: dict[int, int]) -> set[int]:
    """The places of the literals that give variables their values, whatever these need included."""
    found: set[int] = set()
    waiting = list(asked)
    while waiting:
        place = givers[waiting.pop()]
        if place not in found:
            found.add(place)
            waiting += uses(body[place])
    return found


def at_first_round(rule: Rule) -> Rule:
    """The rule as it is in the first round."""
    return replace(rule, body=tuple(in_round(x, Constant(FIRST_ROUND, Kind.NUMBER)) for x in rule.body))


def in_round(literal: Literal, round: Variable | Constant) -> Literal:
    """A literal that is compared with this round, if it is with the present one."""
    if not isinstance(literal, Compare) or not (is_now(literal.left) or is_now(literal.right)):
        return literal
    now: Term = round
    if literal.kind is Kind.UNSIGNED:
        now = Constant(round.value, literal.kind) if isinstance(round, Constant) else _unsigned(round)
    left, right = (now if is_now(side) else side for side in (literal.left, literal.right))
    return replace(literal, left=left, right=right)


def _unsigned(number: Variable) -> Functor:
    return Functor("itou", (number,), Kind.UNSIGNED, Kind.UNSIGNED)
