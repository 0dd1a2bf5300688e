"""The law: after every round, the rules have the rows that the dataflow has, each as often."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow
from dlog.grammar.diagnostics import DlogError
from tests.dlog.as_rules.flows import Recursion, flat, flow_of, recursions, rounds
from tests.dlog.dataflow.terms import Term
from tests.examples import examples

Rounds = list[list[tuple[int, tuple[int, int], int]]]


def check(term: Term | Recursion, changed: Rounds) -> None:
    both = flow_of(term)
    expected = both.found.capture()
    rules = dlog.rules(found=both.found, sets=["one"] if "one" in _names(both) else [])
    there: list[Counter[tuple[int, int]]] = [Counter(), Counter()]
    with rules.session(threads=1) as s:
        for round in changed:
            for number, row, diff in round:
                allowed = max(-there[number][row], min(diff, 1 - there[number][row] if number == 0 else diff))
                there[number][row] += allowed
                both.inputs[number].update([row], allowed)
                if both.inputs[number].name in rules.inputs and allowed:
                    s.update(both.inputs[number].name, [row], allowed)
            try:
                both.flow.commit()
            except DlogError as error:
                assume(error.diagnostics[0].code != "diff-overflow")
                raise
            s.commit()
            assert s.counts("found") == expected.counts(), rules.text
        facts = {each.name: [row for row, n in there[k].items() for _ in range(n)] for k, each in enumerate(both.inputs)}
    once = rules.run({name: rows for name, rows in facts.items() if name in rules.inputs}, threads=1)
    assert rules.counts(once, "found") == expected.counts(), rules.text


def _names(both) -> set[str]:  # type: ignore[no-untyped-def]
    return set(dlog.rules(found=both.found).inputs)


@examples(200)
@given(flat, rounds)
def test_rules_have_the_rows_of_a_dataflow(term: Term, changed: Rounds) -> None:
    check(term, changed)


@examples(150)
@given(recursions, rounds)
def test_recursion_has_the_rows_of_a_loop(recursion: Recursion, changed: Rounds) -> None:
    check(recursion, changed)


far = st.integers(-40, 40) | st.integers(-(2**63), 40 - 2**63) | st.integers(2**63 - 41, 2**63 - 1)


@examples(40)
@given(st.lists(far, max_size=6), st.integers(1, 25), st.integers(1, 25), st.integers(-30, 30) | st.just(10**20))
def test_bounds_of_windows_wrap_around_and_no_time_is_dropped(times: list[int], size: int, slide: int, origin: int) -> None:
    """What a dataflow refuses: in rules integers wrap around."""
    flow = Dataflow()
    rows = flow.input("times", at=int)
    rules = dlog.rules(found=rows.sliding_window("at", size, slide, origin), sets=["times"])
    expected = {
        (at, *((bound + 2**63) % 2**64 - 2**63 for bound in (start, start + size)))
        for at in times
        for start in range(at - size + 1, at + 1)
        if (start - origin) % slide == 0
    }
    assert set(rules.run({"times": sorted(set(times))}, threads=1)["found"]) == expected
