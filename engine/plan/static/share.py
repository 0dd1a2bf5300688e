"""share_arrangements: a half-join reads an extension's sorted arrangement where there is one by the same key.

    half_join edge[0]; extend edge[0; 1]    becomes    half_join edge[0; 1]; extend edge[0; 1]
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from dlog.engine.ir.nodes import Arrangement, HalfJoin, Path, Scope, Step, arrangements


def share_arrangements(scope: Scope) -> Scope:
    """The same scope over as few arrangements as its lookups allow."""
    sorted_ones = {(a.relation, a.key): a for a in reversed(arrangements(scope)) if a.order}
    if not sorted_ones:
        return scope
    return replace(
        scope,
        stages=tuple(tuple(_path(p, sorted_ones) for p in stage) for stage in scope.stages),
        enter=tuple(_path(p, sorted_ones) for p in scope.enter),
        loop=tuple(_path(p, sorted_ones) for p in scope.loop),
    )


def _path(path: Path, sorted_ones: dict[tuple[str, tuple[int, ...]], Arrangement]) -> Path:
    steps = tuple([_step(s, sorted_ones) for s in path.steps])
    return path if all(map(is_, steps, path.steps)) else replace(path, steps=steps)


def _step(step: Step, sorted_ones: dict[tuple[str, tuple[int, ...]], Arrangement]) -> Step:
    if not isinstance(step, HalfJoin):
        return step
    own = step.arrangement
    shared = sorted_ones.get((own.relation, own.key), own)
    return step if shared == own else replace(step, arrangement=shared)
