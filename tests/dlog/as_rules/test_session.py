"""Sessions on the rules of collections: they count, fail as a whole, follow, and survive."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.as_rules import CollectionsSession
from dlog.dataflow import Dataflow, col
from dlog.grammar.diagnostics import DlogError
from tests.dlog.as_rules import killed
from tests.dlog.as_rules.cases import searches
from tests.dlog.as_rules.compared import stage


def counting_rules(*sets: str) -> dlog.Rules:
    """Edges, and how many each node has."""
    flow = Dataflow()
    edges = flow.input("edges", src=int, dst=int)
    return dlog.rules(degrees=edges.count("degree", by="src"), edges_again=edges.filter(col("src") > 0), sets=sets)


def counting(*sets: str) -> CollectionsSession:
    return counting_rules(*sets).session(threads=1)


def code(run: Callable[[], object]) -> str:
    with pytest.raises(DlogError) as error:
        run()
    return error.value.diagnostics[0].code


def test_rows_count_however_they_come_and_go() -> None:
    s = counting()
    s.insert("edges", [(1, 2), (1, 2), (1, 3)])
    s.insert("edges", (1, 2))
    s.insert("edges", {"src": np.array([4]), "dst": np.array([5])})
    s.remove("edges", [(1, 3)])
    s.update("edges", [(1, 2), (7, 7)], [-1, 3])
    s.commit()
    assert s.counts("edges") == {(1, 2): 2, (4, 5): 1, (7, 7): 3}
    assert s.counts("degrees") == {(1, 2): 1, (4, 1): 1, (7, 3): 1}
    s.remove("edges", [(1, 2), (1, 2)])
    round = s.commit()
    assert s.counts("edges_again") == {(4, 5): 1, (7, 7): 3}
    assert list(round.changes("degrees")) == [((1, 2), -1)]


def test_rows_of_sets_are_there_or_not() -> None:
    s = counting("edges")
    s.insert("edges", [(1, 2), (1, 2), (1, 3)])
    s.commit()
    s.insert("edges", (1, 2))
    s.remove("edges", [(1, 3), (8, 8)])
    s.commit()
    assert s.counts("edges") == {(1, 2): 1} == s.counts("edges_again")
    assert s.counts("degrees") == {(1, 1): 1}
    assert code(lambda: s.update("edges", [(1, 2)], 2)) == "bad-argument"


def test_no_row_is_there_more_often_than_64_bits_say() -> None:
    s = counting()
    for _ in range(2):
        s.update("edges", [(1, 2)], 2**62)
    assert code(s.commit) == "diff-overflow"
    s.rollback()
    s.update("edges", [(1, 2)], 2**62)
    s.commit()
    assert s.counts("edges") == {(1, 2): 2**62}


def test_no_row_is_there_less_than_never() -> None:
    s = counting()
    s.insert("edges", [(1, 2)])
    s.commit()
    s.insert("edges", [(5, 6)])
    s.remove("edges", [(1, 2), (1, 2)])
    assert code(s.commit) == "negative-multiplicity"
    assert s.counts("edges") == {(1, 2): 1}
    s.insert("edges", [(1, 2)])  # what is staged stays so
    s.commit()
    assert s.counts("edges") == {(5, 6): 1}


def test_what_a_failed_commit_has_staged_is_counted_anew() -> None:
    s = counting()
    s.add_rules(".decl quotient(n: number)\nquotient(10 / x) :- edges(x, _, _).")
    s.insert("edges", [(0, 1), (5, 6)])
    assert code(s.commit) == "division-by-zero"
    s.remove("edges", [(0, 1)])
    s.insert("edges", [(5, 6)])
    s.commit()
    assert s.counts("edges") == {(5, 6): 2}


def test_what_is_staged_can_be_forgotten() -> None:
    s = counting()
    s.insert("edges", [(1, 2)])
    s.rollback()
    s.insert("edges", [(3, 4)])
    with pytest.raises(ZeroDivisionError), s.transaction():
        s.insert("edges", [(5, 6)])
        1 / 0  # noqa: B018
    with s.transaction():
        s.insert("edges", [(3, 4)])
    assert s.counts("edges") == {(3, 4): 2}


def test_what_does_not_count_is_refused_where_rows_have_numbers(tmp_path: Path) -> None:
    s, sets = counting(), counting("edges")
    (tmp_path / "edges.facts").write_text("1\t2\n")
    for run in (lambda s: s.load("edges", tmp_path / "edges.facts"), lambda s: s.upsert("edges", (1, 3))):
        assert code(lambda run=run: run(s)) == "not-a-set"
        run(sets)
    sets.commit()
    assert sets.counts("edges") == {(1, 3): 1}


STREAM = [(1, (1, 2), 2), (1, (3, 4), 1), (2, (1, 2), -1), (2, (5, 6), 1), (2, (5, 6), -1), (4, (1, 2), -1), (4, (3, 4), 3)]


@pytest.mark.parametrize("form", ["tuples", "columns", "table"])
def test_many_rounds_count_row_by_row(form: str) -> None:
    rounds, rows, diffs = zip(*STREAM, strict=True)
    columns = {"src": [a for a, _ in rows], "dst": [b for _, b in rows], "round": rounds, "diff": diffs}
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    s = counting()
    done = s.commit_rounds({"edges": {"tuples": STREAM, "columns": columns, "table": table}[form]})
    assert [(round, sorted(changes)) for round, changes in done.changes("degrees").by_round()] == [
        (1, [((1, 2), 1), ((3, 1), 1)]),
        (2, [((1, 1), 1), ((1, 2), -1)]),
        (4, [((1, 1), -1), ((3, 1), -1), ((3, 4), 1)]),
    ]
    assert s.counts("edges") == {(3, 4): 4}
    too_few = [(5, (3, 4), -3), (6, (3, 4), -3), (7, (3, 4), 9)]
    assert code(lambda: s.commit_rounds({"edges": too_few})) == "negative-multiplicity"
    assert code(lambda: s.commit_rounds({"edges": [(5, (3, 4))]})) == "bad-argument"
    assert code(lambda: s.commit_rounds({"edges": [("a", (3, 4), 1)]})) == "bad-argument"
    s.remove("edges", [(3, 4)])
    s.commit()
    assert s.counts("edges") == {(3, 4): 3}


def test_floats_and_truth_values_of_sets_are_as_in_a_dataflow() -> None:
    flow = Dataflow()
    values = flow.input("numbers", x=float, good=bool)
    rules = dlog.rules(found=values.map("x", bad=~col("good")), sets=["numbers"])
    s = rules.session({"numbers": [(-0.0, True)]})
    s.commit_rounds({"numbers": [(2, (0.0, True), -1), (3, (-0.0, False), 1)]})
    assert repr(s.counts("found")) == "{(0.0, True): 1}"


def test_subscribers_and_the_past_are_those_of_any_session() -> None:
    rules = counting_rules()
    s = rules.session(threads=1, history=5)
    seen = s.subscribe("degrees")
    for row in ((1, 2), (1, 3), (1, 2)):
        s.insert("edges", row)
        s.commit()
    assert [(round, list(changes)) for round, changes in seen.fetch()][1:] == [
        (2, [((1, 1), -1), ((1, 2), 1)]),
        (3, [((1, 2), -1), ((1, 3), 1)]),
    ]
    assert rules.counts(s.at(2), "edges") == {(1, 2): 1, (1, 3): 1}
    s.add_rules(".decl high(node: number)\nhigh(x) :- degrees(x, n), n > 2.")
    assert list(s["high"]) == [(1,)]


def test_a_session_goes_on_where_its_state_was_left(tmp_path: Path) -> None:
    both, rng = searches("roots"), random.Random(3)
    for _ in range(4):
        with both.rules.session({"roots": [(0,)], "edges": [(0, 1)]} if not both.flow.round else None, state=tmp_path) as s:
            if not both.flow.round:
                both.inputs["roots"].insert([0])
                both.inputs["edges"].insert([(0, 1)])
                both.there["roots"][(0,)] = both.there["edges"][(0, 1)] = 1
                both.flow.commit()
            both.check(s)
            for _ in range(3):
                stage(s, both.changes(rng, 6))
                both.flow.commit()
                s.commit()
                both.check(s)


def test_a_session_survives_being_killed(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.dlog.as_rules.killed", str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = 0
    while said < 7:
        said = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    assert child.wait(60) == -signal.SIGKILL
    child.stdout.close()
    both = searches("roots")
    with both.rules.session(state=tmp_path / "state", threads=1) as s:
        assert s.round >= 7
        rounds = killed.rounds(both)
        for _ in range(s.round):
            next(rounds)
        both.flow.commit()
        both.check(s)
        stage(s, both.changes(random.Random(1), 6))
        both.flow.commit()
        s.commit()
        both.check(s)
