"""push_filters: what all readers of a relation ask of it is asked where its rows come from, through recursion.

    path(x, y) :- edge(x, y).                        path{from = 1}(x, y) :- edge(x, y), x = 1.
    path(x, z) :- path(x, y), edge(y, z).     ->     path{from = 1}(x, z) :- path{from = 1}(x, y), edge(y, z).
    q(y) :- path(1, y).                              q(y) :- path{from = 1}(1, y).

Column c of a relation *passes through* its recursion when each recursive rule has one atom of the relation, with the same
variable at c as the head: every row then has there the value of the row it began with, and rows that fail a filter on c lead
to none that pass. Nothing but the rows of the exit rules need be asked.

All readers must have filters. They are served by one relation, of the rows that pass the filters common to all, or by one for
each of a few constants: such relations have no row in common, so that none is computed twice. Relations are taken from the
last stratum to the first, so that filters reach through several of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read, through_aggregates
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Head,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Variable,
    reading_rule,
)
from dlog.engine.ir.traversal import literal_variables, occurrences
from dlog.engine.optimize.filters import ColumnFilter, can_filter, filtered, filters_of, in_order, show_filters, tests_of
from dlog.engine.optimize.rewriting import (
    Body,
    Rules,
    has_given_rows,
    map_atoms,
    rules_by_relation,
    with_rules,
)

MAX_CONSTANTS: Final = 4
"""Constants for which a recursive relation is computed apart; beyond, the whole relation is likely to be cheaper."""
MAX_FILTERS: Final = 4
"""Filters that are pushed at once: through a chain of relations they would add up."""

Filters: TypeAlias = frozenset[ColumnFilter]
Groups: TypeAlias = Mapping[Filters, Filters]
"""The filters that are pushed for readers, by the constants they ask for in the columns where all ask for one."""


def push_filters(program: Program, observed: frozenset[str]) -> Program:
    work = _Work(program)
    kept = observed | through_aggregates(program)
    for stratum in reversed(program.strata):
        name = stratum.relations[0]
        if len(stratum.relations) == 1 and name not in kept:
            work.push(name, stratum)
    return with_rules(program, work.rules, work.restricted_relations) if work.restricted_relations else program


@dataclass(frozen=True, slots=True)
class _PushableFilters:
    """The filters that readers may push into a relation: those on these columns that look into none of its `dependents`, the
    relations that are computed from it, itself included: one that did would close a cycle."""

    relation: Relation
    columns: frozenset[int]
    dependents: Callable[[], frozenset[str]]
    recursive: bool

    def filters(self, atom: Atom, body: Body) -> Filters:
        """The filters of a use. Where a relation without recursion is negated, only comparisons count: to look rows up
        elsewhere before they are stored is no cheaper than to look among them."""
        looks = self.recursive or any(x is atom for x in body)
        return filters_of(atom, body, self.columns, lambda r: looks and r not in self.dependents())


@dataclass(frozen=True, slots=True)
class _Pushed:
    """The filters to be pushed for each group of readers, and the names of the new relations."""

    pushable: _PushableFilters
    fixed: frozenset[int]
    groups: Groups
    names: Mapping[Filters, str]

    def group_of(self, atom: Atom, body: Body) -> Filters:
        return _constants(self.pushable.filters(atom, body), self.fixed)


class _Work:
    """The rules as they are rewritten, and the relations made; `readers[r]` are the rules that read r (or did): by relation,
    which of its rules."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rules: Rules = rules_by_relation(program)
        self.restricted_relations: dict[str, Relation] = {}
        self.readers: dict[str, dict[str, set[int]]] = {}
        for name, found in self.rules.items():
            for number in range(len(found)):
                self._note_reads(name, number)

    def _note_reads(self, name: str, number: int) -> None:
        for on in relations_read(self.rules[name][number]):
            self.readers.setdefault(on, {}).setdefault(name, set()).add(number)

    def push(self, name: str, stratum: Stratum) -> None:
        """Replace a relation by relations of the rows that its readers ask for, if all ask for some only."""
        pushed = self._decide(name, stratum)
        if pushed is None:
            return
        readers = self._readers(name)
        for group, filters in pushed.groups.items():
            made = self._filtered_rules(pushed, pushed.names[group], filters)
            self.rules[pushed.names[group]] = made
            self.restricted_relations[pushed.names[group]] = replace(pushed.pushable.relation, name=pushed.names[group])
            for number in range(len(made)):
                self._note_reads(pushed.names[group], number)
        del self.rules[name]
        for reader, number in readers:
            self.rules[reader][number] = _redirected(self.rules[reader][number], pushed)
            self._note_reads(reader, number)

    # ------------------------------------------------------------------------------------------------------- deciding

    def _decide(self, name: str, stratum: Stratum) -> _Pushed | None:
        relation, rules = self.program.relations[name], self.rules[name]
        columns = _passing_columns(relation, rules)
        reading = (self.rules[reader][number] for reader, number in self._readers(name))
        uses = [(x.atom, x.body) for rule in reading for x in occurrences(rule.body) if x.atom.relation == name]
        if not all(filters_of(atom, body, columns, lambda _: True) for atom, body in uses):
            return None
        asked = _PushableFilters(relation, columns, cache(lambda: self._dependents(name)), stratum.recursive)
        found = [asked.filters(atom, body) for atom, body in uses]
        if not found or not all(found):
            return None
        fixed, groups = _grouped(found, MAX_CONSTANTS if stratum.recursive else 1)
        exits = [rule for rule in rules if not _reads(rule, name)]
        if not all(groups.values()) or not all(can_filter(r, _columns(f)) for r in exits for f in groups.values()):
            return None
        return _Pushed(asked, fixed, groups, self._names(relation, groups))

    def _readers(self, name: str) -> list[tuple[str, int]]:
        """The rules of other relations that read this one: whose they are, and their numbers."""
        readers = self.readers.get(name, {})
        return [(r, n) for r in sorted(readers) if r != name and r in self.rules for n in sorted(readers[r])]

    def _dependents(self, name: str) -> frozenset[str]:
        found, queue = {name}, [name]
        while queue:
            more = self.readers.get(queue.pop(), {}).keys() - found
            found |= more
            queue += more
        return frozenset(found)

    def _names(self, relation: Relation, groups: Groups) -> dict[Filters, str]:
        names: dict[Filters, str] = {}
        for group, filters in groups.items():
            name = f"{relation.name}{{{show_filters(filters, relation)}}}"
            while name in self.program.relations or name in self.restricted_relations or name in names.values():
                name += "'"
            names[group] = name
        return names

    # --------------------------------------------------------------------------------------------------------- making

    def _filtered_rules(self, pushed: _Pushed, name: str, filters: Filters) -> list[Rule]:
        """The rules of the new relation: exit rules ask the filters, recursive ones read the new relation."""
        old = pushed.pushable.relation
        recursive = [rule for rule in self.rules[old.name] if _reads(rule, old.name)]
        exits = [rule for rule in self.rules[old.name] if not _reads(rule, old.name)]
        if has_given_rows(self.program, old.name):
            exits.append(reading_rule(old))
        asked = (filtered(rule, filters, old.kinds) for rule in exits)
        inner = (replace(rule, body=map_atoms(rule.body, lambda a, _: _renamed(a, old.name, name))) for rule in recursive)
        suffix = f"  [{show_filters(filters, old)}]"
        made = [*(rule for rule in asked if rule is not None), *inner]
        return [replace(rule, head=replace(rule.head, relation=name), text=rule.text + suffix) for rule in made]


def _passing_columns(relation: Relation, rules: Iterable[Rule]) -> frozenset[int]:
    """The columns that pass through the recursion of a relation with these rules: all, if there is none."""
    columns = frozenset(range(relation.arity))
    for rule in rules:
        recursive = [x.atom for x in occurrences(rule.body) if x.atom.relation == relation.name]
        if len(recursive) > 1:
            return frozenset()
        for atom in recursive:
            columns &= _passing(rule.head, atom)
    return columns


def _passing(head: Head, recursive: Atom) -> frozenset[int]:
    """The columns where the head has the variable of the recursive atom."""
    pairs = enumerate(zip(head.args, recursive.args, strict=True))
    return frozenset(c for c, (a, b) in pairs if isinstance(a, Variable) and a == b)


def _grouped(found: list[Filters], most: int) -> tuple[frozenset[int], Groups]:
    """The columns for which all readers ask one constant each, and the filters that readers with the same constants share."""
    constants = [frozenset(f.column for f in filters if f.is_constant) for filters in found]
    fixed = frozenset.intersection(*constants)
    if len({_constants(filters, fixed) for filters in found}) > most:
        fixed = frozenset()
    groups: dict[Filters, Filters] = {}
    for filters in found:
        key = _constants(filters, fixed)
        groups[key] = groups.get(key, filters) & filters
    return fixed, {key: frozenset(in_order(filters)[:MAX_FILTERS]) for key, filters in groups.items()}


def _constants(filters: Filters, columns: frozenset[int]) -> Filters:
    return frozenset(f for f in filters if f.is_constant and f.column in columns)


def _columns(filters: Filters) -> frozenset[int]:
    return frozenset(f.column for f in filters)


def _reads(rule: Rule, name: str) -> bool:
    return name in relations_read(rule)


# --------------------------------------------------------------------------------------------------------------- making


def _renamed(atom: Atom, old: str, new: str) -> Atom:
    return replace(atom, relation=new) if atom.relation == old else atom


def _redirected(rule: Rule, pushed: _Pushed) -> Rule:
    """A reader's rule that reads the new relations, without the literals that hold for all their rows anyway."""
    name = pushed.pushable.relation.name

    def change(atom: Atom, body: Body) -> Atom:
        return replace(atom, relation=pushed.names[pushed.group_of(atom, body)]) if atom.relation == name else atom

    idle = _idle(rule.body, pushed)
    body = map_atoms(rule.body, change)
    return replace(rule, body=tuple(new for new, old in zip(body, rule.body, strict=True) if old not in idle))


def _idle(body: Body, pushed: _Pushed) -> list[Literal]:
    """Pushed literals about a variable that no atom mentions but the one for which they are pushed, which then says as much;
    for others they may be filters too. Those inside aggregates stay, for a positive one may count its matches."""
    pushed_for = {
        i: tests_of(atom, body, pushed.groups[pushed.group_of(atom, body)])
        for i, atom in enumerate(body)
        if isinstance(atom, Atom) and atom.relation == pushed.pushable.relation.name
    }
    candidates = [x for tests in pushed_for.values() for x in tests]
    readers = [x for x in body if isinstance(x, Atom | Negation | Aggregate) and x not in candidates]
    mentions = Counter(v for x in readers for v in set(literal_variables(x)))
    return [x for x in candidates if all(mentions[v] == 1 for v in literal_variables(x))]
