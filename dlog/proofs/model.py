"""The parts of proofs. A `Proof` says of one row why it is in its relation; its premises are found when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from dlog.codec import Row
from dlog.dataclass import dataclass
from dlog.proofs.drawing import MORE, Parts, first_lines, one_line, proof_lines
from dlog.proofs.wording import literal_of, row_text

Key: TypeAlias = tuple[str, tuple[int, ...], bool]
"""A relation, a row of words, and whether its stratum was run again to find it."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom: no row matches `text`."""

    relation: str
    text: str

    def parts(self) -> Parts:
        return (("", f"!{self.text}"), ("note", "  no such row"))

    def inside(self, cut: bool, seen: set[object]) -> tuple[tuple[Premise, ...], Parts]:
        return (), ()


@dataclass(frozen=True, slots=True)
class Holds:
    """A constraint, with its values."""

    text: str

    def parts(self) -> Parts:
        return (("", self.text),)

    def inside(self, cut: bool, seen: set[object]) -> tuple[tuple[Premise, ...], Parts]:
        return (), ()


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate that came to `value` over `matches` matches of its body; `premises` are those of the first few of them, of
    `min` and `max` those of one that has the value. `matches` is None for a recursive aggregate, whose other matches do not
    matter."""

    text: str
    value: Any
    matches: int | None
    premises: tuple[Premise, ...]

    def parts(self) -> Parts:
        return (("", f"{literal_of(self.value)} = {self.text}"),)

    def inside(self, cut: bool, seen: set[object]) -> tuple[tuple[Premise, ...], Parts]:
        if cut and self.premises:
            return (), (("note", f"  {MORE}"),)
        count = "" if self.matches is None else f"  over {self.matches} {'match' if self.matches == 1 else 'matches'}"
        return self.premises, (("note", count),)


@dataclass(frozen=True, slots=True)
class Step:
    """One derivation of a row: a rule's text, the values of its variables, and its premises in the order of the body. No rule:
    the row is a fact."""

    rule: str | None
    bindings: Mapping[str, Any]
    premises: tuple[Premise, ...]


class StepFinder(Protocol):
    """What finds the derivations of rows, when they are asked for (`search.Search`)."""

    def step(self, proof: Proof) -> Step: ...
    def is_fact(self, relation: str, row: tuple[int, ...]) -> bool: ...
    def is_present(self, relation: str, row: tuple[int, ...]) -> bool: ...


class Proof:
    """A proof that a row is in its relation: it is a fact, or it follows by a rule from its premises.

    Of the derivations there are, the one that the fixed point finds first: no other needs fewer steps of the recursion. The
    proofs of a row that is needed more than once are the same object.

    >>> import dlog
    >>> s = dlog.session('''
    ... .decl edge(x: number, y: number)
    ... .decl path(x: number, y: number)
    ... path(x, y) :- edge(x, y).
    ... path(x, z) :- path(x, y), edge(y, z).
    ... edge(1, 2). edge(2, 3).
    ... ''')
    >>> print(s.why("path", (1, 3)))
    path(1, 3)  by path(x, z) :- path(x, y), edge(y, z).
    |-- path(1, 2)  by path(x, y) :- edge(x, y).
    |   `-- edge(1, 2)  fact
    `-- edge(2, 3)  fact
    """

    __slots__ = ("_search", "_step", "key", "row")

    def __init__(self, search: StepFinder, key: Key, row: Row) -> None:
        self._search = search
        self._step: Step | None = None
        self.key = key
        self.row = row

    @property
    def relation(self) -> str:
        return self.key[0]

    @property
    def step(self) -> Step:
        if self._step is None:
            self._step = self._search.step(self)
        return self._step

    @property
    def rule(self) -> str | None:
        """The rule's text; None for a fact."""
        return self.step.rule

    @property
    def bindings(self) -> Mapping[str, Any]:
        """The values of the rule's variables."""
        return self.step.bindings

    @property
    def premises(self) -> tuple[Premise, ...]:
        """The premises of the rule's body, in its order."""
        return self.step.premises

    @property
    def children(self) -> tuple[Proof, ...]:
        """The premises that are rows, those of aggregates included."""
        return tuple(_rows(self.premises))

    @property
    def is_fact(self) -> bool:
        """Whether the row is a fact."""
        return self._search.is_fact(self.key[0], self.key[1])

    @property
    def superseded(self) -> bool:
        """Whether a better value has replaced the row since (of a relation that keeps the least or greatest value only)."""
        return not self._search.is_present(self.relation, self.key[1])

    @property
    def height(self) -> int:
        """How many rules stand above each other; 0 for a fact. Finds the whole proof. A row that needs itself, as some do by
        negations and aggregates that alternate, stands there once."""
        heights: dict[Key, int] = {}
        begun: set[Key] = set()
        stack = [self]
        while stack:
            proof = stack[-1]
            if proof.key not in begun:
                begun.add(proof.key)
                stack += [child for child in proof.children if child.key not in begun]
                continue
            stack.pop()
            heights[proof.key] = max((heights.get(c.key, 0) for c in proof.children), default=0) + (not proof.is_fact)
        return heights[self.key]

    def __iter__(self) -> Iterator[Proof]:
        """All different rows of the proof, each before those it needs. Finds the whole proof."""
        seen: set[Key] = set()
        stack = [self]
        while stack:
            proof = stack.pop()
            if proof.key not in seen:
                seen.add(proof.key)
                yield proof
                stack += reversed(proof.children)

    def parts(self) -> Parts:
        """How a drawing says the row (see `drawing.Drawable`)."""
        return (("row", row_text(self.relation, self.row)),)

    def inside(self, cut: bool, seen: set[object]) -> tuple[tuple[Premise, ...], Parts]:
        """What a drawing shows below it; a row that it has shown is not drawn again."""
        if self.is_fact:
            return (), (("note", "  fact"),)
        if cut:
            return (), (("note", f"  {MORE}"),)
        if self.key in seen:
            return (), (("note", "  as above"),)
        seen.add(self.key)
        note = "  (since replaced by a better value)" if self.superseded else ""
        return self.premises, (("note", f"{note}  by "), ("rule", one_line(self.rule or "")))

    def text(self, depth: int | None = None) -> str:
        """The proof as a drawing, `depth` levels of it; what is cut off is marked with `...`."""
        return "\n".join(line.plain for line in proof_lines(self, depth))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """The first lines of the drawing."""
        return first_lines(proof_lines(self))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


Premise: TypeAlias = Proof | Absent | Holds | Aggregated


def _rows(premises: tuple[Premise, ...]) -> Iterator[Proof]:
    for premise in premises:
        match premise:
            case Proof():
                yield premise
            case Aggregated(premises=inner):
                yield from _rows(inner)
            case Absent() | Holds():
                pass
