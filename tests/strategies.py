"""Hypothesis strategies: graphs, data, and random programs that are well-typed, safe, stratified and sure to end.

A program is made of structured pieces (`Rule`, `Relation`) and printed as text, so that a failing example shrinks to a few
short rules and prints as a program one can run. What keeps programs finite: a rule that uses a relation of its own stratum puts
only variables and constants in its head, or `x + c` under the guard `0 <= x, x < k`. What keeps answers exact: floats are small
multiples of 1/4, no -0.0 arises, and floats are added up (`sum`, `mean`) only as they stand in the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.strategies_terms import Names, Scope, expression, head_term, test
from tests.strategies_values import BRANCHES, FLOATS, LITERALS, RECORDS, SMALL, VALUES, Row, type_declarations

Draw = Any
Facts = dict[str, list[Row]]

COLUMNS = st.sampled_from(
    ["number", "number", "number", "symbol", "symbol", "float", "unsigned", "Pair", "List", "Tree", "Colour"]
)
DATED = st.sampled_from(["date", "date", "number", "symbol", "Pair"])


@dataclass(frozen=True)
class Relation:
    """`stratum` is 0 for inputs; a rule may read relations of its own stratum only in positive atoms. An equivalence relation
    (`eqrel`) has two columns of one type."""

    name: str
    types: tuple[str, ...]
    stratum: int = 0
    eqrel: bool = False

    @property
    def declaration(self) -> str:
        columns = ", ".join(f"c{i}: {t}" for i, t in enumerate(self.types))
        return f".decl {self.name}({columns}){' eqrel' if self.eqrel else ''}"


@dataclass(frozen=True)
class Rule:
    heads: tuple[str, ...]
    body: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{', '.join(self.heads)} :- {', '.join(self.body)}." if self.body else f"{self.heads[0]}."


@dataclass(frozen=True)
class Case:
    """A program and its input."""

    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...]
    facts: Facts = field(hash=False)
    functors: tuple[str, ...] = field(default=(), kw_only=True)
    """Declarations."""
    pragmas: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def text(self) -> str:
        types = type_declarations(t for r in self.relations for t in r.types)
        declared = [*self.pragmas, *types, *self.functors, *(r.declaration for r in self.relations)]
        return "\n".join([*declared, *(r.text for r in self.rules), ""])

    def __repr__(self) -> str:
        return f"Case of\n{self.text}with facts {self.facts!r}"


def shuffled(case: Case, seed: int) -> Case:
    """The same program in another order: its rules, and the literals of each body."""
    random = Random(seed)
    rules = [replace(rule, body=tuple(random.sample(rule.body, len(rule.body)))) for rule in case.rules]
    return replace(case, rules=tuple(random.sample(rules, len(rules))))


# ------------------------------------------------------------------------------------------------------------------ data


def graphs(nodes: int = 6, edges: int = 10) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Directed graphs as lists of edges; loops and repeated edges occur."""
    node = st.integers(0, nodes - 1)
    return some(st.tuples(node, node), edges)


def weighted_graphs(nodes: int = 6, edges: int = 10) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    node = st.integers(0, nodes - 1)
    return some(st.tuples(node, node, st.integers(0, 5)), edges)


def rows(types: Sequence[str], most: int = 8) -> st.SearchStrategy[list[Row]]:
    return some(st.tuples(*(VALUES[t] for t in types)), most)


def some(row: st.SearchStrategy[Row], most: int) -> st.SearchStrategy[list[Row]]:
    """Few rows, or none, or (twice as often) enough of them that joins meet."""
    enough = st.lists(row, min_size=most // 2, max_size=most)
    return st.one_of(st.lists(row, max_size=2), enough, enough)


# ----------------------------------------------------------------------------------------------------------------- rules


def atom(draw: Draw, scope: Scope, relation: Relation, binds: bool = True) -> str:
    """An atom over the scope; with `binds` false it uses bound variables, constants and `_` only, as a negated one must."""
    args = [argument(draw, scope, t, binds, relation.stratum == 0) for t in relation.types]
    return f"{relation.name}({', '.join(args)})"


def argument(draw: Draw, scope: Scope, type_name: str, binds: bool, given: bool) -> str:
    known = scope.of(type_name)
    choices = ["_", "_", "constant", *(["known"] * 5 if known else []), *(["fresh"] * 7 if binds else [])]
    if binds and type_name in RECORDS:
        choices += ["record"] * 3
    if binds and type_name in BRANCHES:
        choices += ["branch"] * 3
    match draw(st.sampled_from(choices)):
        case "known":
            return draw(st.sampled_from(known))
        case "fresh":
            return scope.bind(type_name, exact=given)
        case "constant":
            return draw(LITERALS[type_name])
        case "record":
            return f"[{', '.join(argument(draw, scope, t, binds, given) for t in RECORDS[type_name])}]"
        case "branch":
            name, types = draw(st.sampled_from(sorted(BRANCHES[type_name].items())))
            return f"${name}({', '.join(argument(draw, scope, t, binds, given) for t in types)})"
        case _:
            return "_"


def aggregate(draw: Draw, outer: Scope, lower: Sequence[Relation], recursive: bool, depth: int = 0) -> tuple[str, str]:
    """Over lower strata and the type of its value. Outer variables occur in atoms (grouping) or in comparisons only; the
    latter not in a recursive rule, where they might be bound by the recursion only."""
    inner = outer.inside()
    body = [atom(draw, inner, draw(st.sampled_from(lower))) for _ in range(draw(st.integers(1, 2)))]
    if recursive:
        inner.forget_outer()
    if draw(st.booleans()):
        body.append(test(draw, inner))
    if draw(st.integers(0, 4)) == 0:
        body.append(generator(draw, inner))
    if draw(st.integers(0, 4)) == 0:
        body.append("!" + atom(draw, inner, draw(st.sampled_from(lower)), binds=False))
    if depth < 1 and draw(st.integers(0, 4)) == 0:
        nested, type_name = aggregate(draw, inner, lower, recursive, depth + 1)
        body.append(f"{inner.bind(type_name)} = {nested}")
    op, target, type_name = reduction(draw, inner)
    return f"{op}{target} : {{ {', '.join(b for b in body if b)} }}", type_name


def threshold(draw: Draw, outer: Scope, lower: Sequence[Relation], same: Sequence[Relation]) -> str:
    """A count or sum over relations of the rule's own stratum, compared in the direction in which more rows make it truer."""
    inner = outer.inside()
    body = [atom(draw, inner, draw(st.sampled_from(lower))) for _ in range(draw(st.integers(1, 2)))]
    falls = draw(st.booleans())
    inner.forget_outer()
    own = draw(st.lists(st.sampled_from(same), min_size=1, max_size=2))
    body += ["!" + atom(draw, inner, r, binds=False) if falls else atom(draw, inner, r) for r in own]
    if draw(st.integers(0, 3)) == 0:
        body.append(test(draw, inner))
    term = f"{draw(st.sampled_from(['count', 'count', 'sum 2']))} : {{ {', '.join(b for b in body if b)} }}"
    bound = draw(st.integers(-1, 3))
    if draw(st.booleans()):
        return f"{term} {draw(st.sampled_from(['<', '<='] if falls else ['>', '>=']))} {bound}"
    return f"{bound} {draw(st.sampled_from(['>', '>='] if falls else ['<', '<=']))} {term}"


def reduction(draw: Draw, inner: Scope) -> tuple[str, str, str]:
    """Operator, target and type of the value, of what the aggregate's own body binds."""
    choices = [("count", "", "number")]
    for type_name in ("number", "unsigned", "float"):
        for variable in inner.own(type_name):
            exact = type_name != "float" or variable in inner.exact
            choices += [(op, f" {variable}", type_name) for op in ("min", "max", *(["sum"] if exact else []))]
            if type_name == "float" and exact:
                choices += [("mean", f" {variable}", "float")] * 2
            if type_name != "float":
                choices.append(("bit_xor", f" {variable}", type_name))
            if type_name == "number":
                choices += [("sum", f" {variable} * 2 - 1", "number"), ("max", f" 0 - {variable}", "number")]
    return draw(st.sampled_from(choices))


def disjunction(draw: Draw, scope: Scope, readable: Sequence[Relation]) -> str:
    """`(p(x, v) ; q(v))`: each branch binds the same new variable."""
    relation = draw(st.sampled_from([r for r in readable if r.types]))
    type_name = draw(st.sampled_from(relation.types))
    before = scope.copy()
    variable = scope.bind(type_name)
    branches = []
    for candidate in (relation, draw(st.sampled_from([r for r in readable if type_name in r.types]))):
        column = draw(st.sampled_from([i for i, t in enumerate(candidate.types) if t == type_name]))
        args = [variable if i == column else argument(draw, before, t, False, False) for i, t in enumerate(candidate.types)]
        branches.append(f"{candidate.name}({', '.join(args)})")
    return f"({' ; '.join(branches)})"


def generator(draw: Draw, scope: Scope) -> str:
    """A range of a few numbers, whose value is bound, compared or asked for in a negated atom's place."""
    known = [f"{v} % 4" for v in scope.of("number")]
    bounds = st.sampled_from([*map(str, range(-2, 4)), *known, *known])
    step = draw(st.sampled_from(["", "", ", 1", ", -1", ", 2", ", 0"]))
    call = f"range({draw(bounds)}, {draw(bounds)}{step})"
    if known and draw(st.integers(0, 3)) == 0:
        return f"{draw(st.sampled_from(scope.of('number')))} {draw(st.sampled_from(['=', '<', '!=']))} {call}"
    return f"{scope.bind('number')} = {call}{draw(st.sampled_from(['', '', ' * 2']))}"


def literals(draw: Draw, scope: Scope, lower: Sequence[Relation], recursive: bool) -> list[str]:
    """What follows the positive atoms of a body: disjunction, tests, computed variables, aggregates, negation."""
    found = []
    if draw(st.integers(0, 5)) == 0:
        found.append(disjunction(draw, scope, lower))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        found.append(test(draw, scope))
    if not recursive and draw(st.integers(0, 3)) == 0:
        # Without a variable of the type, all operands could be literals, and those would be of type number.
        typed = [t for t in ("float", "unsigned") if scope.of(t)]
        type_name = draw(st.sampled_from(["number", "symbol", *typed]))
        term = expression(draw, scope, type_name)
        found.append(f"{scope.bind(type_name)} = {term}")
    if not recursive and draw(st.integers(0, 4)) == 0:
        found.append(generator(draw, scope))
    if draw(st.integers(0, 3)) == 0:
        term, type_name = aggregate(draw, scope, lower, recursive)
        if draw(st.integers(0, 3)) == 0:
            found.append(f"{draw(LITERALS[type_name])} {draw(st.sampled_from(['<', '>=', '!=']))} {term}")
        elif not recursive:
            found.append(f"{scope.bind(type_name)} = {term}")
    if draw(st.integers(0, 3)) == 0:
        found.append("!" + atom(draw, scope, draw(st.sampled_from(lower)), binds=False))
    return [f for f in found if f]


def looking_back(draw: Draw, scope: Scope, lower: Sequence[Relation], same: Sequence[Relation]) -> str:
    """A negation of, or an aggregate over, relations of the rule's own stratum."""
    if draw(st.booleans()):
        return "!" + atom(draw, scope, draw(st.sampled_from(same)), binds=False)
    term, type_name = aggregate(draw, scope, [*same, *same, *lower], recursive=True)
    if draw(st.booleans()):
        return f"{scope.bind(type_name)} = {term}"
    return f"{draw(LITERALS[type_name])} {draw(st.sampled_from(['<', '>=', '!=']))} {term}"


RECURSION = ("plain", "counting", "alternating")
"""What rules may say of relations of their own stratum: that rows of them hold; besides, that a count or sum of them exceeds a
bound; or anything by negation and aggregates."""


def rule(
    draw: Draw, heads: Sequence[Relation], lower: Sequence[Relation], same: Sequence[Relation], recursion: str = "plain"
) -> Rule:
    """A rule over relations of lower strata and, if it is to be recursive, of its own, of which it may say what `RECURSION`
    tells."""
    scope = Scope(Names())
    recursive = bool(same)
    readable = [*same, *same, *lower]
    used = [draw(st.sampled_from(readable)) for _ in range(draw(st.sampled_from([1, 2, 2, 3, 3, 4])))]
    if recursive and not any(r in same for r in used):
        used[0] = draw(st.sampled_from(same))
    body = [atom(draw, scope, r) for r in used]
    body += literals(draw, scope, lower, recursive)
    if recursion == "counting" and recursive and draw(st.booleans()):
        body.append(threshold(draw, scope, lower, same))
    if recursion == "alternating" and recursive and draw(st.booleans()):
        body.append(looking_back(draw, scope, lower, same))
    head_texts = []
    for head in heads:
        terms = [head_term(draw, scope, t, recursive, body) for t in head.types]
        head_texts.append(f"{head.name}({', '.join(terms)})")
    return Rule(tuple(head_texts), tuple(body))


@st.composite
def strata(
    draw: Draw, inputs: Sequence[Relation], recursion: str = "plain", columns: st.SearchStrategy[str] = COLUMNS
) -> tuple[list[Relation], list[Rule]]:
    """1 to 5 derived relations in 1 to 3 strata, each with 1 to 3 rules, the first of them not recursive."""
    relations: list[Relation] = []
    found: list[Rule] = []
    for stratum in range(1, draw(st.integers(1, 3)) + 1):
        lower = [*inputs, *relations]
        group = []
        for _ in range(draw(st.integers(1, 2))):
            eqrel = draw(st.integers(0, 5)) == 0
            types = (draw(columns),) * 2 if eqrel else tuple(draw(st.lists(columns, max_size=3)))
            group.append(Relation(f"d{len(relations) + len(group)}", types, stratum, eqrel))
        for i, relation in enumerate(group):
            if draw(st.integers(0, 4)) == 0:
                found.append(Rule((f"{relation.name}({', '.join(draw(LITERALS[t]) for t in relation.types)})",)))
            heads = [relation, *(group[1 - i : 2 - i] if len(group) > 1 and draw(st.integers(0, 5)) == 0 else [])]
            found.append(rule(draw, heads, lower, ()))
            for _ in range(draw(st.integers(0, 2))):
                own = group if recursion != "plain" or draw(st.booleans()) else ()
                found.append(rule(draw, [relation], lower, own, recursion))
        relations += group
    return relations, found


# -------------------------------------------------------------------------------------------------------------- programs


@st.composite
def random_programs(draw: Draw, recursion: str = "plain", columns: st.SearchStrategy[str] = COLUMNS) -> Case:
    """A graph `e` and up to three other inputs, and derived relations over them, whose recursion is one of `RECURSION`."""
    edge = Relation("e", ("number", "number"))
    inputs, facts = [edge], {"e": draw(graphs())}
    for i in range(draw(st.integers(0, 3))):
        eqrel = draw(st.integers(0, 9)) == 0
        types = (draw(columns),) * 2 if eqrel else tuple(draw(st.lists(columns, max_size=4)))
        relation = Relation(f"i{i}", types, eqrel=eqrel)
        facts[relation.name] = draw(rows(relation.types))
        inputs.append(relation)
    derived, rules = draw(strata(inputs, recursion, columns))
    return Case((*inputs, *derived), tuple(rules), facts)


def dated_programs() -> st.SearchStrategy[Case]:
    """Programs with columns of dates."""
    return random_programs(columns=DATED)


SHAPES = {
    "linear": ["p(x, y) :- e(x, y).", "p(x, z) :- p(x, y), e(y, z)."],
    "nonlinear": ["p(x, y) :- e(x, y).", "p(x, z) :- p(x, y), p(y, z)."],
    "same generation": ["p(x, y) :- e(a, x), e(a, y).", "p(x, y) :- e(a, x), p(a, b), e(b, y)."],
    "mutual": ["p(x, y) :- e(x, y).", "q(x, z) :- p(x, y), e(y, z).", "p(x, z) :- q(x, y), e(y, z).", "q(x, x) :- p(x, x)."],
    "triangles": ["p(x, y) :- e(x, y), e(y, z), e(z, x)."],
    "acyclic triangles": ["p(x, z) :- e(x, y), e(y, z), e(x, z), x != y, y != z."],
    "squares": ["p(x, z) :- e(x, y), e(y, z), e(z, u), e(u, x)."],
    "diamonds": ["p(x, u) :- e(x, y), e(x, z), e(y, u), e(z, u), y < z."],
    "cliques": ["p(x, u) :- e(x, y), e(x, z), e(x, u), e(y, z), e(y, u), e(z, u)."],
    "triangles of a closure": [
        "q(x, y) :- e(x, y).",
        "q(x, z) :- q(x, y), q(y, z).",
        "p(x, y) :- q(x, y), q(y, z), q(z, x), e(x, y).",
    ],
    "recursive triangles": ["p(x, y) :- e(x, y).", "p(x, z) :- p(x, y), p(y, z), e(x, w), e(w, z)."],
    "complement": ["q(x, y) :- e(x, y).", "q(x, z) :- q(x, y), e(y, z).", "p(x, y) :- e(x, _), e(_, y), !q(x, y)."],
    "distances": [
        "p(x, 0) :- e(x, _).",
        "p(y, n + 1) :- p(x, n), e(x, y), n < 5.",
        "q(x, d) :- e(x, _), d = max n : { p(x, n) }.",
    ],
    "degrees": ["p(x, n) :- e(x, _), n = count : { e(x, _) }.", "q(n, m) :- p(_, n), m = count : { p(_, n) }."],
    "ranks": ["p(x, n) :- e(x, _), n = count : { e(y, _), y < x }.", "q(x, n) :- e(x, y), n = max z : { e(_, z), z != y }."],
    "shadowed": ["p(x, n) :- e(x, _), n = sum x : { e(x, _) }.", "q(x, x) :- x = max x : { e(_, x) }."],
    "neighbours": [
        "p(x, n) :- e(x, _), n = count : { e(x, y) ; e(y, x) }.",
        "q(x, n) :- e(_, x), n = sum y : { e(x, y) ; e(y, x) }.",
    ],
    "counting ahead": [
        "p(x, 0) :- e(x, _).",
        "p(x, n % 5 + m % 3) :- p(x, n), m = count : { e(y, z), z > n, y != x }.",
        "q(x, m) :- e(x, _), m = 0.",
        "q(x, m + n) :- q(x, n), n < 4, m = min z : { e(y, z), z > n ; w(z, _, n), 0 < count : { e(z, u), u != n } }, m < 7.",
    ],
    "weighing ahead": [
        "s(x, v, v) :- f(x, v).",
        "s(x, m, n) :- s(x, u, _), m = mean v : { f(y, v), v < u }, n = sum v : { f(_, v), v > u }.",
    ],
    "statistics": [
        "p(x, n) :- e(x, _), n = count : { f(x, _) }.",
        "s(x, m, t) :- e(x, _), m = mean v : { f(x, v) }, t = sum u : { f(y, u), y <= x }.",
        "s(x, l, g) :- f(x, _), l = min v : { f(x, v) }, g = max u : { f(_, u), u < l + 1 }.",
    ],
    "ranges": [
        "p(x, y) :- e(x, _), y = range(x, x + 3, 1).",
        "q(x, n) :- e(x, _), n = count : { y = range(x, x + 4, 2), e(_, y) }.",
        "node(y) :- e(x, y), !p(x, range(0, 2)).",
        "source(x) :- e(_, x), x = range(x - 1, x + 1, 1), e(y, _), y = range(x, x - 3, -1).",
    ],
    "ranges ahead": [
        "p(x, 0) :- e(x, _).",
        "p(y, m) :- p(x, n), e(x, y), m = range(n, n + 3, 1), m < 5.",
        "q(x, range(0, n, 1)) :- p(x, n).",
    ],
    "lists": [
        "l([x, nil], 1) :- e(x, _).",
        "l([y, t], n + 1) :- l(t, n), t = [x, _], e(x, y), n < 3.",
        "p(h, n) :- l([h, _], n).",
        "q(h, n) :- l([_, [h, _]], n), !l([h, nil], n).",
    ],
    "shortest paths": [
        "node(x), node(y) :- w(x, y, _).",
        "source(x) :- e(x, _).",
        "p(x, d) :- node(x), d = min c : { source(x), c = 0 ; p(y, b), w(y, x, l), c = b + l }.",
        "q(x, y) :- p(x, a), w(x, y, l), p(y, a + l).",
    ],
    "widest paths": [
        "node(x), node(y) :- w(x, y, _).",
        "source(x) :- e(x, _).",
        "p(x, d) :- node(x), d = max c : { source(x), c = 9 ; p(y, b), w(y, x, l), c = min(b, l) }.",
    ],
    "components": [
        "q(x, y), q(y, x) :- e(x, y).",
        "node(x) :- q(x, _).",
        "p(x, c) :- node(x), c = min n : { node(x), n = x ; q(x, y), p(y, n) }.",
        "source(n) :- n = count : { p(x, x) }.",
    ],
    "equivalence": [
        "same(x, y) :- e(x, y).",
        "p(x, y) :- same(x, z), w(z, y, _).",
        "q(x, n) :- same(x, _), n = count : { same(x, _) }.",
        "node(x) :- w(x, y, _), e(z, _), !same(x, y), !same(x, z).",
        "source(n) :- n = count : { same(x, y), !same(x, x) ; w(x, y, _), !same(_, y) }.",
    ],
    "congruence": [
        "same(x, y) :- e(x, y).",
        "same(y, v) :- w(x, y, _), w(u, v, _), same(x, u).",
        "p(x, y) :- same(x, y), w(x, _, _), w(_, y, _).",
    ],
    "two equivalences": [
        "same(x, y) :- e(x, y).",
        "alike(x, z) :- same(x, y), w(y, z, _).",
        "same(x, z) :- alike(x, y), p(y, z).",
        "p(x, y) :- w(x, z, n), w(y, z, n), alike(x, y), same(x, x).",
        "q(x, y) :- same(x, y), !alike(x, y).",
    ],
}
"""Programs over a graph `e` and a weighted graph `w` that random rules rarely hit upon."""

COUNTING = {
    "control": [
        "node(x), node(y) :- w(x, y, _).",
        "p(x, x) :- node(x).",
        "p(x, z) :- node(x), node(z), sum s : { p(x, y), w(y, z, s), s >= 0 } > 4.",
    ],
    "core": [
        "q(x, y), q(y, x) :- e(x, y), x != y.",
        "node(x) :- q(x, _).",
        "source(x) :- node(x), n = count : { q(x, y), !source(y) }, n < 3.",
    ],
    "truss": [
        "q(x, y), q(y, x) :- e(x, y), x != y.",
        "p(x, y) :- q(x, y), count : { q(x, z), q(y, z), !p(x, z), !p(y, z) } < 2.",
    ],
    "spreading": [
        "node(x) :- e(x, x).",
        "node(x) :- w(x, _, k), n = count : { node(y), e(x, y) ; node(y), e(y, x) }, n >= k.",
        "source(x) :- w(x, _, k), n = count : { node(y), e(x, y) ; source(y), e(y, x) }, n >= k, n > k - 2.",
    ],
}
"""Those of them that are recursive through `count` or `sum`."""

ALTERNATING = {
    "game": ["node(x) :- e(x, y), !node(y)."],
    "kernel": ["node(x) :- e(x, _), !source(x).", "source(x) :- e(x, y), node(y).", "q(x, x) :- source(x)."],
    "parts": [
        "p(x, 1) :- w(_, x, _), !w(x, _, _).",
        "p(x, n) :- w(x, _, _), n = sum k * m : { w(x, y, k), p(y, m) }.",
    ],
    "parts of others": [
        "p(x, n) :- w(x, y, k), q(y, m), n = k * m.",
        "q(x, n) :- w(x, _, _), n = sum m : { p(x, m) }.",
        "q(x, 1) :- w(_, x, _), !w(x, _, _).",
    ],
    "height": ["p(x, n) :- e(x, _), n = count : { e(x, y), p(y, m) }.", "q(x, n) :- p(x, m), n = m + count : { q(x, _) }."],
    "lengths": [
        "p(x, n) :- e(x, _), n = max m : { q(x, m) }.",
        "q(x, m) :- w(x, y, k), m = k + max n : { p(y, n) ; e(y, n) }.",
    ],
    "reach and not": [
        "p(x, y) :- e(x, y), !q(y, x).",
        "p(x, z) :- p(x, y), p(y, z).",
        "q(x, y) :- w(x, y, _), !p(x, x).",
    ],
}
"""Those that look back at relations of their own strata, in any way."""

SHAPE_RELATIONS = (
    Relation("e", ("number", "number")),
    Relation("w", ("number", "number", "number")),
    Relation("f", ("number", "float")),
    Relation("p", ("number", "number"), 1),
    Relation("q", ("number", "number"), 1),
    Relation("l", ("List", "number"), 1),
    Relation("s", ("number", "float", "float"), 1),
    Relation("node", ("number",), 1),
    Relation("source", ("number",), 1),
    Relation("same", ("number", "number"), 1, eqrel=True),
    Relation("alike", ("number", "number"), 1, eqrel=True),
)


def parsed_rule(text: str) -> Rule:
    """A rule of `SHAPES` as heads and literals, cut at the commas outside of brackets."""
    head, body = text[:-1].split(" :- ")
    return Rule(tuple(split(head)), tuple(split(body)))


def split(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


@st.composite
def graph_programs(draw: Draw, recursion: str = "plain") -> Case:
    """One of `SHAPES`, or of those with another one of `RECURSION`, on a random graph, whose nodes may be large or negative
    numbers."""
    shapes = {"plain": SHAPES, "counting": COUNTING, "alternating": ALTERNATING}[recursion]
    rules = tuple(parsed_rule(r) for r in shapes[draw(st.sampled_from(sorted(shapes)))])
    edges, weighted, measured = draw(graphs(7, 14)), draw(weighted_graphs(7, 14)), draw(some(st.tuples(SMALL, FLOATS), 8))
    shift = draw(st.sampled_from([0, 0, -3, 2**31 - 3, 2**32 - 3, 2**63 - 8, -(2**63)]))
    facts: Facts = {
        "e": [(x + shift, y + shift) for x, y in edges],
        "w": [(x + shift, y + shift, length) for x, y, length in weighted],
        "f": [(x + shift, value) for x, value in measured],
    }
    mentioned = " ".join(r.text for r in rules)
    relations = tuple(r for r in SHAPE_RELATIONS if f"{r.name}(" in mentioned)
    return Case(relations, rules, {r.name: facts[r.name] for r in relations if not r.stratum})


CALLS = (
    ".functor other(x: number): number",
    ".functor near(x: number, y: number): number",
    ".functor text(x: number, y: symbol): symbol",
    ".functor chain(state: number, x: number): number",
    ".functor joined(state: symbol, x: number): symbol stateful",
    ".type Pair = [x: number, y: number]",
    ".functor last(state: Pair, x: Pair): Pair",
)
CALLING = (
    "p(x, @other(y)) :- e(x, y).",
    "p(@other(x), z) :- p(x, y), e(y, z).",
    "q(x, n) :- e(x, _), n = count : { e(x, y), @near(x, y) = 1 }.",
    "node(x) :- e(x, y), !p(y, @other(x)), @near(@other(x), y) != 1.",
    't(x, @text(y, "a")) :- q(x, y).',
    "source(strlen(s)) :- t(x, s), e(_, x).",
    "q(x, n) :- e(x, _), n = @@chain y : x, { e(y, x) }.",
    "q(x, n) :- e(_, x), n = @@chain y + z : 1, { e(x, y), e(y, z), !e(z, x) }.",
    "node(x % 5) :- x = @@chain y : 0, { e(y, _) }.",
    "p(x, y) :- p(x, z), e(z, y), 40 > @@chain u : z, { e(y, u) ; e(u, y), u != z }.",
    't(x, @@joined y : cat("<", to_string(n)), { e(x, y), y < n }) :- q(x, n).',
    "p(x % 3, m % 4) :- p(x, n), m = @@chain y : n, { e(y, _), y != x }.",
    "q(x, y) :- e(x, _), [x, y] = @@last [u, v] : nil, { e(u, v), u >= x }.",
)


@st.composite
def calling_programs(draw: Draw) -> Case:
    """Rules that call functors, some of those of `CALLING`, over a random graph: `naive.USER_FUNCTIONS`."""
    known = draw(st.lists(st.sampled_from(CALLING), min_size=2, unique=True))
    rules = tuple(parsed_rule(r) for r in CALLING if r in known)
    shown = [r for r in SHAPE_RELATIONS if r.name in ("e", "p", "q", "node", "source")]
    relations = (*shown, Relation("t", ("number", "symbol"), 1))
    return Case(relations, rules, {"e": draw(graphs(7, 14))}, functors=CALLS)


def programs() -> st.SearchStrategy[Case]:
    return st.one_of(random_programs(), random_programs(), graph_programs())


def counting_programs() -> st.SearchStrategy[Case]:
    """Programs that are recursive through `count` and `sum`, most of them."""
    return st.one_of(random_programs("counting"), random_programs("counting"), graph_programs("counting"))


def alternating_programs() -> st.SearchStrategy[Case]:
    """Programs that are recursive through negation and aggregates, most of them."""
    return st.one_of(random_programs("alternating"), random_programs("alternating"), graph_programs("alternating"))
