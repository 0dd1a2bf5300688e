"""Whether a value that is known already is in a range: comparisons, where making the whole range would take its length.

    x = range(a, b)    ->    x != b, x >= min(a, b), x <= max(a, b)
    x = range(a, b, 3)    ->    x >= a, x < b, (x - a) % 3 = 0
"""

from __future__ import annotations

from dlog.engine.ir.nodes import Filter
from dlog.engine.ir.rules import Compare, Constant, Functor, Generator, Kind, Term


def range_checks(generator: Generator) -> tuple[Filter, ...] | None:
    """The filters that keep rows whose value is in the range of a generator; None where only its values can tell: of floats, or
    with a step that is not in the text."""
    value, kind = generator.results[0], generator.kind
    if generator.function != "range" or value is None or kind not in (Kind.NUMBER, Kind.UNSIGNED):
        return None
    first, end, *steps = generator.args
    if not steps:
        least, most = Functor("min", (first, end), kind, kind), Functor("max", (first, end), kind, kind)
        return _filters(value, kind, ("!=", end), (">=", least), ("<=", most))
    if not isinstance(steps[0], Constant):
        return None
    step = int(steps[0].value or 0)
    if step == 0:
        return (*_filters(value, kind, ("=", first)), Filter(Compare("!=", first, end, kind)))
    inside = ((">=", first), ("<", end)) if step > 0 else (("<=", first), (">", end))
    found = _filters(value, kind, *inside)
    if abs(step) == 1:
        return found
    way = Functor("-", (value, first) if step > 0 else (first, value), kind, kind)
    length = way if kind is Kind.UNSIGNED else Functor("itou", (way,), Kind.UNSIGNED, Kind.UNSIGNED)
    rest = Functor("%", (length, Constant(abs(step), Kind.UNSIGNED)), Kind.UNSIGNED, Kind.UNSIGNED)
    return (*found, Filter(Compare("=", rest, Constant(0, Kind.UNSIGNED), Kind.UNSIGNED)))


def range_length(generator: Generator) -> float:
    """How many values a range has whose bounds and step are in the text; 0 where they are not."""
    given = [a.value for a in generator.args if isinstance(a, Constant) and isinstance(a.value, int | float)]
    if generator.function != "range" or len(given) < len(generator.args):
        return 0.0
    step = abs(given[2]) if len(given) > 2 else 1
    return max(1.0, abs(given[1] - given[0]) / step) if step else 1.0


def _filters(value: Term, kind: Kind, *bounds: tuple[str, Term]) -> tuple[Filter, ...]:
    return tuple(Filter(Compare(op, value, bound, kind)) for op, bound in bounds)
