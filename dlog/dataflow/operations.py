"""What an expression computes of others, in all rows at once, where that is no operator of Python's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import DeltaFrame, Valued, Values, numeric
from dlog.dataflow.schema import Schema
from dlog.grammar.diagnostics import Diagnostic, DlogError

Given: TypeAlias = Sequence[Valued]
"""What an operation is applied to."""


class Operation(ABC):
    """An operation on values of rows. It is bound to a schema once, as expressions are."""

    @abstractmethod
    def kind(self, schema: Schema, given: Given) -> Kind:
        """Raises DlogError for what it is not for."""

    @abstractmethod
    def values(self, schema: Schema, given: Given) -> Values: ...
    def words(self, schema: Schema, given: Given) -> Values | None:
        """What gives words; None where these are made of the values."""
        return None

    def total(self, schema: Schema, given: Given) -> bool:
        """See `Valued.total`."""
        return numeric(schema, *given) and all(each.total(schema) for each in given)

    @abstractmethod
    def shown(self, given: Given) -> str:
        """It as it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Operation):
    """One value where a condition holds, else another one. A value that may have no outcome (a cast of a text) is worked out
    for the rows alone that have it."""

    def kind(self, schema: Schema, given: Given) -> Kind:
        condition, *branches = (each.kind(schema) for each in given)
        if condition is not bool:
            raise bad_argument("condition", "an expression that is true or false", condition.__name__)
        kinds = set(branches)
        if len(kinds) == 1:
            return branches[0]
        if kinds <= {int, float, bool}:
            return float if float in kinds else int
        names = " and ".join(kind.__name__ for kind in branches)
        raise DlogError(Diagnostic("bad-expression", f"`when` chooses between values of one kind, not {names}"))

    def values(self, schema: Schema, given: Given) -> Values:
        holds, first, second = (each.values(schema) for each in given)
        kind = self.kind(schema, given)
        dtype = np.dtype(object if kind in (str, object) else np.int64 if kind is int else kind)
        if all(each.total(schema) for each in given[1:]):
            return lambda frame: np.where(holds(frame), first(frame), second(frame)).astype(dtype, copy=False)

        def choose(frame: DeltaFrame) -> np.ndarray:
            mask = holds(frame)
            found = np.empty(frame.rows, dtype)
            for chosen, values in ((mask, first), (~mask, second)):
                if chosen.any():
                    found[chosen] = values(frame.only(chosen))
            return found

        return choose

    def shown(self, given: Given) -> str:
        condition, first, second = given
        return f"when({condition!r}).then({first!r}).otherwise({second!r})"


class Absolute(Choice):
    """A number without its sign: of a negative one, which is the condition, 0 less it."""

    __slots__ = ()

    def kind(self, schema: Schema, given: Given) -> Kind:
        found = given[2].kind(schema)
        if found not in (int, float, bool):
            raise DlogError(Diagnostic("bad-expression", f"there is no `abs` of {found.__name__}: it is for numbers"))
        return super().kind(schema, given)

    def shown(self, given: Given) -> str:
        return f"{given[2]!r}.abs()"
