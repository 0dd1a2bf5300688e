"""What a plan over rounds means: a slow interpreter over collections of updates, which keeps all times forever.

A relation is a dict from its rows to updates: pairs of a time (round, iteration) and a diff. Derivations are kept beside. At
any time the rows of a relation are those with more than none of them (of a lattice, the best of those; of a reduction, what
they come to). What a plan promises is asserted: no row is ever derived less than zero times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dlog.engine.ir import nodes
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import Path, Reduction, Scope, View
from dlog.engine.ir.rules import Compare, Constant, Functor, Record, Term, Variable
from tests import naive
from tests.naive_functors import aggregated, apply, result_type
from tests.naive_generators import rows_of

Row = tuple[Any, ...]
Env = dict[int, Any]
Time = tuple[int, int]
Update = tuple[Time, int]
History = dict[Row, list[Update]]
Change = tuple[Row, int]

MOST_ITERATIONS = 500


def value(term: Term, env: Env) -> Any:
    match term:
        case Variable(id=i):
            return env[i]
        case Constant(value=v):
            return v
        case Functor(op=op, args=args, kind=kind):
            return apply("-" if op == "neg" else op, [value(a, env) for a in args], result_type(op) or kind.value)
        case Record(args=args):
            return tuple(value(a, env) for a in args)


def holds(compare: Compare, env: Env) -> bool:
    op, left, right = compare.op, value(compare.left, env), value(compare.right, env)
    if op.startswith("not_"):
        return not naive.compare(op[4:], left, right)
    return naive.compare(op, left, right)


def before(time: Time, seed: Time, view: View) -> bool:
    """Whether a change at `seed` meets an update of this time, in the total order of times."""
    return time < seed or (view == "neu" and time == seed)


def latest(one: Time, other: Time) -> Time:
    return max(one[0], other[0]), max(one[1], other[1])


def accumulated(updates: Iterable[Update], at: Time) -> int:
    """The sum of the diffs up to a time, in the partial order of times."""
    return sum(d for t, d in updates if t[0] <= at[0] and t[1] <= at[1])


def rows_at(history: History, at: Time) -> set[Row]:
    found = {row: n for row, updates in history.items() if (n := accumulated(updates, at))}
    assert all(n == 1 for n in found.values()), "a relation is no set"
    return set(found)


def add(history: History, row: Row, time: Time, diff: int) -> None:
    """Adds an update, consolidated."""
    updates = history.setdefault(row, [])
    same = [u for u in updates if u[0] == time]
    for u in same:
        updates.remove(u)
    diff += sum(d for _, d in same)
    if diff:
        updates.append((time, diff))


class Interpreter:
    """Maintains one scope; `data` are the histories of the relations of all scopes."""

    def __init__(self, scope: Scope, data: dict[str, History]) -> None:
        self.scope = scope
        self.data = data
        own = (*(x.relation for x in (*scope.temporaries, *scope.reductions)), *scope.variables)
        self.own: dict[str, History] = {name: {} for name in own if name not in data or name in scope.variables}
        self.derived: dict[str, History] = defaultdict(dict)
        self.reductions = {r.relation: r for r in scope.reductions}
        self.lattices = {x.relation: x for x in scope.lattices}
        self.started = False

    def history(self, relation: str) -> History:
        return self.own[relation] if relation in self.own else self.data[relation]

    def give(self, relation: str, changes: Iterable[Change], round: int) -> None:
        """Changes from outside of a relation that has rules, too."""
        for row, diff in changes:
            add(self.derived[relation], row, (round, 0), diff)

    def run(self, rounds: Sequence[int]) -> None:
        """Brings the scope up to date with all changes in these rounds."""
        times = [(r, 0) for r in rounds]
        for stage in self.scope.stages:
            self.paths(stage, times)
            for relation in dict.fromkeys(sink.relation for p in stage for sink in p.sinks):
                self.settle(relation, times)
        if self.scope.model == "total":
            self.paths(self.scope.enter, times)
            for relation in self.scope.relations:
                self.settle(relation, times)
        else:
            for r in rounds:
                self.iterate(r)
                self.leave(r)
        self.started = True

    def iterate(self, round: int) -> None:
        self.paths(self.scope.enter, [(round, 0)])
        self.started = True
        iteration = 0
        while iteration <= self.last_iteration():
            assert iteration < MOST_ITERATIONS, "the iteration does not end"
            for relation in self.scope.variables:
                self.settle(relation, [(round, iteration)])
            self.paths(self.scope.loop, [(round, iteration)])
            iteration += 1

    def leave(self, round: int) -> None:
        """Shows later scopes what the variables come to, without iterations."""
        for relation in self.scope.variables:
            for row, updates in self.own[relation].items():
                add(self.data[relation], row, (round, 0), sum(d for t, d in updates if t[0] == round))

    def last_iteration(self) -> int:
        every = [updates for v in self.scope.variables for updates in self.derived[v].values()]
        return max((t[1] for updates in every for t, _ in updates), default=0)

    # ------------------------------------------------------------------------------------------------------- collections

    def settle(self, relation: str, times: Sequence[Time]) -> None:
        """Brings the relation's rows in line with their derivations at these times, of which none later is settled."""
        history = self.history(relation)
        for time in times:
            counts = {row: n for row, updates in self.derived[relation].items() if (n := accumulated(updates, time))}
            assert all(n > 0 for n in counts.values()), f"{relation} loses what it does not have, at {time}"
            wanted = self.rows(relation, counts)
            for row in wanted | history.keys():
                add(history, row, time, (row in wanted) - accumulated(history.get(row, ()), time))

    def rows(self, relation: str, counts: Mapping[Row, int]) -> set[Row]:
        if relation in self.reductions:
            return reduced(self.reductions[relation], counts)
        if relation not in self.lattices:
            return set(counts)
        lattice = self.lattices[relation]
        best: dict[Row, Row] = {}
        choose: Callable[..., Row] = min if lattice.dominance is Dominance.LEAST else max
        for row in counts:
            key = row[: lattice.column] + row[lattice.column + 1 :]
            best[key] = choose(best.get(key, row), row, key=lambda r: r[lattice.column])
        return set(best.values())

    # ------------------------------------------------------------------------------------------------------------- paths

    def paths(self, paths: Iterable[Path], times: Sequence[Time]) -> None:
        for path in paths:
            for env, seed, diff in self.seeds(path.seed, times):
                for found, time, d in self.steps(path.steps, env, seed, seed, diff):
                    assert path.advance or not self.scope.variables or time[1] == 0
                    for sink in path.sinks:
                        self.sink(sink, found, (time[0], time[1] + path.advance), d)

    def seeds(self, seed: nodes.Scan | nodes.Unit, times: Sequence[Time]) -> Iterator[tuple[Env, Time, int]]:
        match seed:
            case nodes.Unit():
                if not self.started:
                    yield {}, times[0], 1
            case nodes.Scan(relation=relation, binds=binds, negated=negated, missing=missing, changes=changes):
                assert changes
                sign = -1 if negated or missing else 1
                history = appearing(self.history(relation)) if missing else self.history(relation)
                for row, updates in list(history.items()):
                    for time, diff in list(updates):
                        if time in times:
                            yield {v: row[c] for c, v in binds}, time, sign * diff

    def sink(self, sink: nodes.Insert | nodes.Accumulate, env: Env, time: Time, diff: int) -> None:
        match sink:
            case nodes.Insert(relation=relation, terms=terms):
                row = tuple(value(t, env) for t in terms)
            case nodes.Accumulate(relation=relation, key=key, value=v):
                row = (*(value(t, env) for t in key), None if v is None else value(v, env))
        add(self.derived[relation], row, time, diff)

    def steps(
        self, steps: Sequence[nodes.Step], env: Env, seed: Time, time: Time, diff: int
    ) -> Iterator[tuple[Env, Time, int]]:
        if not steps:
            yield env, time, diff
            return
        for found, met, factor in self.step(steps[0], env, seed):
            yield from self.steps(steps[1:], found, seed, latest(time, met), diff * factor)

    def step(self, step: nodes.Step, env: Env, seed: Time) -> Iterator[tuple[Env, Time, int]]:
        match step:
            case nodes.HalfJoin(arrangement=arrangement, key=key, binds=binds, view=view):
                for row, time, diff in self.matches(arrangement.relation, arrangement.key, key, view, env, seed):
                    yield env | {v: row[c] for c, v in binds}, time, diff
            case nodes.Extend(variable=variable, proposers=proposers):
                for v, time, diff in self.extensions(proposers, env, seed):
                    yield env | {variable: v}, time, diff
            case nodes.SemiJoin(relation=relation, args=args, view=view):
                if self.present(relation, args, view, env, seed):
                    yield env, seed, 1
            case nodes.AntiJoin(relation=relation, args=args, view=view):
                if not self.present(relation, args, view, env, seed):
                    yield env, seed, 1
            case nodes.LookUp(relation=relation, key=key, variable=variable, default=default, view=view):
                columns = tuple(range(len(key)))
                counts: dict[Row, int] = defaultdict(int)
                for row, _, diff in self.matches(relation, columns, key, view, env, seed):
                    counts[row] += diff
                found = [row[-1] for row, n in counts.items() if n]
                assert len(found) <= 1
                for v in found or ([] if default is None else [default]):
                    yield env | {variable: v}, seed, 1
            case nodes.Filter(compare=compare):
                if holds(compare, env):
                    yield env, seed, 1
            case nodes.Map(variable=variable, term=term):
                yield env | {variable: value(term, env)}, seed, 1
            case nodes.Generate(function=name, args=args, binds=binds, kind=kind):
                for made in rows_of(name, [value(t, env) for t in args], kind.value):
                    yield env | {v: made[c] for c, v in binds}, seed, 1
            case nodes.UnpackRecord(variable=variable, binds=binds):
                if env[variable] is not None:
                    yield env | {v: env[variable][f] for f, v in binds}, seed, 1

    def extensions(
        self, proposers: Sequence[nodes.Proposer], env: Env, seed: Time
    ) -> Iterator[tuple[Any, Time, int]]:
        """The values that all proposers have, with all combinations of times at which each has them."""
        found: dict[Any, list[tuple[Time, int]]] = {}
        for i, p in enumerate(proposers):
            proposed: dict[Any, list[tuple[Time, int]]] = defaultdict(list)
            for row, time, diff in self.matches(p.arrangement.relation, p.arrangement.key, p.key, p.view, env, seed):
                proposed[row[p.column]].append((time, diff))
            earlier = found if i else {v: [((0, 0), 1)] for v in proposed}
            found = {
                v: [(latest(t, u), d * e) for t, d in earlier[v] for u, e in times]
                for v, times in proposed.items()
                if v in earlier
            }
        for v, times in found.items():
            for time, diff in times:
                yield v, time, diff

    def matches(
        self, relation: str, columns: Sequence[int], key: Sequence[Term], view: View, env: Env, seed: Time
    ) -> Iterator[tuple[Row, Time, int]]:
        wanted = tuple(value(t, env) for t in key)
        for row, updates in list(self.history(relation).items()):
            if tuple(row[c] for c in columns) == wanted:
                for time, diff in updates:
                    if before(time, seed, view):
                        yield row, time, diff

    def present(self, relation: str, args: Sequence[Term | None], view: View, env: Env, seed: Time) -> bool:
        """Whether an import has the row at a time."""
        assert relation not in self.scope.variables
        row = tuple(value(a, env) for a in args if a is not None)
        count = sum(d for t, d in self.history(relation).get(row, ()) if before(t, seed, view))
        assert count in (0, 1), "a relation is no set"
        return bool(count)


def reduced(reduction: Reduction, counts: Mapping[Row, int]) -> set[Row]:
    groups: dict[Row, list[Any]] = defaultdict(list)
    for row, n in counts.items():
        groups[row[:-1]] += [row[-1]] * n
    kind = reduction.columns[len(reduction.keys)].value
    return {(*key, aggregated(reduction.op, values, kind)) for key, values in groups.items()}


def appearing(history: History) -> History:
    """When groups of a reduction get a row and when they have none any more."""
    groups: History = {}
    for row, updates in history.items():
        for time, diff in updates:
            add(groups, row[:-1], time, diff)
    return groups
