"""Windows: over time, the function that gives each row those that its time is in; and over events, what is made of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.axis import amount, axis
from dlog.dataflow.kinds import encode
from dlog.dataflow.schema import Schema, check_names, column_names
from dlog.dataflow.series import MOST_NUMBERS
from dlog.dataflow.site import Bound, Site
from dlog.engine.operators.delta import Delta, repeated
from dlog.engine.operators.slices import GREATEST, LEAST
from dlog.grammar.diagnostics import Diagnostic, DlogError

CHUNK = 1 << 20
"""Values of windows that are written out at a time."""


def sliding(time: str, size: Any, slide: Any, origin: Any, names: Any, site: Site) -> Bound:
    """Each row with every window `[origin + k * slide, origin + k * slide + size)` that its time is in. Where the size is that
    of several slides, a window ends to the bit where another one begins."""
    kind = axis(site.schema, "time", time)
    length, step = amount("size", kind, size), amount("slide", kind, slide)
    base, most = _origin(kind, origin), _most_windows(length, step)
    schema = with_bounds(site.schema, kind, names)
    place = len(site.schema.names)
    windows = (_windows_of_integers if kind is int else _windows_of_floats)(time, length, step, base)

    def run(delta: Delta) -> Delta:
        rows, *bounds = _limited(windows, site.frame(delta)[time], most)
        chosen = delta.only(rows)
        words = (encode(kind, bound, site.objects) for bound in bounds)
        return chosen.with_columns((*chosen.columns[:place], *words, *chosen.columns[place:]))

    return schema, run


Bounds = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The numbers of the rows, and their windows: from where on, and until before where."""


def _most_windows(length: Any, step: Any) -> int:
    """In how many windows a time is at most. Raises DlogError for more than can be listed."""
    found = -(-length // step)
    if not found <= MOST_NUMBERS:
        raise bad_argument("size", f"at most {MOST_NUMBERS:,} times `slide`, which is {step}", length)
    return int(found)


def _limited(windows: Callable[[np.ndarray], Bounds], times: np.ndarray, most: int) -> Bounds:
    """The windows of times, each in so many. Raises DlogError for too many."""
    if most * len(times) > MOST_NUMBERS:
        raise _too_many(f"more than {MOST_NUMBERS:,} rows", most)
    try:
        return windows(times)
    except MemoryError:
        raise _too_many("more rows than there is memory for", most) from None


def _too_many(what: str, most: int) -> DlogError:
    message = f"`sliding_window` gives {what} at once: each row is in {most:,} windows"
    return DlogError(Diagnostic("too-many-numbers", message))


def _windows_of_integers(name: str, length: Any, step: Any, base: Any) -> Callable[[np.ndarray], Bounds]:
    """Raises DlogError where a bound needs more than 64 bits."""

    def windows(times: np.ndarray) -> Bounds:
        steps = np.arange(-(-length // step) - 1, -1, -1) * step
        since = ((times % step - base % step) % step)[:, None] + steps
        rows, which = np.nonzero(since < length)
        times, since = times[rows], since[rows, which]
        check_windows(name, times, (times < LEAST + since) | (times > GREATEST - (length - since)), "size", length)
        starts = times - since
        return rows, starts, starts + length

    return windows


def _windows_of_floats(name: str, length: Any, step: Any, base: Any) -> Callable[[np.ndarray], Bounds]:
    """Raises DlogError where windows are less than floats tell apart. No window has a time that is infinite, or NaN."""
    slides, width = length // step, int(-(-length // step)) + 1

    def windows(times: np.ndarray) -> Bounds:
        with np.errstate(invalid="ignore"):
            numbers = ((times - base) // step)[:, None] - np.arange(width - 1, -2, -1)  # one more at each end: floats round
            starts = base + numbers * step
            ends = base + (numbers + slides) * step if slides * step == length else starts + length
            rows, which = np.nonzero((starts <= times[:, None]) & (times[:, None] < ends))
        if length >= step:
            check_windows(name, times, np.isfinite(times) & (np.bincount(rows, minlength=len(times)) == 0), "size", length)
        return rows, starts[rows, which], ends[rows, which]

    return windows


def check_windows(name: str, times: np.ndarray, beyond: np.ndarray, what: str, length: Any) -> None:
    """Raises DlogError where a bound of the window of a time is no number that there is, or not apart from it."""
    if beyond.any():
        window = f"the window of {what} {length} around {times[beyond.argmax()]} has bounds"
        if times.dtype.kind == "f":
            message = f"{window} that floats do not tell apart: `{name}`"
            note = "leave such times out by a `filter` before, or have larger windows"
        else:
            message = f"{window} beyond 64 bits: `{name}`"
            note = "bounds of windows are numbers of 64 bits: leave such times out by a `filter` before"
        raise DlogError(Diagnostic("window-overflow", message, notes=(note,)))


def with_bounds(schema: Schema, kind: Any, names: Any) -> Schema:
    """A schema with the two columns of a window's bounds."""
    bounds = column_names("names", names)
    if len(bounds) != 2:
        raise bad_argument("names", "two names", names)
    check_names((*schema.names, *bounds), "`names=` gives the bounds of windows other names")
    return schema.with_columns((*schema.names, *bounds), (*schema.kinds, kind, kind))


def _origin(kind: Any, origin: Any) -> Any:
    if isinstance(origin, bool) or not isinstance(origin, int | np.integer if kind is int else int | float | np.integer):
        raise bad_argument("origin", f"a value of kind {kind.__name__}", origin)
    return kind(origin)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """For each event the events of its window: from `low` up to `high`. None is empty."""

    low: np.ndarray
    high: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.asarray(self.high - self.low)

    def reduced(self, function: Any, values: np.ndarray) -> np.ndarray:
        """What an associative function makes of the values of each."""
        return self.each(lambda low, starts, places: function.reduceat(values[places], starts), values.dtype)

    def each(self, function: Callable[..., np.ndarray], kind: Any) -> np.ndarray:
        """What a function of some windows gives: it gets their numbers, where the events of each begin, and these written
        out."""
        found = np.empty(len(self.low), kind)
        sizes = self.sizes
        written = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            limit = written[begin] - sizes[begin] + CHUNK
            end = max(begin + 1, int(np.searchsorted(written, limit, side="right")))
            part = np.arange(begin, end)
            _, places = repeated(self.low[part], sizes[part])
            found[begin:end] = function(part, np.cumsum(sizes[part]) - sizes[part], places)
            begin = end
        return found
