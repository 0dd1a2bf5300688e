"""The executor against the naive evaluator where it is made to take its rarer paths: hash tables instead of bitmaps and dense
maps, several threads on every iteration, a return to Python after every block, temporaries of computed values,
arrangements of what leads on."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.conftest import RunText
from tests.engine.runtime.runs import executor_of, variant
from tests.examples import examples
from tests.strategies import Case, graph_programs, programs
from tests.test_oracle import by_naive_evaluation, executed

VARIANTS = {
    "hashed": ({"hashed": True}, 1),
    "bulk": ({"bulk": True}, 2),
    "hashed and bulk": ({"hashed": True, "bulk": True}, 2),
    "yielding": ({"yielding": True}, 1),
    "computed": ({"computed": True}, 1),
    "restricted": ({"restricted": True}, 1),
    "restricted-team": ({"restricted": True, "bulk": True, "hashed": True}, 2),
    "all": ({"hashed": True, "bulk": True, "yielding": True, "computed": True}, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(VARIANTS))
@examples(30)
@given(case=programs())
def test_every_variant_equals_the_naive_evaluator(run_text: RunText, name: str, case: Case) -> None:
    flags, threads = VARIANTS[name]
    with variant(**flags):
        found = executed(run_text, case, threads)
    assert found == by_naive_evaluation(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", list(VARIANTS))
@examples(600)
@given(case=programs())
def test_every_variant_equals_the_naive_evaluator_on_many_programs(run_text: RunText, name: str, case: Case) -> None:
    flags, threads = VARIANTS[name]
    with variant(**flags):
        found = executed(run_text, case, threads)
    assert found == by_naive_evaluation(case)


@examples(60)
@given(case=graph_programs())
def test_values_are_within_the_extents_that_were_inferred(case: Case) -> None:
    """And no relation holds a row twice."""
    executor = executor_of(case.text, case.facts)
    executor.run()
    for name, relation in executor.catalog.relations.items():
        rows = set(zip(*(relation.column(c).tolist() for c in range(relation.arity)), strict=True))
        assert len(rows) == relation.rows or relation.arity == 0, name
        for number, extent in enumerate(relation.extents):
            if extent is not None and relation.rows:
                values = relation.column(number)
                assert extent.low <= values.min() and values.max() <= extent.high, (name, number)
