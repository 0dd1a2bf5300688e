"""A graph in numbers, as the relations that programs of the library read."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dlog.dataclass import dataclass
from dlog.graphs.mistakes import bad_weight, missing_column, negative_weight
from dlog.graphs.names import Codes
from dlog.graphs.running import Columns

Form = Literal["plain", "numbered"]
"""How edges are rows: by their ends, so that parallel ones are one, or with a number of their own."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Vertices 0 to `vertices` - 1, and edges from `src[i]` to `dst[i]`, whose numbers are `numbers[i]` and whose attributes
    are in the i-th row of a table."""

    vertices: int
    src: Codes
    dst: Codes
    numbers: Codes
    attributes: pa.Table = field(repr=False)
    directed: bool = True

    def vertex(self) -> Columns:
        """The relation of vertices."""
        return (np.arange(self.vertices),)

    def edge(self, form: Form, weight: str | None = None) -> Columns:
        """The relation of edges, with a column of weights if one is named."""
        ends: Columns = (self.src, self.dst) if form == "plain" else (self.numbers, self.src, self.dst)
        return ends if weight is None else (*ends, weights(self.attributes, weight))

    def random_order(self, seed: int) -> Codes:
        """A number for each vertex, all of them different and in an order that only the seed decides."""
        return mixed(np.arange(self.vertices), seed)


def weights(attributes: pa.Table, column: str) -> NDArray[Any]:
    """A column of weights as int64 or float64; DlogError if it is none."""
    if column not in attributes.column_names:
        raise missing_column("edge", column, attributes.column_names)
    values = attributes[column]
    if values.null_count:
        raise bad_weight(column, "has nulls")
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_integer(values.type):
        try:
            return np.asarray(values.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:
            raise bad_weight(column, "has integers of 2^63 and more") from None
    if not pa.types.is_floating(values.type):
        raise bad_weight(column, f"is of type {values.type}")
    floats = values.cast(pa.float64())
    if pc.any(pc.is_nan(floats)).as_py():
        raise bad_weight(column, "has values that are not numbers")
    return np.asarray(floats.to_numpy())


def check_not_negative(column: str, values: NDArray[Any]) -> None:
    """DlogError for the least weight if it is below zero."""
    if len(values) and values.min() < 0:
        raise negative_weight(column, values.min().item())


def mixed(numbers: Codes, seed: int) -> Codes:
    """Different numbers for different numbers, scattered over all of int64: SplitMix64 (G. L. Steele, D. Lea and C. H. Flood,
    Fast Splittable Pseudorandom Number Generators, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z ^= np.uint64(seed % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)
