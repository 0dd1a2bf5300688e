"""Random terms and tests over the variables bound so far."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.strategies_values import BRANCHES, LITERALS, RECORDS

Draw = Any


class Names:
    """Fresh variable names, one sequence for a rule and its aggregates."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"


class Scope:
    """The variables bound so far, with their types. `exact` are those that stand for a column of the input, `local` those bound
    in this scope and not in one around it."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.types: dict[str, str] = {}
        self.exact: set[str] = set()
        self.local: set[str] = set()

    def bind(self, type_name: str, exact: bool = False) -> str:
        name = self.names.fresh()
        self.types[name] = type_name
        self.local.add(name)
        if exact:
            self.exact.add(name)
        return name

    def of(self, type_name: str) -> list[str]:
        return [n for n, t in self.types.items() if t == type_name]

    def own(self, type_name: str) -> list[str]:
        return [n for n in self.of(type_name) if n in self.local]

    def copy(self) -> Scope:
        """The same variables; what is bound in the copy is not bound here."""
        scope = Scope(self.names)
        scope.types, scope.exact, scope.local = dict(self.types), set(self.exact), set(self.local)
        return scope

    def inside(self) -> Scope:
        """The scope of an aggregate's body: all variables of this one are seen, none is its own."""
        scope = self.copy()
        scope.local = set()
        return scope

    def forget_outer(self) -> None:
        self.types = {name: self.types[name] for name in self.types if name in self.local}


# `{x}` and `{y}` are operands of the type, `{n}` is one of type number, `{s}` a symbol, `{k}` a small positive constant.
EXPRESSIONS: dict[str, list[str]] = {
    "number": [
        "{x} + {y}",
        "{x} - {y}",
        "{x} * {y}",
        "{x} + {y} * {k}",
        "({x} - {y}) * {k}",
        "2 ^ {k}",
        "{x} / {k}",
        "{x} / -1",
        "{x} % {k}",
        "{x} % -{k}",
        "-({x})",
        "{x} band {y}",
        "{x} bor {y}",
        "{x} bxor {y}",
        "bnot {x}",
        "{x} bshl {k}",
        "{x} bshr {k}",
        "{x} bshru {k}",
        "{x} land {y}",
        "{x} lor {y}",
        "lnot {x}",
        "min({x}, {y})",
        "max({x}, {y}, {k})",
        "strlen({s})",
        "byte_length({s})",
        "strpos({s}, substr({s}, 1, 1))",
        "abs({x})",
        "bit_count({x})",
        "to_number(to_string({x}))",
        "year({d}) * 100 + month({d})",
        "day({d}) + weekday({d})",
        "days_between({d}, {d})",
        "hour(timestamp_of({d}) + {x})",
    ],
    "unsigned": [
        "{x} + {y}",
        "{x} - {y}",
        "{x} * {y}",
        "{x} / {k}",
        "{x} % {k}",
        "{x} band {y}",
        "{x} bor {y}",
        "min({x}, {y})",
        "max({x}, {y})",
    ],
    "float": [
        "{x} + {y}",
        "{x} - {y}",
        "{x} * 0.5",
        "{x} * 2",
        "{x} / 4",
        "min({x}, {y})",
        "max({x}, {y})",
        "abs({x})",
        "floor({x}) + ceil({y})",
    ],
    "symbol": [
        "cat({x}, {y})",
        'cat("<", {x})',
        "substr({x}, 0, 1)",
        "substr({x}, 1, {k})",
        "byte_substr({x}, 1, {k})",
        "to_string({n})",
        "date_text({d})",
    ],
    "date": ["add_days({x}, {k})", "add_months({x}, {k})", "add_months({x}, -{k})", "date_of(timestamp_of({x}))", "{x} - {k}"],
}


def operand(draw: Draw, scope: Scope, type_name: str) -> str:
    known = scope.of(type_name)
    return draw(st.one_of(st.sampled_from(known), LITERALS[type_name]) if known else LITERALS[type_name])


def variable_or_literal(draw: Draw, scope: Scope, type_name: str) -> str:
    known = scope.of(type_name)
    return draw(st.sampled_from(known) if known else LITERALS[type_name])


def expression(draw: Draw, scope: Scope, type_name: str) -> str:
    """A term of the type over bound variables: an operand, a functor of operands, or a record."""
    if type_name in RECORDS:
        if draw(st.booleans()):
            return operand(draw, scope, type_name)
        return f"[{', '.join(operand(draw, scope, t) for t in RECORDS[type_name])}]"
    if type_name in BRANCHES:
        if draw(st.booleans()):
            return operand(draw, scope, type_name)
        name, types = draw(st.sampled_from(sorted(BRANCHES[type_name].items())))
        return f"${name}({', '.join(operand(draw, scope, t) for t in types)})"
    template = draw(st.sampled_from(["{x}", "{x}", *EXPRESSIONS[type_name]]))
    return template.format(
        x=variable_or_literal(draw, scope, type_name),
        y=operand(draw, scope, type_name),
        n=variable_or_literal(draw, scope, "number"),
        s=variable_or_literal(draw, scope, "symbol"),
        d=variable_or_literal(draw, scope, "date"),
        k=draw(st.integers(1, 3)),
    )


def test(draw: Draw, scope: Scope) -> str:
    """A comparison, `match` or `contains` over bound variables; the empty text if nothing is bound."""
    if not scope.types:
        return ""
    variable = draw(st.sampled_from(sorted(scope.types)))
    type_name = scope.types[variable]
    if type_name == "symbol" and draw(st.integers(0, 2)) == 0:
        pattern = draw(st.sampled_from(['match("a.*", {})', 'match("[ab]+", {})', 'match(".*b", {})', 'contains("a", {})']))
        return pattern.format(variable)
    if type_name in RECORDS:
        other = draw(st.sampled_from(["nil", *scope.of(type_name)]))
        return f"{variable} {draw(st.sampled_from(['=', '!=']))} {other}"
    if type_name in BRANCHES:
        return f"{variable} {draw(st.sampled_from(['=', '!=']))} {expression(draw, scope, type_name)}"
    other = expression(draw, scope, type_name)
    return f"{variable} {draw(st.sampled_from(['!=', '<', '<=', '>', '>=', '=']))} {other}"


test.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test of its own


def head_term(draw: Draw, scope: Scope, type_name: str, recursive: bool, body: list[str]) -> str:
    """An argument of a head. In a recursive rule it makes no new values, but for a guarded step of a counter."""
    known = scope.of(type_name)
    if not recursive:
        return expression(draw, scope, type_name)
    if type_name == "number" and known and draw(st.integers(0, 3)) == 0:
        counter = draw(st.sampled_from(known))
        body += [f"0 <= {counter}", f"{counter} < {draw(st.integers(1, 9))}"]
        return f"{counter} + {draw(st.integers(1, 3))}"
    return draw(st.sampled_from(known) if known else LITERALS[type_name])
