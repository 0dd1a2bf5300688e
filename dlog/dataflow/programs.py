"""What linear operators are as programs over columns (`engine.operators.column_programs`): those of integers and booleans.
Functions of texts are worked out before a program runs, which takes what they give as one more column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from dlog.dataflow.casts import Cast
from dlog.dataflow.expressions import Binary, Column, Comparison, Computed, Expression, Literal, Named
from dlog.dataflow.membership import Among
from dlog.dataflow.operands import DeltaFrame
from dlog.dataflow.operations import Choice
from dlog.dataflow.site import Site
from dlog.engine.kernels.codes import ColumnCode
from dlog.engine.operators.column_programs import Building, Node
from dlog.engine.operators.delta import Delta

Extend = Callable[[Building], bool]
"""Adds an operator to a program; false where programs have none like it."""
_CODES = {
    "+": ColumnCode.ADD, "-": ColumnCode.SUBTRACT, "*": ColumnCode.MULTIPLY, "//": ColumnCode.DIVIDE, "%": ColumnCode.REMAINDER,
    "==": ColumnCode.EQUAL, "!=": ColumnCode.DIFFERENT, "<": ColumnCode.LESS, ">": ColumnCode.LESS, "<=": ColumnCode.AT_MOST,
    ">=": ColumnCode.AT_MOST, "&": ColumnCode.AND, "|": ColumnCode.OR,
}  # fmt: skip
"""What instructions do for signs; those of > and >= have their sides in the other order."""
_NUMBERS = (int, bool)
FEW_VALUES = 8
"""Values of `is_in` that a program compares with one by one."""


def mapped(chosen: Sequence[Expression], site: Site) -> Extend:
    """Columns of these expressions in place of those of a schema."""

    def extend(program: Building) -> bool:
        nodes = _nodes(chosen, site, program)
        if nodes is not None:
            program.columns = [*nodes, *program.columns[len(site.schema.names) :]]
        return nodes is not None

    return extend


def kept(condition: Expression, site: Site) -> Extend:
    """The updates for which an expression holds."""

    def extend(program: Building) -> bool:
        node = node_of(condition, site, program)
        if node is not None:
            program.keep(node)
        return node is not None

    return extend


def multiplied(factor: Expression, chosen: Sequence[Expression] | None, site: Site) -> Extend:
    """Diffs times an expression; with others, columns of these."""

    def extend(program: Building) -> bool:
        node = node_of(factor, site, program) if factor.kind(site.schema) in _NUMBERS else None
        nodes = [] if chosen is None else _nodes(chosen, site, program)
        if node is None or nodes is None or not program.multiply(node):
            return False
        if chosen is not None:
            program.columns = [*nodes, *program.columns[len(site.schema.names) :]]
        return True

    return extend


def summed(chosen: Sequence[Expression], weights: Sequence[Expression], site: Site) -> Extend:
    """Columns of some expressions, and a component of diffs for each of the others, summed up by row."""

    def extend(program: Building) -> bool:
        nodes, found = _nodes(chosen, site, program), _nodes(weights, site, program)
        if nodes is None or found is None or not all(each.kind(site.schema) in _NUMBERS for each in weights):
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


def _nodes(expressions: Sequence[Expression], site: Site, program: Building) -> list[Node] | None:
    nodes = [node_of(each, site, program) for each in expressions]
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def node_of(expression: Expression, site: Site, program: Building) -> Node | None:
    """The words of an expression over columns of a schema, which are the program's; None where programs have none for it."""
    match expression:
        case Column():
            return program.columns[site.schema.place(expression.name)]
        case Literal():
            return program.number(int(expression.value)) if expression.kind(site.schema) in _NUMBERS else None
        case Named():
            return node_of(expression.inner, site, program)
        case Binary() | Comparison():
            return _node_of_both(expression, site, program)
        case Computed():
            return _node_of_computed(expression, site, program)
        case _:
            return None


def _node_of_both(found: Binary | Comparison, site: Site, program: Building) -> Node | None:
    schema = site.schema
    sides = list(found.sides(schema)) if isinstance(found, Comparison) else [found.left, found.right]
    kinds = {side.kind(schema) for side in sides}
    if isinstance(found, Comparison) and kinds == {str}:
        return _given(found, site, program)
    code = _CODES.get(found.sign)
    if code is None or not kinds <= {*_NUMBERS}:
        return None
    nodes = _nodes(sides if found.sign not in (">", ">=") else sides[::-1], site, program)
    return None if nodes is None else program.apply(code, nodes[0], nodes[1])


def _node_of_computed(found: Computed, site: Site, program: Building) -> Node | None:
    schema, arguments = site.schema, found.arguments
    kinds = {found.kind(schema), *(each.kind(schema) for each in arguments)}
    match found.operation:
        case Choice() if kinds <= {*_NUMBERS} and all(each.total(schema) for each in arguments[1:]):
            nodes = _nodes(arguments, site, program)
            return _given(found, site, program) if nodes is None else _chosen(program, *nodes)
        case Cast() if kinds <= {*_NUMBERS}:
            node = node_of(arguments[0], site, program)
            if node is None or kinds != {int, bool} or found.kind(schema) is int:
                return node
            return program.apply(ColumnCode.DIFFERENT, node, program.number(0))
        case Among() as among if kinds <= {*_NUMBERS} and len(wanted := among.of_kind(arguments[0].kind(schema))) <= FEW_VALUES:
            node = node_of(arguments[0], site, program)
            return None if node is None or float in map(type, wanted) else _among(program, node, wanted)
        case _:
            return None if float in kinds else _given(found, site, program)


def _chosen(program: Building, condition: Node, first: Node, second: Node) -> Node:
    """One of two nodes: the second one, and the difference where the condition holds, all of which may wrap around."""
    difference = program.apply(ColumnCode.SUBTRACT, first, second)
    return program.apply(ColumnCode.ADD, second, program.apply(ColumnCode.MULTIPLY, condition, difference))


def _among(program: Building, node: Node, wanted: Iterable[int]) -> Node:
    """Whether a node is one of some values."""
    found = program.number(0)
    for value in wanted:
        found = program.apply(ColumnCode.OR, found, program.apply(ColumnCode.EQUAL, node, program.number(int(value))))
    return found


def _given(expression: Expression, site: Site, program: Building) -> Node | None:
    """An expression that is evaluated before the program runs, if it is over columns that the updates have."""
    read = site.schema.select([*dict.fromkeys(columns_of(expression))])
    nodes = [program.columns[place] for place in site.schema.places(read.names)]
    if any(node >= program.arity for node in nodes):
        return None
    words = expression.words(read)

    def give(delta: Delta) -> np.ndarray:
        return words(DeltaFrame(read, tuple(delta.columns[node] for node in nodes), delta.rows, site.objects))

    return program.give(give)


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns that an expression reads."""
    match expression:
        case Column():
            yield expression.name
        case Named():
            yield from columns_of(expression.inner)
        case Binary() | Comparison():
            yield from columns_of(expression.left)
            yield from columns_of(expression.right)
        case _:
            for each in getattr(expression, "arguments", ()):
                yield from columns_of(each)
