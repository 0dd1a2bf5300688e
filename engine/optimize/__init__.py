"""Passes over the typed program, before it is planned: same answers in the observed relations, less work.

`PASSES` are run in order, each with the reason for its place. A pass takes a program and the names of its observed relations
and returns a program in which those have exactly the same rows; other relations may lose their rules, so that what is stored
under their names means nothing. What keeps not all of its rows stays as it is, with all of its stratum. Rows of a relation with
rules are taken to come from those rules, from facts in the text and from `.input` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dlog.engine.compile.strata.dependencies import relations_read, retained
from dlog.engine.garbage import uncollected
from dlog.engine.ir.rules import Program
from dlog.engine.optimize.demand import demand_as_asked
from dlog.engine.optimize.drop_redundant_rules import drop_redundant_rules
from dlog.engine.optimize.linearize import linearize
from dlog.engine.optimize.prune import prune
from dlog.engine.optimize.push_filters import push_filters
from dlog.engine.optimize.replace_copies import replace_copies
from dlog.grammar.diagnostics import InternalError

Pass: TypeAlias = Callable[[Program, frozenset[str]], Program]

PASSES: Final[tuple[tuple[Pass, str], ...]] = (
    (prune, "first: a reader whose rows nobody sees would keep filters out of what it reads"),
    (linearize, "before copies are replaced: steps are often those of another relation; linear recursion lets filters through"),
    (demand_as_asked, "before copies are replaced: only relations that a pragma or a declaration names, by their own names"),
    (replace_copies, "before filters are pushed: what a copy's readers ask for, they ask its original for"),
    (drop_redundant_rules, "originals in the place of copies may leave rules that say the same, or nothing"),
    (push_filters, "last to rewrite: each further rule would be a reader to consider"),
    (prune, "again: a rule whose pushed filter never holds is gone, and with it the need for what it read"),
)


@uncollected
def optimize(program: Program, observed: frozenset[str]) -> Program:
    """The program after all passes: the `observed` relations have the same rows as before."""
    kept = observed | retained(program)
    for run, _ in PASSES:
        before, program = program, run(program, observed if run is prune else kept)
        if program is not before:
            _check(before, program, run.__name__)
    return program


def _check(before: Program, after: Program, name: str) -> None:
    """Checks what holds between passes: relations stay declared, rules mention declared ones, no lattice comes or changes, no
    relation comes to depend on itself through a negation or an aggregate."""
    mentioned = {r for s in after.strata for rule in s.rules for r in (rule.head.relation, *relations_read(rule))}
    unknown = (mentioned | set(before.relations)) - set(after.relations)
    if unknown:
        raise InternalError(f"pass {name}", f"not declared: {', '.join(sorted(unknown))}")
    changed = after.lattices.items() - before.lattices.items()
    if changed:
        raise InternalError(f"pass {name}", f"other lattices: {', '.join(sorted(r for r, _ in changed))}")
    if alternating := after.alternating - before.alternating:
        raise InternalError(f"pass {name}", f"not stratified any more: {', '.join(sorted(alternating))}")


def defined(program: Program) -> frozenset[str]:
    """The relations that have a stratum: those that evaluation computes."""
    return frozenset(name for stratum in program.strata for name in stratum.relations)
