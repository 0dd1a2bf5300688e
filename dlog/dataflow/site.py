"""Where a linear operator is applied, and what binds it to that place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Objects
from dlog.dataflow.operands import DeltaFrame, Valued, Values
from dlog.dataflow.rows import rows_of
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.operator import Function
from dlog.engine.operators.scope import Scope


@dataclass(frozen=True, slots=True)
class Site:
    """Where a function is applied: to updates of a schema, in a scope."""

    schema: Schema
    scope: Scope
    objects: Objects

    def frame(self, delta: Delta) -> DeltaFrame:
        return DeltaFrame(self.schema, delta.columns, delta.rows, self.objects)

    def hidden(self, delta: Delta) -> Columns:
        return delta.columns[len(self.schema.names) :]

    def rows(self, delta: Delta) -> list[tuple[Any, ...]]:
        return rows_of(self.schema, delta.columns, delta.rows, self.objects)


Bound = tuple[Schema, Function]
"""The schema of what comes out, and the function."""


@dataclass(frozen=True, slots=True)
class LinearStep:
    """One linear operator, by name, and the function that binds it, with its arguments, to where it is applied."""

    name: str
    function: Callable[..., Bound]
    arguments: tuple[Any, ...] = ()

    def bind(self, site: Site) -> Bound:
        return self.function(*self.arguments, site)


def integers(site: Site, name: str, given: Valued, meant: str = "a column or expression of integers") -> Values:
    """What gives the values of an argument. Raises DlogError where these are no integers."""
    if given.kind(site.schema) is not int:
        raise bad_argument(name, meant, given.kind(site.schema).__name__)
    return given.values(site.schema)
