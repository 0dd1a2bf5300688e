"""User-defined functors: their declarations, and whether calls fit them.

    .functor half(x: number): number     ...     r(@half(x)) :- p(x).
"""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.compile.typing.types import TypeTable
from dlog.engine.ir.rules import Kind, Type, UserFunctor
from dlog.grammar.source import NOWHERE, Span
from dlog.grammar.syntax import Call, FunctorDecl, Program


def declared_functors(program: Program, table: TypeTable, problems: Problems) -> dict[str, UserFunctor]:
    """The functors by name."""
    found: dict[str, UserFunctor] = {}
    for decl in (item for item in program.items if isinstance(item, FunctorDecl)):
        spans = [p.type_span if p.type_span != NOWHERE else p.span for p in decl.params]
        params = tuple(_type(p.type, s, decl, table, problems) for p, s in zip(decl.params, spans, strict=True))
        result = _type(decl.result, decl.span, decl, table, problems)
        if decl.name in found:
            labels = (Label(decl.span), Label(found[decl.name].span, "first declared here"))
            problems.add("duplicate-functor", f"functor `{decl.name}` is declared twice", *labels)
            continue
        found[decl.name] = UserFunctor(decl.name, params, result, decl.stateful, decl.span)
    return found


def _type(name: str, span: Span, decl: FunctorDecl, table: TypeTable, problems: Problems) -> Type:
    if name not in table.types:
        note = suggestion(name, table.types)
        problems.add("unknown-type", f"unknown type `{name}` in the declaration of `{decl.name}`", Label(span), notes=[note])
        return Type("number", Kind.NUMBER)
    return table.types[name]


def check_user_call(call: Call, functors: Mapping[str, UserFunctor], problems: Problems) -> None:
    declared = functors.get(call.name[1:])
    if declared is None:
        name = call.name[1:]
        hint = suggestion(name, functors) or f"declare it with .functor {name}(...): ..."
        problems.add("unknown-functor", f"there is no functor `@{name}`", Label(call.span), notes=[hint])
    elif len(call.args) != len(declared.params):
        count = len(declared.params)
        message = f"`{call.name}` takes {count} argument{'' if count == 1 else 's'}, but {len(call.args)} given"
        problems.add("wrong-arity", message, Label(call.span), Label(declared.span, "declared here"))
