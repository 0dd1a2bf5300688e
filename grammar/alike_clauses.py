"""Clauses of one shape (see `alike`), whose nodes are only made when somebody looks at them: what a compiler makes of one of
them serves for the others, which differ in names, literals and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from dlog.grammar.source import Span
from dlog.grammar.syntax import Atom, Body, Clause

Build: TypeAlias = Callable[[Sequence[str], Sequence[int]], Any]
"""Makes a value of the parts of an item (what is between the leaves, and these, in turn) and of where each part begins."""
Place: TypeAlias = tuple[int, int, int, int]
"""Where something is: the part in which it begins and how far behind the part's beginning, and the same of its end."""


class ClauseShape:
    """What clauses of one shape have in common. `sample` is one in which each leaf is unlike all others; `leaves` has the
    numbers of these, `place` is told where a span of it lies."""

    def __init__(
        self, told: Clause, heads: Build, body: Build, leaves: Mapping[str, int], place: Callable[[Span], Place | None]
    ) -> None:
        self.sample = told
        self.heads, self.body = heads, body
        self.leaves, self.place = leaves, place
        self._span = place(told.span)

    def span(self, parts: Sequence[str], start: int) -> Span:
        """That of the clause with these parts, which begins somewhere."""
        return placed(self._span, list(accumulate(map(len, parts), initial=start)))

    def make(self, parts: list[str], start: int) -> Clause:
        return AlikeClause(self, parts, start)


def placed(place: Place | None, at: Sequence[int]) -> Span:
    """The span at a place of an item whose parts begin at these offsets."""
    assert place is not None
    first, before, last, behind = place
    return Span(at[first] + before, at[last] + behind)


class AlikeClause(Clause):
    """A rule like others. It is equal to the clause of its nodes, which it passes for."""

    __slots__ = ("_body", "_heads", "_span", "parts", "shape", "start")

    __class__ = Clause  # type: ignore[assignment]
    __setattr__ = object.__setattr__
    plan = None
    is_rule = True

    def __init__(self, shape: ClauseShape, parts: list[str], start: int) -> None:
        self.shape, self.parts, self.start = shape, parts, start
        self._heads: tuple[Atom, ...] | None = None
        self._body: Body | None = None
        self._span: Span | None = None

    @property
    def at(self) -> list[int]:
        """Where each part begins."""
        return list(accumulate(map(len, self.parts), initial=self.start))

    @property
    def heads(self) -> tuple[Atom, ...]:
        if self._heads is None:
            self._heads = self.shape.heads(self.parts, self.at)
        return self._heads

    @property
    def body(self) -> Body:
        if self._body is None:
            self._body = self.shape.body(self.parts, self.at)
        return self._body

    @property
    def span(self) -> Span:
        if self._span is None:
            self._span = self.shape.span(self.parts, self.start)
        return self._span
