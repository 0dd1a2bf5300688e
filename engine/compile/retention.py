"""What a relation keeps of its rows, from the text: clauses of subsumption, choice domains, and `debug_delta`.

    .decl sp(x: number, y: number, c: number)
    sp(x, y, c1) <= sp(x, y, c2) :- c2 < c1.    ->   sp(x, y, c1) :- sp(x, y, c1), sp(x, y, c2), c2 < c1, c1 != c2.

The rule on the right says which rows are dominated: no row dominates itself, so the two must differ somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.grammar.syntax import (
    And,
    Atom,
    Body,
    Clause,
    Constraint,
    Or,
    RelationDecl,
    Subsumption,
    Term,
    Truth,
    Variable,
    Wildcard,
)

ITERATION: Final = ("iteration", Kind.UNSIGNED.value)
"""The last column of a `debug_delta` relation: its name and its type."""


def dominated_clause(subsumption: Subsumption) -> Clause:
    """The clause whose head is the dominated row."""
    left, right = subsumption.dominated, subsumption.dominating
    rows = (_named(left, "less"), _named(right, "greater"))
    equations = [
        Constraint("=", v, t, span=t.span) for atom, row in zip((left, right), rows, strict=True) for v, t in _terms(atom, row)
    ]
    pairs = [(a, b) for a, b in zip(rows[0].args, rows[1].args, strict=False) if a != b]
    differs: list[Body] = [Constraint("!=", a, b, span=left.span) for a, b in pairs]
    distinct = Or(tuple(differs)) if len(differs) > 1 else differs[0] if differs else Truth(False, span=left.span)
    body = And((*rows, *equations, subsumption.body, distinct), span=subsumption.body.span)
    return Clause((rows[0],), body, subsumption.plan, span=subsumption.span)


def _named(atom: Atom, side: str) -> Atom:
    """The atom with a variable for each column."""
    args = (a if isinstance(a, Variable) else Variable(f"_@{side}{n}", span=a.span) for n, a in enumerate(atom.args))
    return Atom(atom.name, tuple(args), span=atom.span)


def _terms(atom: Atom, row: Atom) -> Iterable[tuple[Term, Term]]:
    """The variables that stand for other terms, and those."""
    return ((v, t) for v, t in zip(row.args, atom.args, strict=True) if not isinstance(t, Variable | Wildcard))


def check_subsumption(subsumption: Subsumption, decls: Mapping[str, RelationDecl], problems: Problems) -> bool:
    """Whether the clause compares rows of one relation that can be compared; reports where not."""
    left, right = subsumption.dominated, subsumption.dominating
    if left.name != right.name:
        message = f"a subsumption compares two rows of one relation, but these are of `{left.name}` and `{right.name}`"
        problems.add("subsumption", message, Label(left.span), Label(right.span))
        return False
    decl = decls.get(left.name)
    if decl is None:
        return True  # an unknown relation is reported with all others
    if not decl.attributes:
        message = f"`{left.name}` has no attributes, and so one row at most: nothing dominates it"
        problems.add("subsumption", message, Label(left.span), Label(decl.span, "declared here"))
        return False
    return _allowed(decl, left.name, "a subsumption", Label(left.span), problems)


def _allowed(decl: RelationDecl, name: str, what: str, label: Label, problems: Problems) -> bool:
    """Whether a relation that is declared so may have it."""
    for qualifier in ("inline", "eqrel"):
        if qualifier in decl.qualifiers:
            why = "it has no rows of its own" if qualifier == "inline" else "its classes are kept whole"
            message = f"`{name}` is declared `{qualifier}` and cannot have {what}: {why}"
            problems.add(
                "subsumption" if what == "a subsumption" else "choice-domain", message, label, Label(decl.span, "declared here")
            )
            return False
    return True


def choice_keys(decl: RelationDecl, subsumptive: Iterable[str], problems: Problems) -> tuple[tuple[int, ...], ...]:
    """The keys of the relation's choice domain, each once, as columns."""
    columns = {a.name: n for n, a in enumerate(decl.attributes)}
    found: dict[tuple[int, ...], None] = {}
    for dependency in decl.choice_domain:
        unknown = [k for k in dependency.keys if k not in columns]
        for key in unknown:
            message = f"the choice domain of `{decl.names[0]}` names `{key}`, which is no attribute of it"
            problems.add("choice-domain", message, Label(dependency.span), notes=[suggestion(key, columns)])
        if not unknown:
            found[tuple(sorted({columns[k] for k in dependency.keys}))] = None
    if decl.choice_domain:
        label = Label(decl.choice_domain[0].span)
        _allowed(decl, decl.names[0], "a choice domain", label, problems)
        for name in set(decl.names) & set(subsumptive):
            message = (
                f"`{name}` has a choice domain and a subsumption: whether the first row of a key or the dominating one stays"
            )
            problems.add("choice-domain", f"{message} is not said", label)
    return tuple(found)


def debug_relation(decl: RelationDecl, relations: Mapping[str, Relation], problems: Problems) -> Relation | None:
    """The relation that a `debug_delta` declares: the attributes of the other one, and the iteration."""
    assert decl.debug_delta is not None
    name, of = decl.names[0], decl.debug_delta.relation
    if of not in relations:
        label, notes = Label(decl.debug_delta.span), [suggestion(of, relations)]
        problems.add("unknown-relation", f"unknown relation `{of}` in debug_delta", label, notes=notes)
        return None
    name_of, type_of = ITERATION
    attributes = (*relations[of].attributes, (name_of, Type(type_of, Kind.UNSIGNED)))
    return Relation(name, attributes, decl.name_spans[0] if decl.name_spans else decl.span)
