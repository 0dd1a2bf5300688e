"""Kinds of columns, and their values as words.

A kind is `int`, `float`, `bool`, `str`, or `object` for any other hashable value. Dates and times are numbers where `int` is
meant (`dates`). Words compare as the values do, but for `str` and `object`, whose words are numbers in a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.codec import value_preview
from dlog.dataclass import dataclass
from dlog.dataflow.dates import numbers_of_dates
from dlog.dataflow.held import FIRST, HeldTexts
from dlog.engine.kernels.values.floats import order_floats
from dlog.engine.values.addresses import address_of
from dlog.grammar.diagnostics import Diagnostic, DlogError

Kind = type


KINDS: tuple[Kind, ...] = (int, float, bool, str, object)
_TAKEN: dict[Kind, tuple[type, ...]] = {
    int: (int, np.integer), float: (int, float, np.integer, np.floating), bool: (bool, np.bool_)
}  # fmt: skip
_FLIPPED = np.int64(2**63 - 1)


def kind(name: str, given: Any) -> Kind:
    """Raises DlogError for what is no kind."""
    if given not in KINDS:
        raise bad_argument(name, "int, float, bool, str or object", given)
    return given  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A column of few different values: these, and the place among them of each row's."""

    values: Sequence[Any]
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)


class Objects:
    """The values of kind `str` and `object` of a dataflow, numbered."""

    def __init__(self) -> None:
        self.held = HeldTexts()
        """Texts that have no numbers."""
        self._numbers: dict[Any, int] = {}
        self._values = np.empty(16, object)
        """Those that have numbers come first: it has room for more."""

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        numbers = self._numbers
        new = [value for value in dict.fromkeys(values) if value not in numbers]
        if new:
            first, last = len(numbers), len(numbers) + len(new)
            if last > len(self._values):
                self._values = np.concatenate([self._values, np.empty(last, object)])
            for place, value in enumerate(new, first):  # values that are sequences are no arrays
                self._values[place] = value
            numbers.update(zip(new, range(first, last), strict=True))
        return np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))

    def known(self, values: Iterable[Any]) -> np.ndarray:
        """The numbers of those of some values that have one."""
        return np.array([self._numbers[value] for value in values if value in self._numbers], np.int64)

    def decode(self, words: np.ndarray) -> np.ndarray:
        if self.is_held(words):
            return self.held.objects(words)
        return np.asarray(self._values[words])

    @staticmethod
    def is_held(words: np.ndarray) -> bool:
        """Whether the words of a column, all or none, are of texts that are held."""
        return len(words) > 0 and words[0] >= FIRST

    def ranks(self, words: np.ndarray) -> np.ndarray:
        """Words that compare as the values do."""
        different, places = np.unique(words, return_inverse=True)
        try:
            order = sorted(range(len(different)), key=self.decode(different).__getitem__)
        except TypeError as error:
            note = "values of kind object that stand in an order are to be comparable with each other, as those of one type are"
            raise DlogError(Diagnostic("bad-rows", f"values cannot be ordered: {error}", notes=(note,))) from None
        ranks = np.empty(len(different), np.int64)
        ranks[order] = np.arange(len(different))
        return np.asarray(ranks[places])


def objects_of(values: Any) -> np.ndarray:
    """Values of kind `str` as an array of objects. Raises DlogError for what is none."""
    if isinstance(values, Repeated):
        return np.asarray(objects_of(values.values)[values.places])
    listed = _checked(str, values)
    found: np.ndarray = np.empty(len(listed), object)
    found[:] = listed
    return found


def encode(kind: Kind, values: Any, objects: Objects) -> np.ndarray:
    """Values, an array or a list, as words. Raises DlogError for what is not of the kind."""
    if kind in (str, object):
        return _encode_objects(kind, values, objects)
    dates = numbers_of_dates(values) if kind is int else None
    array = dates if dates is not None else values if isinstance(values, np.ndarray) else _array(kind, values)
    if array.dtype.kind not in {int: "iu", float: "iuf", bool: "b"}[kind] and len(array):
        raise _not_of(kind, values if array is values else _others(kind, values) or array)
    if kind is float:
        return float_words(array)
    if array.dtype == np.uint64 and len(array) and int(array.max()) > _FLIPPED:
        raise _not_of(kind, array)
    return np.ascontiguousarray(array, np.int64)


def _array(kind: Kind, values: Sequence[Any]) -> np.ndarray:
    array = np.array(values)
    mixed = any(isinstance(value, bool | np.bool_) for value in values) if kind is not bool else False
    if array.ndim != 1 or array.dtype == object or mixed:
        raise _not_of(kind, _others(kind, values) or [v for v in values if type(v) is not kind] or values)
    return array


def _others(kind: Kind, values: Sequence[Any]) -> list[Any]:
    """Values that are of no kind which goes for this one."""
    return [value for value in values if not isinstance(value, _TAKEN[kind])]


def _encode_objects(kind: Kind, values: Any, objects: Objects) -> np.ndarray:
    if isinstance(values, Repeated):
        return np.asarray(_encode_objects(kind, values.values, objects)[values.places])
    try:
        return objects.encode(_checked(kind, values))
    except TypeError:
        raise DlogError(Diagnostic("bad-rows", "values of kind object must be hashable")) from None


def _checked(kind: Kind, values: Any) -> Sequence[Any]:
    listed: Sequence[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    if kind is str and set(map(type, listed)) != {str} and not all(isinstance(value, str) for value in listed):
        raise _not_of(kind, [value for value in listed if not isinstance(value, str)])
    return listed


def _not_of(kind: Kind, given: Iterable[Any]) -> DlogError:
    """What is wrong with some values: one is too large, or else the first."""
    listed = list(given)
    wide = [value for value in listed if type(value) in (int, np.uint64) and not -(2**63) <= int(value) < 2**63]
    if kind is int and wide:
        return DlogError(Diagnostic("bad-rows", f"{wide[0]} is beyond 64 bits"))
    shown = listed[0]
    shown = shown.item() if isinstance(shown, np.generic) else shown
    return DlogError(Diagnostic("bad-rows", f"{value_preview(shown)} is no {kind.__name__}"))


def float_words(values: np.ndarray) -> np.ndarray:
    """Words that compare as the floats do; there is one zero and one NaN, after all others."""
    floats = np.ascontiguousarray(values, np.float64)
    words = np.empty(len(floats), np.int64)
    order_floats(address_of(floats), len(floats), address_of(words))
    return words


def word_floats(words: np.ndarray) -> np.ndarray:
    return np.asarray((words ^ (words >> 63 & _FLIPPED)).view(np.float64))


def decode(kind: Kind, words: np.ndarray, objects: Objects) -> np.ndarray:
    """Words as an array of values."""
    if kind is int:
        return words
    if kind is float:
        return word_floats(words)
    if kind is bool:
        return np.asarray(words != 0)
    return objects.decode(words)


def comparable(kind: Kind, words: np.ndarray, objects: Objects) -> np.ndarray:
    """Words that compare as the values do."""
    return objects.ranks(words) if kind in (str, object) else words
