"""Exact sums of floats, by integers: a float is a sum of digits, each of 24 bits and at one of 88 places.

So the sum of any floats is a sum of integers for each place that they have, which does not depend on their order, and of which
what is taken away leaves nothing. It is rounded once, to the float that is nearest, when somebody looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dlog.engine.trace.overflow import largest, products

BITS = 24
_MASK, _BASE = (1 << BITS) - 1, float(1 << BITS)
_LEAST = -1074
"""The power of two that a digit at place 0 is multiplied by: that of the least float."""
_FRACTION, _EXPONENTS = 52, 0x7FF
SPECIAL = 1 << 10
"""The first of the places of what has no digits: infinities of either sign, and NaN. There diffs say how often it is there."""
_SPECIALS = np.array([np.inf, -np.inf, np.nan])
_MANY = 1 << 38
"""From how often on a digit is split: less often, it needs no more than 62 bits."""
_ROOM = 4
"""Places behind the last one, for what sums of 64 bits carry, and what carries come to."""
FEW_PLACES = 6
"""By how many places values may begin apart whose digits are summed up place by place."""
CHUNK = 1 << 16
"""Sums that are rounded at a time."""
Digits = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The number of the value, the place, and the digit so often as the value is there."""


def digits_of(values: np.ndarray, counts: np.ndarray) -> Digits:
    """What floats are, which are there as often as `counts` says."""
    first, digits, finite = _split(values)
    parts = []
    for place, each in enumerate(digits):
        rows = np.flatnonzero((each != 0) & finite & (counts != 0))
        parts += _often(rows, first[rows] + place, each[rows], counts[rows])
    if not finite.all():
        rows = np.flatnonzero(~finite)
        parts.append((rows, SPECIAL + np.where(np.isnan(values[rows]), 2, values[rows] < 0), counts[rows]))
    rows, places, diffs = (np.concatenate(each) for each in zip(*parts, strict=True))
    return rows, places, diffs


def digits_by_place(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The digits of floats at each place that some have, and these places; None where they are many, and for infinities."""
    first, digits, finite = _split(values)
    there = np.flatnonzero(values)
    if not len(there):
        return np.empty(0, np.int64), np.empty((0, len(values)), np.int64)
    least, most = int(first[there].min()), int(first[there].max())
    if most - least > FEW_PLACES or not finite.all():
        return None
    found, numbers = np.zeros((most - least + len(digits), len(values)), np.int64), np.arange(len(values))
    offsets = np.clip(first - least, 0, most - least)  # a zero is at the first place of all
    for place, each in enumerate(digits):
        found[offsets + place, numbers] = each
    kept = np.flatnonzero(found.any(axis=1))
    return least + kept, found[kept]


def _split(values: np.ndarray) -> tuple[np.ndarray, Sequence[np.ndarray], np.ndarray]:
    """The first place of floats, their digits from there on, and which have some: infinities and NaN have none."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    exponents = bits >> _FRACTION & _EXPONENTS
    fractions = (bits & ((1 << _FRACTION) - 1)) | (exponents > 0).astype(np.int64) << _FRACTION
    first, shift = np.divmod(np.maximum(exponents, 1) - 1, BITS)
    low = (fractions & _MASK) << shift
    middle = ((fractions >> BITS & _MASK) << shift) + (low >> BITS)
    high = (fractions >> 2 * BITS << shift) + (middle >> BITS)
    signs = 1 | bits >> 63
    return first, [signs * each for each in (low & _MASK, middle & _MASK, high & _MASK, high >> BITS)], exponents != _EXPONENTS


def _often(rows: np.ndarray, places: np.ndarray, digits: np.ndarray, counts: np.ndarray) -> list[Digits]:
    """Digits so often as they are there; where that is very often, at several places."""
    parts = []
    while largest(counts) >= _MANY:
        low = counts & _MASK
        above = low >> BITS - 1  # which takes one less of the next place
        parts.append((rows, places, digits * (low - (above << BITS))))
        counts = (counts >> BITS) + above
        kept = np.flatnonzero(counts)
        rows, places, digits, counts = rows[kept], places[kept] + 1, digits[kept], counts[kept]
    return [*parts, (rows, places, products(digits, counts, "`explode`"))]


def rounded_sums(owners: np.ndarray, places: np.ndarray, diffs: np.ndarray, count: int) -> np.ndarray:
    """The sums of digits by the numbers of what they are of, which ascend and are less than `count`; no two digits are of one
    owner and place."""
    found, digits = np.zeros(count), places < SPECIAL
    whole = digits.all()
    of, at, often = (owners, places, diffs) if whole else (owners[digits], places[digits], diffs[digits])
    with np.errstate(all="ignore"):  # sums may be infinite, or NaN
        for begin in range(0, count, CHUNK):
            start, end = np.searchsorted(of, (begin, begin + CHUNK))
            if start < end:
                part = slice(start, end)
                size = min(CHUNK, count - begin)
                found[begin : begin + size] = _rounded(of[part] - begin, at[part], often[part], size)
        if not whole:
            np.add.at(found, owners[~digits], _SPECIALS[places[~digits] - SPECIAL] * diffs[~digits])
    return found


def _rounded(owners: np.ndarray, places: np.ndarray, diffs: np.ndarray, count: int) -> np.ndarray:
    least = int(places.min())
    sums = np.zeros((int(places.max()) - least + 1 + _ROOM, count), np.int64)
    sums[places - least, owners] = diffs
    _carry(sums)
    signs = np.where(sums[-1] < 0, -1, 1)
    sums *= signs
    _carry(sums)
    return np.asarray(signs * _nearest(sums, least))


def _carry(sums: np.ndarray) -> None:
    """Makes digits of sums, place by place: only the last one may be negative then."""
    carried = sums[:-1] >> BITS
    sums[:-1] &= _MASK
    sums[1:] += carried  # not yet a digit, but far from 64 bits
    for low, high in pairwise(sums):
        high += low >> BITS
        low &= _MASK


def _nearest(digits: np.ndarray, least: int) -> np.ndarray:
    """The floats that are nearest to what digits say. Those of the first four places that count are two floats, which are
    added, and so rounded; whether there is more decides a tie."""
    width, count = digits.shape
    first = width - 1 - (digits[::-1] != 0).argmax(axis=0)
    padded, numbers = np.concatenate([np.zeros((3, count), np.int64), digits]), np.arange(count)
    leading = [padded[first + 3 - place, numbers] for place in range(4)]
    more = np.arange(width)[:, None] < first - 3
    sticky = ((digits != 0) & more).any(axis=0)
    high = (leading[0] << BITS | leading[1]).astype(np.float64)
    low = (leading[2] << BITS | leading[3] | sticky).astype(np.float64)
    return np.asarray(np.ldexp(high + low / (_BASE * _BASE), BITS * (first - 1 + least) + _LEAST))
