"""The law: at every time, a collection is what its operators make of what the inputs have come to by then."""

from __future__ import annotations

from hypothesis import assume, given

from dlog.dataflow import Dataflow
from dlog.grammar.diagnostics import DlogError
from tests.dlog.dataflow.built import Built
from tests.dlog.dataflow.naive import Naive, Row
from tests.dlog.dataflow.terms import LAST_ITERATION, ROUNDS, Loop, Term, changes, ends, terms
from tests.examples import examples

Changes = list[tuple[int, Row, int, int]]


def check(term: Term, changed: Changes, batches: list[int]) -> None:
    """Runs a dataflow batch by batch, and compares it with the naive evaluation at every round; of its loops, the outermost
    bodies at every iteration as well."""
    naive = Naive(changed)
    for round in range(ROUNDS):
        naive.at(term, (round,))
    flow = Dataflow()
    inputs = [flow.input(a=int, b=int), flow.input(a=int, b=int)]
    built = Built(flow, list(inputs))
    result = built.of(term, flow.scope).map("a", "b").capture(history=True)
    inner = None
    if isinstance(term, Loop) and term.body:
        scope = next(scope for key, scope in _scopes(built) if key == id(term.body[0]) and scope.inner.depth == 2)
        inner = built.of(term.body[0], scope).map("a", "b").capture(history=True)
    for number, row, round, diff in changed:
        inputs[number].update([row], diff, at=round)
    try:
        for end in batches:
            flow.advance_to(end)
    except DlogError as error:  # intermediate counts may be larger than those of any result
        assume(error.diagnostics[0].code != "diff-overflow")
        raise
    for round in range(ROUNDS):
        assert result.counts(round) == naive.at(term, (round,)), f"round {round}"
        if inner is not None and isinstance(term, Loop) and term.body:
            for iteration in range(LAST_ITERATION + 1):
                time = (round, iteration)
                assert inner.counts(time) == naive.at(term.body[0], time), f"time {time}"


def _scopes(built: Built):  # type: ignore[no-untyped-def]
    for (term, _), collection in built.known.items():
        yield term, collection.scope


@examples(300)
@given(terms(), changes, ends)
def test_0_1_every_collection_is_right_at_every_time(term: Term, changed: Changes, batches: list[int]) -> None:
    check(term, changed, batches)
