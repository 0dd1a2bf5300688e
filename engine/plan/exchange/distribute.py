"""One scope of the plan for several workers: paths cut into pieces where the rows must move (`cutter`).

Every worker runs the same pieces on its own rows. Sets grow only, so workers need not keep step within a scope: each runs its
loop to a fixed point of its own, then all exchange what they have for each other, until nobody has anything.

No match is missed: a row that comes to be in step s of this dance is in all its copies when step s + 1 begins, and whoever
reads a copy of a growing relation does so after its own rows went through an exchange (of its own, `SELF`, if need be), hence
in a later step than the one they came to be in; of two rows the later one therefore finds the earlier one, and of two of the
same step each finds the other. Where only two rows meet one of them need not wait: of two of the same step the one that went
through an exchange finds the other.

Where rows move is chosen by what it costs (`traffic`): a path's results go home, or its rows go there, or to all workers,
before they become many; and relations that only the scope makes get homes by which its paths send least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, product

from dlog.engine.ir.nodes import Accumulate, HalfJoin, Insert, Path, Scan, Scope, SemiJoin
from dlog.engine.ir.rules import Program, Variable
from dlog.engine.plan.column_types import Types
from dlog.engine.plan.exchange.costs import Sizes
from dlog.engine.plan.exchange.cutter import Cutter, EarlyExchange
from dlog.engine.plan.exchange.exchanges import DistributedScope, Phase
from dlog.engine.plan.exchange.partition_context import PartitionContext
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, SELF, Heavy, Place, allowed
from dlog.engine.plan.joins.emit import binds_of, relations_of

NONE: Mapping[str, Heavy] = {}
EVERYWHERE_ROWS = 4_000_000
"""Rows up to which a relation that does not change may be copied to every worker."""
MAX_TRIED_HOMES = 16
"""Homes tried for the relations of a scope, if it has few paths: trades planning time against rows sent."""
MAX_CUT_PATHS = 400
"""Paths that are cut in all to try homes: keeps planning short where there are hundreds of rules."""
WORTHWHILE_COST_SHARE = 0.8
"""Share of the first homes' cost below which others are worth having: later strata were counted on for those."""


def distribute(
    scope: Scope,
    program: Program,
    homes: Mapping[str, Place],
    sizes: Sizes,
    everywhere: int,
    split: Mapping[str, Heavy] = NONE,
    movable: Collection[str] = (),
) -> DistributedScope:
    """Cuts a scope of the static model.

    Parameters
    ----------
    homes
        Where the program's relations are.
    sizes
        What is known of complete relations.
    everywhere
        Rows up to which a complete relation may be copied to every worker.
    split
        The relations whose rows with heavy values at their home are spread; no growing ones.
    movable
        Relations of the scope that have no rows yet: they may get other homes.
    """
    best = _Cut(scope, program, homes, sizes, everywhere, split)
    bound = WORTHWHILE_COST_SHARE * best.traffic
    if scope.variables and bound:
        for others in _other_homes(scope, program, homes, movable):
            tried = _Cut(scope, program, {**homes, **others}, sizes, everywhere, split)
            if tried.traffic < bound:
                best, bound = tried, tried.traffic
    return best.build()


def _other_homes(
    scope: Scope, program: Program, homes: Mapping[str, Place], movable: Collection[str]
) -> Iterator[dict[str, Place]]:
    names = [name for name in scope.relations if name in movable]
    trials = min(MAX_TRIED_HOMES, MAX_CUT_PATHS // max(len(scope.enter) + len(scope.loop), 1))
    for places in islice(product(*(allowed(program, name) for name in names)), trials):
        others = dict(zip(names, places, strict=True))
        if any(homes[name] != place for name, place in others.items()):
            yield others


class _Cut:
    """A scope cut for given homes; `traffic` is what its exchanges cost."""

    def __init__(
        self,
        scope: Scope,
        program: Program,
        homes: Mapping[str, Place],
        sizes: Sizes,
        everywhere: int,
        split: Mapping[str, Heavy],
    ) -> None:
        self.scope = scope
        self.homes = homes
        self.own = {t.relation: _home_of(t.kinds) for t in scope.temporaries}
        self.own |= {r.relation: _home_of(r.keys) for r in scope.reductions}
        self.partition_context = PartitionContext(scope, Types(scope, program), {**homes, **self.own}, sizes, everywhere, split)
        self.traffic = 0.0
        self.aligned = self._aligned_reductions()
        self.stages = tuple(self._phase(stage, f"{i}") for i, stage in enumerate(scope.stages))
        self.enter = self._phase(scope.enter, "e")
        self.loop = self._phase(scope.loop, "l")

    def build(self) -> DistributedScope:
        partition_context, scope = self.partition_context, self.scope
        loop = partition_context.restricted(partition_context.with_mirrors(self.loop))
        apart = frozenset(r.relation for r in scope.reductions) - self.aligned
        moved = {name: self.homes[name] for name in scope.relations}
        mirrors = tuple(partition_context.mirrors)
        return DistributedScope(
            scope, self.stages, self.enter, loop, mirrors, {**self.own, **moved}, apart, partition_context.split
        )

    def _aligned_reductions(self) -> frozenset[str]:
        """The reductions whose groups are each complete on one worker already."""
        apart = set()
        for path in (path for stage in self.scope.stages for path in stage if isinstance(path.sink, Accumulate)):
            assert isinstance(path.sink, Accumulate)
            cutter = Cutter(self.partition_context.trial(), path, "")
            cutter.run_steps()
            key = path.sink.key
            if not (key and isinstance(key[0], Variable) and key[0].id == cutter.at):
                apart.add(path.sink.relation)
        return frozenset(r.relation for r in self.scope.reductions) - apart

    def _phase(self, paths: Sequence[Path], label: str) -> Phase:
        early_exchanges = [self._cheapest(path) for path in paths]
        hasty = self._hasty(paths, early_exchanges)
        cutters = [
            Cutter(self.partition_context, path, f"{label}.{i}", early_exchange, patient=i not in hasty)
            for i, (path, early_exchange) in enumerate(zip(paths, early_exchanges, strict=True))
        ]
        first = tuple(cutter.cut() for cutter in cutters)
        self.traffic += sum(cutter.traffic for cutter in cutters)
        return self.partition_context.take_phase(first)

    def _cheapest(self, path: Path) -> EarlyExchange | None:
        """The early exchange by which a path sends least; none where nothing is gained."""
        best, least = None, self._trial_cut(path, None).traffic
        for early_exchange in (
            (*_stays(path, self.partition_context), *_early_exchanges(path, self.partition_context)) if least else ()
        ):
            traffic = self._trial_cut(path, early_exchange).traffic
            if traffic < least:
                best, least = early_exchange, traffic
        return best

    def _trial_cut(self, path: Path, early_exchange: EarlyExchange | None) -> Cutter:
        cutter = Cutter(self.partition_context.trial(), path, "", early_exchange)
        cutter.cut()
        return cutter

    def _hasty(self, paths: Sequence[Path], early_exchanges: Sequence[EarlyExchange | None]) -> set[int]:
        """The paths whose rows meet a mirror without waiting: one of two that find each other's rows, where the other waits or
        moves."""
        found = set()
        for rule, count in Counter(path.rule for path in paths).items():
            both = [i for i, path in enumerate(paths) if path.rule == rule]
            if count == 2 and all(self._meets_one(paths[i]) for i in both):
                tried = [self._trial_cut(paths[i], early_exchanges[i]) for i in both]
                if all(cutter.settled for cutter in tried):
                    found.update([i for i, cutter in zip(both, tried, strict=True) if cutter.waited][:1])
        return found

    def _meets_one(self, path: Path) -> bool:
        """Whether a path takes a change to one relation that grows."""
        grown = [name for step in path.steps for name in relations_of(step) if self.partition_context.grows(name)]
        return isinstance(path.seed, Scan) and path.seed.changes and len(grown) == 1


def _home_of(columns: Sequence[object]) -> Place:
    return 0 if columns else ROOT


def _stays(path: Path, partition_context: PartitionContext) -> Iterator[EarlyExchange]:
    """The steps at which a path's rows can meet a relation that grows without moving."""
    for at, step in enumerate(path.steps):
        if isinstance(step, HalfJoin | SemiJoin) and partition_context.grows(*relations_of(step)):
            yield EarlyExchange(at, SELF)


def _early_exchanges(path: Path, partition_context: PartitionContext) -> Iterator[EarlyExchange]:
    """The steps at which a path's rows can leave for the home of its results before these are complete."""
    sink = path.sink
    if not isinstance(sink, Insert) or partition_context.is_lattice(sink.relation) or sink.relation in partition_context.split:
        return
    home = partition_context.homes[sink.relation]
    owner = sink.terms[home] if home >= 0 else None
    if not isinstance(owner, Variable):
        return
    bound = isinstance(path.seed, Scan) and owner.id in (v for _, v in path.seed.binds)
    for at, step in enumerate(path.steps):
        if bound:
            yield EarlyExchange(at, owner.id, owner.id)
        elif binds_of(step) >> owner.id & 1:
            bound = True
            if isinstance(step, HalfJoin) and _is_cut_by(step, owner.id, partition_context):
                yield from (EarlyExchange(before, EVERYWHERE, owner.id) for before in range(at + 1))


def _is_cut_by(join: HalfJoin, variable: int, partition_context: PartitionContext) -> bool:
    """Whether the rows of a join can be at the owners of a variable's value."""
    relation = join.arrangement.relation
    column = next(c for c, v in join.binds if v == variable)
    if partition_context.grows(relation):
        return partition_context.homes[relation] == column
    return not relation.startswith("@") and partition_context.cuts(relation, column) and column >= 0
