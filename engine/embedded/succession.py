"""A dataflow comes after another one: what can be taken over is, and the rest is derived in one batch that changes nothing of
that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlog.engine.embedded.catalog import Catalog
from dlog.engine.embedded.dataflow import Dataflow, Unable
from dlog.engine.embedded.figures import Figures
from dlog.engine.embedded.heritage import Heritage
from dlog.engine.embedded.relation import Memory
from dlog.engine.kernels import layout as L
from dlog.engine.plan.rounds import NotIncremental
from dlog.engine.program.rules import Program
from dlog.engine.values.updates import Updates


def followed(
    program: Program, catalog: Catalog, memory: Memory, old: Dataflow, given: Mapping[str, Updates]
) -> tuple[Dataflow, Heritage]:
    """A dataflow with as much of another one as can be taken over; `given` are the changes of inputs that wait. Nothing has run
    yet. Strata that have left out what is asked for now are not taken over."""
    avoid, sizes = frozenset[str](), True
    for name in Heritage(old, program).inputs():
        found = old.input(name)
        if found is not None:
            found.hold_rows()
    while True:
        heritage = Heritage(old, program, avoid)
        figures = heritage.figures(given) if sizes else Figures({}, frozenset(program.relations))
        try:
            flow = Dataflow(program, catalog, memory, lambda _, told=figures: told, heritage)
        except Unable as without:
            heritage.give_back()
            avoid |= {without.stratum}
        except NotIncremental:
            # Orders chosen for these sizes may lead there; those chosen for none do not.
            heritage.give_back()
            if not sizes:
                raise
            sizes = False
        except BaseException:
            heritage.give_back()
            raise
        else:
            flow.work[L.work.tick] = old.work[L.work.tick]
            return flow, heritage


def derive_new(flow: Dataflow, heritage: Heritage, run: Callable[[], None]) -> None:
    """Has a batch (`run`) derive what was not taken over; then everything belongs to the dataflow. Whatever is raised, the
    other one has all that it had."""
    try:
        flow.running = True
        if flow.do_new():
            heritage.show(flow.seeds)
            run()
        heritage.hide()
    except BaseException:
        heritage.give_back()
        flow.free()
        raise
    flow.do_all()
    flow.work[L.work.first] = flow.work[L.work.rounds] = 0
    heritage.hand_over(flow)
    flow.heritage, flow.running, flow.started = None, False, True
