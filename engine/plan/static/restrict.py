"""restrict: an arrangement of a feedback relation holds only rows that its readers can use.

    changes points_to(p, o); join points_to[1](y, p) at neu; join load[1](x, y)  ~0.13 rows each
    becomes
    changes points_to(p, o); join points_to[1 | load[1]](y, p) at neu; join load[1](x, y)

Where a later step looks a variable that a half-join binds up in a relation that does not change, and finds something for few
values only, the half-join reads an arrangement of the rows with these values: it is smaller, and what it leaves out need not be
walked for every change. The promise is a hint, for the later step drops the same rows. Lattices stay whole: a row that is left
out for its value may get another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from dlog.engine.ir.nodes import HalfJoin, Only, Path, Scope, Step
from dlog.engine.ir.rules import Variable

MAX_MATCHES_PER_ROW: Final = 0.5
"""Matches of the later step per row below which an arrangement of its own pays: trades building it against looking rows up in
vain."""


def restrict(scope: Scope) -> Scope:
    """The same scope; the arrangements of feedback relations that its loop reads hold no rows that lead nowhere."""
    variables = frozenset(scope.variables)
    lattices = frozenset(lattice.relation for lattice in scope.lattices)
    return replace(scope, loop=restrict_paths(scope.loop, variables, lattices))


def restrict_paths(paths: Iterable[Path], variables: frozenset[str], lattices: frozenset[str]) -> tuple[Path, ...]:
    """The same for paths of a loop in which these relations grow."""
    return tuple(_restricted(path, variables, lattices) for path in paths)


def _restricted(path: Path, variables: frozenset[str], lattices: frozenset[str]) -> Path:
    return replace(path, steps=tuple(_step(s, path.steps[at + 1 :], variables, lattices) for at, s in enumerate(path.steps)))


def _step(step: Step, later: Sequence[Step], variables: frozenset[str], lattices: frozenset[str]) -> Step:
    if not isinstance(step, HalfJoin) or step.arrangement.relation not in variables - lattices:
        return step
    columns = {variable: column for column, variable in step.binds}
    tests = [
        (after.rows, Only(columns[after.key[0].id], after.arrangement.relation, after.arrangement.key[0]))
        for after in later
        if isinstance(after, HalfJoin) and after.arrangement.relation not in variables and len(after.key) == 1
        if isinstance(after.key[0], Variable) and after.key[0].id in columns and after.rows < MAX_MATCHES_PER_ROW
    ]
    if not tests:
        return step
    return replace(step, arrangement=replace(step.arrangement, only=min(tests, key=lambda t: t[0])[1]))
