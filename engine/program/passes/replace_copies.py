"""replace_copies: a relation that holds the rows of another one, in the same or another order of columns, is not stored.

    back(y, x) :- edge(x, y).   two(x, z) :- edge(x, y), back(z, y).     ->     two(x, z) :- edge(x, y), edge(y, z).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlog.engine.program.passes.rewriting import Body, Rules, has_given_rows, map_atoms, rules_by_relation, with_rules
from dlog.engine.program.rules import Atom, Program, Rule, Variable


@dataclass(frozen=True, slots=True)
class _Copy:
    """A relation whose rows are those of `original`; column i of the original is column `columns[i]` of the copy."""

    original: str
    columns: tuple[int, ...]


def replace_copies(program: Program, observed: frozenset[str]) -> Program:
    rules = rules_by_relation(program)
    copies = {}
    for name, found in rules.items():
        copy = _copy_of(found) if name not in observed and not has_given_rows(program, name) else None
        if copy is not None:
            copies[name] = copy
    for name in [name for name in copies if _is_in_a_circle(name, copies)]:
        del copies[name]
    if not copies:
        return program
    return with_rules(program, _replaced(rules, copies))


def _copy_of(rules: list[Rule]) -> _Copy | None:
    """What a relation with these rules is a copy of, if of anything."""
    match rules:
        case [Rule(head=head, body=(Atom() as atom,))] if atom.relation != head.relation:
            mine = [a.id for a in head.args if isinstance(a, Variable)]
            others = [a.id for a in atom.args if isinstance(a, Variable)]
            if len(mine) == len(head.args) and len(others) == len(atom.args) and sorted(mine) == sorted(set(others)):
                return _Copy(atom.relation, tuple(mine.index(v) for v in others))
    return None


def _is_in_a_circle(name: str, copies: dict[str, _Copy]) -> bool:
    """Whether relations copy each other (all are empty then) or lead to such."""
    seen: set[str] = set()
    while name in copies and name not in seen:
        seen.add(name)
        name = copies[name].original
    return name in copies


def _replaced(rules: Rules, copies: dict[str, _Copy]) -> Rules:
    def change(atom: Atom, _: Body) -> Atom:
        while atom.relation in copies:
            copy = copies[atom.relation]
            atom = replace(atom, relation=copy.original, args=tuple(atom.args[c] for c in copy.columns))
        return atom

    return {
        name: [replace(rule, body=map_atoms(rule.body, change)) for rule in found]
        for name, found in rules.items()
        if name not in copies
    }
