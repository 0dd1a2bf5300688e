"""Calculus: changes of collections as collections, and collections out of changes.

In an alt/neu scope each round has two moments, `Alt t` when changes happen and `Neu t` just after. `differentiate` gives the
collection that has each change at `Alt t` alone; what is made of it there is made of changes; `integrate` adds that up. So a
change meets the other collections as they are when it happens, and never again."""

from __future__ import annotations

from typing import Any, Literal, Self

from dlog.arguments import bad_argument
from dlog.dataflow.base import Base, Definition, check_collection, key_pairs
from dlog.dataflow.borders import Borders
from dlog.dataflow.joins import Joins, joined_schema
from dlog.dataflow.ordered import OrderedGroups
from dlog.dataflow.reductions import Reductions
from dlog.dataflow.schema import plain
from dlog.dataflow.scopes import Scope, check_scope
from dlog.engine.operators.asof import AsOfJoin
from dlog.engine.operators.delta import Delta, together
from dlog.grammar.diagnostics import Diagnostic, DlogError

_ALTNEU = "an alt/neu scope within that of the collection: `flow.scope.altneu()`"


class Calculus(Joins, Reductions, OrderedGroups, Borders):
    """Exact where times are totally ordered. In loops they are not, and changes at incomparable times never meet: there
    `propose` and `half_join` do what a delta query needs."""

    def differentiate(self, scope: Scope) -> Self:
        """The collection of its changes, in an alt/neu scope: each is there at `Alt t`, when it happens, and gone at `Neu
        t`."""
        check_scope("scope", scope, _ALTNEU)
        if scope.is_loop or scope.way_from(self.scope) != [scope]:
            raise bad_argument("scope", _ALTNEU, scope)
        return self._changed("differentiate", _blips, scope=scope)

    def integrate(self) -> Self:
        """The collection that changes come to: what is at `Neu` is left out."""
        return self._changed("integrate", _without_blips, scope=self._around())

    def neu(self) -> Self:
        """The collection in an alt/neu scope with its changes at `Neu`: after those that others have at `Alt` of the same
        time."""
        self._around()
        return self._changed("neu", _at_neu)

    def asof_join(
        self, other: Base, on: Any = None, *, suffix: str = "_right", retract: Literal["now", "original"] = "now"
    ) -> Self:
        """A join in which a row meets what the other side has when the row comes: later changes there change nothing.

        When the row goes, `retract` decides what goes with it: what it would meet `"now"`, which is what integrating the
        changes means, or what it met: the `"original"`. That is for rows that are there or not, equal ones count as one: it
        meets what the first of them does, and goes with the last."""
        check_collection("other", other)
        self.graph.check_same(other.graph)
        if retract == "now":
            inner = self.scope.altneu()
            there = other.enter(inner) if isinstance(other, Borders) else other
            return self.differentiate(inner).join(there, on, suffix).integrate()._defined("asof_join", (self, other))
        if retract != "original":
            raise bad_argument("retract", '"now" or "original"', retract)
        return self._asof_original(other, on, suffix)

    def _asof_original(self, other: Base, on: Any, suffix: str) -> Self:
        if self.scope.inner.depth > 1:
            raise DlogError(Diagnostic("partially-ordered", "there is no as-of join within a loop"))
        self._check_together(other)
        plain(self.schema, "`asof_join`")
        plain(other.schema, "`asof_join`")
        left, right = key_pairs(self.schema, other.schema, on)
        rows = self.distinct()._ordered((*left, *self.schema.others(left)))
        operator = rows._operator(AsOfJoin, self.schema.arity, len(left), other._arranged(right))
        schema = joined_schema(self.schema, other.schema, left, right, suffix)
        return self._emitted(operator, schema, Definition("asof_join", (self, other)))

    def _around(self) -> Scope:
        if self.scope.parent is None or self.scope.is_loop:
            raise DlogError(Diagnostic("no-altneu-scope", "only what is in an alt/neu scope has `Alt` and `Neu`"))
        return self.scope.parent


# Times of an alt/neu scope are rounds: Alt r is 2r, Neu r is 2r + 1.


def _at_neu(delta: Delta) -> Delta:
    return Delta(delta.columns, delta.times | 1, delta.diffs)


def _blips(delta: Delta) -> Delta:
    came = Delta(delta.columns, 2 * delta.times, delta.diffs)
    return together([came, Delta(delta.columns, came.times + 1, -delta.diffs)])


def _without_blips(delta: Delta) -> Delta:
    kept = delta.only(delta.times[0] % 2 == 0)
    return Delta(kept.columns, kept.times // 2, kept.diffs)
