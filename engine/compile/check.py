"""All clauses to typed, normalized rules and facts: each clause is flattened, scoped, checked for types and safety, normalized.

The mistakes of all clauses are reported together.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlog.engine.compile.facts import Row, constant_row, literal_fact
from dlog.engine.compile.normal.disjunction import FlatClause, flatten_clause
from dlog.engine.compile.normal.inline import inlined
from dlog.engine.compile.normal.normalize import normalize
from dlog.engine.compile.problems import Problems
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.safety import check_safety
from dlog.engine.compile.scope import scope
from dlog.engine.compile.typing.subtypes import check_subtypes
from dlog.engine.compile.typing.typecheck import typecheck
from dlog.engine.compile.walk import parts, walk
from dlog.engine.ir.rules import Io, Relation, Rule, Type
from dlog.grammar.source import Source
from dlog.grammar.syntax import Atom


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


def check(resolved: Resolved) -> Checked:
    """Raises DlogError with every mistake of types or safety in any clause."""
    problems = Problems(resolved.source)
    resolved = _without_inline(resolved, problems)
    facts: dict[str, dict[Row, None]] = {}
    rules: list[Rule] = []
    for clause in resolved.clauses:
        row = literal_fact(clause.heads[0], resolved) if clause.body is None and len(clause.heads) == 1 else None
        if row is not None:
            facts.setdefault(clause.heads[0].name, {})[row] = None
            continue
        for flat in flatten_clause(clause, resolved.source, problems):
            rule = _check_clause(flat, resolved, problems)
            row = None if rule is None else constant_row(rule)
            if row is not None:
                facts.setdefault(flat.head.name, {})[row] = None
            elif rule is not None:
                rules.append(rule)
    problems.check()
    rows = {name: tuple(found) for name, found in facts.items()}
    relations = {name: relation for name, relation in resolved.relations.items() if name not in resolved.inline}
    return Checked(resolved.source, resolved.table.types, relations, rows, tuple(rules), resolved.io, resolved.inline)


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


def _check_clause(flat: FlatClause, resolved: Resolved, problems: Problems) -> Rule | None:
    """The clause's rule; None where its body never holds or it has mistakes."""
    before = len(problems)
    scoped = scope(flat, problems)
    if len(problems) == before:
        check_safety(scoped, problems)
    typed = typecheck(scoped, resolved, problems)
    if len(problems) == before:
        check_subtypes(typed, resolved, problems)
    return normalize(typed, problems) if len(problems) == before else None
