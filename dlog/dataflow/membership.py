"""Whether a value is one of some: `is_in`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.dates import numbers_of_dates
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import Valued, Values
from dlog.dataflow.operations import Given, Operation
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import among_texts
from dlog.dataflow.texts import OfTexts


@dataclass(frozen=True, slots=True, eq=False)
class Among(Operation):
    """Whether it is one of some values, as `==` compares with each."""

    wanted: tuple[Any, ...]

    def kind(self, schema: Schema, given: Given) -> Kind:
        self.of_kind(given[0].kind(schema))
        return bool

    def of_kind(self, kind: Kind) -> list[Any]:
        """The values as a column of a kind has them: dates and times are numbers there. Raises DlogError for those of
        another kind."""
        if kind is object:
            return list(self.wanted)
        dates = numbers_of_dates(list(self.wanted)) if kind is int and self.wanted else None
        if dates is not None:
            return [int(number) for number in dates]
        wanted = [each.item() if isinstance(each, np.generic) else each for each in self.wanted]
        fitting = (str,) if kind is str else (int, float, bool)
        for each in wanted:
            if type(each) not in fitting or (type(each) is int and not -(2**63) <= each < 2**63):
                raise bad_argument("values", f"values that a column of {kind.__name__} may have", each)
        return wanted

    def values(self, schema: Schema, given: Given) -> Values:
        kind = given[0].kind(schema)
        if kind is str:
            return self._of_texts().values(schema, given)
        wanted = self.of_kind(kind)
        if kind is object:
            words = given[0].words(schema)
            return lambda frame: np.isin(words(frame), frame.objects.known(wanted))
        values, whole = given[0].values(schema), kind is not float and not any(isinstance(each, float) for each in wanted)
        dtype = np.dtype(np.int64 if whole else np.float64)
        among = np.array(wanted, dtype)
        return lambda frame: np.isin(np.asarray(values(frame), dtype), among)

    def words(self, schema: Schema, given: Given) -> Values | None:
        return self._of_texts().words(schema, given) if given[0].kind(schema) is str else None

    def _of_texts(self) -> OfTexts:
        """The same of texts."""
        return OfTexts(among_texts(self.of_kind(str)), "")

    def shown(self, given: Given) -> str:
        return f"{given[0]!r}.is_in({list(self.wanted)!r})"


def listed(values: Any) -> tuple[Any, ...]:
    """The values of `is_in`. Raises DlogError for what are none."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
        raise bad_argument("values", "a list of values", values)
    found = tuple(values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind != "M" else values)
    for each in found:
        if isinstance(each, Valued):
            raise bad_argument("values", "a list of values, not of expressions", each, "compare with `==`, joined by `|`")
        try:
            hash(each)
        except TypeError:
            raise bad_argument("values", "a list of values that are hashable", each) from None
    return found


