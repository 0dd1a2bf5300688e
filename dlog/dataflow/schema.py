"""What a collection's updates consist of: named columns, and what their diffs are.

Traces add up integers. Diffs of another Abelian group are written out over them: a diff is a sum of *parts*, each an integer
times a value, and two columns at the end of a row say which component of the diff a part belongs to, and its value. So a
tuple of integers is a row for each that is not zero, and a float one for each of its digits, whose value is their place
(`exact`); what is taken back cancels to the bit. Of an extreme, or an element of a group, the value is its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlog.arguments import bad_argument
from dlog.codec import value_preview
from dlog.dataclass import dataclass
from dlog.dataflow.components import Component, ValueComponent
from dlog.dataflow.kinds import Kind, kind
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest

INTEGERS: tuple[Component, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns by name with their kinds; `diffs` are the components of a diff, none for plain integers. Raises DlogError for
    two columns of one name."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    diffs: tuple[Component, ...] = INTEGERS

    def __post_init__(self) -> None:
        check_names(self.names)

    @staticmethod
    def of(kinds: Mapping[str, Any]) -> Schema:
        return Schema(tuple(kinds), tuple(kind(name, given) for name, given in kinds.items()))

    @property
    def arity(self) -> int:
        """Columns of words."""
        return len(self.names) + self.hidden

    @property
    def hidden(self) -> int:
        """Columns at the end that say what a part of a diff is."""
        return 2 if self.diffs else 0

    @property
    def of_values(self) -> dict[int, ValueComponent]:
        """The components of diffs that are no sums of numbers, by number."""
        return {number: each for number, each in enumerate(self.diffs) if isinstance(each, ValueComponent)}

    def place(self, name: str) -> int:
        if name not in self.names:
            close = closest(name, self.names)
            notes = [f"the columns are {', '.join(self.names)}"] + ([f"did you mean `{close}`?"] if close else [])
            raise DlogError(Diagnostic("unknown-column", f"unknown column `{name}`", notes=tuple(notes)))
        return self.names.index(name)

    def places(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.place(name) for name in names)

    def kind(self, name: str) -> Kind:
        return self.kinds[self.place(name)]

    def select(self, names: Sequence[str]) -> Schema:
        return replace(self, names=tuple(names), kinds=tuple(self.kind(name) for name in names))

    def with_columns(self, names: Sequence[str], kinds: Sequence[Kind]) -> Schema:
        return replace(self, names=tuple(names), kinds=tuple(kinds))

    def others(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in names)

    def __str__(self) -> str:
        return ", ".join(f"{name}: {kind.__name__}" for name, kind in zip(self.names, self.kinds, strict=True))


def check_names(names: Sequence[str], *notes: str) -> None:
    """Raises DlogError for names that are no texts, or of which two are the same."""
    for name in names:
        if not isinstance(name, str):
            message = f"a column has a text as its name, not {value_preview(name)}"
            raise DlogError(Diagnostic("bad-argument", message, notes=notes))
    if len(set(names)) < len(names):
        raise DlogError(Diagnostic("repeated-column", f"columns of one name: {', '.join(names)}", notes=notes))


def column_names(name: str, given: Any) -> tuple[str, ...]:
    """A column's name, or several; None is none."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Sequence) and all(isinstance(each, str) for each in given):
        return tuple(given)
    raise bad_argument(name, "the name of a column, or a list of them", given)


def mismatch(what: str, left: Schema, right: Schema, *notes: str) -> DlogError:
    message = f"{what}: ({left}) and ({right})"
    if left.diffs != right.diffs:
        message = f"{what}: the diffs of one are {_shown(left.diffs)}, those of the other {_shown(right.diffs)}"
    return DlogError(Diagnostic("unlike-collections", message, notes=notes))


def _shown(diffs: tuple[Component, ...]) -> str:
    named = (f"{each.name} of {each.kind.__name__}" if isinstance(each, ValueComponent) else each.__name__ for each in diffs)
    return f"tuples ({', '.join(named)})" if diffs else "integers"


def plain(schema: Schema, what: str) -> None:
    """Refuses diffs that are no integers."""
    if schema.diffs:
        note = "add them up first: `count`"
        raise DlogError(Diagnostic("diffs-no-integers", f"{what} needs diffs that are integers", notes=(note,)))
