"""Checks proofs without the code that makes them: each row is an instance of its rule's head whose body the premises satisfy,
facts are facts, and no row needs itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dlog.grammar import syntax
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.proofs import Aggregated, Premise, Proof
from tests.naive import _Evaluation
from tests.naive_bodies import used_relations

Row = tuple[Any, ...]


class Refuted(AssertionError):
    """The proof proves nothing."""


def check(
    proof: Proof, text: str, rows: Mapping[str, Iterable[Row]], facts: Mapping[str, Iterable[Row]], circles: bool = False
) -> int:
    """Raises `Refuted`; returns how many rows were checked. `rows` are all relations, `facts` what was put in. `circles`: rows
    may need each other, as where passes settle on some that do."""
    tree = parse(Source(text))
    declared = tuple(item for item in tree.items if not isinstance(item, syntax.Clause))
    texts = [fact for item in tree.items if isinstance(item, syntax.Clause) and item.body is None for fact in item.heads]
    checked = list(proof)
    for node in checked:
        if node.is_fact:
            if node.row not in set(facts.get(node.relation, ())) and node.relation not in {f.name for f in texts}:
                raise Refuted(f"{node!r} is no fact")
        elif node.row not in _derivable(node, declared, rows):
            raise Refuted(f"{node!r} does not follow by {node.rule}")
    if not circles:
        _check_founded(checked)
    return len(checked)


def _derivable(node: Proof, declared: tuple[syntax.Item, ...], rows: Mapping[str, Iterable[Row]]) -> set[Row]:
    """What the rule gives, once, from the premises and, under negations and aggregates, from whole relations."""
    assert node.rule is not None
    clauses = parse(Source(node.rule)).items
    program = syntax.Program((*declared, *clauses))
    [clause] = [item for item in clauses if isinstance(item, syntax.Clause)]
    whole = {name for name, how in used_relations(clause) if how != "plain"}
    given: dict[str, list[Row]] = {name: list(rows[name]) for name in whole}
    for premise in node.premises:
        if isinstance(premise, Proof) and premise.relation not in whole:
            given.setdefault(premise.relation, []).append(premise.row)
    return _Evaluation(program, given, None).derive({node.relation})[node.relation]


def _check_founded(nodes: list[Proof]) -> None:
    """Takes away rows that need nothing else until none is left."""
    waiting = {node.key: {child.key for child in node.children} for node in nodes}
    while waiting:
        done = {key for key, needs in waiting.items() if not needs & waiting.keys()}
        if not done:
            raise Refuted("rows need each other in a circle")
        waiting = {key: needs for key, needs in waiting.items() if key not in done}


def rows_of(premises: Iterable[Premise]) -> list[tuple[str, Row]]:
    """The rows among premises, those inside aggregates too."""
    found: list[tuple[str, Row]] = []
    for premise in premises:
        match premise:
            case Proof():
                found.append((premise.relation, premise.row))
            case Aggregated(premises=inner):
                found += rows_of(inner)
            case _:
                pass
    return found
