"""Random programs with relations that do not keep all of their rows: subsumption, choice domains, `debug_delta`.

They are put together from rules that go with each other, so that values stay few and iterations end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.strategies import Case, Relation, Rule, graphs, parsed_rule, weighted_graphs

Draw = Any


@dataclass(frozen=True)
class Declared(Relation):
    """A relation whose declaration says more."""

    text: str = ""

    @property
    def declaration(self) -> str:
        return self.text


@dataclass(frozen=True)
class Written(Rule):
    """A clause as it stands."""

    whole: str = ""

    @property
    def text(self) -> str:
        return self.whole


RULES = (
    "r(x, y, c) :- w(x, y, c).",
    "r(x, y, c) :- w(y, x, c), !e(x, y).",
    "r(x, y, n) :- e(x, y), n = count : { e(x, _) }.",
    "r(x, z, c) :- r(x, y, c), e(y, z).",
    "r(x, z, c + 1) :- r(x, y, c), e(y, z), c < 7.",
    "r(x, z, c + d) :- r(x, y, c), w(y, z, d), c < 9.",
    "r(x, z, min(c, d)) :- r(x, y, c), r(y, z, d).",
    "r(y, x, c) :- r(x, y, c), !e(x, x).",
    "s(x, c) :- r(x, _, c).",
    "s(x, 0) :- e(x, x).",
    "r(x, x, c) :- s(x, c), e(x, _).",
    "s(y, c) :- s(x, c), e(x, y).",
)
SUBSUMPTIONS = (
    "r(x, y, c1) <= r(x, y, c2) :- c2 < c1.",
    "r(x, y, c1) <= r(x, y, c2) :- c1 <= c2.",
    "r(x, y1, c) <= r(x, y2, c) :- y1 > y2.",
    "r(x, y1, c1) <= r(x, y2, c2) :- y1 <= y2, c1 >= c2.",
    "r(x, _, c1) <= r(x, _, c2) :- c1 < c2, e(x, _).",
    "r(x, y1, _) <= r(x, y2, _) :- e(y1, y2).",
    "r(x, y, _) <= r(y, x, _) :- !e(x, y) ; x < y.",
    "r(x, y, c) <= r(_, y, c + 1) :- x != 3.",
    "r(x, y1, _) <= r(x, y2, _) :- s(y1, c), s(y2, d), c < d.",
    "r(x, y, c) <= r(x, y, n) :- n = count : { e(x, _) }.",
    "s(x, c) <= s(x, d) :- c < d.",
    "s(x, c) <= s(y, c) :- y < x, w(x, y, _).",
)
DOMAINS = ("x", "y", "c", "(x, y)", "x, y", "c, (y, x)", "(x, y), (y, c)")


def subsumption_programs() -> st.SearchStrategy[Case]:
    return _programs(st.lists(st.sampled_from(SUBSUMPTIONS), min_size=1, max_size=3, unique=True), st.just(""))


def plain_subsumption_programs() -> st.SearchStrategy[Case]:
    """Without recursion: sessions maintain them."""
    plain = [s for s in SUBSUMPTIONS if not s.startswith("s(") and "- s(" not in s]
    return _programs(st.lists(st.sampled_from(plain), min_size=1, max_size=3, unique=True), st.just(""), rules=RULES[:3])


def choice_programs() -> st.SearchStrategy[Case]:
    return _programs(st.just([]), st.sampled_from([f" choice-domain {domain}" for domain in DOMAINS]))


def logged_programs() -> st.SearchStrategy[Case]:
    return _programs(st.just([]), st.just(""), logged=True)


def lattice_programs() -> st.SearchStrategy[Case]:
    return _programs(st.just([]), st.just(""), lub=st.sampled_from(["max(_, _)", "min(_, _)", "_ bor _", "_ band _"]))


def retention_programs() -> st.SearchStrategy[Case]:
    return st.one_of(subsumption_programs(), subsumption_programs(), choice_programs(), logged_programs(), lattice_programs())


@st.composite
def _programs(
    draw: Draw,
    subsumptions: st.SearchStrategy[list[str]],
    domains: st.SearchStrategy[str],
    logged: bool = False,
    lub: st.SearchStrategy[str] | None = None,
    rules: tuple[str, ...] = RULES,
) -> Case:
    rules = tuple(draw(st.lists(st.sampled_from(rules), min_size=1, max_size=5, unique=True)))
    facts = draw(st.lists(st.sampled_from(["r(1, 2, 3).", "r(1, 3, 2).", "r(2, 2, 3).", "s(4, 4)."]), max_size=2, unique=True))
    clauses: list[Rule] = [*map(parsed_rule, dict.fromkeys([RULES[0], *rules])), *(Rule((f[:-1],)) for f in facts)]
    clauses += [Written((), (), text) for text in draw(subsumptions)]
    columns = ", ".join(f"{name}: number" for name in "xyc")
    if lub is not None:
        clauses.append(Written((), (), f".lattice number<> {{ Lub -> {draw(lub)} }}"))
        columns = draw(st.sampled_from([f"{columns}<>", "x: number, y: number<>, c: number<>"]))
    relations = [
        Relation("e", ("number", "number")),
        Relation("w", ("number", "number", "number")),
        Declared("r", ("number",) * 3, 1, text=f".decl r({columns}){draw(domains)}"),
        Relation("s", ("number", "number"), 1),
    ]
    if logged or draw(st.integers(0, 3)) == 0:
        relations.append(Declared("d", (*("number",) * 3, "unsigned"), 1, text=".decl d = debug_delta(r)"))
    given = {"e": draw(graphs(5, 8)), "w": draw(weighted_graphs(5, 8))}
    return Case(tuple(relations), tuple(clauses), given)
