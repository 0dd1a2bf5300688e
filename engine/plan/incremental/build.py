"""A stratum becomes a `Scope` that maintains its relations over rounds, while its inputs change (see nodes, "Over rounds").

Stages maintain what the rules look up: reductions, and temporaries (see temporaries, risks). Paths seeded by
changes of earlier relations `enter`; those seeded by the scope's variables `loop`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.compile.strata.lattice import NotWellDefined, lattice_of_subsumption
from dlog.engine.ir.nodes import Path, Scan, Scope
from dlog.engine.ir.rules import AUTOINC, Program, Stratum, printed_types
from dlog.engine.ir.traversal import stateful_functors, user_aggregates
from dlog.engine.plan.explain import explain
from dlog.engine.plan.incremental.check import check_rounds
from dlog.engine.plan.incremental.delayed_minima import with_delayed_minima
from dlog.engine.plan.incremental.implied import with_named_results
from dlog.engine.plan.incremental.nested import nested_aggregates
from dlog.engine.plan.incremental.paths import RoundsPaths
from dlog.engine.plan.incremental.repeated import CanonicalOrders, Repeated
from dlog.engine.plan.incremental.temporaries import NotIncremental as NotIncremental
from dlog.engine.plan.incremental.temporaries import Projections
from dlog.engine.plan.joins.domains import domains
from dlog.engine.plan.joins.existence import separate_existence
from dlog.engine.plan.one_pass import in_one_pass
from dlog.engine.plan.query import canonical
from dlog.engine.plan.static.aggregates import Aggregates
from dlog.engine.plan.static.build import Body, estimates, lower_rule, single_sources, unions_of
from dlog.engine.plan.static.lattices import monotone
from dlog.engine.plan.static.share import share_arrangements
from dlog.engine.plan.static.stages import Stages
from dlog.engine.plan.statistics import Statistics

MIN_BODIES_WITH_SHAPES = 8
"""Bodies of a stratum from which on bodies of one shape are looked for: trades finding shapes against planning each."""


def build_rounds_scope(stratum: Stratum, program: Program, statistics: Statistics) -> Scope:
    """The plan that maintains one stratum; raises `NotIncremental` where there is none."""
    return _last_scope(_scope_steps(stratum, program, statistics))


def _last_scope(steps: Iterator[Scope | None]) -> Scope:
    *_, last = steps
    assert last is not None
    return last


def _scope_steps(stratum: Stratum, program: Program, statistics: Statistics) -> Iterator[Scope | None]:
    """`build_rounds_scope` in steps of one body each; the plan comes last."""
    if why := not_maintained(stratum, program):
        raise NotIncremental(why)
    feedback = frozenset(stratum.relations) if stratum.recursive else frozenset()
    estimator = estimates(stratum, program, statistics)
    stages = Stages(program)
    paths = RoundsPaths(estimator, feedback, projections=Projections(stages))
    aggregates = Aggregates(program, paths, stages, feedback)
    ordered = CanonicalOrders() if len(stratum.rules) >= MIN_BODIES_WITH_SHAPES else canonical
    rules = [(i, rule) for i, r in enumerate(stratum.rules) for rule in monotone(program, r)]
    bodies = [lower_rule(aggregates, rule, i, ordered) for i, rule in rules]
    if stratum.recursive:
        estimator.set_domains(domains([(b.sink.relation, b.query) for b in bodies], feedback, estimator))
    bodies = [Body(separate_existence(b.query, b.rule, aggregates), b.sink, b.rule) for b in bodies]
    repeated = Repeated(paths) if len(bodies) >= MIN_BODIES_WITH_SHAPES else None
    enter = repeated.enter if repeated is not None else lambda b: paths.enter(b.query, b.sink, b.rule)[0]
    entered: list[Path] = []
    for body in bodies:
        yield None
        entered += enter(body)
    yield None
    made = with_delayed_minima(entered, program)
    scope = Scope(
        relations=stratum.relations,
        variables=stratum.relations if stratum.recursive else (),
        rules=tuple(r.text for r in stratum.rules),
        temporaries=tuple(stages.temporaries),
        reductions=tuple(stages.reductions),
        stages=tuple(stages.stages),
        enter=tuple(p for p in made if _changed(p) not in feedback),
        loop=tuple(p for p in made if _changed(p) in feedback),
        lattices=tuple(program.lattices[r] for r in stratum.relations if r in program.lattices),
        model="partial" if stratum.recursive else "total",
        derived=(*paths.derived, *((p.rule, p.seed, p.delayed) for p in made if p.delayed != "no")),
    )
    scope = share_arrangements(with_named_results(scope, single_sources(stratum, program)))
    check_rounds(scope, program)
    yield scope


def plan_of_rounds(stratum: Stratum, program: Program, statistics: Statistics) -> Scope:
    """`build_rounds_scope` for one process, which fills several reductions by one path."""
    return _last_scope(plan_steps(stratum, program, statistics))


def plan_steps(stratum: Stratum, program: Program, statistics: Statistics) -> Iterator[Scope | None]:
    """`plan_of_rounds` in steps, each of which takes little; the plan comes last. Raises NotIncremental."""
    for scope in _scope_steps(stratum, program, statistics):
        yield None if scope is None else in_one_pass(scope)


def not_maintained(stratum: Stratum, program: Program) -> str:
    """Why a stratum with stateful functors or aggregates of users, of relations that do not keep all of their rows, of classes,
    or one that alternates, is computed anew; empty where there are none. Classes could be lattices, but along a chain a value
    takes the class of every other one."""
    stateful = next((functor for rule in stratum.rules for functor in stateful_functors(rule)), None)
    if stateful is not None:
        if printed_types(stateful.op) is not None:
            return "`print` writes what all rules derive"
        name = "autoinc()" if stateful.op == AUTOINC else stateful.op
        return f"`{name}` may give another value each time"
    folded = next((x for rule in stratum.rules for x in user_aggregates(rule.body)), None)
    if folded is not None:
        return f"`{folded.op}` folds all values of a group again"
    if not program.alternating.isdisjoint(stratum.relations):
        return f"`{stratum.relations[0]}` depends on itself through a negation or an aggregate, and is derived pass after pass"
    if any(nested_aggregates(stratum, program)):
        return "only the recursion says for what an aggregate is computed"
    if unions := unions_of(stratum, program):
        return f"the values of `{unions[0].pairs}` are united to classes"
    if program.iterated.isdisjoint(stratum.relations):
        return ""
    found = [n for n in stratum.relations if n in program.retentions]
    if not found:
        return f"rules of `{stratum.relations[0]}` read the number of the iteration"
    name, kept = found[0], program.retentions[found[0]]
    if kept.keys:
        return f"the choice domain of `{name}` chooses among all rows that come"
    if kept.join is not None:
        return f"the lattices of `{name}` join all values of a key"
    if not kept.dominated:
        return f"debug_delta shows the iterations of `{name}`"
    try:
        if len(stratum.relations) > 1:
            raise NotWellDefined(f"`{name}` is not alone in its cycle")
        lattice_of_subsumption(name, kept, list(stratum.rules))
    except NotWellDefined as why:
        return f"the subsumption of `{name}` compares all rows: {why}"
    return f"the subsumption of `{name}` compares all rows: some come from outside"


def explain_maintenance(stratum: Stratum, program: Program, statistics: Statistics) -> str:
    """The plan that maintains a stratum as text, or why there is none."""
    try:
        return explain(plan_of_rounds(stratum, program, statistics), program)
    except NotIncremental as why:
        return f"stratum {', '.join(stratum.relations)}, computed anew in each round\n  {why}\n"


def _changed(path: Path) -> str | None:
    """The relation whose changes seed the path."""
    return path.seed.relation if isinstance(path.seed, Scan) else None
