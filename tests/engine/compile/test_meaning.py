"""The typed program means what the text says: two slow evaluators, one over the syntax tree and one over typed rules, agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject

from dlog.engine.compiler import compile_source
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.compile.interpret import run
from tests.examples import examples
from tests.naive import TooBig, evaluate
from tests.strategies import Case, graph_programs, random_programs

BUDGET = 20_000
Answer = dict[str, list[str]]


def written(rows: dict[str, set[tuple[Any, ...]]]) -> Answer:
    return {name: sorted(map(repr, found)) for name, found in rows.items()}


def by_text(text: str, facts: Any) -> Answer:
    try:
        return written(evaluate(parse(Source(text)), facts, BUDGET))
    except TooBig:
        reject()


def by_rules(text: str, facts: Any) -> Answer:
    return written(run(compile_source(Source(text)), facts))


@examples(60)
@given(case=random_programs())
def test_random_programs_keep_their_meaning(case: Case) -> None:
    assert by_text(case.text, case.facts) == by_rules(case.text, case.facts)


@examples(30)
@given(case=graph_programs())
def test_graph_programs_keep_their_meaning(case: Case) -> None:
    assert by_text(case.text, case.facts) == by_rules(case.text, case.facts)


@pytest.mark.exhaustive
@examples(1000)
@given(case=random_programs())
def test_a_thousand_random_programs_keep_their_meaning(case: Case) -> None:
    assert by_text(case.text, case.facts) == by_rules(case.text, case.facts)


def test_the_example_programs_compile() -> None:
    programs = sorted((Path(__file__).parents[3] / "programs").glob("*/*.dl"))
    assert len(programs) > 10
    for path in programs:
        assert compile_source(Source(path.read_text(), path.name)).strata
