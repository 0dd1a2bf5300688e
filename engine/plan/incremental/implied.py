"""Removes atoms that the rest of a body implies, over rounds: less to keep, and fewer paths.

    node(y) :- edge(_, y).
    near(x) :- node(x), edge(y, x), s(y).                      becomes    near(x) :- edge(y, x), s(y).
    degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.    becomes    degree(x, n) :- @1(x, n).

A rule of one atom says that each of the atom's rows has a row in the relation of its head. A group of an aggregate is there
as long as its body has a match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dlog.engine.ir.nodes import Insert, LookUp, Path, Scan, Scope
from dlog.engine.ir.rules import Arg, Atom, Constant, Program, Rule, Term, Variable
from dlog.engine.plan.query import Query, Reading, condition_mask, mask_all, plain

Substitution: TypeAlias = dict[int, "Term | None"]
"""What the variables of a pattern stand for; None for something that has no name."""


def without_implied(query: Query, program: Program, feedback: frozenset[str], bodies: Mapping[str, Query]) -> Query:
    """The query without the readings that follow from others, or from the groups that it looks up. `bodies` are those of the
    reductions; relations of `feedback` come an iteration later than what they follow from, and stay."""
    for reading in query.readings:
        others = tuple(r for r in query.readings if r is not reading)
        counted = query.bag and None in reading.args
        if others and not counted and reading.relation not in feedback and _follows(reading, others, program):
            query = replace(query, readings=others)
    for condition in query.conditions:
        if isinstance(condition, LookUp):
            query = _of_groups(query, condition, bodies[condition.relation])
    return query


def _follows(reading: Reading, others: Sequence[Reading], program: Program) -> bool:
    """Whether a rule says that a row of one of the others has this row of its head's relation."""
    copying = program.copying.get(reading.relation, {})
    return any(_copies(rule, reading, other) for other in others for rule in copying.get(other.relation, ()))


def _copies(rule: Rule, reading: Reading, other: Reading) -> bool:
    """Whether the rule, whose body is one atom, makes this row of a row of the other reading."""
    atom = rule.body[0]
    assert isinstance(atom, Atom)
    names = _matched(atom.args, other.args, {})
    return names is not None and all(
        wanted is None or _same(wanted, _value(term, names))
        for wanted, term in zip(reading.args, rule.head.args, strict=True)
    )


# --------------------------------------------------------------------------------------------------------------- groups


def _of_groups(query: Query, look_up: LookUp, body: Query) -> Query:
    """The query without the default of a look-up whose group is there, and without what a group that is there says."""
    keys = body.output[: len(look_up.key)]
    if look_up.default is not None:
        if not _has_match(body, keys, look_up.key, query.readings):
            return query
        conditions = tuple(replace(c, default=None) if c is look_up else c for c in query.conditions)
        look_up = next(c for c in conditions if isinstance(c, LookUp) and c.variable == look_up.variable)
        query = replace(query, conditions=conditions)
    said = [r for r in query.readings if not query.bag and _is_said(r, look_up, keys, body, query)]
    if not said:
        return query
    groups = Reading(look_up.relation, (*plain(look_up.key), Variable(look_up.variable)), place=said[0].place)
    readings = (*(r for r in query.readings if r not in said), groups)
    return replace(query, readings=readings, conditions=tuple(c for c in query.conditions if c is not look_up))


def _has_match(body: Query, keys: Sequence[Term], wanted: Sequence[Term], readings: Sequence[Reading]) -> bool:
    """Whether these readings hold a match of the body with the wanted keys."""
    names = _matched(plain(keys), plain(wanted), {})
    if body.conditions or names is None:
        return False

    def matches_all(names: Substitution, left: Sequence[Reading]) -> bool:
        if not left:
            return True
        matches = (_matched(left[0].args, r.args, names) for r in readings if r.relation == left[0].relation)
        return any(matches_all(more, left[1:]) for more in matches if more is not None)

    return matches_all(names, body.readings)


def _is_said(reading: Reading, look_up: LookUp, keys: Sequence[Term], body: Query, query: Query) -> bool:
    """Whether every match of the body with the look-up's keys has a row of this reading, which binds nothing else that is
    used."""
    used = _used_beside(reading, look_up, query)
    standing = {k.id: t for k, t in zip(look_up.key, keys, strict=True) if isinstance(k, Variable)}
    if used & mask_all(reading.args) & ~mask_all(look_up.key):
        return False
    return any(
        other.relation == reading.relation and _matched(reading.args, other.args, dict(standing)) is not None
        for other in body.readings
    )


def _used_beside(reading: Reading, look_up: LookUp, query: Query) -> int:
    """The variables that the query uses beside a reading and the keys of a look-up."""
    used = mask_all(query.output) | 1 << look_up.variable
    used |= mask_all(a for r in query.readings if r is not reading for a in r.args)
    for condition in query.conditions:
        used |= 0 if condition is look_up else condition_mask(condition)
    return used


# ------------------------------------------------------------------------------------------------------------- matching


def _matched(pattern: Sequence[Arg], args: Sequence[Arg], names: Substitution) -> Substitution | None:
    """`names` and what the pattern's variables stand for, if its arguments are these; None if they are not."""
    result = dict(names)
    for wanted, arg in zip(pattern, args, strict=True):
        if isinstance(wanted, Variable) and wanted.id not in result:
            result[wanted.id] = arg
        elif wanted is not None and not _same(_value(wanted, result), arg):
            return None
    return result


def _value(term: Term, names: Substitution) -> Term | None:
    if isinstance(term, Variable):
        return names.get(term.id)
    return term if isinstance(term, Constant) else None


def _same(left: Term | None, right: Term | None) -> bool:
    """Whether both are certainly one value."""
    return left is not None and left == right


# -------------------------------------------------------------------------------------------------------------- results


def with_named_results(scope: Scope, single: frozenset[str]) -> Scope:
    """The scope with reductions in the place of relations that would only copy them: `degree(x, n) :- @1(x, n).` and nothing
    else for one of the `single` relations, whose rows come from one rule alone."""
    for path in scope.enter:
        copied = _copied(path, scope)
        if copied is not None and path.sink.relation in single and len(scope.enter) == 1:
            return _renamed(scope, copied, path.sink.relation)
    return scope


def _copied(path: Path, scope: Scope) -> str | None:
    """The reduction that a path does nothing but copy, if it does and nothing else reads that."""
    if not isinstance(path.seed, Scan) or path.seed.missing or path.steps or not isinstance(path.sink, Insert):
        return None
    columns = dict(path.seed.binds)
    name = path.seed.relation
    reduction = next((r for r in scope.reductions if r.relation == name), None)
    if reduction is None or [Variable(columns.get(c, -1)) for c in range(len(reduction.keys) + 1)] != list(path.sink.terms):
        return None
    return None if any(map(_reads(name), (p for stage in scope.stages for p in stage))) else name


def _reads(relation: str) -> Callable[[Path], bool]:
    def reads(path: Path) -> bool:
        if isinstance(path.seed, Scan) and path.seed.relation == relation:
            return True
        named = (getattr(s, "relation", None) or getattr(getattr(s, "arrangement", None), "relation", None) for s in path.steps)
        return relation in named

    return reads


def _renamed(scope: Scope, old: str, new: str) -> Scope:
    def renamed(path: Path) -> Path:
        return replace(path, sink=replace(path.sink, relation=new)) if path.sink.relation == old else path

    return replace(
        scope,
        reductions=tuple(replace(r, relation=new) if r.relation == old else r for r in scope.reductions),
        stages=tuple(tuple(map(renamed, stage)) for stage in scope.stages),
        enter=(),
    )
