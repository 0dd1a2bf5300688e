"""replace_copies: a relation that holds the rows of another one, in the same or another order of columns, is not stored.

    back(y, x) :- edge(x, y).   two(x, z) :- edge(x, y), back(z, y).     ->     two(x, z) :- edge(x, y), edge(y, z).
"""

from __future__ import annotations

from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir.rules import Atom, Program, Rule, Variable
from dlog.engine.optimize.rewriting import Body, Rules, has_given_rows, map_atoms, rules_by_relation, with_rules


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
    resolved = _resolved(copies)
    return with_rules(program, _replaced(rules, resolved)) if resolved else program


def _copy_of(rules: list[Rule]) -> _Copy | None:
    """The copy that a relation with these rules is, if it is one."""
    match rules:
        case [Rule(head=head, body=(Atom() as atom,))] if atom.relation != head.relation:
            mine = [a.id for a in head.args if isinstance(a, Variable)]
            others = [a.id for a in atom.args if isinstance(a, Variable)]
            if len(mine) == len(head.args) and len(others) == len(atom.args) and sorted(mine) == sorted(set(others)):
                return _Copy(atom.relation, tuple(mine.index(v) for v in others))
    return None


def _resolved(copies: dict[str, _Copy]) -> dict[str, _Copy]:
    """The original of each copy, which is no copy itself. Without relations that copy each other (all are empty then) or lead
    to such."""
    found: dict[str, _Copy] = {}
    seen: set[str] = set()
    for first in copies:
        way, end = list[str](), first
        while end in copies and end not in seen:
            seen.add(end)
            way.append(end)
            end = copies[end].original
        last = found.get(end)
        if last is None and end in copies:
            continue
        for name in reversed(way):
            copy = copies[name]
            if last is not None:
                copy = _Copy(last.original, tuple(copy.columns[c] for c in last.columns))
            found[name] = last = copy
    return found


def _replaced(rules: Rules, copies: dict[str, _Copy]) -> Rules:
    def change(atom: Atom, _: Body) -> Atom:
        copy = copies.get(atom.relation)
        return atom if copy is None else Atom(copy.original, tuple(atom.args[c] for c in copy.columns), atom.span)

    def changed(rule: Rule) -> Rule:
        reads_none = copies.keys().isdisjoint(relations_read(rule))
        return rule if reads_none else replace(rule, body=map_atoms(rule.body, change))

    return {name: [changed(rule) for rule in found] for name, found in rules.items() if name not in copies}
