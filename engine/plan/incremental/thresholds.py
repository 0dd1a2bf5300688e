"""Recursion through a `count` or `sum` that is compared with a bound (compile/strata/thresholds) becomes rules with weights.

    removed(v) :- vertex(v), count : { edge(v, u), !removed(u) } < 3.

holds where more neighbours are removed than the degree less 3:

    removed%1 rows(v, u) :- vertex(v), edge(v, u), removed(u).
    removed%1 bounds(v, b) :- vertex(v), b = count : { edge(v, u) } - 3.
    removed%1(v, b) :- removed%1 rows(v, u), removed%1 bounds(v, b), b >= 0.        each match weighs 1
    removed(v) :- removed%1(v, b).
    removed(v) :- removed%1 bounds(v, b), b < 0.

A row of `removed%1` holds where its matches weigh more than b, its last column. Weights are not negative: a match more never
makes it false, so that the least fixed point is the answer, and over rounds derivations are counted as those of any relation.
An executor of one run keeps the sum in a column of its own (`summed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from itertools import count

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Lattice, Program, Relation, Rule, Stratum, Type
from dlog.engine.plan.incremental.subsumption import separated
from dlog.engine.plan.incremental.threshold_rules import MARK as MARK
from dlog.engine.plan.incremental.threshold_rules import counts, rules_of


def weighted(program: Program) -> Program:
    """The program as engines over rounds keep it: with weights for its recursion through `count` and `sum`, and negation for
    subsumption."""
    return separated(_expanded(program, sums=False))


def summed(program: Program) -> Program:
    """The program with weights for its recursion through `count` and `sum`, as executors of one run keep it."""
    return _expanded(program, sums=True)


def pieces(program: Program, stratum: Stratum) -> tuple[Program, tuple[Stratum, ...]]:
    """The strata that one becomes, with the `weighted` one, and the program with them."""
    made = weighted(replace(program, strata=(stratum,)))
    return made, made.strata


def _expanded(program: Program, sums: bool) -> Program:
    strata: list[Stratum] = []
    relations = dict(program.relations)
    lattices = dict(program.lattices)
    for stratum in program.strata:
        own = set(stratum.relations)
        others = program.lattices.keys() | program.alternating
        if not stratum.recursive or own & others or not any(counts(r, own) for r in stratum.rules):
            strata.append(stratum)
            continue
        made = _Expansion(program, stratum, sums)
        strata += made.strata()
        relations |= made.relations
        lattices |= made.lattices
    if all(made is stratum for made, stratum in zip(strata, program.strata, strict=False)):
        return program
    return replace(program, strata=tuple(strata), relations=relations, lattices=lattices)


@dataclass
class _Expansion:
    """The rules and relations that one stratum becomes."""

    program: Program
    stratum: Stratum
    sums: bool
    relations: dict[str, Relation] = field(default_factory=dict)
    lattices: dict[str, Lattice] = field(default_factory=dict)
    bounds: list[Rule] = field(default_factory=list)

    def strata(self) -> tuple[Stratum, ...]:
        own = set(self.stratum.relations)
        rules: list[Rule] = []
        for rule in self.stratum.rules:
            rules += rules_of(self, rule, own) if counts(rule, own) else [rule]
        before = tuple(Stratum((rule.head.relation,), (rule,), False) for rule in self.bounds)
        inner = [name for name in self.relations if all(name != r.head.relation for r in self.bounds)]
        return (*before, Stratum((*self.stratum.relations, *inner), tuple(rules), True))

    def number(self, head: str) -> str:
        """A name for the groups of one more aggregate of a relation."""
        return next(name for n in count(1) if (name := f"{head}{MARK}{n}") not in self.relations)

    def declare(self, name: str, kinds: Iterable[Kind]) -> None:
        self.relations[name] = Relation(name, tuple((f"c{i}", Type(k.value, k)) for i, k in enumerate(kinds)))
