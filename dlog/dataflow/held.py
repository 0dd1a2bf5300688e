"""Texts of inputs that nobody keeps: they get no numbers, and stay what they have come as until the rounds are done that they
are of.

The word of such a text is its place among all that are held, from `FIRST` on: words of different texts are not told apart by
these, so only functions that ask for texts may get them (`unkept`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.arrow_texts import arrow_texts, object_texts

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = 1 << 62
"""Numbers of texts are less."""
Given: TypeAlias = "np.ndarray | pa.Array"
"""An array of objects, or one of Arrow's strings without nulls."""


@dataclass(slots=True, eq=False)
class _Part:
    """Texts that came together, and the word of the first one."""

    first: int
    texts: Given

    def arrow(self, words: np.ndarray) -> pa.Array:
        if isinstance(self.texts, np.ndarray):
            self.texts = arrow_texts(self.texts)
        start = int(words[0]) - self.first
        if (words[1:] - words[:-1] == 1).all():
            return self.texts.slice(start, len(words))
        return self.texts.take(words - self.first)

    def objects(self, words: np.ndarray) -> np.ndarray:
        if isinstance(self.texts, np.ndarray):
            return np.asarray(self.texts[words - self.first])
        return object_texts(self.arrow(words))


class HeldTexts:
    """The texts that are held."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._next = FIRST

    def __bool__(self) -> bool:
        """Whether any are held."""
        return bool(self._parts)

    def hold(self, texts: Given) -> int:
        """Takes texts in; returns the word of the first one, from which on they are counted."""
        first, self._next = self._next, self._next + max(len(texts), 1)  # of none, too, the word is that of no others
        self._parts.append(_Part(first, texts))
        return first

    def release(self, firsts: Sequence[int]) -> None:
        """Forgets the texts that came with these words."""
        gone = set(firsts)
        self._parts = [part for part in self._parts if part.first not in gone]

    def arrow(self, words: np.ndarray) -> pa.Array:
        """The texts of some words, of which there are some, as Arrow has them. Raises DlogError where one is none."""
        import pyarrow as pa

        part = self._only_part(words)
        if part is not None:
            return part.arrow(words)
        order, pieces = self._pieces(words)
        found = pa.concat_arrays([part.arrow(each) for part, each in pieces])
        return found if order is None else found.take(np.argsort(order))

    def objects(self, words: np.ndarray) -> np.ndarray:
        """The same as an array of objects."""
        part = self._only_part(words)
        if part is not None:
            return part.objects(words)
        order, pieces = self._pieces(words)
        found = np.concatenate([part.objects(each) for part, each in pieces])
        return found if order is None else found[np.argsort(order)]

    def _only_part(self, words: np.ndarray) -> _Part | None:
        """The part that all words are in."""
        least, most = int(words.min()), int(words.max())
        at = bisect_right(self._parts, least, key=_first) - 1
        return self._parts[at] if at + 1 == len(self._parts) or most < self._parts[at + 1].first else None

    def _pieces(self, words: np.ndarray) -> tuple[np.ndarray | None, list[tuple[_Part, np.ndarray]]]:
        """The words by the part that they are in, and in which order that has them (None: as they are)."""
        owners = np.searchsorted([part.first for part in self._parts], words, side="right") - 1
        order = None
        if (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
            words, owners = words[order], owners[order]
        starts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
        ends = [*starts[1:], len(words)]
        return order, [(self._parts[owners[start]], words[start:end]) for start, end in zip(starts, ends, strict=True)]


def _first(part: _Part) -> int:
    return part.first
