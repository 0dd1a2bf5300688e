"""A stratum of the typed program becomes a `Scope` of the plan, given what is known of the relations' sizes.

Rules of a stratum that is not recursive have one `enter` path each. In a recursive stratum rules without feedback do too, and
every other rule has one `loop` path per feedback reading (see `delta`). Aggregates are computed in `stages` before (see
`aggregates`), and so is what bodies only ask about (`existence`) or compute from rows that they look for (`computed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from dlog.dataclass import immutable
from dlog.engine.garbage import uncollected
from dlog.engine.ir.nodes import Insert, Nested, Scope, Union
from dlog.engine.ir.rules import Program, Rule, Stratum
from dlog.engine.ir.traversal import positive_atoms, stateful_functors
from dlog.engine.plan.check import check
from dlog.engine.plan.joins.computed import with_computed
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.joins.domains import domains
from dlog.engine.plan.joins.existence import separate_existence
from dlog.engine.plan.joins.unify import unify
from dlog.engine.plan.query import Query, canonical
from dlog.engine.plan.static.aggregates import Aggregates, split
from dlog.engine.plan.static.connect import connection
from dlog.engine.plan.static.lattices import monotone
from dlog.engine.plan.static.share import share_arrangements
from dlog.engine.plan.static.stages import Stages
from dlog.engine.plan.statistics import Estimator, Key, Statistics


@uncollected
def build_scope(stratum: Stratum, program: Program, statistics: Statistics, loaded: Collection[str] = ()) -> Scope:
    """The plan of one stratum; `statistics` are asked for relations of earlier strata only. Relations that are `loaded` may
    hold rows already that no rule, fact or input of the program says."""
    feedback = frozenset(stratum.relations) if stratum.recursive else frozenset()
    estimator = estimates(stratum, program, statistics)
    paths = Paths(estimator, feedback)
    stages = Stages(program)
    aggregates = Aggregates(program, paths, stages, feedback)
    unions = unions_of(stratum, program)
    united = {union.classes for union in unions}
    rules = [(i, rule) for i, r in enumerate(stratum.rules) if r.head.relation not in united for rule in monotone(program, r)]
    bodies = [lower_rule(aggregates, rule, i) for i, rule in rules]
    if stratum.recursive:
        estimator.set_domains(domains([(b.sink.relation, b.query) for b in bodies], feedback, estimator))
    bodies = [replace(b, query=separate_existence(b.query, b.rule, aggregates)) for b in bodies]
    bodies = [replace(b, query=with_computed(b.query, b.rule, paths, stages)) for b in bodies]
    loop = [path for b in bodies if _reads(b.query, feedback) for path in paths.loop(b.query, b.sink, b.rule)]
    single = single_sources(stratum, program).difference(loaded)
    entering = [b for b in bodies if not _reads(b.query, feedback)]
    enter = [path for b in entering for path in paths.enter(b.query, b.sink, b.rule, b.sink.relation not in single)[0]]
    scope = Scope(
        relations=stratum.relations,
        variables=stratum.relations if stratum.recursive else (),
        rules=tuple(r.text for r in stratum.rules),
        temporaries=tuple(stages.temporaries),
        reductions=tuple(stages.reductions),
        stages=tuple(stages.stages),
        enter=tuple(enter),
        loop=tuple(loop),
        lattices=tuple(program.lattices[r] for r in stratum.relations if r in program.lattices and r not in united),
        unions=unions,
        folds=tuple(stages.folds),
        nested=tuple(_of_rules(n, stratum) for n in stages.nested),
        keys=(*((r, key) for r, key in paths.keys.items() if r in single), *_keys_of_lattices(stratum, program, loaded)),
    )
    scope = share_arrangements(scope)
    scope = replace(scope, connection=connection(scope))
    check(scope, program)
    return scope


def _of_rules(nested: Nested, stratum: Stratum) -> Nested:
    """The nested aggregate, whose paths are those of a stratum's rules."""
    inner = tuple(_of_rules(n, stratum) for n in nested.scope.nested)
    scope = replace(nested.scope, rules=tuple(r.text for r in stratum.rules), nested=inner)
    return replace(nested, scope=share_arrangements(scope))


def unions_of(stratum: Stratum, program: Program) -> tuple[Union, ...]:
    """The equivalence relations whose classes are among the stratum's relations."""
    return tuple(Union(pairs, classes) for pairs, classes in program.classes.items() if classes in stratum.relations)


def estimates(stratum: Stratum, program: Program, statistics: Statistics) -> Estimator:
    """The known and assumed statistics of the relations that the stratum reads."""
    estimator = Estimator(statistics, program.relations, stratum.relations)
    estimator.assume(sorted({a.relation for rule in stratum.rules for a in positive_atoms(rule.body)}))
    return estimator


@immutable
class Body:
    query: Query
    sink: Insert
    rule: int


def lower_rule(
    aggregates: Aggregates, rule: Rule, number: int, ordered: Callable[[Query], Query] = canonical
) -> Body:
    """The query and the sink of a rule; `aggregates` gets what its aggregates need. `ordered` gives the canonical query."""
    readings, conditions = split(aggregates.lower(rule, number))
    name, args, weight = rule.head.relation, rule.head.args, rule.weight
    if weight is not None and name in aggregates.program.lattices:
        args, weight = (*args, weight), None
    output = args if weight is None else (*args, weight)
    every_match = rule.weight is not None or any(stateful_functors(rule))
    query = ordered(unify(Query(readings, conditions, output, every_match, rule.kinds)))
    return Body(query, Insert(name, args, weight=weight), number)


def _reads(query: Query, relations: frozenset[str]) -> bool:
    return any(r.relation in relations for r in query.readings)


def single_sources(stratum: Stratum, program: Program) -> frozenset[str]:
    """The relations whose rows come from one rule, once: no recursion, no facts, no input, no lattice."""
    if stratum.recursive:
        return frozenset()
    heads = Counter(r.head.relation for r in stratum.rules)
    return frozenset(
        r
        for r in stratum.relations
        if heads[r] == 1 and not program.facts.get(r) and r not in program.inputs and r not in program.lattices
    )


def _keys_of_lattices(stratum: Stratum, program: Program, loaded: Collection[str]) -> Iterator[tuple[str, Key]]:
    """The keys of lattices: their rows have one value for all that stands in other columns."""
    for name in stratum.relations:
        if name in program.lattices and name not in loaded:
            value = program.lattices[name].column
            yield name, tuple(c for c in range(program.relations[name].arity) if c != value)
