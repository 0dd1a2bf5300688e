"""Diffs that need more than 64 bits: refused, as kernels add and multiply words, and wrap around.

Nothing can overflow whose *weight*, the sum of all |diff|, is small. Only where it is not are sums worked out in halves of
words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.grammar.diagnostics import Diagnostic, DlogError

HEAVY = 2**62
"""Weights from here on are looked at more closely: as floats they are rounded."""
FEW = 16
"""Numbers that Python looks at sooner than NumPy."""
_LEAST = -(2**63)


def diff_overflow(what: str) -> DlogError:
    """The mistake that something makes diffs of 2^63 or more, or of -2^63 or less: of those the other sign is a word, too."""
    note = "how often a row is there, and what `sum` and `count` come to, is a number of 64 bits"
    return DlogError(Diagnostic("diff-overflow", f"{what} beyond 64 bits", notes=(note,)))


def weight_of(diffs: np.ndarray) -> int:
    """At least the sum of all |diff|; rounded, where that is much."""
    if len(diffs) <= FEW:
        return sum(map(abs, diffs.tolist()))
    bound = len(diffs) * largest(diffs)
    return bound if bound < HEAVY else int(np.add.reduce(np.abs(diffs, dtype=np.float64)))


def products(left: np.ndarray, right: np.ndarray, what: str) -> np.ndarray:
    """Diffs multiplied, element by element. Raises DlogError where one of them needs more than 64 bits."""
    found = left * right
    if largest(left) * largest(right) >= 2**63:
        with np.errstate(all="ignore"):
            wrong = (right != 0) & (left != np.where(right == 0, 0, found // right))
        if (wrong | (found == _LEAST)).any():
            raise diff_overflow(f"{what} multiplies diffs")
    return np.asarray(found)


def largest(numbers: np.ndarray) -> int:
    """At least the largest |number|, and less than twice as much; 0 without any."""
    if len(numbers) <= FEW:
        return max(map(abs, numbers.tolist()), default=0)
    bits = int(np.bitwise_or.reduce(numbers))
    return bits if bits >= 0 else max(int(np.maximum.reduce(numbers)), -int(np.minimum.reduce(numbers)))


def check_runs(diffs: np.ndarray, starts: np.ndarray, what: str) -> None:
    """Raises DlogError where the sum of a run needs more than 64 bits; each begins at one of `starts`, and has a row."""
    if len(starts):
        high, low = _halves(diffs)
        _check(np.add.reduceat(high, starts), np.add.reduceat(low, starts), what)


def check_sums(columns: Sequence[np.ndarray], diffs: np.ndarray, what: str) -> None:
    """Raises DlogError where the sum over rows with equal columns needs more than 64 bits."""
    order = np.lexsort(columns[::-1]) if len(columns) else np.arange(len(diffs))
    check_runs(diffs[order], np.flatnonzero(_begins([c[order] for c in columns], len(diffs))), what)


def check_history(owners: np.ndarray, times: np.ndarray, diffs: np.ndarray, what: str) -> None:
    """Raises DlogError where what an owner has at some time needs more than 64 bits. In loops within loops all that comes, and
    all that goes, has to be less."""
    if len(times) > 2:
        check_sums((owners,), np.maximum(diffs, 0), what)
        check_sums((owners,), np.minimum(diffs, 0), what)
    elif len(times) == 2:
        for iteration in np.unique(times[1]):
            chosen = times[1] <= iteration
            _check_rounds(owners[chosen], times[0, chosen], diffs[chosen], what)
    else:
        _check_rounds(owners, times[0], diffs, what)


def _check_rounds(owners: np.ndarray, rounds: np.ndarray, diffs: np.ndarray, what: str) -> None:
    """The same where times are rounds."""
    order = np.lexsort((rounds, owners))
    owners, rounds = owners[order], rounds[order]
    begins = _begins([owners], len(order))
    ends = np.append(_begins([owners, rounds], len(order))[1:], True)
    parts = []
    for half in _halves(diffs[order]):
        sums = np.cumsum(half)
        before = (sums - half)[begins]
        parts.append((sums - before[np.cumsum(begins) - 1])[ends])
    _check(parts[0], parts[1], what)


def _halves(diffs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper and lower halves, of which 2^31 rows add up to a word."""
    return diffs >> 32, diffs & 0xFFFFFFFF


def _check(high: np.ndarray, low: np.ndarray, what: str) -> None:
    high = high + (low >> 32)
    least = (high == -(2**31)) & ((low & 0xFFFFFFFF) == 0)
    if ((high < -(2**31)) | (high >= 2**31) | least).any():
        raise diff_overflow(f"{what} add up")


def _begins(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Whether a run of equal values begins in each row of sorted columns."""
    found = np.zeros(rows, bool)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found
