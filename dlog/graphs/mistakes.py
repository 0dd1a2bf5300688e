"""The mistakes one can make with a graph, as diagnostics."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest


def mistake(code: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic(code, message, notes=notes))


def unknown_vertex(value: object, where: str) -> DlogError:
    note = "the graph has the vertices of its vertex table, or, without one, the ends of its edges"
    return mistake("unknown-vertex", f"{where}: there is no vertex {value!r}", note)


def missing_column(what: str, column: str, columns: Iterable[str]) -> DlogError:
    listed = list(columns)
    close = closest(column, listed)
    notes = [f"it has {', '.join(f'`{c}`' for c in listed)}" if listed else "it has no columns"]
    if close:
        notes.append(f"did you mean `{close}`?")
    return mistake("missing-column", f"the {what} table has no column `{column}`", *notes)


def with_nulls(what: str, column: str) -> DlogError:
    return mistake("null-vertex", f"the column `{column}` of the {what} table has nulls", "every vertex needs an id")


def not_a_graph(value: object) -> DlogError:
    note = "give a table of edges, vertices and edges, a pair of arrays, a list of tuples, a NetworkX graph or a GraphFrame"
    return mistake("not-a-graph", f"a graph cannot be made of {_article(type(value).__name__)}", note)


def negative_weight(column: str, value: object) -> DlogError:
    note = "weights only add up"
    return mistake("negative-weight", f"the weight column `{column}` has a negative weight: {value}", note)


def not_converged(tolerance: float, iterations: int) -> DlogError:
    note = "give a greater tolerance, or `max_iterations`, which takes the ranks as they are then"
    return mistake("not-converged", f"ranks still change by more than {tolerance:g} after {iterations} iterations", note)


def bad_weight(column: str, reason: str) -> DlogError:
    return mistake("bad-weight", f"the weight column `{column}` {reason}", "weights are numbers")


def out_of_range(name: str, value: object, allowed: str) -> DlogError:
    return mistake("bad-argument", f"`{name}` must be {allowed}, not {value!r}")


def exactly_one(names: Iterable[str]) -> DlogError:
    listed = list(names)
    quoted = ", ".join(f"`{n}`" for n in listed[:-1]) + f" and `{listed[-1]}`"
    return mistake("bad-argument", f"give exactly one of {quoted}")


def _article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def check_count(name: str, value: object, least: int) -> int:
    """A whole number that is at least `least`; DlogError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise out_of_range(name, value, f"a whole number of at least {least}")
    return value


def check_share(name: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise out_of_range(name, value, "a number from 0 to 1")
    return float(value)
