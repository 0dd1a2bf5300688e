"""Semigroups and groups of one's own: what diffs may consist of beside numbers.

Elements stand in arrays, of numbers or of Python's objects; a function of objects is made one of arrays of them. A semigroup
has a sum; a group has a zero, too, and of each element one that takes it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dlog.arguments import bad_argument, check_function
from dlog.dataflow.given import check_calls, wrong_outcome
from dlog.dataflow.kinds import KINDS, Kind
from dlog.dataflow.laws import Law, alike, check_laws

Arrays = Callable[..., np.ndarray]
"""A function of arrays of one length."""
_TAKEN = {int: "iub", float: "iubf", bool: "b"}
"""Kinds of NumPy's that elements may have, or come from, without a loss."""
_GIVEN = {"plus": "two elements", "negate": "an element", "times": "an element and a whole number"}
_GIVEN |= {"lift": "a value", "lower": "an element"}
"""What functions get, one of each or an array."""


class Semigroup:
    """Elements of a kind that add up, in any order."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        plus: Callable[..., Any],
        times: Callable[..., Any] | None = None,
        lift: Callable[..., Any] | None = None,
        lower: Callable[..., Any] | None = None,
        result: Kind | None = None,
        exact: bool | None = None,
    ) -> None:
        if kind not in (int, float, bool, object):
            raise bad_argument("kind", "int, float, bool or object", kind)
        self.name, self.kind = name, kind
        self.plus = self._of_arrays("plus", plus)
        self._times = None if times is None else self._of_arrays("times", times)
        self._lift = None if lift is None else self._of_arrays("lift", lift)
        self._lower = None if lower is None else _plain("lower", lower, kind)
        self.result = self._shown_as(result)
        self.exact = kind is not float if exact is None else exact
        """Whether sums are the same in any order: if not, values are kept as they come."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.kind)

    def check_values(self, kind: Kind) -> None:
        """Raises DlogError where values of a kind have no elements."""
        if self._lift is None and self.kind is not object and np.dtype(kind).kind not in _TAKEN[self.kind]:
            note = "`lift=` gives the element of a value"
            raise bad_argument("diff", f"of {self.kind.__name__} in `{self.name}`", kind.__name__, note)

    def lifted(self, values: np.ndarray) -> np.ndarray:
        """The elements of values. Raises DlogError where they break a law."""
        if self._lift is None:
            elements = values.astype(self.dtype)
        else:
            elements = self._lift(values.astype(object if self.kind is object else values.dtype))
        if len(elements):
            check_laws(self.name, self.laws, elements)
        return elements

    def multiplied(self, elements: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Each element so many times, which is once at least."""
        if (counts == 1).all():
            return elements
        if self._times is not None:
            return self._times(elements, counts.astype(object) if self.kind is object else counts)
        return self._doubled(elements, counts)

    def _doubled(self, elements: np.ndarray, counts: np.ndarray) -> np.ndarray:
        found, left = elements.copy(), counts.astype(np.uint64) - np.uint64(1)
        many = np.flatnonzero(left)
        power, left = elements[many], left[many]
        while len(many):
            odd = (left & np.uint64(1)) != 0
            found[many[odd]] = self.plus(found[many[odd]], power[odd])
            left >>= np.uint64(1)
            on = np.flatnonzero(left)
            many, power, left = many[on], self.plus(power[on], power[on]), left[on]
        return found

    def there(self, elements: np.ndarray) -> np.ndarray:
        """Which are more than nothing."""
        return np.ones(len(elements), bool)

    def scan(self, elements: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The sums of runs up to each element: by those of pairs, of which there are half as many."""
        sizes = np.diff(starts, append=len(elements))
        if not len(sizes) or sizes.max() == 1:
            return elements
        offsets = np.arange(len(elements)) - np.repeat(starts, sizes)
        second, halves = np.flatnonzero(offsets % 2 == 1), sizes[sizes > 1] // 2
        found = elements.copy()
        found[second] = self.scan(self.plus(elements[second - 1], elements[second]), np.cumsum(halves) - halves)
        first = np.flatnonzero((offsets % 2 == 0) & (offsets > 0))
        found[first] = self.plus(found[first - 1], elements[first])
        return found

    def laws(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Iterator[Law]:
        """What holds for all elements."""
        plus = self.plus
        yield "plus(x, y)", plus(x, y), "plus(y, x)", plus(y, x)
        if self.exact:
            yield "plus(plus(x, y), z)", plus(plus(x, y), z), "plus(x, plus(y, z))", plus(x, plus(y, z))
        if self._times is not None:
            yield "times(x, 2)", self.multiplied(x, np.full(len(x), 2)), "plus(x, x)", plus(x, x)

    def values(self, elements: np.ndarray) -> Any:
        """What a column shows of elements."""
        return elements if self._lower is None else self._lower(elements)

    def _shown_as(self, result: Kind | None) -> Kind:
        found = self.kind if result is None else result
        if found not in KINDS or (self._lower is None and found is not self.kind):
            raise bad_argument("result", f"the kind of what `lower=` gives, which is {self.kind.__name__} without it", result)
        return found

    def _of_arrays(self, name: str, function: Callable[..., Any]) -> Arrays:
        """A function that is to give elements, as one of arrays."""
        plain, kind, dtype = _plain(name, function, self.kind), self.kind, self.dtype
        if kind is object:
            return plain

        def run(*arrays: np.ndarray) -> np.ndarray:
            found = np.asarray(plain(*arrays))
            if found.shape != arrays[0].shape or found.dtype.kind not in _TAKEN[kind]:
                raise wrong_outcome(name, f"{_article(kind)} for each of {len(arrays[0])} elements", found)
            return found.astype(dtype, copy=False)

        return run


class Group(Semigroup):
    """An Abelian group: of each element there is one that takes it away."""

    def __init__(
        self, name: str, kind: Kind, plus: Callable[..., Any], zero: Any, negate: Callable[..., Any], **others: Any
    ) -> None:
        super().__init__(name, kind, plus, **others)
        self.negate = self._of_arrays("negate", negate)
        self.zero = self._zero(zero)
        """An array of one element."""

    def there(self, elements: np.ndarray) -> np.ndarray:
        return ~alike(elements, np.repeat(self.zero, len(elements)))

    def laws(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Iterator[Law]:
        zeros, negated = np.repeat(self.zero, len(x)), self.negate(x)
        yield "plus(zero, x)", self.plus(zeros, x), "x", x
        yield "plus(x, negate(x))", self.plus(x, negated), "zero", zeros
        if self._times is not None:
            yield "times(x, -1)", self.multiplied(x, np.full(len(x), -1)), "negate(x)", negated
        yield from super().laws(x, y, z)

    def _doubled(self, elements: np.ndarray, counts: np.ndarray) -> np.ndarray:
        gone = np.flatnonzero(counts < 0)
        if len(gone):
            elements = elements.copy()
            elements[gone] = self.negate(elements[gone])
        return super()._doubled(elements, np.abs(counts))

    def _zero(self, zero: Any) -> np.ndarray:
        found = np.empty(1, self.dtype)
        try:
            found[0] = zero
        except (TypeError, ValueError, OverflowError):
            raise bad_argument("zero", _article(self.kind), zero) from None
        if self.kind is not object and found[0] != zero:
            raise bad_argument("zero", _article(self.kind), zero)
        return found


def _plain(name: str, function: Any, kind: Kind) -> Arrays:
    """A function as one of arrays: what it gives is not looked at."""
    count = 2 if name in ("plus", "times") else 1
    check_function(name, function, f"a function of {_GIVEN[name]}")
    check_calls(name, function, count, _GIVEN[name] if kind is object else f"{_GIVEN[name]}, as arrays")
    return np.frompyfunc(function, count, 1) if kind is object else function  # type: ignore[no-any-return]


def _article(kind: Kind) -> str:
    return f"{'an' if kind in (int, object) else 'a'} {kind.__name__}"
