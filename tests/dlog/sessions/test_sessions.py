"""Sessions: what one stages, commits, reads and gets wrong."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog

CLOSURE = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

KINDS = """.type Pair = [left: number, right: Pair]
.decl all(n: number, u: unsigned, f: float, s: symbol, p: Pair)
.decl seen(n: number, s: symbol, p: Pair)
.decl flag()
.decl raised(n: number)
seen(n, s, p) :- all(n, _, _, s, p).
raised(1) :- flag().
"""
ROW = (-(2**63), 2**64 - 1, 0.5, "é", (1, (2, None)))


class Foreign:
    """A table of somebody else's, known by its protocol only."""

    def __init__(self, **columns: list[Any]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def code(raised: pytest.ExceptionInfo[dlog.DlogError]) -> str:
    [diagnostic] = raised.value.diagnostics
    return diagnostic.code


def notes(raised: pytest.ExceptionInfo[dlog.DlogError]) -> str:
    return " ".join(raised.value.diagnostics[0].notes)


# ------------------------------------------------------------------------------------------------------------ the first round


def test_a_session_without_facts_is_at_round_0_and_empty() -> None:
    s = dlog.session(CLOSURE)
    assert s.round == 0
    assert {name: list(s[name]) for name in s} == {"edge": [], "path": []}


def test_facts_of_the_text_are_the_first_round() -> None:
    s = dlog.session(CLOSURE + "edge(1, 2).\n")
    assert s.round == 1
    assert list(s.changes("path")) == [((1, 2), 1)]


def test_rules_that_read_nothing_are_the_first_round() -> None:
    s = dlog.session(CLOSURE + ".decl size(n: number)\nsize(n) :- n = count : { edge(_, _) }.\n")
    assert (s.round, list(s["size"])) == (1, [(0,)])


def test_facts_given_as_rows_are_the_first_round() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2), (2, 3)]})
    assert (s.round, sorted(s["path"])) == (1, [(1, 2), (1, 3), (2, 3)])


def test_facts_in_a_folder_are_the_first_round(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    s = dlog.session(CLOSURE + ".input edge\n", tmp_path)
    assert (s.round, sorted(s["path"])) == (1, [(1, 2), (1, 3), (2, 3)])


def test_a_program_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(CLOSURE)
    assert list(dlog.session(tmp_path / "p.dl")) == ["edge", "path"]


# --------------------------------------------------------------------------------------------------------- rows from outside


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2), (2, 3)],
        [[1, 2], [2, 3]],
        {(1, 2), (2, 3)},
        (row for row in [(1, 2), (2, 3)]),
        {"x": np.array([1, 2]), "y": np.array([2, 3])},
        {"y": [2, 3], "x": [1, 2]},
        np.array([[1, 2], [2, 3]], np.int32),
        [(np.int64(1), np.int64(2)), (2, 3)],
        pa.table({"x": [1, 2], "y": [2, 3]}),
        pa.table({"y": [2, 3], "x": [1, 2]}),
        pa.table({"from": [1, 2], "to": [2, 3]}),
        Foreign(x=[1, 2], y=[2, 3]),
        [(i, i + 1) for _ in range(100) for i in (1, 2)],
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_come_in_many_forms(rows: Any) -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", rows)
    s.commit()
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_a_relation_of_another_session_is_rows() -> None:
    s, other = dlog.session(KINDS), dlog.session(KINDS, {"all": [ROW]})
    s.insert("all", other["all"])
    s.commit()
    assert list(s["all"]) == [ROW]


@pytest.mark.parametrize("times", [1, 100])
def test_values_of_every_kind_go_in_and_come_out(times: int) -> None:
    s = dlog.session(KINDS)
    s.insert("all", [ROW] * times)
    s.insert("flag", ())
    round = s.commit()
    assert list(s["all"]) == [ROW]
    assert list(round.changes("seen")) == [((ROW[0], ROW[3], ROW[4]), 1)]
    assert list(s["raised"]) == [(1,)]
    s.remove("all", [ROW] * times)
    s.remove("flag", [()])
    assert sorted(name for name in s.commit()) == ["all", "flag", "raised", "seen"]
    assert [s.rows(name) for name in s] == [0, 0, 0, 0]


def test_an_integer_is_a_float_where_one_is_wanted() -> None:
    s = dlog.session(".decl f(x: float)\n")
    s.insert("f", (1,))
    s.commit()
    assert [repr(row) for row in s["f"]] == ["(1.0,)"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((1,), "(1,) is not a tuple of 2 values"),
        ((1, "a"), "y: 'a' is not of type number"),
        ((1, 2**63), f"y: {2**63} is not of type number"),
        ([(1, 2), (1, 2.5)], "y: 2.5 is not of type number"),
        (7, "7 is no rows of `edge`"),
        ("ab", "'ab' is no rows of `edge`"),
        ({"x": [1], "z": [2]}, "the columns of `edge` are x, y"),
        (np.zeros((2, 3), int), "an array of shape (2, 3) is no rows of `edge`"),
        (pa.table({"x": [1.5], "y": [2.0]}), "x: "),
    ],
)
def test_wrong_rows_are_refused_when_they_are_staged(rows: Any, message: str) -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (7, 8))
    with pytest.raises(dlog.DlogError) as raised:
        s.insert("edge", rows)
    assert message in str(raised.value)
    assert s.staged == {"edge": 1}


def test_unknown_relations_are_refused_with_a_suggestion() -> None:
    s = dlog.session(CLOSURE)
    for action in (lambda: s.insert("egde", (1, 2)), lambda: s["egde"], lambda: s.changes("egde"), lambda: s.rows("egde")):
        with pytest.raises(dlog.DlogError) as raised:
            action()
        assert (code(raised), notes(raised)) == ("unknown-relation", "did you mean `edge`?")


def test_relations_with_rules_are_refused_unless_they_are_inputs() -> None:
    s = dlog.session(CLOSURE)
    with pytest.raises(dlog.DlogError) as raised:
        s.insert("path", (1, 2))
    assert code(raised) == "derived-relation"
    s = dlog.session(CLOSURE + ".input path\n")
    s.insert("path", (1, 2))
    s.insert("edge", [(1, 2), (2, 3)])
    s.commit()
    s.remove("edge", (1, 2))
    assert list(s.commit().changes("path")) == []
    s.remove("path", (1, 2))
    assert sorted(s.commit().changes("path")) == [((1, 2), -1), ((1, 3), -1)]


# -------------------------------------------------------------------------------------------------------------------- rounds


def test_the_last_change_of_a_row_counts() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    s.remove("edge", (1, 2))
    s.remove("edge", (3, 4))
    s.insert("edge", (3, 4))
    assert list(s.commit().changes("edge")) == [((3, 4), 1)]


@pytest.mark.parametrize("first", ["one", "many"])
def test_the_order_of_single_and_bulk_changes_counts(first: str) -> None:
    s = dlog.session(CLOSURE)
    bulk = {"x": [1, 5], "y": [2, 6]}
    if first == "one":
        s.insert("edge", (1, 2))
        s.remove("edge", bulk)
    else:
        s.remove("edge", bulk)
        s.insert("edge", (1, 2))
    s.commit()
    assert list(s["edge"]) == ([] if first == "one" else [(1, 2)])


def test_inserting_what_is_there_and_removing_what_is_not_changes_nothing() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2)]})
    s.insert("edge", (1, 2))
    s.remove("edge", (8, 9))
    round = s.commit()
    assert (int(round), len(round), list(round)) == (2, 0, [])


def test_nothing_is_visible_before_the_commit() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    assert (s.staged, s.rows("path"), len(s["edge"])) == ({"edge": 1}, 0, 0)
    s.commit()
    assert (s.staged, s.rows("path"), len(s["edge"])) == ({}, 1, 1)


def test_relations_that_were_read_stay_as_they_were() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2)]})
    before = s["path"]
    assert s["path"] is before
    s.insert("edge", (2, 3))
    s.commit()
    assert (list(before), len(s["path"])) == ([(1, 2)], 3)


def test_rollback_forgets_what_is_staged() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    s.rollback()
    assert (len(s.commit()), s.round) == (0, 1)


def test_changes_of_past_rounds_are_refused() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    first = s.commit()
    s.commit()
    with pytest.raises(dlog.DlogError) as raised:
        first.changes("edge")
    assert code(raised) == "past-round"


def test_changes_convert_with_their_diffs_and_rounds() -> None:
    s = dlog.session(".decl seen(diff: number, text: symbol)\n", {"seen": [(1, "a")]})
    s.remove("seen", (1, "a"))
    s.insert("seen", (2, "b"))
    changes = s.commit().changes("seen")
    assert sorted(changes.to_arrow().to_pylist(), key=lambda r: r["diff"]) == [
        {"diff": 1, "text": "a", "_diff": -1, "round": 2},
        {"diff": 2, "text": "b", "_diff": 1, "round": 2},
    ]
    assert (changes.inserted(), changes.removed()) == ([(2, "b")], [(1, "a")])
    arrays = changes.to_numpy()
    assert sorted(zip(arrays["diff"].tolist(), arrays["_diff"].tolist(), strict=True)) == [(1, -1), (2, 1)]


# -------------------------------------------------------------------------------------------------------------- transactions


def test_a_transaction_commits_at_its_end() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    with s.transaction() as t:
        s.insert("edge", (2, 3))
        assert t.round is None
    assert t.round is not None
    assert (t.round.number, s.rows("path")) == (1, 3)


def test_a_transaction_that_raises_leaves_what_was_staged_before() -> None:
    s = dlog.session(CLOSURE)
    s.insert("edge", (1, 2))
    with pytest.raises(ValueError, match="no"), s.transaction():
        s.remove("edge", (1, 2))
        s.insert("edge", np.array([[2, 3]]))
        raise ValueError("no")
    s.commit()
    assert list(s["edge"]) == [(1, 2)]


def test_transactions_do_not_nest_and_hold_no_commits() -> None:
    s = dlog.session(CLOSURE)
    with s.transaction():
        with pytest.raises(dlog.DlogError) as raised, s.transaction():
            pass
        assert code(raised) == "nested-transaction"
        with pytest.raises(dlog.DlogError) as raised:
            s.commit()
        assert code(raised) == "commit-inside-transaction"
        s.insert("edge", (1, 2))
    assert s.rows("edge") == 1


DIVIDE = """.decl n(x: number)
.decl q(y: number)
q(100 / x) :- n(x).
"""


def test_a_commit_that_fails_leaves_the_last_round_and_what_is_staged() -> None:
    s = dlog.session(DIVIDE, {"n": [(5,)]})
    s.insert("n", [(0,), (4,)])
    with pytest.raises(dlog.DlogError) as raised:
        s.commit()
    assert code(raised) == "division-by-zero"
    assert (s.round, list(s["q"]), s.rows("n"), s.staged) == (1, [(20,)], 1, {"n": 2})
    with pytest.raises(dlog.DlogError) as raised:
        s.changes("q")
    assert code(raised) == "past-round"
    s.remove("n", (0,))
    assert sorted(s.commit().changes("q")) == [((25,), 1)]


def test_a_transaction_whose_commit_fails_is_rolled_back() -> None:
    s = dlog.session(DIVIDE)
    with pytest.raises(dlog.DlogError), s.transaction():
        s.insert("n", (0,))
    assert (s.round, s.staged) == (0, {})
    s.insert("n", (2,))
    assert list(s.commit().changes("q")) == [((50,), 1)]


def test_a_limit_of_iterations_fails_the_commit() -> None:
    s = dlog.session(CLOSURE, max_iterations=10)
    s.insert("edge", [(i, i + 1) for i in range(5)])
    s.commit()
    s.insert("edge", [(i, i + 1) for i in range(5, 50)])
    with pytest.raises(dlog.DlogError) as raised:
        s.commit()
    assert code(raised) == "too-many-iterations"
    assert (s.round, s.rows("path")) == (1, 15)


def test_a_closed_session_says_so() -> None:
    with dlog.session(CLOSURE) as s:
        read = s["edge"]
    for action in (lambda: s.insert("edge", (1, 2)), s.commit, lambda: s["path"], lambda: s.query("edge(X, Y)"), s.rollback):
        with pytest.raises(dlog.DlogError) as raised:
            action()
        assert code(raised) == "closed-session"
    s.close()
    assert list(read) == []


# ------------------------------------------------------------------------------------------------------------ upsert and load

PRICES = ".decl price(item: symbol, place: symbol, euros: number)\n"
GIVEN = [("tea", "Ulm", 3), ("tea", "Bonn", 4), ("rum", "Ulm", 9)]


def prices(s: dlog.Session) -> list[Any]:
    return sorted(s["price"])


@pytest.mark.parametrize("form", ["one by one", "together", "as columns"])
def test_upsert_replaces_the_rows_with_the_same_key(form: str) -> None:
    s = dlog.session(PRICES, {"price": GIVEN})
    new = [("tea", "Ulm", 5), ("gin", "Ulm", 8), ("gin", "Ulm", 7)]
    if form == "one by one":
        for row in new:
            s.upsert("price", row, key=("item", "place"))
    elif form == "together":
        s.upsert("price", new, key=("item", "place"))
    else:
        columns = dict(zip(("item", "place", "euros"), map(list, zip(*new, strict=True)), strict=True))
        s.upsert("price", pa.table(columns), key=("item", "place"))
    s.commit()
    assert prices(s) == [("gin", "Ulm", 7), ("rum", "Ulm", 9), ("tea", "Bonn", 4), ("tea", "Ulm", 5)]


def test_the_first_column_is_the_key_by_default() -> None:
    s = dlog.session(PRICES, {"price": GIVEN})
    s.upsert("price", ("tea", "Jena", 1))
    s.commit()
    assert prices(s) == [("rum", "Ulm", 9), ("tea", "Jena", 1)]


def test_upserts_see_what_is_staged_and_committed_in_between() -> None:
    s = dlog.session(PRICES, {"price": GIVEN})
    s.upsert("price", ("tea", "Jena", 1))
    s.insert("price", ("tea", "Aachen", 2))
    s.upsert("price", ("tea", "Jena", 3))
    s.commit()
    assert prices(s) == [("rum", "Ulm", 9), ("tea", "Jena", 3)]
    s.insert("price", pa.table({"item": ["tea"], "place": ["Ulm"], "euros": [4]}))
    s.rollback()
    s.remove("price", ("rum", "Ulm", 9))
    s.upsert("price", ("rum", "Jena", 8))
    s.upsert("price", ("tea", "Jena", 3))
    assert sorted(s.commit().changes("price")) == [(("rum", "Jena", 8), 1), (("rum", "Ulm", 9), -1)]


def test_no_rows_are_no_change() -> None:
    """In every form, also while upserts have an index of the relation."""
    empty: tuple[Any, ...] = ([], (row for row in ()), {"item": [], "euros": []})
    with dlog.session(".decl price(item: symbol, euros: number)\n") as s:
        for rows in empty:
            for change in (s.insert, s.remove, s.upsert):
                change("price", rows)
        s.commit_rounds({"price": [(1, ("rum", 9), 1)]})
        s.upsert("price", ("tea", 3))
        for rows in empty:
            for change in (s.insert, s.remove, s.upsert):
                change("price", rows)
        s.upsert("price", ("tea", 4))
        s.commit()
        assert sorted(s["price"]) == [("rum", 9), ("tea", 4)]


@pytest.mark.parametrize(("key", "note"), [("itme", "item"), (("item", "wher"), "its columns are item, place, euros")])
def test_an_unknown_key_is_refused(key: Any, note: str) -> None:
    s = dlog.session(PRICES)
    with pytest.raises(dlog.DlogError) as raised:
        s.upsert("price", GIVEN[0], key=key)
    assert code(raised) == "bad-key"
    assert note in notes(raised)


def test_files_of_every_format_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "tabs.facts").write_text("1\t2\n")
    (tmp_path / "commas.csv").write_text("x,y\n2,3\n")
    pq.write_table(pa.table({"x": [3], "y": [4]}), tmp_path / "p.parquet")
    s = dlog.session(CLOSURE)
    s.load("edge", tmp_path / "tabs.facts")
    s.load("edge", str(tmp_path / "commas.csv"), delimiter=",", headers="true")
    s.load("edge", tmp_path / "p.parquet")
    s.commit()
    assert sorted(s["edge"]) == [(1, 2), (2, 3), (3, 4)]


def test_a_file_is_read_as_the_input_directive_says(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("2;1\n")
    s = dlog.session(CLOSURE + '.input edge(filename="edges.csv", delimiter=";", columns="1:0")\n')
    s.load("edge", tmp_path / "more.csv")
    s.commit()
    assert list(s["edge"]) == [(1, 2)]


def test_a_file_that_is_missing_or_wrong_is_refused(tmp_path: Path) -> None:
    s = dlog.session(CLOSURE)
    with pytest.raises(dlog.DlogError) as raised:
        s.load("edge", tmp_path / "none.facts")
    assert code(raised) == "missing-file"
    (tmp_path / "bad.facts").write_text("1\ttwo\n")
    with pytest.raises(dlog.DlogError) as raised:
        s.load("edge", tmp_path / "bad.facts")
    assert code(raised) == "bad-number"
    assert s.staged == {}


@pytest.mark.parametrize("name", ["__init__", "follow.changes", "core"])
def test_the_examples_in_the_documentation_are_true(name: str) -> None:
    module = importlib.import_module("dlog.sessions" if name == "__init__" else f"dlog.sessions.{name}")
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("top", [30_000, 1_000_000])
def test_keys_that_are_close_but_for_one(top: int) -> None:
    """Indexes built at once of thousands of keys, of which only the last is far from the others; they grow afterwards."""
    pairs = 5000
    edges = [*((2 * i, 2 * i + 1) for i in range(pairs)), (top, top + 1)]
    with dlog.session(CLOSURE, {"edge": edges}) as s:
        for edge in ((top + 1, top + 2), (top + 2, top + 3), (top + 3, 2 * top)):
            s.insert("edge", edge)
            s.commit()
        ends = [top, top + 1, top + 2, top + 3, 2 * top]
        far = {(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :]}
        assert set(s["path"]) == {*edges[:pairs], *far}
        for i in range(0, pairs, 7):
            s.remove("edge", edges[i])
        s.commit()
        assert set(s["path"]) == {*(e for i, e in enumerate(edges[:pairs]) if i % 7), *far}


def test_a_commit_with_too_many_iterations_leaves_what_rounds_with_fewer_made() -> None:
    """Evaluated from scratch, what is there takes more iterations than any round did."""
    s = dlog.session(
        """
        .decl edge(x: number, y: number)
        .decl start(x: number, v: number)
        .decl least(x: number, v: number)
        least(x, v) :- start(x, _), v = min c : { start(x, c) ; least(y, c), edge(y, x) }.
        """,
        max_iterations=8,
    )
    for k in range(20):
        s.insert("start", (k, k + 1))
        s.insert("edge", (k, k + 1))
        s.commit()
    s.insert("start", [(k, k) for k in range(100, 120)])
    s.insert("edge", [(k, k + 1) for k in range(100, 120)])
    with pytest.raises(dlog.DlogError, match="more than 8 iterations"):
        s.commit()
    s.rollback()
    s.insert("edge", (200, 201))
    s.commit()
    assert len(s["edge"]) == 21 and sorted(s["least"]) == [(k, 1) for k in range(20)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_go_in_and_come_out(library: str) -> None:
    frames = pytest.importorskip(library)
    with dlog.session(".decl e(x: number, s: symbol, f: float)\n.decl r(s: symbol, f: float)\nr(s, f) :- e(_, s, f).\n") as s:
        s.insert("e", frames.DataFrame({"s": ["a", "é"], "f": [0.5, 2.0], "x": [1, 2]}))
        changes = getattr(s.commit().changes("r"), f"to_{library}")()
        s.remove("e", frames.DataFrame({"x": [2], "s": ["é"], "f": [2.0]}))
        s.commit()
        rows = getattr(s["r"], f"to_{library}")()
        assert type(rows).__module__.startswith(library)
        assert (list(rows["s"]), list(rows["f"])) == (["a"], [0.5])
        assert sorted(zip(changes["s"], changes["f"], changes["diff"], strict=True)) == [("a", 0.5, 1), ("é", 2.0, 1)]
