"""unify: variables that must be equal become one, and records that are already there are not built again.

    p([a, b], v) :- q(r), r = [a, b], s(t, v), t = [a, b].    becomes    p(r, v) :- q(r), r = [a, b], s(r, v).

Equal records are one value, so that their variables join; a scan of all pairs would compare their fields instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from dlog.engine.ir.nodes import AntiJoin, LookUp, View
from dlog.engine.ir.rules import Arg, Compare, Constant, Functor, Generator, Kind, Record, Term, Unpack, Variable
from dlog.engine.plan.query import Condition, Query, Reading, condition_mask, ids, mask
from dlog.grammar.source import NOWHERE

Representatives: TypeAlias = dict[int, int]
Records: TypeAlias = Mapping[Record, Variable]

def unify(query: Query) -> Query:
    """The same query over fewer variables."""
    while names := _equal_variables(query.conditions) or _equal_records(query.conditions):
        query = _rename(query, names)
    if records := _records(query.conditions):
        query = _reuse(query, records)
    if query.bag:
        return query
    once = _read_once(query.readings)
    return query if len(once) == len(query.readings) else replace(query, readings=once)


def _read_once(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """The first of readings that say the same: what matches one matches all."""
    first: dict[tuple[str, tuple[Arg, ...], View], Reading] = {}
    for reading in readings:
        first.setdefault((reading.relation, reading.args, reading.view), reading)
    return tuple(first.values())


def _equal_variables(conditions: Iterable[Condition]) -> Representatives:
    """The representative by the first `x = y` of two variables: y is x. Floats stay: they are compared by value, joined by
    bits."""
    for c in conditions:
        match c:
            case Compare(op="=", left=Variable(id=x), right=Variable(id=y), kind=kind) if x != y and kind is not Kind.FLOAT:
                return {max(x, y): min(x, y)}
            case Compare() | Unpack() | Generator() | AntiJoin() | LookUp():
                pass
    return {}


def _equal_records(conditions: Iterable[Condition]) -> Representatives:
    seen: dict[Record, int] = {}
    for record, variable in _unpacked(conditions):
        first = seen.setdefault(record, variable.id)
        if first != variable.id:
            return {max(first, variable.id): min(first, variable.id)}
    return {}


def _unpacked(conditions: Iterable[Condition]) -> Iterable[tuple[Record, Variable]]:
    """The records of which all fields have names, and the variables that hold them."""
    for c in conditions:
        if isinstance(c, Unpack) and None not in c.fields:
            yield Record(c.type, tuple(f for f in c.fields if f is not None)), c.value


def _records(conditions: Iterable[Condition]) -> dict[Record, Variable]:
    return dict(_unpacked(conditions))


# ------------------------------------------------------------------------------------------------------------ renaming


def _rename(query: Query, names: Representatives) -> Query:
    renamed = (_rename_condition(c, names) for c in query.conditions)
    return replace(
        query,
        readings=tuple(replace(r, args=_rename_all(r.args, names)) for r in query.readings),
        conditions=tuple(_once(c for c in renamed if not _says_nothing(c))),
        output=tuple(_rename_term(t, names) for t in query.output),
    )


def _once(conditions: Iterable[Condition]) -> Iterable[Condition]:
    """The conditions without repetitions, wherever in the text they stand."""
    found: dict[Condition, Condition] = {}
    for c in conditions:
        found.setdefault(_unplaced(c), c)
    return found.values()


def _says_nothing(condition: Condition) -> bool:
    return (
        isinstance(condition, Compare)
        and condition.op == "="
        and isinstance(condition.left, Variable)
        and condition.left == condition.right
        and condition.kind is not Kind.FLOAT
    )


def _rename_all(args: tuple[Arg, ...], names: Representatives) -> tuple[Arg, ...]:
    return tuple(Variable(names.get(a.id, a.id)) if isinstance(a, Variable) else a for a in args)


def _rename_term(term: Term, names: Representatives) -> Term:
    match term:
        case Variable(id=i):
            return Variable(names.get(i, i))
        case Functor(args=args) | Record(args=args):
            return replace(term, args=tuple(_rename_term(a, names) for a in args))
        case Constant():
            return term


def _rename_condition(condition: Condition, names: Representatives) -> Condition:
    match condition:
        case Compare(left=left, right=right):
            return replace(condition, left=_rename_term(left, names), right=_rename_term(right, names))
        case Unpack(value=value, fields=fields):
            return replace(condition, value=Variable(names.get(value.id, value.id)), fields=_rename_all(fields, names))
        case Generator(args=given, results=results):
            renamed = tuple(_rename_term(a, names) for a in given)
            return replace(condition, args=renamed, results=_rename_all(results, names))
        case AntiJoin(args=args):
            return replace(condition, args=tuple(a if a is None else _rename_term(a, names) for a in args))
        case LookUp(key=key, variable=variable):
            return replace(
                condition, key=tuple(_rename_term(k, names) for k in key), variable=names.get(variable, variable)
            )
        case _:
            assert_never(condition)


def signature(query: Query) -> Query:
    """The canonical query with variables numbered as they come and without places: equal for queries that ask the same."""
    order: dict[int, int] = {}
    terms = (*query.output, *(a for r in query.readings for a in r.args))
    for variables in (*map(mask, terms), *map(condition_mask, query.conditions)):
        for i in ids(variables):
            order.setdefault(i, len(order))
    renamed = _rename(query, order)
    return replace(
        renamed,
        readings=tuple(replace(r, place=0) for r in renamed.readings),
        conditions=tuple(_unplaced(c) for c in renamed.conditions),
        output=tuple(_unplaced_term(t) for t in renamed.output),
        kinds=tuple(query.kinds[i] for i in order),
    )


def _unplaced(condition: Condition) -> Condition:
    match condition:
        case Compare(left=left, right=right):
            return replace(condition, left=_unplaced_term(left), right=_unplaced_term(right), span=NOWHERE)
        case Unpack():
            return replace(condition, span=NOWHERE)
        case Generator(args=args):
            return replace(condition, args=tuple(_unplaced_term(a) for a in args), span=NOWHERE)
        case AntiJoin() | LookUp():
            return condition
        case _:
            assert_never(condition)


def _unplaced_term(term: Term) -> Term:
    match term:
        case Functor(args=args):
            return replace(term, args=tuple(_unplaced_term(a) for a in args), span=NOWHERE)
        case Record(args=args):
            return replace(term, args=tuple(_unplaced_term(a) for a in args))
        case Variable() | Constant():
            return term


# ------------------------------------------------------------------------------------------------------------- records


def _reuse(query: Query, records: Records) -> Query:
    """The query with the variables of unpacked records in place of terms that would build them."""
    conditions = tuple(
        replace(c, left=_reuse_term(c.left, records), right=_reuse_term(c.right, records)) if isinstance(c, Compare) else c
        for c in query.conditions
    )
    return replace(query, conditions=conditions, output=tuple(_reuse_term(t, records) for t in query.output))


def _reuse_term(term: Term, records: Records) -> Term:
    match term:
        case Functor(args=args):
            return replace(term, args=tuple(_reuse_term(a, records) for a in args))
        case Record(args=args):
            inner = replace(term, args=tuple(_reuse_term(a, records) for a in args))
            return records.get(inner, inner)
        case Variable() | Constant():
            return term
