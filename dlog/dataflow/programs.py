"""What linear operators are as programs over columns (`engine.operators.column_programs`): those of integers and booleans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlog.dataflow.expressions import Binary, Column, Comparison, Expression, Literal, Named
from dlog.dataflow.schema import Schema
from dlog.engine.kernels.codes import ColumnCode
from dlog.engine.operators.column_programs import Building, Node

Extend = Callable[[Building], bool]
"""Adds an operator to a program; false where programs have none like it."""
_CODES = {
    "+": ColumnCode.ADD, "-": ColumnCode.SUBTRACT, "*": ColumnCode.MULTIPLY, "//": ColumnCode.DIVIDE, "%": ColumnCode.REMAINDER,
    "==": ColumnCode.EQUAL, "!=": ColumnCode.DIFFERENT, "<": ColumnCode.LESS, ">": ColumnCode.LESS, "<=": ColumnCode.AT_MOST,
    ">=": ColumnCode.AT_MOST, "&": ColumnCode.AND, "|": ColumnCode.OR,
}  # fmt: skip
"""What instructions do for signs; those of > and >= have their sides in the other order."""
_NUMBERS = (int, bool)


def mapped(chosen: Sequence[Expression], schema: Schema) -> Extend:
    """Columns of these expressions in place of those of a schema."""

    def extend(program: Building) -> bool:
        nodes = _nodes(chosen, schema, program)
        if nodes is not None:
            program.columns = [*nodes, *program.columns[len(schema.names) :]]
        return nodes is not None

    return extend


def kept(condition: Expression, schema: Schema) -> Extend:
    """The updates for which an expression holds."""

    def extend(program: Building) -> bool:
        node = node_of(condition, schema, program)
        if node is not None:
            program.keep(node)
        return node is not None

    return extend


def multiplied(factor: Expression, chosen: Sequence[Expression] | None, schema: Schema) -> Extend:
    """Diffs times an expression; with others, columns of these."""

    def extend(program: Building) -> bool:
        node = node_of(factor, schema, program) if factor.kind(schema) in _NUMBERS else None
        nodes = [] if chosen is None else _nodes(chosen, schema, program)
        if node is None or nodes is None or not program.multiply(node):
            return False
        if chosen is not None:
            program.columns = [*nodes, *program.columns[len(schema.names) :]]
        return True

    return extend


def summed(chosen: Sequence[Expression], weights: Sequence[Expression], schema: Schema) -> Extend:
    """Columns of some expressions, and a component of diffs for each of the others, summed up by row."""

    def extend(program: Building) -> bool:
        nodes, found = _nodes(chosen, schema, program), _nodes(weights, schema, program)
        if nodes is None or found is None or not all(each.kind(schema) in _NUMBERS for each in weights):
            return False
        program.columns, program.weights = nodes, found
        return True

    return extend


def ordered(places: Sequence[int]) -> Extend:
    """The columns at some places."""

    def extend(program: Building) -> bool:
        program.columns = [program.columns[place] for place in places]
        return True

    return extend


def negated(program: Building) -> bool:
    """All diffs with the other sign."""
    program.sign = -program.sign
    return True


def unchanged(program: Building) -> bool:
    """Columns under other names."""
    return True


def _nodes(expressions: Sequence[Expression], schema: Schema, program: Building) -> list[Node] | None:
    nodes = [node_of(each, schema, program) for each in expressions]
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def node_of(expression: Expression, schema: Schema, program: Building) -> Node | None:
    """The words of an expression over columns of a schema, which are the program's; None where programs have none for it."""
    match expression:
        case Column():
            return program.columns[schema.place(expression.name)]
        case Literal():
            return program.number(int(expression.value)) if expression.kind(schema) in _NUMBERS else None
        case Named():
            return node_of(expression.inner, schema, program)
        case Binary() | Comparison():
            return _node_of_both(expression, schema, program)
        case _:
            return None


def _node_of_both(found: Binary | Comparison, schema: Schema, program: Building) -> Node | None:
    sides = list(found.sides(schema)) if isinstance(found, Comparison) else [found.left, found.right]
    code = _CODES.get(found.sign)
    if code is None or not all(side.kind(schema) in _NUMBERS for side in sides):
        return None
    nodes = _nodes(sides if found.sign not in (">", ">=") else sides[::-1], schema, program)
    return None if nodes is None else program.apply(code, nodes[0], nodes[1])
