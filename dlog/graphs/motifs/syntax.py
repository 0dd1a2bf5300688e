"""A motif as a tree."""

from __future__ import annotations

from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.grammar.source import Span


@dataclass(frozen=True, slots=True)
class Vertex:
    """`(name)`, or `()` without one."""

    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Edge:
    """A path from `src` to `dst` of `least` to `most` edges, None for as many as one likes; one edge is 1 to 1. If it is not
    `directed`, all its edges go the one way or all the other. `ranged` tells paths of several lengths."""

    name: str | None
    src: Vertex
    dst: Vertex
    span: Span
    directed: bool = True
    least: int = 1
    most: int | None = 1
    negated: bool = False

    @property
    def ranged(self) -> bool:
        """Whether paths of several lengths are meant."""
        return self.least != self.most


Term: TypeAlias = Vertex | Edge
