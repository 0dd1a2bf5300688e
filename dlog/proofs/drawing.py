"""Proofs and explanations as lines of text with a style for each part, so that a terminal can colour what a file has plain.

A row that was drawn before is not drawn again; nothing recurses, so proofs may be deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

from dlog.dataclass import dataclass
from dlog.grammar import diagnostics

MORE = "..."
SHOWN_LINES = 20
"""Lines of a proof shown unasked."""
MAX_LINE_CHARACTERS = 200
"""Characters of such a line."""


Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a style (`guide`, `row`, `note`, `rule`, `good`, `bad` or nothing) and text."""


class Drawable(Protocol):
    """A proof or one of its premises, as the drawing sees it."""

    def parts(self) -> Parts:
        """What its line says of itself."""

    def inside(self, cut: bool, seen: set[object]) -> tuple[Sequence[Drawable], Parts]:
        """What is drawn below it, unless it is `cut` off there, and what the line says of that. `seen` are the keys of the rows
        that were drawn before, to which it adds its own."""


@dataclass(frozen=True, slots=True)
class ProofLine:
    parts: Parts

    @property
    def plain(self) -> str:
        """Its text, with signs for control characters: strings of a row may be anything."""
        return diagnostics.one_line("".join(text for _, text in self.parts).rstrip())


@dataclass(frozen=True, slots=True)
class _Node:
    premise: Drawable
    depth: int
    guide: str
    last: bool


def proof_lines(proof: Drawable, depth: int | None = None) -> Iterator[ProofLine]:
    """A proof as a tree, the row first; `depth` levels below it, all by default."""
    seen: set[object] = set()
    stack = [_Node(proof, 0, "", True)]
    while stack:
        node = stack.pop()
        premise = node.premise
        root = node.depth == 0
        branch = "" if root else "`-- " if node.last else "|-- "
        below = node.guide + ("" if root else "    " if node.last else "|   ")
        inner, note = premise.inside(depth is not None and node.depth >= depth, seen)
        yield ProofLine((("guide", node.guide + branch), *premise.parts(), *note))
        stack += reversed([_Node(p, node.depth + 1, below, i == len(inner) - 1) for i, p in enumerate(inner)])


def first_lines(lines: Iterator[ProofLine]) -> str:
    """As many lines as a prompt shows; no more of a proof is looked for."""
    found = [
        line.plain if len(line.plain) <= MAX_LINE_CHARACTERS else line.plain[:MAX_LINE_CHARACTERS] + MORE
        for line in islice(lines, SHOWN_LINES)
    ]
    return "\n".join([*found, MORE] if next(lines, None) is not None else found)


def one_line(rule: str) -> str:
    return " ".join(rule.split())
