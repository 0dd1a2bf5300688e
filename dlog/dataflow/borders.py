"""Into scopes and out of them."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataflow.base import Base, Definition
from dlog.dataflow.expressions import column_or
from dlog.dataflow.operands import Values
from dlog.dataflow.scopes import Scope, check_scope
from dlog.dataflow.site import Site
from dlog.engine.operators.arrange import entering
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.feedback import without_loop_time
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Borders(Base):
    """A collection is the same in a scope as around it; its times there have more coordinates, or other ones."""

    def enter(self, scope: Scope) -> Self:
        """The collection in a scope within: from the first iteration on."""
        check_scope("scope", scope)
        found = self
        for inner in scope.way_from(self.scope):
            function = entering(1) if inner.is_loop else _at_alt
            terms = tuple(term.then("enter", function) for term in found.terms)
            found = self._collection(inner, self.schema, terms, Definition("enter", (found,)), found)
        return found

    def enter_at(self, scope: Scope, iteration: Any) -> Self:
        """The collection in a loop, each row from the iteration on that an expression says."""
        check_scope("scope", scope)
        if scope.way_from(self.scope) != [scope] or not scope.is_loop:
            raise bad_argument("scope", "the loop within that of the collection", scope)
        site = Site(self.schema, self.scope.inner, self.graph.objects)
        expression = column_or(iteration)
        if expression.kind(self.schema) is not int:
            raise bad_argument("iteration", "an expression of integers", expression)
        return self._changed("enter_at", partial(_enter_at, expression.values(self.schema), site), scope=scope)

    def leave(self) -> Self:
        """The collection as the scope around has it: out of a loop, what it comes to in the end."""
        if self.scope.parent is None:
            raise DlogError(Diagnostic("no-scope-around", "the collection is in no scope that could be left"))
        return self._changed("leave", without_loop_time if self.scope.is_loop else _without_nudge, scope=self.scope.parent)


def _enter_at(values: Values, site: Site, delta: Delta) -> Delta:
    iterations = values(site.frame(delta))
    if len(iterations) and int(iterations.min()) < 0:
        raise DlogError(Diagnostic("bad-time", "`enter_at` needs iterations of 0 or more"))
    return Delta(delta.columns, np.concatenate([delta.times, iterations[None, :]]), delta.diffs)


def _at_alt(delta: Delta) -> Delta:
    return Delta(delta.columns, 2 * delta.times, delta.diffs)


def _without_nudge(delta: Delta) -> Delta:
    return Delta(delta.columns, delta.times // 2, delta.diffs)
