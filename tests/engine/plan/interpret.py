"""What a plan means, and what a rule means: two slow interpreters over Python sets that must agree."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlog.engine.ir import nodes
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import Path, Scope
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Literal,
    Negation,
    Program,
    Record,
    Rule,
    Stratum,
    Term,
    Unpack,
    Variable,
)
from tests.engine.compile.interpret import counts_bindings
from tests.naive_functors import aggregated
from tests.naive_generators import rows_of

Row = tuple[Any, ...]
Relations = dict[str, set[Row]]
Env = dict[int, Any]
OPS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


def value(term: Term, env: Env) -> Any:
    match term:
        case Variable(id=i):
            return env[i]
        case Constant(value=v):
            return v
        case Functor(op=op, args=args):
            return ARITHMETIC[op](*(value(a, env) for a in args))
        case Record(args=args):
            return tuple(value(a, env) for a in args)


def matches(row: Row, args: Sequence[Term | None], env: Env) -> bool:
    return all(a is None or value(a, env) == v for a, v in zip(args, row, strict=True))


# ---------------------------------------------------------------------------------------------------------------- plans


class Interpreter:
    """Runs a scope; `data` holds the rows of other strata and gets those of this one."""

    def __init__(self, scope: Scope, data: Mapping[str, set[Row]]) -> None:
        self.scope = scope
        self.data: Relations = {k: set(v) for k, v in data.items()}
        self.groups: dict[str, dict[Row, list[Any]]] = {r.relation: {} for r in scope.reductions}
        self.lattices = {x.relation: x for x in scope.lattices}
        self.changes: Relations = {}
        self.new: Relations = {}
        for name in (*scope.relations, *(t.relation for t in scope.temporaries)):
            self.data.setdefault(name, set())

    def run(self) -> Relations:
        for stage in self.scope.stages:
            for path in stage:
                self.path(path)
            self.commit()
        for path in self.scope.enter:
            self.path(path)
        self.commit()
        self.changes = {v: set(self.data[v]) for v in self.scope.variables}
        while any(self.changes.values()):
            for path in self.scope.loop:
                self.path(path)
            self.changes = self.commit()
        return {r: self.data[r] for r in self.scope.relations}

    def commit(self) -> Relations:
        """Adds the new rows and returns those that were not there; lattices keep the best of a key."""
        changes: Relations = {v: set() for v in self.scope.variables}
        for name, rows in self.new.items():
            fresh = rows - self.data[name]
            if name in self.lattices:
                fresh = self.improve(name, fresh)
            self.data[name] |= fresh
            changes[name] = fresh
        self.new = {}
        return changes

    def improve(self, name: str, rows: set[Row]) -> set[Row]:
        lattice = self.lattices[name]
        best, c = (min if lattice.dominance is Dominance.LEAST else max), lattice.column
        fresh = set()
        for key in {r[:c] + r[c + 1 :] for r in rows}:
            old = {r for r in self.data[name] if r[:c] + r[c + 1 :] == key}
            top = best((r for r in old | rows if r[:c] + r[c + 1 :] == key), key=lambda r: r[c])
            if top not in old:
                self.data[name] -= old
                fresh.add(top)
        return fresh

    def read(self, relation: str, view: str) -> set[Row]:
        rows = self.data[relation]
        return rows - self.changes.get(relation, set()) if view == "alt" else rows

    def path(self, path: Path) -> None:
        envs: list[Env] = [{}]
        match path.seed:
            case nodes.Scan(relation=relation, binds=binds, changes=changes):
                rows = self.changes[relation] if changes else self.data[relation]
                envs = [{v: row[c] for c, v in binds} for row in sorted(rows, key=repr)]
        for step in path.steps:
            envs = [e for env in envs for e in self.step(step, env)]
        for env in envs:
            for sink in path.sinks:
                self.sink(sink, env)

    def sink(self, sink: nodes.Insert | nodes.Accumulate, env: Env) -> None:
        match sink:
            case nodes.Insert(relation=relation, terms=terms, distinct=distinct):
                row = tuple(value(t, env) for t in terms)
                new = self.new.setdefault(relation, set())
                assert distinct or row not in new | self.data[relation], "a row that was promised to be new"
                new.add(row)
            case nodes.Accumulate(relation=relation, key=key, value=v):
                group = tuple(value(t, env) for t in key)
                self.groups[relation].setdefault(group, []).append(1 if v is None else value(v, env))

    def step(self, step: nodes.Step, env: Env) -> Iterator[Env]:
        match step:
            case nodes.HalfJoin(arrangement=arrangement, key=key, binds=binds, view=view):
                wanted = tuple(value(t, env) for t in key)
                for row in self.read(arrangement.relation, view):
                    if tuple(row[c] for c in arrangement.key) == wanted:
                        yield env | {v: row[c] for c, v in binds}
            case nodes.Extend(variable=variable, proposers=proposers):
                proposals = []
                for p in proposers:
                    wanted = tuple(value(t, env) for t in p.key)
                    rows = self.read(p.arrangement.relation, p.view)
                    found = [r[p.column] for r in rows if tuple(r[c] for c in p.arrangement.key) == wanted]
                    assert len(found) == len(set(found)), "a value proposed twice"
                    proposals.append(set(found))
                for v in set.intersection(*proposals):
                    yield env | {variable: v}
            case nodes.SemiJoin(relation=relation, args=args, view=view):
                if any(matches(row, args, env) for row in self.read(relation, view)):
                    yield env
            case nodes.AntiJoin(relation=relation, args=args):
                if not any(matches(row, args, env) for row in self.data.get(relation, ())):
                    yield env
            case nodes.Filter(compare=compare):
                if OPS[compare.op](value(compare.left, env), value(compare.right, env)):
                    yield env
            case nodes.Map(variable=variable, term=term):
                yield env | {variable: value(term, env)}
            case nodes.UnpackRecord(variable=variable, binds=binds):
                if env[variable] is not None:
                    yield env | {v: env[variable][f] for f, v in binds}
            case nodes.Generate(function=name, args=args, binds=binds, kind=kind):
                for made in rows_of(name, [value(t, env) for t in args], kind.value):
                    yield env | {v: made[c] for c, v in binds}
            case nodes.LookUp(relation=relation, key=key, variable=variable, default=default):
                group = self.groups[relation].get(tuple(value(t, env) for t in key))
                if group is not None:
                    yield env | {variable: self._aggregated(relation, group)}
                elif default is not None:
                    yield env | {variable: default}

    def _aggregated(self, relation: str, values: list[Any]) -> Any:
        reduction = next(r for r in self.scope.reductions if r.relation == relation)
        return aggregated(reduction.op, values, reduction.columns[len(reduction.keys)].value)


# ---------------------------------------------------------------------------------------------------------------- rules


def ready(literal: Literal, env: Env) -> bool:
    match literal:
        case Atom():
            return True
        case Compare(op=op, left=left, right=right):
            if known(left, env) and known(right, env):
                return True
            assigns = (known(left, env) and isinstance(right, Variable)) or (known(right, env) and isinstance(left, Variable))
            return op == "=" and assigns
        case Unpack(value=v):
            return v.id in env
        case Generator(args=args):
            return all(known(a, env) for a in args)
        case Negation(atom=atom):
            return all(known(a, env) for a in atom.args)
        case Aggregate(outer=outer):
            return all(v.id in env for v in outer)


def checks(compare: Compare, env: Env) -> bool:
    return known(compare.left, env) and known(compare.right, env)


def known(term: Term | None, env: Env) -> bool:
    match term:
        case Variable(id=i):
            return i in env
        case Functor(args=args) | Record(args=args):
            return all(known(a, env) for a in args)
        case _:
            return True


def solve(body: Sequence[Literal], env: Env, data: Mapping[str, set[Row]]) -> Iterator[Env]:
    """All matches of a body, one per combination of rows, by nested loops."""
    if not body:
        yield env
        return
    rank = {Compare: 1, Unpack: 2, Generator: 2, Negation: 0, Aggregate: 3, Atom: 4}
    possible = (x for x in body if ready(x, env))
    order = sorted(possible, key=lambda x: rank[type(x)] - (isinstance(x, Compare) and checks(x, env)))
    if any(isinstance(x, Atom) for x in body):
        order = [x for x in order if not isinstance(x, Aggregate)] or order
    literal = order[0]
    rest = [x for x in body if x is not literal]
    for found in extend(literal, env, data):
        yield from solve(rest, found, data)


def extend(literal: Literal, env: Env, data: Mapping[str, set[Row]]) -> Iterator[Env]:
    match literal:
        case Atom(relation=relation, args=args):
            for row in data.get(relation, ()):
                found = unify(args, row, env)
                if found is not None:
                    yield found
        case Compare(op=op, left=left, right=right):
            if known(left, env) and known(right, env):
                if OPS[op](value(left, env), value(right, env)):
                    yield env
            elif known(left, env):
                yield env | {right.id: value(left, env)}  # type: ignore[union-attr]
            else:
                yield env | {left.id: value(right, env)}  # type: ignore[union-attr]
        case Unpack(value=v, fields=fields):
            if env[v.id] is not None and (found := unify(fields, env[v.id], env)) is not None:
                yield found
        case Generator(function=name, args=args, results=results, kind=kind):
            for made in rows_of(name, [value(a, env) for a in args], kind.value):
                if (found := unify(results, made, env)) is not None:
                    yield found
        case Negation(atom=atom):
            if not any(matches(row, atom.args, env) for row in data.get(atom.relation, ())):
                yield env
        case Aggregate():
            yield from aggregate(literal, env, data)


def unify(args: Sequence[Term | None], row: Row, env: Env) -> Env | None:
    env = dict(env)
    for a, v in zip(args, row, strict=True):
        if isinstance(a, Variable):
            if env.setdefault(a.id, v) != v:
                return None
        elif a is not None and value(a, env) != v:
            return None
    return env


def aggregate(agg: Aggregate, env: Env, data: Mapping[str, set[Row]]) -> Iterator[Env]:
    outer = {v.id: env[v.id] for v in agg.outer}
    found = [list(solve(a, outer, data)) for a in agg.alternatives]
    if len(found) > 1 or counts_bindings(agg.alternatives[0]):
        shared = set.intersection(*(_vars(a) for a in agg.alternatives))
        matched = [(tuple(e.get(i) for i in sorted(shared)), agg.target and value(agg.target, e)) for es in found for e in es]
        values = [v for _, v in set(matched)]
    else:
        values = [None if agg.target is None else value(agg.target, e) for e in found[0]]
    result = aggregated(agg.op, values, agg.kind.value)
    if result is None:
        return
    if env.get(agg.result.id, result) == result:
        yield env | {agg.result.id: result}


def _vars(part: object) -> set[int]:
    from tests.engine.plan.rules_text import variables

    return variables(part)


def naive(stratum: Stratum, data: Mapping[str, set[Row]]) -> Relations:
    """The rows that the rules give, applied until nothing changes."""
    all_rows: Relations = {k: set(v) for k, v in data.items()}
    while True:
        new = {r: set(all_rows.get(r, ())) for r in stratum.relations}
        for rule in stratum.rules:
            new[rule.head.relation] |= apply(rule, all_rows)
        if all(new[r] == all_rows.get(r, set()) for r in stratum.relations):
            return new
        all_rows |= new


def apply(rule: Rule, data: Mapping[str, set[Row]]) -> set[Row]:
    return {tuple(value(t, env) for t in rule.head.args) for env in solve(rule.body, {}, data)}


class Counted:
    """Statistics of actual rows; relations that are not in `data` are unknown."""

    def __init__(self, data: Mapping[str, set[Row]]) -> None:
        self.data = data

    def rows(self, relation: str) -> int | None:
        return len(self.data[relation]) if relation in self.data else None

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return float(len({tuple(r[c] for c in columns) for r in self.data[relation]})) if relation in self.data else None


class Random:
    """Statistics that have nothing to do with the data, but are the same for the same question."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def rows(self, relation: str) -> int | None:
        return random.Random(f"{self.seed} {relation}").choice([None, 0, 1, 10, 1000, 10**6])

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return random.Random(f"{self.seed} {relation} {columns}").choice([None, 1.0, 5.0, 1e3, 1e7])

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return random.Random(f"{self.seed} {relation} {columns} m").choice([None, 1.0, 5.0, 1e9])


def run(stratum: Stratum, program: Program, data: Mapping[str, set[Row]], statistics: Any = None) -> Relations:
    from dlog.engine.plan.one_pass import in_one_pass
    from dlog.engine.plan.static.build import build_scope

    return Interpreter(in_one_pass(build_scope(stratum, program, statistics or Counted(data))), data).run()
