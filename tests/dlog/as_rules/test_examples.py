"""Rules have the rows of a dataflow, as often, after each round of random changes, whether inputs are sets or not."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from dlog.dataflow import Collection, Dataflow, col, lit
from tests.dlog.as_rules.cases import CASES, INPUTS
from tests.dlog.as_rules.compared import Compared, pairs
from tests.dlog.dataflow.algorithms import component_edges


@pytest.mark.parametrize("case", CASES)
def test_rules_have_the_rows_of_a_dataflow_after_each_round(case: str) -> None:
    CASES[case]().check_rounds(threads=1)


@pytest.mark.parametrize("case", CASES)
def test_inputs_may_be_sets(case: str) -> None:
    CASES[case](*INPUTS[case]).check_rounds(threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_rules_have_the_rows_of_a_dataflow_after_many_rounds(case: str) -> None:
    CASES[case]().check_rounds(60, 12, seed=17)
    CASES[case](*INPUTS[case]).check_rounds(60, 12, seed=18)


def test_components_are_said_by_reachability() -> None:
    """The loops that trim a graph to its strongly connected components are no recursion; edges whose end reaches their begin
    are the same."""
    flow = Dataflow()
    edges = flow.input("edges", src=int, dst=int)

    def step(inner: Collection) -> Collection:
        moved = inner.join_map(edges.enter(inner.scope), "src", on={"dst": "src"}, dst="dst_right")
        return moved.concat(edges.enter(inner.scope)).distinct()

    reached = edges.iterate(step)
    within = edges.semijoin(reached, on={"src": "dst", "dst": "src"})
    both = Compared(flow, [edges], {"within": within}, {"edges": pairs(9)}, "edges")
    both.captured["within"] = component_edges(edges).capture()
    both.check_rounds(8, threads=1)


def test_the_page_shows_the_program() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dataflow.md").read_text(encoding="utf-8")
    section = page.partition("## On the rules engine")[2]
    python, text = (re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)[0] for kind in ("python", "prolog"))
    names: dict = {"Dataflow": Dataflow, "col": col, "lit": lit}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(python, names)
    assert names["rules"].text == text
