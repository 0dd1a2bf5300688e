"""Values of each type, as data and as literals of the program text. Large, negative and boundary values are planted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from dlog.branch import Branch

Row = tuple[Any, ...]

RECORDS = {"Pair": ("number", "symbol"), "List": ("number", "List")}
BRANCHES: dict[str, dict[str, tuple[str, ...]]] = {
    "Tree": {"Tip": ("symbol",), "Node": ("Tree", "number", "Tree"), "Leaf": (), "Of": ("Pair",)},
    "Colour": {"Red": (), "Green": (), "Blue": ()},
}
"""The algebraic data types."""
TYPE_DECLS = {
    "Pair": ".type Pair = [first: number, second: symbol]",
    "List": ".type List = [head: number, tail: List]",
    "Tree": ".type Tree = Tip {s: symbol} | Node {left: Tree, n: number, right: Tree} | Leaf {} | Of {pair: Pair}",
    "Colour": ".type Colour = Red {} | Green {} | Blue {}",
}


def type_declarations(used: Iterable[str]) -> list[str]:
    """The declarations of those types that need one, and of those of their fields."""
    names = set(used)
    names |= {"Pair"} if "Tree" in names else set()
    return [declaration for name, declaration in TYPE_DECLS.items() if name in names]


SMALL = st.integers(0, 4)
NUMBERS = st.one_of(
    SMALL,
    SMALL,
    SMALL,
    st.sampled_from([-1, -7, 20, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, -(2**63)]),
)
UNSIGNED = st.one_of(SMALL, SMALL, SMALL, st.sampled_from([2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1]))
FLOATS = st.one_of(SMALL.map(lambda i: i / 2), SMALL.map(lambda i: i / 2), st.sampled_from([-1.5, 0.25, 2.0**20, -(2.0**20)]))
SYMBOLS = st.sampled_from(["a", "b", "a", "b", "ab", "ba", "", "A", "a b", "12", "abcabc"])
DATES = st.one_of(
    SMALL.map(lambda n: date(2024, 2, 27) + timedelta(n)),
    st.sampled_from([date(1969, 12, 31), date(2023, 12, 31), date(1, 1, 1), date(9999, 12, 31)]),
)
PAIRS = st.one_of(st.tuples(SMALL, SYMBOLS), st.none())
LISTS = st.recursive(st.none(), lambda tails: st.tuples(SMALL, tails), max_leaves=3)
TREES = st.recursive(
    st.one_of(st.just(Branch("Leaf")), st.builds(Branch, st.just("Tip"), SYMBOLS), st.builds(Branch, st.just("Of"), PAIRS)),
    lambda trees: st.builds(Branch, st.just("Node"), trees, SMALL, trees),
    max_leaves=3,
)
COLOURS = st.sampled_from([Branch("Red"), Branch("Green"), Branch("Blue")])

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": NUMBERS,
    "unsigned": UNSIGNED,
    "float": FLOATS,
    "symbol": SYMBOLS,
    "date": DATES,
    "Pair": PAIRS,
    "List": LISTS,
    "Tree": TREES,
    "Colour": COLOURS,
}


def written(value: Any) -> str:
    """A value as the program text has it."""
    match value:
        case None:
            return "nil"
        case str():
            return f'"{value}"'
        case date():
            return f'date("{value.isoformat()}")'
        case Branch(name, args):
            return f"${name}({', '.join(map(written, args))})"
        case tuple():
            return f"[{', '.join(map(written, value))}]"
        case _:
            return repr(value)


LITERALS: dict[str, st.SearchStrategy[str]] = {
    "number": NUMBERS.filter(lambda v: v != -(2**63)).map("{:_}".format),
    "unsigned": st.one_of(UNSIGNED.map(written), SMALL.map(lambda v: f"{v}u")),
    "float": st.one_of(FLOATS.map("{:_}".format), SMALL.map(written), SMALL.map("{}5e-1".format)),
    "symbol": SYMBOLS.map(written),
    "date": DATES.map(written),
    "Pair": PAIRS.map(written),
    "List": LISTS.map(written),
    "Tree": TREES.map(written),
    "Colour": COLOURS.map(written),
}
"""-2^63 is left out: its digits without the sign are no number. An integer stands for a float, too."""
