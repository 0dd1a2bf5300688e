"""The relations that the text wants computed by demand (magic sets): `magic` and `no_magic` in declarations, and the pragmas
`magic-transform` and `magic-transform-exclude`, whose values are names of relations, or `*` for all."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.grammar.syntax import Pragma, Program, RelationDecl

INCLUDED, EXCLUDED = "magic-transform", "magic-transform-exclude"


def by_demand(program: Program, relations: Iterable[str], problems: Problems) -> frozenset[str]:
    names = set(relations)
    chosen: dict[str, set[str]] = {INCLUDED: set(), EXCLUDED: set()}
    for item in program.items:
        match item:
            case RelationDecl(qualifiers=qualifiers):
                chosen[INCLUDED] |= set(item.names) if "magic" in qualifiers else set()
                chosen[EXCLUDED] |= set(item.names) if "no_magic" in qualifiers else set()
            case Pragma(name=name) if name in chosen:
                chosen[name] |= _named(item, names, problems)
            case _:
                pass
    return frozenset(chosen[INCLUDED] - chosen[EXCLUDED])


def _named(pragma: Pragma, relations: set[str], problems: Problems) -> set[str]:
    found: set[str] = set()
    for name in pragma.value.split(","):
        if name == "*":
            return relations
        if name in relations:
            found.add(name)
        else:
            notes = [suggestion(name, relations) or "write names of relations with commas between them, or `*` for all"]
            problems.add("unknown-relation", f"unknown relation `{name}` in `{pragma.name}`", Label(pragma.span), notes=notes)
    return found
