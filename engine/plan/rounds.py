"""A stratum becomes a `Scope` that maintains its relations over rounds, while its inputs change (see nodes, "Over rounds").

Stages maintain what the rules look up: reductions, and temporaries (see rounds_temporaries, rounds_risks). Paths seeded by
changes of earlier relations `enter`; those seeded by the scope's variables `loop`.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.plan.aggregates import Aggregates
from dlog.engine.plan.build import estimates, lower_rule, single_sources
from dlog.engine.plan.check_rounds import check_rounds
from dlog.engine.plan.domains import domains
from dlog.engine.plan.existence import separate_existence
from dlog.engine.plan.explain import explain
from dlog.engine.plan.lattices import monotone
from dlog.engine.plan.nodes import Insert, Map, Path, Scan, Scope
from dlog.engine.plan.rounds_implied import with_named_results
from dlog.engine.plan.rounds_paths import RoundsPaths
from dlog.engine.plan.rounds_temporaries import NotIncremental as NotIncremental
from dlog.engine.plan.rounds_temporaries import Projections
from dlog.engine.plan.share import share_arrangements
from dlog.engine.plan.stages import Stages
from dlog.engine.plan.statistics import Statistics
from dlog.engine.program.rules import Constant, Kind, Program, Stratum, Term, Variable


def build_rounds_scope(stratum: Stratum, program: Program, statistics: Statistics) -> Scope:
    """The plan that maintains one stratum; raises `NotIncremental` where there is none."""
    feedback = frozenset(stratum.relations) if stratum.recursive else frozenset()
    estimator = estimates(stratum, program, statistics)
    stages = Stages(program)
    paths = RoundsPaths(estimator, feedback, projections=Projections(stages))
    aggregates = Aggregates(program, paths, stages, feedback)
    bodies = [lower_rule(aggregates, rule, i) for i, r in enumerate(stratum.rules) for rule in monotone(program, r)]
    if stratum.recursive:
        estimator.bound(domains([(b.sink.relation, b.query) for b in bodies], feedback, estimator))
    bodies = [replace(b, query=separate_existence(b.query, b.rule, aggregates)) for b in bodies]
    made = [path for b in bodies for path in paths.enter(b.query, b.sink, b.rule)[0]]
    scope = Scope(
        relations=stratum.relations,
        variables=stratum.relations if stratum.recursive else (),
        rules=tuple(r.text for r in stratum.rules),
        temporaries=tuple(stages.temporaries),
        reductions=tuple(stages.reductions),
        stages=tuple(stages.stages),
        enter=tuple(_staggered(p, program) for p in made if _changed(p) not in feedback),
        loop=tuple(p for p in made if _changed(p) in feedback),
        lattices=tuple(program.lattices[r] for r in stratum.relations if r in program.lattices),
        model="partial" if stratum.recursive else "total",
    )
    scope = share_arrangements(with_named_results(scope, single_sources(stratum, program)))
    check_rounds(scope, program)
    return scope


def explain_maintenance(stratum: Stratum, program: Program, statistics: Statistics) -> str:
    """The plan that maintains a stratum as text, or why there is none."""
    try:
        return explain(build_rounds_scope(stratum, program, statistics), program)
    except NotIncremental as why:
        return f"stratum {', '.join(stratum.relations)}, computed anew in each round\n  {why}\n"


def _staggered(path: Path, program: Program) -> Path:
    """A path that begins a minimum over a recursion lets small values enter first: they go far before greater ones set out in
    vain, which would all leave a history behind (the order of labels in differential dataflow's connected components). When a
    row enters does not change what there is in the end."""
    sink = path.sink
    lattice = program.lattices.get(sink.relation) if isinstance(sink, Insert) else None
    if not isinstance(sink, Insert) or lattice is None or lattice.op != "min" or path.advance:
        return path
    whole = program.relations[lattice.relation].kinds[lattice.column] in (Kind.NUMBER, Kind.UNSIGNED)
    return replace(path, staggered=whole and not _is_constant(sink.terms[lattice.column], path))


def _is_constant(term: Term, path: Path) -> bool:
    """Whether a term has the same value in all rows of a path."""
    if isinstance(term, Variable):
        maps = (s.term for s in path.steps if isinstance(s, Map) and s.variable == term.id)
        return any(_is_constant(t, path) for t in maps)
    return isinstance(term, Constant)


def _changed(path: Path) -> str | None:
    """The relation whose changes seed the path."""
    return path.seed.relation if isinstance(path.seed, Scan) else None
