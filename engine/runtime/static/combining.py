"""How the kernels combine the values of a reduction and of a lattice."""

from __future__ import annotations

from dlog.engine.ir.aggregates import AGGREGATES, opcodes_of
from dlog.engine.ir.nodes import Reduction
from dlog.engine.ir.rules import Kind, Lattice
from dlog.engine.kernels.combine import Combine

ORDERS = {
    Kind.NUMBER: Combine.LEAST,
    Kind.UNSIGNED: Combine.LEAST_UNSIGNED,
    Kind.FLOAT: Combine.LEAST_FLOAT,
    Kind.SYMBOL: Combine.TEXT,
}
"""How kernels tell the first of two values."""


def combine_of(reduction: Reduction) -> Combine:
    return Combine[AGGREGATES[reduction.op].opcodes[reduction.columns[len(reduction.keys)]]]


def combine_in(lattice: Lattice, kind: Kind) -> Combine:
    """How values of a kind come together in a lattice; weights, whose bound is looked at where they are at home, add up."""
    return Combine.SUM if lattice.dominance is None else Combine[opcodes_of(lattice.dominance)[kind]]
