"""Values of one kind as those of another: `cast`. What is no number is refused when it comes; null is none of the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.codec import value_preview
from dlog.dataclass import dataclass
from dlog.dataflow.arrow_texts import object_texts
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import DeltaFrame, Values
from dlog.dataflow.operations import Given, Operation
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import TextFunction
from dlog.dataflow.texts import OfTexts
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = (int, float, bool)
_LARGE = 2.0**63
_FORMS = {int: r"\A[+-]?[0-9]+\z", float: r"\A[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))\z"}
"""What texts of numbers look like, as regular expressions of RE2's."""


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Operation):
    """Numbers as those of another kind, or as texts: floats as the shortest text that reads as the same."""

    wanted: Kind

    def kind(self, schema: Schema, given: Given) -> Kind:
        found = given[0].kind(schema)
        if found is str and self.wanted in _FORMS:
            return self.wanted
        if found is not self.wanted and (found not in NUMBERS or self.wanted is object):
            raise no_cast(found, self.wanted)
        return self.wanted

    def values(self, schema: Schema, given: Given) -> Values:
        if self._parses(schema, given):
            return OfTexts(parsing(self.wanted), "").values(schema, given)
        found, values = given[0].kind(schema), given[0].values(schema)
        if found is self.wanted:
            return values
        if self.wanted is str:
            return lambda frame: _texts(found, values(frame))
        if self.wanted is int and found is float:
            return lambda frame: _whole(values(frame))
        dtype = np.dtype(self.wanted)

        def run(frame: DeltaFrame) -> np.ndarray:
            return np.asarray(values(frame)).astype(dtype)

        return run

    def words(self, schema: Schema, given: Given) -> Values | None:
        if self._parses(schema, given):
            return OfTexts(parsing(self.wanted), "").words(schema, given)
        return None

    def _parses(self, schema: Schema, given: Given) -> bool:
        return given[0].kind(schema) is str and self.wanted is not str

    def total(self, schema: Schema, given: Given) -> bool:
        found = given[0].kind(schema)
        return {found, self.wanted} <= {*NUMBERS} and (found, self.wanted) != (float, int) and given[0].total(schema)

    def shown(self, given: Given) -> str:
        return f"{given[0]!r}.cast({self.wanted.__name__})"


def no_cast(found: Kind, wanted: Kind) -> DlogError:
    note = "numbers are cast to each other and to texts, texts to int and float"
    message = f"there is no cast of {found.__name__} to {wanted.__name__}"
    return DlogError(Diagnostic("bad-expression", message, notes=(note,)))


def parsing(wanted: Kind) -> TextFunction:
    """Texts as numbers. Raises DlogError when one comes that is none."""
    import pyarrow as pa
    import pyarrow.compute as compute

    type = pa.int64() if wanted is int else pa.float64()

    def parse(texts: pa.Array) -> pa.Array:
        good = compute.match_substring_regex(texts, _FORMS[wanted])
        if compute.all(good).as_py() is False:
            raise _bad(texts.filter(compute.invert(good))[0].as_py(), wanted)
        plain = compute.utf8_ltrim(texts, "+") if wanted is int else texts
        try:
            return plain.cast(type)
        except pa.ArrowInvalid:
            raise _bad(_too_large(texts), wanted) from None

    return TextFunction("cast", (wanted,), wanted, parse)


def _too_large(texts: pa.Array) -> str:
    """One of some whole numbers that is beyond 64 bits."""
    found: list[str] = texts.to_pylist()
    return next(each for each in found if not -(2**63) <= int(each) < 2**63)


def _whole(values: np.ndarray) -> np.ndarray:
    """Floats as whole numbers, towards zero."""
    good = (values >= -_LARGE) & (values < _LARGE)
    if not good.all():
        raise _bad(float(values[~good][0]), int)
    return values.astype(np.int64)


def _texts(kind: Kind, values: np.ndarray) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as compute

    found = pa.array(values + 0.0 if kind is float else values).cast(pa.string())
    if kind is float:
        whole = compute.match_substring_regex(found, r"\A-?[0-9]+\z")
        found = compute.if_else(whole, compute.binary_join_element_wise(found, ".0", ""), found)
    return object_texts(found)


def _bad(value: Any, wanted: Kind) -> DlogError:
    notes = (
        'leave such rows out before: `rows.filter(col("x").str.contains("^[0-9]+$")).map(x=col("x").cast(int))`',
        "a cast in a branch of `when` is made for the rows alone that have that branch",
    )
    return DlogError(Diagnostic("bad-cast", f"{value_preview(value)} is no {wanted.__name__}", notes=notes))
