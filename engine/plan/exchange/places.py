"""Placement of rows when several workers run one program: each relation is cut by the value of one of its columns.

A row of a relation whose home is column c belongs to the worker that owns the value there. `ROOT` puts a relation on one
worker: relations without columns, and lattices whose only column is the value. A `Copy` is a second cut of a relation by
another column, or the whole of it on every worker.

Where so many rows have one value in the home column that their owner would have much more than the others, these rows are
spread over all workers, by all of their columns; who looks for them asks all (DeWitt, Naughton, Schneider and Seshadri,
Practical Skew Handling in Parallel Joins, VLDB 1992).

Sources: the placement is that of parallel semi-naive evaluation (Wolfson and Silberschatz 1988; Ganguly, Silberschatz and Tsur
1990); a home that every recursive rule passes on unchanged is BigDatalog's decomposable plan (Shkapsky et al., SIGMOD 2016).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Aggregate, Atom, Program, Rule, Stratum, Variable
from dlog.engine.ir.traversal import positive_atoms
from dlog.engine.plan.exchange.home_search import Charge, cheapest_homes, mentioned, possible

Place = int
"""A column, or one of the places below."""
ROOT: Place = -1
"""The first worker."""
EVERYWHERE: Place = -2
"""All workers."""
SELF: Place = -3
"""The worker that has it."""
SOME: Place = -4
"""Up to one row of each worker, on all workers: whether there is any."""

Heavy = tuple[int, ...]
"""Hashes of values that so many rows have in a column that no worker should have all of these."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The rows of a relation at another place."""

    relation: str
    place: Place

    @property
    def name(self) -> str:
        where = {ROOT: "root", EVERYWHERE: "all", SOME: "some"}.get(self.place, f"by {self.place}")
        return f"@{self.relation} {where}"


def choose_homes(program: Program) -> dict[str, Place]:
    """A home for every relation of the program: one that recursion passes on where there is one, else the column that most
    joins go through."""
    wanted = _join_columns(program)
    homes = {name: _favourite(program, name, wanted) for name in program.relations}
    for stratum in program.strata:
        if stratum.recursive:
            homes.update(_decomposed(stratum, program) or {})
    return homes


def inherited(stratum: Stratum, home: Place, heavy: Callable[[str, int], Heavy]) -> Heavy:
    """The heavy values to expect at the home of a stratum's one relation, which is not recursive: those of the columns that its
    rules take the values there from. `heavy` says which a relation has in a column."""
    found: set[int] = set()
    for rule in stratum.rules:
        kept = rule.head.args[home]
        if any(isinstance(literal, Aggregate) for literal in rule.body):
            return ()
        for atom in (literal for literal in rule.body if isinstance(literal, Atom)):
            for column, term in enumerate(atom.args):
                if isinstance(kept, Variable) and term == kept:
                    found.update(heavy(atom.relation, column))
    return tuple(sorted(found))


def allowed(program: Program, name: str) -> list[Place]:
    """The columns a relation may be cut by."""
    lattice = program.lattices.get(name)
    value = None if lattice is None else lattice.column
    return [c for c in range(program.relations[name].arity) if c != value] or [ROOT]


def columns(program: Program, name: str) -> list[Place]:
    """The columns a relation may be cut by where it is not to be on one worker."""
    return [place for place in allowed(program, name) if place != ROOT]


def _favourite(program: Program, name: str, wanted: Mapping[str, Counter[int]]) -> Place:
    return max(allowed(program, name), key=lambda c: (wanted[name][c] if name in wanted else 0, -c))


def _join_columns(program: Program) -> dict[str, Counter[int]]:
    """Per relation, how many atoms share the variable in each column with another atom of their body."""
    counts: dict[str, Counter[int]] = {}
    for stratum in program.strata:
        for rule in stratum.rules:
            atoms = list(positive_atoms(rule.body))
            uses = Counter(v for atom in atoms for v in {a for a in atom.args if isinstance(a, Variable)})
            for atom in atoms:
                shared = [c for c, a in enumerate(atom.args) if isinstance(a, Variable) and uses[a] > 1]
                counts.setdefault(atom.relation, Counter()).update(shared)
    return counts


def _decomposed(stratum: Stratum, program: Program) -> dict[str, Place] | None:
    """Homes that every recursive rule of the stratum passes on from body to head, None if there are none."""
    rules = [r for r in stratum.rules if any(a.relation in stratum.relations for a in positive_atoms(r.body))]
    choices = {name: columns(program, name) for name in stratum.relations}
    return cheapest_homes(choices, [Charge(mentioned(rule, choices), partial(_passes_on, rule)) for rule in rules])


def _passes_on(rule: Rule, homes: Mapping[str, Place]) -> float:
    kept = rule.head.args[homes[rule.head.relation]]
    return possible(
        isinstance(kept, Variable)
        and all(a.args[homes[a.relation]] == kept for a in positive_atoms(rule.body) if a.relation in homes)
    )
