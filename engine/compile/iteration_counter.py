"""`recursive_iteration_cnt()`: the number of the iteration, as a relation with one row that changes from one to the next.

    r(x + 1) :- r(x), recursive_iteration_cnt() < 100.
    ->  r(x + 1) :- r(x), n < 100, recursive_iteration_cnt(n).

Rules that read it are evaluated iteration by iteration; outside of recursion it is 0.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.walk import map_body, map_term, parts, walk
from dlog.engine.ir.rules import ITERATION_COUNTER
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import Source
from dlog.grammar.syntax import And, Atom, Attribute, Body, Call, Clause, Program, RelationDecl, Term, Variable


def with_counter(program: Program, source: Source) -> Program:
    """The program that reads the number from the relation, which it declares."""
    if ITERATION_COUNTER not in source.text:
        return program
    changed = tuple(_counting(i) if isinstance(i, Clause) and type(i) is not LiteralFact else i for i in program.items)
    if all(new is old for new, old in zip(changed, program.items, strict=True)):
        return program
    decl = RelationDecl((ITERATION_COUNTER,), (Attribute("n", "unsigned"),))
    return replace(program, items=(decl, *changed))


def _counting(clause: Clause) -> Clause:
    if not any(_is_counter(n) for part in parts(clause) for n in walk(part)):
        return clause
    variable = Variable(f"_@{ITERATION_COUNTER}")

    def change(term: Term) -> Term | None:
        return replace(variable, span=term.span) if _is_counter(term) else None

    heads = tuple(replace(h, args=tuple(map_term(a, change) for a in h.args)) for h in clause.heads)
    counter: Body = Atom(ITERATION_COUNTER, (variable,), span=clause.span)
    body = counter if clause.body is None else And((map_body(clause.body, change), counter), span=clause.body.span)
    return replace(clause, heads=heads, body=body)


def _is_counter(node: object) -> bool:
    return isinstance(node, Call) and node.name == ITERATION_COUNTER
