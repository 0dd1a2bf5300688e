"""The context in which the paths of a scope are cut, and the record of what the cut paths need: exchanges, copies, mirrors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import inf

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import HalfJoin, Insert, Path, Scan, Scope, SemiJoin
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.column_types import Types
from dlog.engine.plan.exchange.costs import Sizes
from dlog.engine.plan.exchange.exchanges import Exchange, Phase, delivery_to
from dlog.engine.plan.exchange.places import Copy, Heavy, Place
from dlog.engine.plan.joins.emit import relations_of
from dlog.engine.plan.static.restrict import restrict_paths
from dlog.engine.plan.statistics import UNKNOWN_ROWS

GROWTH = 50.0
"""How many times as many rows as it is made from a relation of pairs is taken to have."""


@dataclass
class PartitionContext:
    """The inputs of cutting a path, and the needs of the cut paths of a phase. Each reader of a mirror says which rows it can
    use: those that pass a semijoin with a relation that is everywhere, or all (None)."""

    scope: Scope
    types: Types
    homes: Mapping[str, Place]
    sizes: Sizes
    everywhere: int
    split: Mapping[str, Heavy]
    mirrors: dict[Copy, dict[SemiJoin | None, None]] = field(default_factory=dict)
    copies: dict[Copy, None] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    streams: list[Path] = field(default_factory=list)
    largest: float = 0.0
    """Rows of the largest complete relation that is read."""

    def __post_init__(self) -> None:
        if not self.largest:
            paths = (*self.scope.enter, *self.scope.loop)
            read = {name for path in paths for step in path.steps for name in relations_of(step)}
            self.largest = max([UNKNOWN_ROWS, *(self.sizes.about(name) for name in read if not self.grows(name))])

    def trial(self) -> PartitionContext:
        """A context like this whose records are thrown away."""
        return PartitionContext(
            self.scope, self.types, self.homes, self.sizes, self.everywhere, self.split, largest=self.largest
        )

    def grows(self, relation: str) -> bool:
        return relation in self.scope.variables

    def take_phase(self, paths: tuple[Path, ...]) -> Phase:
        """The phase that begins with these paths, and all that was booked since the last one."""
        made = Phase(paths, tuple(self.streams), tuple(self.copies), tuple(self.exchanges.values()))
        self.copies, self.exchanges, self.streams = {}, {}, []
        return made

    def with_mirrors(self, loop: Phase) -> Phase:
        """The loop with what keeps the copies of growing relations up to date."""
        paths, exchanges = list(loop.paths), list(loop.exchanges)
        for copy, uses in self.mirrors.items():
            types = self.types.columns(copy.relation)
            exchange = Exchange(f"@out {copy.name}", copy.place, "copy", types)
            exchanges.append(replace(exchange, delivery=delivery_to(exchange, copy.name, True)))
            seed = Scan(copy.relation, tuple((c, c) for c in range(len(types))), changes=True)
            sink = Insert(exchange.name, tuple(Variable(c) for c in range(len(types))), False)
            sifts: list[tuple[SemiJoin, ...]] = [()] if None in uses else [(use,) for use in uses if use is not None]
            paths += [Path(-1, seed, steps, sink, len(types)) for steps in sifts]
        return replace(loop, paths=tuple(paths), exchanges=tuple(exchanges))

    def restricted(self, loop: Phase) -> Phase:
        """The loop with arrangements of growing relations, and of their copies here, without rows that lead nowhere here."""
        lattices = {lattice.relation for lattice in self.scope.lattices}
        growing = frozenset((*self.scope.variables, *(copy.name for copy in self.mirrors)))
        whole = frozenset((*lattices, *(copy.name for copy in self.mirrors if copy.relation in lattices)))
        paths, streams = (restrict_paths(given, growing, whole) for given in (loop.paths, loop.streams))
        return replace(loop, paths=paths, streams=streams)

    def send_home(self, sink: Insert) -> Insert:
        """The sink for rows whose home may be another worker."""
        name = f"@out {sink.relation}"
        types = self.types.columns(sink.relation)
        exchange = Exchange(name, self.homes[sink.relation], "home", types, heavy=self.split.get(sink.relation, ()))
        held = self.exchanges.get(name)
        distinct = sink.distinct or (held is not None and held.delivery is not None and _inserts_distinct(held.delivery))
        self.exchanges[name] = replace(exchange, delivery=delivery_to(exchange, sink.relation, distinct))
        return Insert(name, sink.terms, sink.distinct)

    def cuts(self, relation: str, column: int) -> bool:
        """Whether a copy of the relation may be cut by the column: rows that replace each other must meet."""
        return all(x.relation != relation or x.column != column for x in self.scope.lattices)

    def reaches_everywhere(self, relation: str) -> bool:
        return not self.grows(relation) and self.sizes.rows(relation) <= self.everywhere

    def seeds(self, path: Path) -> float:
        """How many rows seed a path, about."""
        if not isinstance(path.seed, Scan):
            return 1.0
        return (
            self.estimated_rows(path.seed.relation) if self.grows(path.seed.relation) else self.sizes.about(path.seed.relation)
        )

    def estimated_rows(self, relation: str) -> float:
        """How many rows a relation that grows will have, about: pairs of values become many more than they are made from."""
        columns = len(self.types.columns(relation)) - self.is_lattice(relation)
        return self.largest * (GROWTH if columns > 1 else 1.0)

    def values(self, path: Path, variable: int) -> float:
        """How many values a variable of a path can have, as far as complete relations tell."""
        joins = ((s.arrangement.relation, s.binds) for s in path.steps if isinstance(s, HalfJoin))
        seed = [(path.seed.relation, path.seed.binds)] if isinstance(path.seed, Scan) else []
        found = ((name, column) for name, binds in (*seed, *joins) for column, bound in binds if bound == variable)
        known = (None if self.grows(name) else self.sizes.distinct(name, (column,)) for name, column in found)
        return min((values for values in known if values is not None), default=inf)

    def is_lattice(self, relation: str) -> bool:
        return any(lattice.relation == relation for lattice in self.scope.lattices)


def _inserts_distinct(path: Path) -> bool:
    return isinstance(path.sink, Insert) and path.sink.distinct
