"""Past rounds for the naive evaluator: a program is evaluated round by round, and an atom `r@-1(x)` or `r@17(x)` reads what the
evaluation of that round gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dlog.grammar.syntax import Atom, Clause, Program, RelationDecl
from tests.naive import evaluate

Rows = dict[str, set[tuple[Any, ...]]]


def states_with_past(program: Program, inputs: Iterable[Mapping[str, list[Any]]], budget: int | None = None) -> list[Rows]:
    """Every relation after each round, from the rows of its inputs then. Round 0, before all, has no rows."""
    read: set[tuple[str, int]] = set()
    clauses = tuple(_renamed(item, read) if isinstance(item, Clause) else item for item in program.items)
    decls = {name: item for item in program.items if isinstance(item, RelationDecl) for name in item.names}
    more = tuple(RelationDecl((f"{name}@{n}",), decls[name].attributes) for name, n in sorted(read))
    whole = replace(program, items=(*clauses, *more))
    states: list[Rows] = [{name: set() for name in decls}]
    for now, given in enumerate(inputs, 1):
        past = {f"{name}@{n}": list(_then(states, n if n >= 0 else now + n)[name]) for name, n in read}
        states.append(evaluate(whole, {**given, **past}, budget))
    return states


def _then(states: list[Rows], round: int) -> Rows:
    return states[max(round, 0)]


def _renamed(node: Any, read: set[tuple[str, int]]) -> Any:
    """A piece of a program with atoms about past rounds as atoms of relations of their own."""
    if isinstance(node, tuple):
        return tuple(_renamed(each, read) for each in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {f.name: _renamed(getattr(node, f.name), read) for f in fields(node) if f.name != "span"}
    if isinstance(node, Atom) and node.round is not None:
        read.add((node.name, node.round))
        changed |= {"name": f"{node.name}@{node.round}", "round": None}
    return replace(node, **changed)
