"""User-defined functors: their declarations, and whether calls fit them.

.functor half(x: number): number     ...     r(@half(x)) :- p(x).
"""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.compile.typing.types import TypeTable
from dlog.engine.compile.walk import outside_aggregates
from dlog.engine.ir.aggregates import functor_of
from dlog.engine.ir.rules import Kind, Type, UserFunctor
from dlog.grammar.source import NOWHERE, Span
from dlog.grammar.syntax import AggregateTerm, Call, FunctorDecl, Program, Wildcard


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


def check_user_aggregate(term: AggregateTerm, functors: Mapping[str, UserFunctor], problems: Problems) -> None:
    """Whether a functor can fold values: it takes a state and a value, and gives a state."""
    name = functor_of(term.op)
    declared = functors.get(name)
    if declared is None:
        hint = suggestion(name, functors) or f"declare it with .functor {name}(state: ..., value: ...): ..."
        problems.add("unknown-functor", f"there is no functor `@{name}`", Label(term.span), notes=[hint])
        return
    declared_here = Label(declared.span, "declared here")
    if term.init is not None and any(isinstance(n, Wildcard) for n in outside_aggregates(term.init)):
        message = f"`_` is no value that `{term.op}` could begin with"
        problems.add("wildcard-value", message, Label(term.init.span))
    notes = [f"`{term.op} value : init, {{ ... }}` is what `@{name}(state, value)` makes of init, value by value"]
    if len(declared.params) != 2:
        count = f"{len(declared.params)} argument{'' if len(declared.params) == 1 else 's'}"
        message = f"an aggregate takes a state and a value, but `@{name}` takes {count}"
        problems.add("wrong-arity", message, Label(term.span), declared_here, notes=notes)
    elif term.target is None:
        problems.add("aggregate-target", f"`{term.op}` needs a value to aggregate", Label(term.span), notes=notes)
    elif (declared.params[0].kind, declared.params[0].whole) != (declared.result.kind, declared.result.whole):
        first, result = declared.params[0].name, declared.result.name
        if declared.result.kind is not declared.params[0].kind or declared.result.kind is Kind.RECORD:
            message = f"the result of an aggregate is its next state, but `@{name}` takes `{first}` and gives `{result}`"
            problems.add("functor-types", message, Label(term.span), declared_here, notes=notes)


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
