"""What expressions of texts have behind `.str`: the names and meanings are those of Polars, but for `like`, which is SQL's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dlog.dataflow import text_functions as F
from dlog.dataflow.text_functions import TextFunction

E = TypeVar("E")


class TextMethods(Generic[E]):
    """Functions of the texts of an expression, each of which makes another expression."""

    def __init__(self, apply: Callable[[TextFunction], E]) -> None:
        self._apply = apply

    def contains(self, pattern: str, literal: bool = False) -> E:
        """Whether a regular expression (RE2's) is found in it, or, `literal`, a text."""
        return self._apply(F.contains(pattern, literal))

    def starts_with(self, prefix: str) -> E:
        """Whether it begins with a text."""
        return self._apply(F.starts_with(prefix))

    def ends_with(self, suffix: str) -> E:
        """Whether it ends with a text."""
        return self._apply(F.ends_with(suffix))

    def like(self, pattern: str) -> E:
        r"""Whether it is as SQL's pattern says: `%` is anything, `_` one character, and `\` takes the next one as it is."""
        return self._apply(F.like(pattern))

    def len_bytes(self) -> E:
        """How many bytes it has as UTF-8."""
        return self._apply(F.len_bytes())

    def len_chars(self) -> E:
        """How many characters it has."""
        return self._apply(F.len_chars())

    def to_uppercase(self) -> E:
        """It in upper case, letter by letter: as many as before."""
        return self._apply(F.to_uppercase())

    def to_lowercase(self) -> E:
        """It in lower case, letter by letter."""
        return self._apply(F.to_lowercase())

    def strip_chars(self, characters: str | None = None) -> E:
        """It without some characters, or white space, at both ends."""
        return self._apply(F.strip_chars(characters))

    def slice(self, offset: int, length: int | None = None) -> E:
        """Its characters from one on, which is counted from the end where it is negative: so many, or all."""
        return self._apply(F.slice_text(offset, length))

    def replace_all(self, old: str, new: str, literal: bool = False) -> E:
        """It with another text wherever a regular expression, or `literal` a text, is found. `$1` in the other one is what the
        first group of the expression has found."""
        return self._apply(F.replace_all(old, new, literal))
