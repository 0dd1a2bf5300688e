"""Random programs inside components: the same rules, with the names that their relations have at the place where they stand.

    program ---- .init top = Top<...>        Top : Side, Base<...>      Side : Base<...>      (Base is inherited over two ways)
                                             Top has .init in = Inner<...>

A rule may stand in any of the four components, or outside, since all of them see every relation. In `Base` there may be rules
that are not the program's: they are for relations that `Top` or `Side` overrides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.strategies import Case, Relation, Rule, programs
from tests.strategies_values import type_declarations

Draw = Any

PREFIXES = {"": "", "Base": "top.", "Side": "top.", "Top": "top.", "Inner": "top.in."}
"""The components, and what the names of their relations begin with outside."""
HEADS = {"Base": "Base<T>", "Side": "Side<T> : Base<T>", "Top": "Top<T> : Side<T>, Base<T>", "Inner": "Inner<T, U>"}
WRONG = {
    "number": "77",
    "unsigned": "77u",
    "float": "7.75",
    "symbol": '"wrong"',
    "Pair": '[77, "wrong"]',
    "List": "[77, nil]",
    "Tree": '$Tip("wrong")',
    "Colour": "$Blue()",
}


@dataclass(frozen=True)
class ComponentCase(Case):
    """`written` is the program's text."""

    written: str = ""

    @property
    def text(self) -> str:
        return self.written


@st.composite
def component_programs(draw: Draw, plain: st.SearchStrategy[Case] | None = None) -> tuple[ComponentCase, Case]:
    """A program with components, and the same without."""
    case = draw(programs() if plain is None else plain)
    homes = {r.name: draw(st.sampled_from(sorted(PREFIXES))) for r in case.relations}
    names = {name: PREFIXES[home] + name for name, home in homes.items()}
    relations = tuple(replace(r, name=names[r.name]) for r in case.relations)
    facts = {names[name]: rows for name, rows in case.facts.items()}
    return ComponentCase(relations, case.rules, facts, _written(draw, case, homes)), case


def _written(draw: Draw, case: Case, homes: Mapping[str, str]) -> str:
    own = [r for r in case.relations if r.stratum and homes[r.name] == "Base"]
    overridden = {r.name for r in own if draw(st.booleans())}
    by = draw(st.sampled_from(["Side", "Top"]))
    items: dict[str, list[str]] = {component: [] for component in PREFIXES}
    for relation in case.relations:
        home = homes[relation.name]
        items[home].append(_declaration(draw, relation, home) + (" overridable" if relation.name in overridden else ""))
    for relation in own:
        if relation.name in overridden:
            items["Base"].append(f"{relation.name}({', '.join(WRONG[t] for t in relation.types)}).")
            items[by].append(f".override {relation.name}")
    for rule in case.rules:
        heads = {head.split("(")[0] for head in rule.heads}
        places = [p for p in PREFIXES if not (heads & overridden and p in ("Base", "Side") and p != by)]
        place = draw(st.sampled_from(places))
        items[place].append(_moved(rule, place, homes))
    items["Top"].insert(draw(st.integers(0, len(items["Top"]))), ".init in = Inner<T, symbol>")
    types = type_declarations(t for r in case.relations for t in r.types)
    blocks = [f".comp {head} {{\n" + "".join(f"  {i}\n" for i in items[name]) + "}" for name, head in HEADS.items()]
    top = [*types, *items[""], ".init top = Top<number>", *blocks]
    return "\n".join([*top, ""])


def _declaration(draw: Draw, relation: Relation, home: str) -> str:
    """A relation whose types are parameters of its component, where these stand for them, or not."""
    parameters = {"": {}, "Inner": {"number": "T", "symbol": "U"}}.get(home, {"number": "T"})
    types = tuple(parameters.get(t, t) if draw(st.booleans()) else t for t in relation.types)
    return replace(relation, types=types).declaration


def _moved(rule: Rule, place: str, homes: Mapping[str, str]) -> str:
    """A rule with the names that relations have at a place: those of an inner instance have its name in front."""

    def name(match: re.Match[str]) -> str:
        home = homes[match[1]]
        outside = PREFIXES[home]
        inside = "" if home == place or PREFIXES[place] != "top." else outside.removeprefix("top.")
        return f"{(outside if place == '' else inside)}{match[1]}("

    return _mentions(homes).sub(name, rule.text)


def _mentions(names: Sequence[str] | Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.\"])({'|'.join(map(re.escape, names))})\(")
