"""Random dataflows, built of collections."""

from __future__ import annotations

from collections.abc import Callable

from dlog.dataflow import Collection, Dataflow, Scope, Variable, col, moving
from dlog.engine.operators.delta import Delta
from tests.dlog.dataflow.terms import LAST_ITERATION, MODULUS, Loop, Term

A, B = col("a"), col("b")


def cut(delta: Delta) -> Delta:
    """Without what comes after the last iteration."""
    return delta.only(delta.times[-1] <= LAST_ITERATION)


class Built:
    """The collections of a dataflow that terms stand for, each in the scope of its level."""

    def __init__(self, flow: Dataflow, inputs: list[Collection]) -> None:
        self.flow, self.inputs = flow, inputs
        self.known: dict[tuple[int, int], Collection] = {}
        self.scopes: dict[int, Scope] = {}

    def of(self, term: Term, scope: Scope) -> Collection:
        """The collection of a term, in a scope that is its own or within it."""
        key = (id(term), id(scope))
        if key not in self.known:
            self.known[key] = self._find(term, scope)
        return self.known[key]

    def _find(self, term: Term, scope: Scope) -> Collection:
        level = scope.inner.depth - 1
        if term.level < level:
            assert scope.parent is not None
            return self.of(term, scope.parent).enter(scope)
        if term.name == "input":
            return self.inputs[term.number]
        if isinstance(term, Loop):
            return self._loop(term, scope)
        if term.name == "enter_at":
            assert scope.parent is not None
            return self.of(term.parts[0], scope.parent).enter_at(scope, "a")
        assert term.name != "variable"
        parts = [self.of(part, scope) for part in term.parts]
        build: Callable[..., Collection] = getattr(self, f"_{term.name}")
        return build(term, *parts)

    def _loop(self, term: Loop, scope: Scope) -> Collection:
        assert term.body
        loop = scope.loop()
        variable = Variable(loop, self.of(term.parts[0], scope).enter(loop))
        self._bind_variable(term.body[0], term, loop, variable)
        body = self.of(term.body[0], loop)._changed("cut", cut)
        return variable.set(body).leave()

    def _bind_variable(self, body: Term, loop: Loop, scope: Scope, variable: Collection) -> None:
        """Has the terms for the variable of a loop stand for it."""
        waiting, seen = [body], set()
        while waiting:
            term = waiting.pop()
            if id(term) in seen:
                continue
            seen.add(id(term))
            if term.name == "variable" and term.parts[0] is loop:
                self.known[id(term), id(scope)] = variable
            elif term.name != "variable":
                waiting += [*term.parts, *(term.body or () if isinstance(term, Loop) else ())]

    # -------------------------------------------------------------------------------------------------------------- linear

    def _map(self, term: Term, rows: Collection) -> Collection:
        return rows.map("b", a=(A + term.number) % MODULUS)

    def _swap(self, term: Term, rows: Collection) -> Collection:
        return rows.rename(a="b", b="a")

    def _filter(self, term: Term, rows: Collection) -> Collection:
        return rows.filter((term.number >= A) | (B == 0))

    def _flat_map(self, term: Term, rows: Collection) -> Collection:
        return self._in_order(rows).flat_map(lambda a, b: [(k, b) for k in range(a)], a=int, b=int)

    def _explode(self, term: Term, rows: Collection) -> Collection:
        return rows.explode(a="b", b="b", diff=A - term.number)

    def _negate(self, term: Term, rows: Collection) -> Collection:
        return rows.negate()

    def _consolidate(self, term: Term, rows: Collection) -> Collection:
        return rows.consolidate()

    def _series(self, term: Term, rows: Collection) -> Collection:
        return rows.generate_series("a", "b", "k").map("b", a="k")

    def _repeat(self, term: Term, rows: Collection) -> Collection:
        return rows.repeat_row(B - A)

    def _join_function(self, term: Term, rows: Collection) -> Collection:
        return self._in_order(rows).join_function(lambda a, b: [((a, b), a, 1), ((a, b), b + 1, -a)], a=int, b=int)

    def _temporal(self, term: Term, rows: Collection) -> Collection:
        return rows.temporal("a", B + 1)

    def _window(self, term: Term, rows: Collection) -> Collection:
        return rows.sliding_window("a", 2, 1 + term.number % 2).map("b", a=col("window_end") % MODULUS)

    def _delay_iteration(self, term: Term, rows: Collection) -> Collection:
        return rows.delay(lambda time: (*time[:-1], time[-1] + 1))

    def _in_order(self, rows: Collection) -> Collection:
        """With the columns as functions of rows expect them."""
        return rows.map("a", "b")

    # --------------------------------------------------------------------------------------------------------------- joins

    def _concat(self, term: Term, left: Collection, right: Collection) -> Collection:
        return left.concat(right)

    def _join(self, term: Term, left: Collection, right: Collection) -> Collection:
        return left.join_map(right, a="b", b="b_right", on="a")

    def _half_join(self, term: Term, left: Collection, right: Collection) -> Collection:
        forth = left.propose().half_join(right, on="a", ties=True).collect()
        back = right.propose().half_join(left, on="a", ties=False).collect()
        return forth.map(a="b", b="b_right").concat(back.map(a="b_right", b="b"))

    def _semijoin(self, term: Term, left: Collection, right: Collection) -> Collection:
        return left.semijoin(right, on="a")

    def _antijoin(self, term: Term, left: Collection, right: Collection) -> Collection:
        return left.antijoin(right, on="a")

    # ---------------------------------------------------------------------------------------------------------- reductions

    def _distinct(self, term: Term, rows: Collection) -> Collection:
        return rows.distinct()

    def _threshold(self, term: Term, rows: Collection) -> Collection:
        return rows.threshold(lambda counts: counts * counts % 3 - 1)

    def _count(self, term: Term, rows: Collection) -> Collection:
        return rows.count(by="a").map("a", b=col("count") % MODULUS)

    def _min(self, term: Term, rows: Collection) -> Collection:
        return rows.min("b", by="a")

    def _max(self, term: Term, rows: Collection) -> Collection:
        return rows.max("b", by="a")

    def _top_k(self, term: Term, rows: Collection) -> Collection:
        return rows.top_k(term.number + 1, "b", by="a", descending=True)

    def _sum(self, term: Term, rows: Collection) -> Collection:
        return rows.sum(by="a", b="b").map("a", b=B % MODULUS)

    def _reduce(self, term: Term, rows: Collection) -> Collection:
        def function(key: tuple[int], group: list[tuple[tuple[int], int]]) -> list[tuple[tuple[int], int]]:
            return [((len(group) % MODULUS,), 1), (group[-1][0], group[0][1])]

        return rows.reduce("a", function, b=int)

    # ------------------------------------------------------------------------------------------------------- ordered groups

    def _session(self, term: Term, rows: Collection) -> Collection:
        return rows.session_window("b", 1 + term.number, by="a").map("b", a=col("window_end") % MODULUS)

    def _moving(self, term: Term, rows: Collection) -> Collection:
        window = {"rows": 1 + term.number} if term.number % 2 else {"range": 1 + term.number}
        moved = rows.distinct().moving("b", by="a", **window, total=moving.sum("b"))
        return moved.map("a", b=col("total") % MODULUS)

    def _scan(self, term: Term, rows: Collection) -> Collection:
        states = rows.distinct().scan("b", lambda state, b: (2 * state + b + 1) % MODULUS, "b", by="a", state=term.number)
        return states.map("a", b="state")
