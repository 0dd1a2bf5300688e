"""A stratum of the typed program becomes a `Scope` of the plan, given what is known of the relations' sizes.

Rules of a stratum that is not recursive have one `enter` path each. In a recursive stratum rules without feedback do too, and
every other rule has one `loop` path per feedback reading (see `delta`). Aggregates are computed in `stages` before (see
`aggregates`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlog.engine.plan.aggregates import Aggregates, split
from dlog.engine.plan.check import check
from dlog.engine.plan.delta import Paths
from dlog.engine.plan.domains import domains
from dlog.engine.plan.existence import separate_existence
from dlog.engine.plan.nodes import Insert, Scope
from dlog.engine.plan.query import Query, canonical
from dlog.engine.plan.share import share_arrangements
from dlog.engine.plan.statistics import Estimator, Statistics
from dlog.engine.plan.unify import unify
from dlog.engine.program.rules import Aggregate, Atom, Head, Lattice, Literal, Program, Rule, Stratum, Variable
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label


def build_scope(stratum: Stratum, program: Program, statistics: Statistics) -> Scope:
    """The plan of one stratum; `statistics` are asked for relations of earlier strata only."""
    feedback = frozenset(stratum.relations) if stratum.recursive else frozenset()
    arities = {name: r.arity for name, r in program.relations.items()}
    estimator = Estimator(statistics, arities, stratum.relations)
    estimator.assume(sorted({a.relation for rule in stratum.rules for a in _atoms(rule.body)}))
    paths = Paths(estimator, feedback)
    aggregates = Aggregates(program, paths, feedback)
    bodies = [_body(program, aggregates, rule, i) for i, r in enumerate(stratum.rules) for rule in _monotone(program, r)]
    if stratum.recursive:
        estimator.bound(domains([(b.sink.relation, b.query) for b in bodies], feedback, estimator))
    bodies = [replace(b, query=separate_existence(b.query, b.rule, aggregates)) for b in bodies]
    loop = [path for b in bodies if _reads(b.query, feedback) for path in paths.loop(b.query, b.sink, b.rule)]
    single = _single(stratum, program)
    entering = [b for b in bodies if not _reads(b.query, feedback)]
    enter = [paths.enter(b.query, b.sink, b.rule, b.sink.relation not in single)[0] for b in entering]
    scope = Scope(
        relations=stratum.relations,
        variables=stratum.relations if stratum.recursive else (),
        rules=tuple(r.text for r in stratum.rules),
        temporaries=tuple(aggregates.temporaries),
        reductions=tuple(aggregates.reductions),
        stages=tuple(aggregates.stages),
        enter=tuple(enter),
        loop=tuple(loop),
        lattices=tuple(program.lattices[r] for r in stratum.relations if r in program.lattices),
    )
    scope = share_arrangements(scope)
    check(scope, program)
    return scope


@dataclass(frozen=True, slots=True)
class _Body:
    query: Query
    sink: Insert
    rule: int


def _body(program: Program, aggregates: Aggregates, rule: Rule, number: int) -> _Body:
    readings, conditions = split(aggregates.lower(rule, number))
    query = canonical(unify(Query(readings, conditions, rule.head.args, False, rule.kinds)))
    return _Body(query, Insert(rule.head.relation, rule.head.args), number)


def _reads(query: Query, relations: frozenset[str]) -> bool:
    return any(r.relation in relations for r in query.readings)


def _single(stratum: Stratum, program: Program) -> frozenset[str]:
    """The relations whose rows come from one rule, once: no recursion, no facts, no input, no lattice."""
    if stratum.recursive:
        return frozenset()
    heads = [r.head.relation for r in stratum.rules]
    others = {io.relation for io in program.io if io.action == "input"} | program.lattices.keys()
    return frozenset(r for r in stratum.relations if heads.count(r) == 1 and not program.facts.get(r) and r not in others)


def _atoms(body: tuple[Literal, ...]) -> list[Atom]:
    """The positive atoms of a body and of its aggregates."""
    found: list[Atom] = []
    for literal in body:
        match literal:
            case Atom():
                found.append(literal)
            case Aggregate(alternatives=alternatives):
                found.extend(a for alternative in alternatives for a in _atoms(alternative))
            case _:
                pass
    return found


# ---------------------------------------------------------------------------------------------------------- lattices


def _monotone(program: Program, rule: Rule) -> tuple[Rule, ...]:
    """The rules that a rule of a lattice stands for, one per alternative of its aggregate; other rules stand for themselves.

        d(x, v) :- node(x), v = min c : { source(x), c = 0 ; d(y, b), edge(y, x, w), c = b + w }.

    becomes `d(x, 0) :- node(x), source(x).` and `d(x, b + w) :- node(x), d(y, b), edge(y, x, w).`: the relation keeps the
    least value."""
    lattice = program.lattices.get(rule.head.relation)
    aggregate = lattice and _own_aggregate(rule, lattice)
    if not lattice or not aggregate:
        return (rule,)
    others = tuple(x for x in rule.body if x is not aggregate)
    args, target = rule.head.args, aggregate.target
    if target is None or _mentions(aggregate.result, (*others, *(a for i, a in enumerate(args) if i != lattice.column))):
        message = f"not supported yet: the value of recursive `{lattice.op}` used in its own rule besides the head"
        raise DlogError(Diagnostic("unsupported", message, (Label(aggregate.span),), source=program.source))
    head = Head(rule.head.relation, (*args[: lattice.column], target, *args[lattice.column + 1 :]), rule.head.span)
    return tuple(replace(rule, head=head, body=(*others, *alternative)) for alternative in aggregate.alternatives)


def _own_aggregate(rule: Rule, lattice: Lattice) -> Aggregate | None:
    value = rule.head.args[lattice.column]
    return next((x for x in rule.body if isinstance(x, Aggregate) and x.result == value), None)


def _mentions(variable: Variable, parts: object) -> bool:
    """Whether the variable occurs anywhere within terms and literals."""
    if isinstance(parts, tuple):
        return any(_mentions(variable, p) for p in parts)
    if parts == variable:
        return True
    names = getattr(parts, "__slots__", ())
    return any(_mentions(variable, getattr(parts, n)) for n in names)
