"""Marks of rounds: numbers of the user's own, such as how far the source of the changes has been read.

A state keeps the last one. A history keeps those of its rounds, as changes of a relation that no program can declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from dlog.arguments import whole
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.values.updates import Updates

Marking: TypeAlias = int | Mapping[int, int] | None
"""The mark of a commit, or those of its rounds."""
MARK = "/mark"
RELATION = Relation(MARK, (("mark", Type("number", Kind.NUMBER)),))


def marks_of(given: Any, first: int, last: int) -> Updates | None:
    """The marks of the rounds from `first` to `last`, of which there is a number or a number for some. Raises DlogError for
    others."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return _updates({last: _number(given)})
    if not given:
        return None
    meant = f"numbers of 64 bits by rounds {first} to {last}"
    return _updates({whole("mark", round, first, meant, last): _number(number) for round, number in sorted(given.items())})


def _number(given: Any) -> int:
    return whole("mark", given, -(2**63), "a number of 64 bits", 2**63 - 1)


def _updates(by_round: Mapping[int, int]) -> Updates:
    rounds, marks = (np.array(list(each), np.int64) for each in (by_round, by_round.values()))
    return Updates((marks,), np.ones(len(marks), np.int64), rounds)
