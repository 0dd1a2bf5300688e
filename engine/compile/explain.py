"""The typed program as text, for `dlog plan`, golden tests and whoever debugs a rule. Close to the language, but every implicit
step shows: fresh variables, unpacked records, kinds of overloaded functors, outer variables of aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dlog.engine.compile.check import Checked
from dlog.engine.ir.aggregates import session_worker_of
from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Kind,
    Literal,
    Negation,
    Program,
    Record,
    Relation,
    Rule,
    Stratum,
    Term,
    Unpack,
    Variable,
)

_SHOWN_FACTS: Final = 10
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_MARKS: Final = {Kind.NUMBER: "", Kind.UNSIGNED: "u", Kind.FLOAT: "f", Kind.SYMBOL: "s", Kind.RECORD: "r"}


def show(program: Program) -> str:
    """The program with its strata."""
    lines = list(_declarations(program))
    for number, stratum in enumerate(program.strata, 1):
        lines += ["", *_stratum(number, stratum, program)]
    return "\n".join(lines) + "\n"


def show_checked(checked: Checked) -> str:
    """The program before stratification."""
    return "\n".join([*_declarations(checked), "", *(show_rule(r) for r in checked.rules)]) + "\n"


def show_rule(rule: Rule) -> str:
    """
    path(x, z) :- path(x, y), edge(y, z).
    """
    names = rule.variables
    head = _call(rule.head.relation, rule.head.args, names)
    body = ", ".join(show_literal(x, names) for x in rule.body)
    return f"{head} :- {body}." if body else f"{head}."


def show_literal(literal: Literal, names: tuple[str, ...]) -> str:
    match literal:
        case Atom(relation=relation, args=args):
            return _call(relation, args, names)
        case Negation(atom=Atom(relation=relation, args=args)):
            return "!" + _call(relation, args, names)
        case Compare(op=op, left=left, right=right, kind=kind):
            mark = _MARKS[kind] if op in ("<", "<=", ">", ">=") else ""
            if op[0].isalpha():
                return f"{op}({show_term(left, names)}, {show_term(right, names)})"
            return f"{show_term(left, names)} {op}{mark} {show_term(right, names)}"
        case Unpack(value=value, type=name, fields=fields):
            return f"{show_term(value, names)} is {name}[{', '.join(show_term(f, names) for f in fields)}]"
        case Aggregate():
            return _aggregate(literal, names)


def show_term(term: Term | None, names: tuple[str, ...]) -> str:
    match term:
        case None:
            return "_"
        case Variable(id=id):
            return names[id]
        case Constant(value=value, kind=kind):
            return _constant(value, kind)
        case Functor(op=op, args=(left, right), kind=kind) if FUNCTORS[op].form == "infix":
            return f"({show_term(left, names)} {op}{_MARKS[kind]} {show_term(right, names)})"
        case Functor(op=op, args=args):
            return _call(op, args, names)
        case Record(type=name, args=args):
            return f"{name}[{', '.join(show_term(a, names) for a in args)}]"


def _constant(value: int | float | str | None, kind: Kind) -> str:
    match value:
        case None:
            return "nil"
        case str():
            return '"' + "".join(_ESCAPES.get(c, c) for c in value) + '"'
        case _:
            return f"{value}u" if kind is Kind.UNSIGNED else str(value)


def _call(name: str, args: Iterable[Term | None], names: tuple[str, ...]) -> str:
    return f"{name}({', '.join(show_term(a, names) for a in args)})"


def _aggregate(aggregate: Aggregate, names: tuple[str, ...]) -> str:
    target = "" if aggregate.target is None else " " + show_term(aggregate.target, names)
    bodies = " ; ".join(", ".join(show_literal(x, names) for x in body) for body in aggregate.alternatives)
    outer = f" per {', '.join(names[v.id] for v in aggregate.outer)}" if aggregate.outer else ""
    return f"{show_term(aggregate.result, names)} = {aggregate.op}{target} : {{ {bodies} }}{outer}"


def _declarations(program: Program | Checked) -> Iterator[str]:
    for relation in program.relations.values():
        yield _relation(relation)
    for io in program.io:
        params = f"({', '.join(f'{k}={v}' for k, v in io.params)})" if io.params else ""
        yield f".{io.action} {io.relation}{params}"
    for name, rows in program.facts.items():
        for row in rows[:_SHOWN_FACTS]:
            yield f"{_call(name, row, ())}."
        if len(rows) > _SHOWN_FACTS:
            yield f"... {len(rows) - _SHOWN_FACTS} more facts of {name}"


def _relation(relation: Relation) -> str:
    columns = ", ".join(f"{n}: {_type_name(t.name, t.kind)}" for n, t in relation.attributes)
    return f".decl {relation.name}({columns})"


def _type_name(name: str, kind: Kind) -> str:
    return name if name == kind.value else f"{name} ({kind.value})"


def _stratum(number: int, stratum: Stratum, program: Program) -> Iterator[str]:
    lattices = [program.lattices[r] for r in stratum.relations if r in program.lattices]
    how = " recursive" if stratum.recursive else ""
    how += "".join(f" ({session_worker_of(x.dominance)} over column {x.column} of {x.relation})" for x in lattices)
    yield f"stratum {number}: {', '.join(stratum.relations)}{how}"
    for rule in stratum.rules:
        yield f"  {show_rule(rule)}"
