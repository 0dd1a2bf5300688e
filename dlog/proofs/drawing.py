"""Proofs and explanations as lines of text with a style for each part, so that a terminal can colour what a file has plain.

A row that was drawn before is not drawn again; nothing recurses, so proofs may be deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dlog.proofs.model import Absent, Aggregated, Failure, Holds, Premise, Proof, WhyNot
from dlog.proofs.wording import literal_of, row_text

MORE = "..."
SHOWN_LINES = 20
"""Lines of a proof shown unasked."""
MAX_LINE_CHARACTERS = 200
"""Characters of such a line."""


@dataclass(frozen=True, slots=True)
class Line:
    """`parts` are pairs of a style (`guide`, `row`, `note`, `rule`, `good`, `bad` or nothing) and text."""

    parts: tuple[tuple[str, str], ...]

    @property
    def plain(self) -> str:
        return "".join(text for _, text in self.parts).rstrip()


@dataclass(frozen=True, slots=True)
class _Node:
    premise: Premise
    depth: int
    guide: str
    last: bool


def proof_lines(proof: Proof, depth: int | None = None) -> Iterator[Line]:
    """A proof as a tree, the row first; `depth` levels below it, all by default."""
    seen: set[object] = set()
    stack = [_Node(proof, 0, "", True)]
    while stack:
        node = stack.pop()
        premise = node.premise
        root = node.depth == 0
        branch = "" if root else "`-- " if node.last else "|-- "
        below = node.guide + ("" if root else "    " if node.last else "|   ")
        inner, note = _inside(premise, depth is not None and node.depth >= depth, seen)
        yield Line((("guide", node.guide + branch), *_parts(premise), *note))
        stack += reversed([_Node(p, node.depth + 1, below, i == len(inner) - 1) for i, p in enumerate(inner)])


def first_lines(lines: Iterator[Line]) -> str:
    """As many lines as a prompt shows; no more of a proof is looked for."""
    found = [
        line.plain if len(line.plain) <= MAX_LINE_CHARACTERS else line.plain[:MAX_LINE_CHARACTERS] + MORE
        for line in islice(lines, SHOWN_LINES)
    ]
    return "\n".join([*found, MORE] if next(lines, None) is not None else found)


def _inside(premise: Premise, cut: bool, seen: set[object]) -> tuple[tuple[Premise, ...], tuple[tuple[str, str], ...]]:
    """The premises to draw below one, and the words to put behind it instead."""
    match premise:
        case Proof() if premise.is_fact:
            return (), (("note", "  fact"),)
        case Proof() if cut:
            return (), (("note", f"  {MORE}"),)
        case Proof() if premise.key in seen:
            return (), (("note", "  as above"),)
        case Proof():
            seen.add(premise.key)
            note = "  (since replaced by a better value)" if premise.superseded else ""
            return premise.premises, (("note", f"{note}  by "), ("rule", _one_line(premise.rule or "")))
        case Aggregated(premises=inner, matches=matches):
            if cut and inner:
                return (), (("note", f"  {MORE}"),)
            count = "" if matches is None else f"  over {matches} {'match' if matches == 1 else 'matches'}"
            return inner, (("note", count),)
        case _:
            return (), ()


def _parts(premise: Premise) -> tuple[tuple[str, str], ...]:
    match premise:
        case Proof():
            return (("row", row_text(premise.relation, premise.row)),)
        case Absent(text=text):
            return (("", f"!{text}"), ("note", "  no such row"))
        case Holds(text=text):
            return (("", text),)
        case Aggregated(text=text, value=value):
            return (("", f"{literal_of(value)} = {text}"),)


def _one_line(rule: str) -> str:
    return " ".join(rule.split())


# ----------------------------------------------------------------------------------------------------------------- absences


def explanation_lines(why: WhyNot) -> Iterator[Line]:
    """The lines of an explanation, a rule after the other."""
    yield Line((("row", row_text(why.relation, why.row)), ("bad", " does not hold")))
    if not why.failures:
        yield Line((("", f"  `{why.relation}` has no rules, and the row is no fact"),))
    for failure in why.failures:
        yield Line((("guide", "  "), ("rule", _one_line(failure.rule))))
        yield from _failed(failure)
    if why.closest:
        rows = ", ".join(row_text(why.relation, row) for row in why.closest)
        yield Line((("note", f"  closest rows: {rows}"),))


def _failed(failure: Failure) -> Iterator[Line]:
    if failure.literal is None:
        yield Line((("guide", "    "), ("bad", failure.reasons[0])))
        return
    held = f"{', '.join(failure.met)} {'holds' if len(failure.met) == 1 else 'hold'}, " if failure.met else ""
    yield Line((("guide", "    "), ("", held), ("bad", failure.literal), ("", " fails:")))
    for reason, bindings in zip(failure.reasons, failure.bindings, strict=True):
        values = ", ".join(f"{name} = {literal_of(value)}" for name, value in bindings.items())
        yield Line((("guide", "      "), ("", reason), ("note", f"  with {values}" if values else "")))
    more = failure.misses - len(failure.reasons)
    if more > 0:
        yield Line((("guide", "      "), ("note", f"{MORE} and {more} more {'binding' if more == 1 else 'bindings'}")))
