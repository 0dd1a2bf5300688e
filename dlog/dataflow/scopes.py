"""The graph of a dataflow while it is built, and its scopes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Objects
from dlog.engine.operators import scope as engine
from dlog.engine.operators.operator import Operator
from dlog.engine.operators.scheduler import Scheduler
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do instead of what is refused: to add to a dataflow that has begun, to combine collections of `two`."""

    begun: str = "a new dataflow can import arrangements of this one: `flow.import_(arrangement)`"
    two: str = "make both in one, or import an arrangement of the other one: `Dataflow(beside=other).import_(arrangement)`"


@dataclass(eq=False)
class DataflowGraph:
    """What all parts of a dataflow share."""

    scheduler: Scheduler
    objects: Objects = field(default_factory=Objects)
    undefined: set[Any] = field(default_factory=set)
    """Variables that have no definition yet."""
    advice: Advice = Advice()
    session: Any = None
    """What has it do the rounds of a session, as long as any part of the dataflow is held."""

    @property
    def operators(self) -> list[Operator]:
        return [operator for operator in self.scheduler.operators if isinstance(operator, Operator)]

    def check_defined(self) -> None:
        """Refuses to run while a variable has no definition: it would be empty, whatever it starts from."""
        if self.undefined:
            names = ", ".join(sorted({f"({variable.schema})" for variable in self.undefined}))
            note = "`set` it to what it is at the next iteration"
            raise DlogError(Diagnostic("never-defined", f"a variable of a loop has no definition: {names}", notes=(note,)))

    def check_open(self) -> None:
        """Refuses more operators once rounds are done: they would have missed them."""
        if self.scheduler.rounds.high:
            message = "rounds have been done: operators can be added no longer"
            raise DlogError(Diagnostic("dataflow-begun", message, notes=(self.advice.begun,)))

    def check_same(self, other: DataflowGraph) -> None:
        """Refuses to combine collections of two dataflows."""
        if other is not self:
            related = self.objects is other.objects or (self.session is None and other.session is None)
            note = self.advice.two if related else _FEED
            raise DlogError(Diagnostic("two-dataflows", "the collections are of two dataflows", notes=(note,)))


@dataclass(frozen=True, eq=False)
class Scope:
    """Where a collection's times are of one form. The root's are rounds."""

    graph: DataflowGraph
    inner: engine.Scope
    parent: Scope | None = None

    def loop(self) -> Scope:
        """A scope within, whose times have one more iteration."""
        return Scope(self.graph, self.inner.loop(), self)

    def altneu(self) -> Scope:
        """A scope within that has every time twice, `Alt t` just before `Neu t`; where times are rounds, and so totally
        ordered."""
        if self.inner.depth > 1:
            note = (
                "with iterations times are partially ordered, and changes at incomparable ones never meet: use `propose` and "
                "`half_join`"
            )
            raise DlogError(Diagnostic("partially-ordered", "there is no alt/neu scope within a loop", notes=(note,)))
        if self.inner.scale > 1:
            raise DlogError(Diagnostic("partially-ordered", "there is no alt/neu scope within another one"))
        return Scope(self.graph, self.inner.altneu(), self)

    @property
    def is_loop(self) -> bool:
        """Whether its times have an iteration that those around lack."""
        return self.parent is not None and self.parent.inner.depth < self.inner.depth

    def __repr__(self) -> str:
        return f"dlog.dataflow.Scope, {'the root' if self.parent is None else 'a loop' if self.is_loop else 'alt/neu'}"

    def way_from(self, outer: Scope) -> list[Scope]:
        """The scopes to enter from another one around it, the outermost first. Raises DlogError if that is not around it."""
        way: list[Scope] = []
        scope: Scope | None = self
        while scope is not None and scope is not outer:
            way.append(scope)
            scope = scope.parent
        if scope is None:
            raise bad_argument("scope", _WITHIN, self)
        return way[::-1]


_FEED = "`session.feed(relation, collection)` has a relation follow one, and that is `session.collection(relation)`"
_WITHIN = "a scope within that of the collection"


def check_scope(name: str, given: Any, meant: str = _WITHIN) -> None:
    if not isinstance(given, Scope):
        raise bad_argument(name, meant, given)
