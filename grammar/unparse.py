"""Syntax tree to text: `parse(Source(format_program(p))) == p` for every tree p that a text can say.

One line per item where it fits in `WIDTH` columns; a longer rule has one literal per line.
"""

from __future__ import annotations

import re
from typing import assert_never

from dlog.grammar import syntax
from dlog.grammar.operators import BINDING, PREFIX, PREFIX_BINDING, RIGHT_ASSOCIATIVE
from dlog.grammar.words import RESERVED

WIDTH = 100
INDENT = "    "

_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)
_BARE_VALUE = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[0-9]+", re.ASCII)


def format_program(program: syntax.Program) -> str:
    return "".join(format_item(item) + "\n" for item in program.items)


# ---------------------------------------------------------------------------------------------------------------- terms


def format_term(term: syntax.Term, floor: int = 0) -> str:
    """The term as text, in parentheses if it is an operation that binds more loosely than `floor`."""
    match term:
        case syntax.Variable(name):
            return name
        case syntax.Wildcard():
            return "_"
        case syntax.Number(text):
            return text
        case syntax.String(value):
            return quote(value)
        case syntax.Nil():
            return "nil"
        case syntax.Counter():
            return "autoinc()"
        case syntax.RecordTerm(args):
            return f"[{_terms(args)}]"
        case syntax.BranchTerm(branch, args):
            return f"${branch}({_terms(args)})"
        case syntax.Cast(inner, type_name):
            return f"as({format_term(inner)}, {type_name})"
        case syntax.AggregateTerm():
            return _aggregate(term)
        case syntax.Call():
            return _call(term, floor)
        case _:
            assert_never(term)


def quote(value: str) -> str:
    """A string literal with this value."""
    return f'"{value.translate(_ESCAPES)}"'


def _terms(terms: tuple[syntax.Term, ...]) -> str:
    return ", ".join(format_term(t) for t in terms)


def _call(call: syntax.Call, floor: int) -> str:
    match call:
        case syntax.Call(name, (left, right)) if name in BINDING:
            binding = BINDING[name]
            tighter = (binding + 1, binding) if name in RIGHT_ASSOCIATIVE else (binding, binding + 1)
            text = f"{format_term(left, tighter[0])} {name} {format_term(right, tighter[1])}"
            return f"({text})" if binding < floor else text
        case syntax.Call(name, (operand,)) if name in PREFIX:
            text = f"{name}{'' if name == '-' else ' '}{format_term(operand, PREFIX_BINDING)}"
            return f"({text})" if floor > PREFIX_BINDING else text
        case syntax.Call(name, args):
            return f"{name}({_terms(args)})"


def _aggregate(term: syntax.AggregateTerm) -> str:
    target = f" {format_term(term.target)}" if term.target is not None else ""
    init = f" {format_term(term.init)}," if term.init is not None else ""
    return f"{term.op}{target} :{init} {{ {format_body(term.body)} }}"


# ---------------------------------------------------------------------------------------------------------------- bodies


def format_body(body: syntax.Body) -> str:
    match body:
        case syntax.Atom(name, args, round=round, event=event):
            return f"{'@' * event}{name}{'' if round is None else f'@{round}'}({_terms(args)})"
        case syntax.Not(inner):
            return "!" + (format_body(inner) if isinstance(inner, syntax.Atom | syntax.Not | syntax.Truth) else _grouped(inner))
        case syntax.Constraint(("match" | "contains") as op, left, right):
            return f"{op}({format_term(left)}, {format_term(right)})"
        case syntax.Constraint(op, left, right):
            return f"{format_term(left)} {op} {format_term(right)}"
        case syntax.Truth(value):
            return "true" if value else "false"
        case syntax.And(parts):
            return ", ".join(_conjunct(p) for p in parts)
        case syntax.Or(parts):
            return "; ".join(_disjunct(p) for p in parts)
        case _:
            assert_never(body)


def _grouped(body: syntax.Body) -> str:
    return f"({format_body(body)})"


def _conjunct(body: syntax.Body) -> str:
    return _grouped(body) if isinstance(body, syntax.And | syntax.Or) else format_body(body)


def _disjunct(body: syntax.Body) -> str:
    return _grouped(body) if isinstance(body, syntax.Or) else format_body(body)


# ---------------------------------------------------------------------------------------------------------------- clauses


def format_clause(clause: syntax.Clause | syntax.Subsumption) -> str:
    """The clause with its final `.` and its plan, on one line if it fits."""
    match clause:
        case syntax.Clause(heads, body, plan):
            head = ", ".join(format_body(h) for h in heads)
        case syntax.Subsumption(dominated, dominating, body, plan):
            head = f"{format_body(dominated)} <= {format_body(dominating)}"
        case _:
            assert_never(clause)
    text = f"{head}." if body is None else _rule(head, body)
    return text if plan is None else f"{text}\n{_plan(plan)}"


def _rule(head: str, body: syntax.Body) -> str:
    line = f"{head} :- {format_body(body)}."
    if len(line) <= WIDTH:
        return line
    match body:
        case syntax.And(parts):
            lines = f",\n{INDENT}".join(_conjunct(p) for p in parts)
        case syntax.Or(parts):
            lines = f";\n{INDENT}".join(_disjunct(p) for p in parts)
        case syntax.Atom() | syntax.Not() | syntax.Constraint() | syntax.Truth():
            lines = format_body(body)
        case _:
            assert_never(body)
    return f"{head} :-\n{INDENT}{lines}."


def _plan(plan: syntax.ExecutionPlan) -> str:
    return ".plan " + ", ".join(f"{version}: ({', '.join(map(str, order))})" for version, order in plan.orders)


# ----------------------------------------------------------------------------------------------------------------- items


def format_item(item: syntax.Item) -> str:
    """The item as text without a final newline."""
    match item:
        case syntax.Clause() | syntax.Subsumption():
            return format_clause(item)
        case syntax.RelationDecl():
            return _relation(item)
        case syntax.SubtypeDecl(name, base):
            return f".type {name} <: {base}"
        case syntax.UnionDecl(name, members):
            return f".type {name} = {' | '.join(members)}"
        case syntax.RecordDecl(name, fields):
            return f".type {name} = [{_attributes(fields)}]"
        case syntax.AdtDecl(name, branches):
            return _adt(name, branches)
        case syntax.FunctorDecl(name, params, result, stateful):
            return f".functor {name}({_attributes(params)}): {result}{' stateful' if stateful else ''}"
        case syntax.Directive(kind, relations, params):
            values = ", ".join(f"{k}={v if _is_bare(v) else quote(v)}" for k, v in params)
            return f".{kind} {', '.join(relations)}" + (f"({values})" if params else "")
        case syntax.Pragma(name, value):
            return f".pragma {quote(name)}" + (f" {quote(value)}" if value else "")
        case syntax.ComponentDecl():
            return format_component_head(item) + _block(tuple(format_item(i) for i in item.items))
        case syntax.ComponentInit(instance, component):
            return f".init {instance} = {_component(component)}"
        case syntax.Override(relation):
            return f".override {relation}"
        case syntax.LatticeDecl(name, entries):
            return f".lattice {name}<> {{\n" + ",\n".join(f"{INDENT}{k} -> {format_term(v)}" for k, v in entries) + "\n}"
        case _:
            assert_never(item)


def _is_bare(value: str) -> bool:
    return bool(_BARE_VALUE.fullmatch(value)) and (value in ("true", "false") or value not in RESERVED)


def _attributes(attributes: tuple[syntax.Attribute, ...]) -> str:
    return ", ".join(f"{a.name}: {a.type}" if a.name else a.type for a in attributes)


def _relation(decl: syntax.RelationDecl) -> str:
    if decl.debug_delta is not None:
        return f".decl {decl.names[0]} = debug_delta({decl.debug_delta.relation})" + "".join(f" {q}" for q in decl.qualifiers)
    text = f".decl {', '.join(decl.names)}({_attributes(decl.attributes)})" + "".join(f" {q}" for q in decl.qualifiers)
    keys = [d.keys[0] if len(d.keys) == 1 else f"({', '.join(d.keys)})" for d in decl.choice_domain]
    return text + (f" choice-domain {', '.join(keys)}" if keys else "")


def _adt(name: str, branches: tuple[syntax.Branch, ...]) -> str:
    texts = [f"{b.name} {{{_attributes(b.fields)}}}" for b in branches]
    line = f".type {name} = {' | '.join(texts)}"
    return line if len(line) <= WIDTH else f".type {name} =\n{INDENT}{f' |{chr(10)}{INDENT}'.join(texts)}"


def _component(component: syntax.ComponentType) -> str:
    return component.name + (f"<{', '.join(component.params)}>" if component.params else "")


def format_component_head(decl: syntax.ComponentDecl) -> str:
    bases = f" : {', '.join(_component(b) for b in decl.bases)}" if decl.bases else ""
    return f".comp {_component(decl.component)}{bases} "


def _block(items: tuple[str, ...]) -> str:
    lines = [INDENT + line if line else "" for item in items for line in item.split("\n")]
    return "{\n" + "".join(line + "\n" for line in lines) + "}"
