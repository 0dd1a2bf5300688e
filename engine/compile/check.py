"""All clauses to typed, normalized rules and facts: each clause is flattened, scoped, checked for types and safety, normalized.

The mistakes of all clauses are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from dlog.dataclass import dataclass
from dlog.engine.compile.equivalence import closure_rules
from dlog.engine.compile.facts import FactRows, Row, constant_row
from dlog.engine.compile.lattice_bodies import with_lattice_values
from dlog.engine.compile.lattice_types import extreme
from dlog.engine.compile.normal.disjunction import FlatClause, flatten_clause
from dlog.engine.compile.normal.form_rules import Forms
from dlog.engine.compile.normal.inline import inlined
from dlog.engine.compile.normal.normalize import normalize
from dlog.engine.compile.problems import Problems
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.safety import check_safety
from dlog.engine.compile.scope import scope
from dlog.engine.compile.timed import with_time
from dlog.engine.compile.typing.subtypes import check_subtypes
from dlog.engine.compile.typing.typecheck import typecheck
from dlog.engine.compile.walk import parts, walk
from dlog.engine.ir import rules as ir
from dlog.engine.ir.options import NO_OPTIONS, Options
from dlog.engine.ir.rules import Io, Relation, Retention, Rule, Timed, Type, UserFunctor, reading_rule
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import NOWHERE, Source
from dlog.grammar.syntax import Atom, Clause


@dataclass(frozen=True, slots=True)
class Checked:
    """A typed program before its strata are known: the same promises as `rules.Program`."""

    source: Source
    types: dict[str, Type]
    relations: dict[str, Relation]
    facts: dict[str, tuple[Row, ...]]
    rules: tuple[Rule, ...]
    io: tuple[Io, ...]
    inline: frozenset[str] = frozenset()
    retentions: dict[str, Retention] = field(default_factory=dict)
    options: Options = NO_OPTIONS
    eqrels: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)
    functors: dict[str, UserFunctor] = field(default_factory=dict)
    first_symbols: tuple[str, ...] = ()
    """Those of the program that this one is made of."""
    timed: Mapping[str, Timed] = field(default_factory=dict)
    at_once: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)


def check(resolved: Resolved) -> Checked:
    """Raises DlogError with every mistake of types or safety in any clause."""
    problems = Problems(resolved.source)
    resolved = _without_inline(resolved, problems)
    forms, rows = Forms(resolved), FactRows(resolved)
    rules: list[Rule] = []
    for clause in resolved.clauses:
        if not clause.is_rule and (row := rows.row(clause)) is not None:
            rows.add(clause.name if type(clause) is LiteralFact else clause.heads[0].name, row)
            continue
        for rule in _rules(clause, resolved, problems, forms):
            row = constant_row(rule)
            if row is None:
                rules.append(rule)
            else:
                rows.add(rule.head.relation, row)
    facts = rows.rows()
    retentions = _retentions(resolved, facts, problems)
    table = resolved.table.types
    of_rows = (rule for kept in retentions.values() for rule in (*kept.dominated, *filter(None, (kept.join,))))
    known = resolved.relations, table, resolved.functors, resolved.original, resolved.eqrels
    timing = with_time(rules, of_rows, *known, problems)
    problems.check()
    rules = timing.rules
    relations = {name: relation for name, relation in timing.relations.items() if name not in resolved.inline}
    eqrels = resolved.eqrels & relations.keys()
    rules += [rule for name, relation in relations.items() if name in eqrels for rule in closure_rules(relation)]
    rules += _reading_rules(retentions, rules, relations)
    io, inline = resolved.io, resolved.inline
    kept = retentions, resolved.options, eqrels
    own = resolved.source, table, relations, facts, tuple(rules), io, inline
    return Checked(*own, *kept, functors=resolved.functors, timed=timing.timed, at_once=timing.at_once)


def _retentions(resolved: Resolved, facts: Mapping[str, tuple[Row, ...]], problems: Problems) -> dict[str, Retention]:
    """What relations keep, of those that do not keep every row."""
    dominated: dict[str, list[Rule]] = {}
    for clause in resolved.subsumptions:
        found = [rule for rule in _checked(clause, resolved, problems) if all(isinstance(x, ir.Atom) for x in rule.body[:2])]
        dominated.setdefault(clause.heads[0].name, []).extend(found)  # no row dominates itself
    joins: dict[str, Rule] = {}
    for clause in resolved.joins:
        for rule in _checked_flats(flatten_clause(clause, resolved.source, problems), resolved, problems):
            name = rule.head.relation
            if (one := extreme(rule)) is not None:
                dominated[name] = [one]
            else:
                joins[name] = rule
    logs: dict[str, list[str]] = {}
    for log, name in resolved.logs.items():
        logs.setdefault(name, []).append(log)
    return {
        name: Retention(
            tuple(dominated.get(name, ())),
            resolved.choices.get(name, ()),
            tuple(logs.get(name, ())),
            joins.get(name),
            facts.get(name, ()) if name in resolved.choices else (),
        )
        for name in resolved.relations
        if dominated.get(name) or name in resolved.choices or name in logs or name in joins
    }


def _reading_rules(retentions: Iterable[str], rules: list[Rule], relations: dict[str, Relation]) -> list[Rule]:
    """Rules for the relations that have only rows from outside and do not keep them all: they are evaluated, too."""
    ruled = {rule.head.relation for rule in rules}
    return [reading_rule(relations[name]) for name in retentions if name not in ruled and name in relations]


def _without_inline(resolved: Resolved, problems: Problems) -> Resolved:
    """Bodies for the atoms of inline relations, once the types of all clauses that have to do with these are right."""
    for clause in resolved.clauses if resolved.inline else ():
        if any(isinstance(n, Atom) and n.name in resolved.inline for part in parts(clause) for n in walk(part)):
            for flat in flatten_clause(clause, resolved.source, problems):
                _check_types(flat, resolved, problems)
    problems.check()
    return inlined(resolved, problems)


def _check_types(flat: FlatClause, resolved: Resolved, problems: Problems) -> None:
    before = len(problems)
    typed = typecheck(scope(flat, problems), resolved, problems)
    if len(problems) == before:
        check_subtypes(typed, resolved, problems)


def _rules(clause: Clause, resolved: Resolved, problems: Problems, forms: Forms) -> list[Rule]:
    """The clause's rules; those of another clause of its form where there are some."""
    # inlined bodies have their places from elsewhere, constants may meet values of lattices, or be out of range
    if resolved.inline or resolved.table.short or not clause.is_rule or clause.span == NOWHERE or resolved.lattices.columns:
        return _checked(clause, resolved, problems)
    form = forms.form(clause)
    rules = forms.rules(form, clause)
    if rules is None:
        before = len(problems)
        rules = _checked(clause, resolved, problems)
        if len(problems) == before:
            forms.keep(form, rules)
    return rules


def _checked(clause: Clause, resolved: Resolved, problems: Problems) -> list[Rule]:
    found = flatten_clause(clause, resolved.source, problems)
    flats = (one for flat in found for one in with_lattice_values(flat, resolved.lattices, problems))
    return _checked_flats(flats, resolved, problems)


def _checked_flats(flats: Iterable[FlatClause], resolved: Resolved, problems: Problems) -> list[Rule]:
    found = [_check_clause(flat, resolved, problems) for flat in flats]
    return [rule for rule in found if rule is not None]


def _check_clause(flat: FlatClause, resolved: Resolved, problems: Problems) -> Rule | None:
    """The clause's rule; None where its body never holds or it has mistakes."""
    before = len(problems)
    scoped = scope(flat, problems)
    if len(problems) == before:
        check_safety(scoped, problems)
    typed = typecheck(scoped, resolved, problems)
    if len(problems) == before:
        check_subtypes(typed, resolved, problems)
    return normalize(typed, resolved.table.types, problems) if len(problems) == before else None
