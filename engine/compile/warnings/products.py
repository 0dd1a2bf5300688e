"""Bodies whose atoms have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.compile.walk import outside_aggregates, variables
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.syntax import And, Atom, Body, Clause, Directive, Or, Program, RelationDecl


def unconnected_atoms(clause: Clause, single: frozenset[str]) -> Iterator[Diagnostic]:
    """A warning for each conjunction of the body whose atoms fall into several groups without a common variable. An atom
    without variables, or of one of the `single` relations, is a condition or gives constants; a comparison, an aggregate or a
    negation connects what it mentions."""
    for conjunction in _conjunctions(clause.body):
        groups = [atoms for atoms in _groups(conjunction) if any(atom.name not in single for atom in atoms)]
        if len(groups) > 1:
            first, *others = (atoms[0] for atoms in groups)
            message = f"every row of `{first.name}` is combined with every row of `{others[0].name}`: they share no variable"
            labels = [Label(first.span), *(Label(other.span, "has nothing in common with it") for other in others)]
            yield Diagnostic("cross-product", message, tuple(labels))


def single_rows(tree: Program) -> frozenset[str]:
    """The relations with at most one row: one fact, or one rule without atoms but in aggregates, and no input."""
    given: set[str] = set()
    clauses: dict[str, list[Clause]] = {}
    for item in tree.items:
        if type(item) is LiteralFact:
            clauses.setdefault(item.name, []).append(item)
        elif isinstance(item, RelationDecl) and "input" in item.qualifiers:
            given.update(item.names)
        elif isinstance(item, Directive) and item.kind == "input":
            given.update(item.relations)
        elif isinstance(item, Clause):
            for head in item.heads:
                clauses.setdefault(head.name, []).append(item)
    return frozenset(name for name, own in clauses.items() if len(own) == 1 and _has_one_row(own[0])) - given


def _has_one_row(clause: Clause) -> bool:
    """Whether a clause derives one row at most: a witness of a minimum may have several values."""
    if clause.body is None:
        return len(clause.heads) == 1
    nodes = list(outside_aggregates(clause.body))
    return len(clause.heads) == 1 and not any(isinstance(n, Atom | Or) or getattr(n, "op", "") in ("min", "max") for n in nodes)


def _conjunctions(body: Body | None) -> Iterator[And]:
    """Those outside negations and aggregates, from the outermost on."""
    if isinstance(body, And):
        yield body
        for part in _parts(body):
            yield from _conjunctions(part)
    elif isinstance(body, Or):
        for part in body.parts:
            yield from _conjunctions(part)


def _groups(conjunction: And) -> list[list[Atom]]:
    """The atoms of a conjunction that have variables, by connection; groups and atoms are in the order of the text."""
    connected: dict[str, str] = {}
    atoms: list[tuple[str, Atom]] = []
    for part in _parts(conjunction):
        names = {variable.name for variable in variables(part)}
        for name in names:
            connected.setdefault(name, name)
        roots = {_root(connected, name) for name in names}
        for root in roots:
            connected[root] = min(roots)
        if names and isinstance(part, Atom):
            atoms.append((min(names), part))
    groups: dict[str, list[Atom]] = {}
    for name, atom in sorted(atoms, key=lambda pair: pair[1].span.start):
        groups.setdefault(_root(connected, name), []).append(atom)
    return list(groups.values())


def _root(connected: dict[str, str], name: str) -> str:
    """The variable that stands for all which one is connected with; halves the way there."""
    while (above := connected[name]) != name:
        connected[name] = name = connected[above]
    return name


def _parts(conjunction: And) -> Iterator[Body]:
    """The literals of a conjunction, those of conjunctions in parentheses included."""
    for part in conjunction.parts:
        if isinstance(part, And):
            yield from _parts(part)
        else:
            yield part
