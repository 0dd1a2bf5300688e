"""Ranks of rows where no engine has kept them: the iteration at which a recursive stratum derives each, from its rules and its
rows as they are in the end. An iteration reads what the one before added, beside what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dlog.codec import Codec
from dlog.engine.compile.strata.thresholds import mentioned as relations_of
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Aggregate, Atom, Kind, Lattice, Literal, Rule, Stratum
from dlog.engine.values.table import typed
from dlog.proofs.forms import forms_of
from dlog.proofs.solve import Below, Relations, Solver
from dlog.proofs.stored import NEVER, Stored
from dlog.proofs.terms import Frame, Terms

Rows = list[np.ndarray]


def derive_ranks(
    stratum: Stratum,
    lower: Relations,
    given: Mapping[str, Stored],
    codec: Codec,
    tables: Mapping[str, Stored],
    alternating: bool,
) -> dict[str, Stored]:
    """The relations of a stratum with the rank of each row; `tables` are the rows, `given` those that are facts. Ranks of an
    alternating one are those of its last pass, whose negations and aggregates read all rows."""
    found = {n: Stored(t.columns, t.rows, np.full(t.rows, NEVER, np.int32)) for n, t in tables.items()}
    for name, facts in given.items():
        _note(found[name], list(facts.columns), facts.rows, 0)
    own = frozenset(found)

    def relations(name: str) -> Stored:
        return found[name] if name in own else lower(name)

    def before(rank: int) -> Below:
        return Below(own, rank, inside=not alternating)

    counting = [rule for rule in stratum.rules if own & relations_of(x for x in rule.body if isinstance(x, Aggregate))]
    others = [rule for rule in stratum.rules if rule not in counting]
    derived = [(rule, [a for a in rule.body if isinstance(a, Atom) and a.relation in own]) for rule in others]
    for rule, atoms in derived:
        if not atoms:
            for rows, count in _heads(rule, rule.body, Frame(1), Solver(relations, Terms(codec, rule.kinds))):
                _note(found[rule.head.relation], rows, count, 0)
    rank = 0
    while True:
        for rule in counting:
            solver = Solver(relations, Terms(codec, rule.kinds), before(rank))
            for rows, count in _heads(rule, rule.body, Frame(1), solver):
                _note(found[rule.head.relation], rows, count, rank)
        if not any((_ranks(table) == rank).any() for table in found.values()):
            return found
        rank += 1
        for rule, atoms in derived:
            solver = Solver(relations, Terms(codec, rule.kinds), before(rank))
            for atom in atoms:
                rest = [x for x in rule.body if x is not atom]
                for frame in _newest(atom, found[atom.relation], rank - 1, solver):
                    for rows, count in _heads(rule, rest, frame, solver):
                        _note(found[rule.head.relation], rows, count, rank)


def _ranks(table: Stored) -> np.ndarray:
    assert table.ranks is not None
    return table.ranks


def _newest(atom: Atom, table: Stored, rank: int, solver: Solver) -> Iterator[Frame]:
    """The atom, matched with the rows of one rank."""
    newest = np.flatnonzero(_ranks(table) == rank)
    some = Stored([column[newest] for column in table.columns], len(newest))
    yield from Solver(lambda _: some, solver.terms).step(atom, Frame(1))


def _heads(rule: Rule, body: Sequence[Literal], frame: Frame, solver: Solver) -> Iterator[tuple[Rows, int]]:
    """The rows of a rule's head for the solutions of its body."""
    for piece in solver.solutions(body, frame):
        mask = np.ones(piece.rows, bool)
        columns = []
        for term in rule.head.args:
            column, has_value = solver.terms.value(term, piece)
            columns.append(column)
            mask &= has_value
        yield [column[mask] for column in columns], int(mask.sum())


def _note(table: Stored, rows: Rows, count: int, rank: int) -> None:
    """Gives rows their rank unless they have a smaller one."""
    ranks = _ranks(table)
    for _, places in table.pairs(tuple(range(len(table.columns))), rows, count):
        ranks[places] = np.minimum(ranks[places], rank)


# ----------------------------------------------------------------------------------------------------------------- lattices


def derive_lattice(
    stratum: Stratum, lattice: Lattice, lower: Relations, kinds: Sequence[Kind], codec: Codec
) -> dict[str, Stored]:
    """The rows that a lattice ever had, those included that better ones replaced, with the iteration at which each came.

    Where a value is capped (`min(b, 5)` under a `max`), the final rows alone may support each other in a circle: what came
    first was a value that is gone."""
    name = lattice.relation
    history = Stored([np.empty(0, np.int64) for _ in kinds], 0, np.empty(0, np.int32))
    bodies = [(rule, form) for rule in stratum.rules for form in forms_of(rule, frozenset({name}))]

    def relations(wanted: str) -> Stored:
        return history if wanted == name else lower(wanted)

    rank = 0
    while True:
        parts: list[Rows] = [list(history.columns)]
        for rule, form in bodies:
            solver = Solver(relations, Terms(codec, form.kinds))
            parts += [rows for rows, count in _heads(rule, form.body, Frame(1), solver) if count]
        columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
        better = _improved(columns, history.rows, lattice, kinds)
        if not len(better):
            return {name: history}
        rows = history.rows + len(better)
        ranks = np.concatenate((_ranks(history), np.full(len(better), rank, np.int32)))
        kept = np.concatenate((np.arange(history.rows), better))
        history = Stored([column[kept] for column in columns], rows, ranks)
        rank += 1


def _improved(columns: Rows, held: int, lattice: Lattice, kinds: Sequence[Kind]) -> np.ndarray:
    """The places behind the first `held` rows of values that are better than those held for the same key, the best of each."""
    keys = [column for c, column in enumerate(columns) if c != lattice.column]
    values = np.unique(typed(columns[lattice.column], kinds[lattice.column]), return_inverse=True)[1]
    goodness = values if lattice.dominance is Dominance.LEAST else -values
    order = np.lexsort((np.arange(len(values)), goodness, *keys[::-1]))  # of equal values the one held comes first
    starts = np.zeros(len(order), bool)
    starts[:1] = True
    for column in keys:
        starts[1:] |= np.diff(column[order]) != 0
    chosen = order[starts]
    return chosen[chosen >= held]
