"""Why a row is not in its relation, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dlog.codec import Row
from dlog.dataclass import dataclass
from dlog.proofs.drawing import MORE, ProofLine, first_lines, one_line
from dlog.proofs.wording import literal_of, row_text


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one rule does not give a row. The literals `matched` hold together, and then `literal` fails; None: the head does
    not match, or everything holds and only a better value is kept. `reasons` say why it fails for the nearest misses,
    whose `bindings` stand beside them; `misses` is how many there are."""

    rule: str
    literal: str | None
    reasons: tuple[str, ...]
    bindings: tuple[Mapping[str, Any], ...]
    misses: int
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot:
    """Why a row is not in its relation: what each rule lacks, and the rows most like it."""

    relation: str
    row: Row
    failures: tuple[Failure, ...]
    closest: tuple[Row, ...] = ()

    def __str__(self) -> str:
        return "\n".join(line.plain for line in explanation_lines(self))

    def __repr__(self) -> str:
        return first_lines(explanation_lines(self))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


def explanation_lines(why: WhyNot) -> Iterator[ProofLine]:
    """Why a row is not there, a rule after the other."""
    yield ProofLine((("row", row_text(why.relation, why.row)), ("bad", " does not hold")))
    if not why.failures:
        yield ProofLine((("", f"  `{why.relation}` has no rules, and the row is no fact"),))
    for failure in why.failures:
        yield ProofLine((("guide", "  "), ("rule", one_line(failure.rule))))
        yield from _failed(failure)
    if why.closest:
        rows = ", ".join(row_text(why.relation, row) for row in why.closest)
        yield ProofLine((("note", f"  closest rows: {rows}"),))


def _failed(failure: Failure) -> Iterator[ProofLine]:
    if failure.literal is None:
        yield ProofLine((("guide", "    "), ("bad", failure.reasons[0])))
        return
    held = f"{', '.join(failure.matched)} {'holds' if len(failure.matched) == 1 else 'hold'}, " if failure.matched else ""
    yield ProofLine((("guide", "    "), ("", held), ("bad", failure.literal), ("", " fails:")))
    for reason, bindings in zip(failure.reasons, failure.bindings, strict=True):
        values = ", ".join(f"{name} = {literal_of(value)}" for name, value in bindings.items())
        yield ProofLine((("guide", "      "), ("", reason), ("note", f"  with {values}" if values else "")))
    more = failure.misses - len(failure.reasons)
    if more > 0:
        yield ProofLine((("guide", "      "), ("note", f"{MORE} and {more} more {'binding' if more == 1 else 'bindings'}")))
