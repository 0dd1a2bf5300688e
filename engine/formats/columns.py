"""The matching of named columns to attributes: the one rule for CSV headers, Parquet, Arrow and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dlog.grammar.suggest import closest

MAX_KNOWN = 256
"""Pairs of attributes and columns whose places are not sought again: tables that come in batches have the same."""


class Unclear(Exception):
    """The names of columns contradict their order; `notes` say how."""

    def __init__(self, message: str, *notes: str) -> None:
        super().__init__(message)
        self.message = message
        self.notes = notes


def places(attributes: Sequence[str], names: Sequence[str]) -> tuple[int, ...] | None:
    """The place of each attribute's column. By name where every attribute has a column of its name; other columns are left out.
    Else by order, if there are as many columns as attributes; None if there are not. Raises Unclear where it would be by order,
    but a column has the name of an attribute that stands elsewhere.

    >>> places(("who", "whom"), ("whom", "since", "who"))
    (2, 0)
    >>> places(("who", "whom"), ("a", "b"))
    (0, 1)
    """
    return _places(tuple(attributes), tuple(names))


@lru_cache(MAX_KNOWN)
def _places(attributes: tuple[str, ...], names: tuple[str, ...]) -> tuple[int, ...] | None:
    if attributes and all(names.count(attribute) == 1 for attribute in attributes):
        return tuple(names.index(name) for name in attributes)
    if len(names) != len(attributes):
        return None
    for name, attribute in zip(names, attributes, strict=True):
        if name != attribute and name in attributes:
            missing = [_missing(a, [n for n in names if n not in attributes]) for a in attributes if a not in names]
            message = f"a column is called `{name}`, but is not in its place, and others are called like no attribute"
            raise Unclear(message, *missing)
    return tuple(range(len(names)))


def _missing(attribute: str, others: Sequence[str]) -> str:
    close = closest(attribute, others)
    return f"no column is called `{attribute}`" + (f": is it `{close}`?" if close else "")
