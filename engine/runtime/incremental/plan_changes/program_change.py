"""A dataflow comes after another one: what can be taken over is, and the rest is derived in one batch that changes nothing of
that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.build import NotIncremental
from dlog.engine.runtime.incremental.dataflow import CannotReuse, Dataflow
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics
from dlog.engine.runtime.incremental.plan_changes.state_reuse import StateReuse
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.values.updates import Updates


def _always(statistics: DataflowStatistics) -> Callable[[int], DataflowStatistics]:
    """The same statistics for each stratum."""
    return lambda stratum: statistics


def followed(
    program: Program,
    catalog: Catalog,
    memory: Memory,
    old: Dataflow,
    given: Mapping[str, Updates],
    hold_rows: Callable[[Dataflow, Collection], None],
) -> tuple[Dataflow, StateReuse]:
    """A dataflow with as much of another one as can be taken over; `given` are the changes of inputs that wait. Nothing has run
    yet, but that `hold_rows` has made ordinary rows of pairs. Strata that have left out what is asked for now are not taken
    over."""
    avoid, sizes = frozenset[str](), True
    for name in StateReuse(old, program).inputs():
        found = old.input(name)
        if found is not None:
            hold_rows(old, found)
    while True:
        state_reuse = StateReuse(old, program, avoid)
        statistics = state_reuse.statistics(given) if sizes else DataflowStatistics({}, frozenset(program.relations))
        try:
            flow = Dataflow(program, catalog, memory, _always(statistics), state_reuse)
        except CannotReuse as without:
            state_reuse.give_back()
            avoid |= {without.stratum}
        except NotIncremental:
            # Orders chosen for these sizes may lead there; those chosen for none do not.
            state_reuse.give_back()
            if not sizes:
                raise
            sizes = False
        except BaseException:
            state_reuse.give_back()
            raise
        else:
            flow.work[L.work.tick] = old.work[L.work.tick]
            return flow, state_reuse
