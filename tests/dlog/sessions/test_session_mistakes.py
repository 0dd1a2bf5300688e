"""Sessions: what nobody means. Every mistake is named with its argument, and changes nothing."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dlog
from dlog import arguments
from dlog.dataflow import Dataflow

PROGRAM = """.type Pair = [left: number, right: symbol]
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl name(x: number, n: symbol)
.decl size(x: unsigned)
.decl weight(x: float)
.decl pair(p: Pair)
.decl flag()
.decl few(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
few(x) :- path(x, _), 2 > count : { edge(x, _) }.
"""
SURROGATE = "a\ud800"
MANY = 100
"""Rows that are taken by columns, not one by one."""


def opened(**options: Any) -> dlog.Session:
    return dlog.session(PROGRAM, {"edge": [(1, 2), (2, 3)]}, **options)


def mistake(act: Callable[[], Any]) -> tuple[str, str]:
    """The code, and the message with its notes, of the one mistake of a call."""
    with pytest.raises(dlog.DlogError) as raised:
        act()
    [diagnostic] = raised.value.diagnostics
    return diagnostic.code, " ".join([diagnostic.message, *diagnostic.notes])


def state_of(s: dlog.Session) -> Any:
    return s.round, s.staged, s.text, {name: sorted(s[name], key=repr) for name in s}


@pytest.mark.parametrize(
    ("relation", "rows", "expected"),
    [
        ("name", (1, SURROGATE), "name, row 1: n: 'a\\ud800' has a lone surrogate"),
        ("name", [(1, "b")] * MANY + [(2, SURROGATE)], f"row {MANY + 1}: n: 'a\\ud800' has a lone surrogate"),
        ("name", {"x": [1, 2], "n": ["b", SURROGATE]}, "row 2: n: 'a\\ud800' has a lone surrogate"),
        ("name", np.array([[1, SURROGATE]], object), "row 1: n: 'a\\ud800' has a lone surrogate"),
        ("pair", ((1, SURROGATE),), "row 1: p: 'a\\ud800' has a lone surrogate"),
        ("name", (1, b"b"), "n: b'b' is not of type symbol"),
        ("name", (1, None), "n: None is not of type symbol"),
        ("name", {"x": [1], "n": [None]}, "n: the column has nulls"),
        ("edge", {"x": 1}, "the columns of `edge` are x, y there is no `y`"),
        ("edge", {"x": 1, "y": [2]}, "1 is no column `x` of `edge`"),
        ("edge", {"x": "1", "y": "2"}, "'1' is no column `x` of `edge`"),
        ("edge", {"x": b"1", "y": b"2"}, "b'1' is no column `x` of `edge`"),
        ("edge", {"x": None, "y": None}, "None is no column `x` of `edge`"),
        ("edge", {"x": {1, 2}, "y": {3, 4}}, "{1, 2} is no column `x` of `edge`"),
        ("edge", {"x": [1], "y": np.array([[2]])}, "array([[2]]) is no column `y` of `edge`"),
        ("edge", {"x": [1], "y": [2, 3]}, "not of one length: `x` has 1, `y` has 2 values"),
        ("edge", {"x": [1, "b"], "y": [2, 3]}, "row 2: x: 'b' is not of type number"),
        ("edge", {"x": [2**70], "y": [1]}, f"row 1: x: {2**70} is not of type number"),
        ("edge", {"x": [object], "y": [1]}, "row 1: x: <class 'object'> is not of type number"),
        ("edge", {"x": [1], 2: [2]}, "there is no `y` `2` is unknown"),
        ("edge", np.array([[1, 2]], complex), "row 1: x: (1+0j) is not of type number"),
        ("edge", np.array([[np.nan, 2]]), "x: Float value nan was truncated"),
        ("edge", np.array([1, 2]), "an array of shape (2,) is no rows of `edge`"),
        ("edge", np.array([["2020-01-01", "2020-01-02"]], "M8[D]"), "edge: x: Unsupported cast from date32[day]"),
        ("edge", {"x": np.array([2**63], np.uint64), "y": [1]}, f"x: Integer value {2**63} not in range"),
        ("edge", (float("nan"), 1), "x: nan is not of type number"),
        ("edge", (1.0, 1), "x: 1.0 is not of type number"),
        ("edge", ("1", 1), "x: '1' is not of type number"),
        ("edge", (-(2**63) - 1, 1), f"x: {-(2**63) - 1} is not of type number"),
        ("edge", [(1, 2), (3,)], "(3,) is not a tuple of 2 values"),
        ("edge", [(1, 2)] * MANY + [(1, 2, 3)], f"row {MANY + 1}: (1, 2, 3) is not a tuple of 2 values"),
        ("edge", [1, 2], "row 1: 1 is not a tuple of 2 values"),
        ("edge", ["ab"], "row 1: 'ab' is not a tuple of 2 values"),
        ("edge", b"ab", "b'ab' is no rows of `edge`"),
        ("edge", None, "None is no rows of `edge`"),
        ("edge", pa.table({"x": [1]}), "the table has 1 columns, the relation 2"),
        ("edge", np.ma.array([[1, 2]], mask=[[True, False]]), "an array of rows of `edge` has masked values"),
        ("name", pd.DataFrame({"x": [1, 2], "n": ["a", 3]}), "Arrow does not take these rows of `name`: Conversion failed"),
        ("size", (-1,), "x: -1 is not of type unsigned"),
        ("size", {"x": [-1]}, "x: Integer value -1 not in range"),
        ("weight", (10**400,), "row 1: x: 1000000000000000"),
        ("weight", {"x": [10**400]}, "row 1: x: 1000000000000000"),
        ("weight", ("1.5",), "x: '1.5' is not of type float"),
        ("pair", ((1,),), "p: (1,) is not of type Pair"),
        ("pair", (("a", "b"),), "p: 'a' is not of type number"),
        ("pair", {"p": 3}, "3 is no column `p` of `pair`"),
        ("flag", (1,), "(1,) is not a tuple of 0 values"),
        ("path", (1, 2), "`path` follows from rules"),
        ("egde", (1, 2), "unknown relation `egde` did you mean `edge`?"),
        (3, (1, 2), "`relation` must be the name of a relation, not 3"),
        (["edge"], (1, 2), "`relation` must be the name of a relation, not ['edge']"),
        (None, (1, 2), "`relation` must be the name of a relation, not None"),
    ],
)
@pytest.mark.parametrize("way", ["insert", "remove", "upsert"])
def test_wrong_rows_are_named(way: str, relation: Any, rows: Any, expected: str) -> None:
    if way == "upsert" and relation == "flag":
        expected = "`flag` has no columns, so no key"
    with opened() as s:
        s.insert("edge", (7, 8))
        before = state_of(s)
        _, message = mistake(lambda: getattr(s, way)(relation, rows))
        assert expected in message
        assert len(message) < 300
        assert state_of(s) == before


def test_what_is_odd_but_meant_is_taken() -> None:
    with dlog.session(PROGRAM) as s:
        s.insert("name", {"x": [1, 2], "n": ["b\uffff", "c\0d"]})  # a code point that is no character; a zero byte
        s.insert("edge", (2**40, -(2**63)))
        s.insert("edge", {"x": iter([1]), "y": (y for y in [2])})
        s.insert("edge", {"x": [3.0], "y": np.array([4], np.int8)})
        s.insert("weight", (2**1024 - 2**970 - 1,))
        s.insert("flag", {})
        s.upsert("edge", (1, 9), key=["x"])
        s.commit()
        assert sorted(s["name"]) == [(1, "b\uffff"), (2, "c\0d")]
        assert sorted(s["edge"]) == [(1, 9), (3, 4), (2**40, -(2**63))]
        assert list(s["weight"]) == [(1.7976931348623157e308,)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (0, "`key` must be the name of a column, or several, not 0"),
        ([0], "`key` must be the name of a column, or several, not [0]"),
        (b"x", "`key` must be the name of a column, or several, not b'x'"),
        ([], "a key has at least one column"),
        ("z", "`edge` has no column `z`"),
    ],
)
def test_wrong_keys_are_named(key: Any, expected: str) -> None:
    s = opened()
    assert expected in mistake(lambda: s.upsert("edge", (1, 2), key=key))[1]
    assert s.staged == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("edge", 1)], "`changes` must be changes of rounds by the name of their relation, not [('edge', 1)]"),
        (None, "`changes` must be changes of rounds"),
        ("edge", "`changes` must be changes of rounds"),
        ({"edge": 3}, "3 is no changes of `edge`"),
        ({"edge": None}, "None is no changes of `edge`"),
        ({"edge": "abc"}, "'abc' is no changes of `edge`"),
        ({"edge": [(2, (1, 2))]}, "(2, (1, 2)) is not a change of `edge`: (round, row, diff)"),
        ({"edge": [("a", (1, 2), 1)]}, "the column `round` of the changes of `edge` is not of integers, but ['a']"),
        ({"edge": [(2, 5, 1)]}, "5 is not a tuple of 2 values"),
        ({"edge": [(2, (1, 2, 3), 1)]}, "(1, 2, 3) is not a tuple of 2 values"),
        ({"edge": [(2, (1, 2), 2)]}, "a change of `edge` has diff 2"),
        ({"edge": [(2, (1, 2), -(2**63))]}, f"a change of `edge` has diff {-(2**63)}"),
        ({"edge": [(2, (1, 2), 1.0)]}, "the column `diff` of the changes of `edge` is not of integers, but [1.0]"),
        ({"edge": [(2, (1, 2), True)]}, "the column `diff` of the changes of `edge` is not of integers, but [True]"),
        ({"edge": [(1, (1, 2), 1)]}, "changes of `edge` are for round 1, but round 1 is committed"),
        ({"edge": [(2**63 - 1, (1, 2), 1)]}, f"changes of `edge` are for round {2**63 - 1}, but the last one is {2**62}"),
        ({"edge": [(2**63, (1, 2), 1)]}, f"has {2**63}: the largest number is {2**62}"),
        ({"edge": [(2**70, (1, 2), 1)]}, f"is not of integers, but [{2**70}]"),
        ({"edge": {"x": [1], "y": [2]}}, "the changes of `edge` need a column `round`"),
        ({"edge": {"x": [1], "y": [2], "round": 3}}, "is not a list of integers, but 3"),
        ({"edge": {"x": [1], "y": [2], "round": [[3]]}}, "is not a list of integers, but [[3]]"),
        ({"edge": {"x": [1, 2], "y": [2, 3], "round": [[3], [4, 5]]}}, "is not of integers, but [[3], [4, 5]]"),
        ({"edge": {"x": [1], "y": [2], "round": [3, 4]}}, "the changes of `edge` have 1 rows, but 2 in `round`"),
        ({"edge": {"x": 1, "y": [2], "round": [3]}}, "1 is no column `x` of `edge`"),
        ({"path": []}, "`path` follows from rules"),
        ({3: []}, "`relation` must be the name of a relation, not 3"),
        ({"name": [(2, (1, SURROGATE), 1)]}, "n: 'a\\ud800' has a lone surrogate"),
    ],
)
def test_wrong_changes_of_many_rounds_are_named(changes: Any, expected: str) -> None:
    with opened() as s:
        before = state_of(s)
        assert expected in mistake(lambda: s.commit_rounds(changes))[1]
        if isinstance(changes, dict):  # what is right beside what is wrong is not committed either
            assert expected in mistake(lambda: s.commit_rounds({"size": [(2, (1,), 1)], **changes}))[1]
        assert state_of(s) == before


def test_the_last_round_there_is_can_be_committed() -> None:
    s = opened()
    assert s.commit_rounds({"edge": [(2**62, (3, 4), 1)]}).number == 2**62
    assert sorted(s["few"]) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (3, "`stream` must be changes: (round, relation, diff, row) tuples, not 3"),
        ([3], "3 is not a change: (round, relation, diff, row)"),
        ([(1, 2)], "(1, 2) is not a change"),
        ([(2, ["edge"], 1, (1, 2))], "(2, ['edge'], 1, (1, 2)) is not a change"),
        ([(2, "egde", 1, (1, 2))], "unknown relation `egde` did you mean `edge`?"),
    ],
)
def test_wrong_streams_are_named(stream: Any, expected: str) -> None:
    s = opened()
    assert expected in mistake(lambda: s.apply(stream))[1]
    assert s.round == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"memory": "1X"}, '`memory` must be a number of bytes, 1 or more, or a size such as "512M" or "2G", not \'1X\''),
        ({"memory": -1}, '`memory` must be a number of bytes, 1 or more, or a size such as "512M" or "2G", not -1'),
        ({"memory": 0}, "`memory` must be"),
        ({"memory": 1.5}, "`memory` must be"),
        ({"memory": True}, "`memory` must be"),
        ({"memory": 2**70}, "`memory` must be"),
        ({"threads": -1}, "`threads` must be a whole number, 1 or more, not -1"),
        ({"threads": "2"}, "`threads` must be a whole number, 1 or more, not '2'"),
        ({"threads": 10**6}, "`threads` must be a whole number, 1 or more, not 1000000"),
        ({"max_iterations": 0}, "`max_iterations` must be a number of iterations, 1 or more, not 0"),
        ({"max_iterations": "3"}, "`max_iterations` must be"),
        ({"max_iterations": 2**70}, "`max_iterations` must be"),
        ({"history": -1}, "`history` must be a number of rounds, 0 or more, or a timedelta, not -1"),
        ({"history": True}, "`history` must be a number of rounds, 0 or more, or a timedelta, not True"),
        ({"include": "lib"}, "`include` must be a list of folders, not 'lib'"),
        ({"include": [3]}, "`include` must be a list of folders, not [3]"),
        ({"include": None}, "`include` must be a list of folders, not None"),
        ({"macros": "N=1"}, "`macros` must be a list of definitions"),
        ({"macros": {"N": 1}}, "`macros` must be a list of definitions"),
        ({"state": 3}, "`state` must be the name of a folder, not 3"),
        ({"state": b"folder"}, "`state` must be the name of a folder, not b'folder'"),
        ({"sync": "sometimes"}, "'sometimes' does not say when to force the log to the disk"),
        ({"engine": 3}, "`engine` must be one of embedded, spark, not 3"),
        ({"workers": 3}, '`spark` and `workers` are for engine="spark"'),
        ({"workers": -1, "engine": "spark"}, "`workers` must be a number of tasks, 1 or more, not -1"),
    ],
)
def test_wrong_options_are_named_before_anything_is_opened(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with_state = {"state": tmp_path / "state"} | options
    assert expected in mistake(lambda: dlog.session(PROGRAM, **with_state))[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (3, "`program` must be a file, or the text of a program, not 3"),
        (b".decl a()\n", "`program` must be a file, or the text of a program, not b'.decl a()\\n'"),
        ([PROGRAM], "`program` must be a file, or the text of a program, not ['"),
        ("", "'' is neither a file that exists nor the text of a program"),
        ("nowhere.dl", "'nowhere.dl' is neither a file that exists nor the text of a program a string without a line break is"),
        ("nowhere (1).dl", "'nowhere (1).dl' is neither a file that exists nor the text of a program"),
        ("a\0b", "'a\\x00b' is neither a file that exists nor the text of a program"),
        ("x" * 5000, "' is neither a file that exists nor the text of a program"),
        (Path("a(1)."), "cannot read `a(1).`: no such file or directory"),
        (f'.decl a(x: symbol)\na("{SURROGATE}").', "'\\ud800' is a lone surrogate, which is no text"),
    ],
)
def test_wrong_programs_are_named(program: Any, expected: str) -> None:
    assert expected in mistake(lambda: dlog.session(program))[1]


@pytest.mark.parametrize("open_", [dlog.session, dlog.run])
@pytest.mark.parametrize("facts", [[("edge", [(1, 2)])], [(1, 2)], 3])
def test_facts_are_by_relation(open_: Any, facts: Any) -> None:
    assert "`facts` must be a folder, or rows by the name of their relation" in mistake(lambda: open_(PROGRAM, facts))[1]


def test_a_folder_of_facts_that_is_not_there_is_named() -> None:
    assert mistake(lambda: dlog.session(PROGRAM, "nowhere")) == ("missing-file", "facts='nowhere': there is no such folder")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda s: s.at("x"), "`round` must be the number of a round, not 'x'"),
        (lambda s: s.at(1.0), "`round` must be the number of a round, not 1.0"),
        (lambda s: s.at(True), "`round` must be the number of a round, not True"),
        (lambda s: s.at(-1), "round -1 cannot be read: the session has rounds 1 to 1"),
        (lambda s: s.at(2), "round 2 cannot be read: the session has rounds 1 to 1"),
        (lambda s: s.at()["egde"], "unknown relation `egde`"),
        (lambda s: s.at()[["edge"]], "`relation` must be the name of a relation"),
        (lambda s: s["egde"], "unknown relation `egde`"),
        (lambda s: s[3], "`relation` must be the name of a relation, not 3"),
        (lambda s: s[["edge"]], "`relation` must be the name of a relation, not ['edge']"),
        (lambda s: s.rows(3), "`relation` must be the name of a relation, not 3"),
        (lambda s: s.changes(None), "`relation` must be the name of a relation, not None"),
        (lambda s: s.query(3), "`question` must be the text of a query"),
        (lambda s: s.query(b"path(1, X)"), "`question` must be the text of a query"),
        (lambda s: s.at().query(None), "`question` must be the text of a query"),
        (lambda s: s.query(f'name(1, "{SURROGATE}")'), "'\\ud800' is a lone surrogate, which is no text"),
        (lambda s: s.subscribe("path", 3), "`callback` must be a function of a round and its changes, not 3"),
        (lambda s: s.subscribe("p"), "unknown relation `p`"),
        (lambda s: s.subscribe("path", as_of="a"), "`as_of` must be the number of a round, not 'a'"),
        (lambda s: s.subscribe("path", as_of=0), "round 0 of `path` cannot be read"),
        (lambda s: s.subscribe("path", up_to=-5), "`up_to` must be the number of a round, not -5"),
        (lambda s: s.subscribe("path", snapshot="no"), "`snapshot` must be True or False, not 'no'"),
        (lambda s: s.subscribe("path", progress=3), "`progress` must be True or False, not 3"),
        (lambda s: s.subscribe("path").fetch("soon"), "`timeout` must be a number of seconds, or None, not 'soon'"),
        (lambda s: s.history(-1), "`history` must be a number of rounds, 0 or more, or a timedelta, not -1"),
        (lambda s: s.history("a"), "`history` must be a number of rounds, 0 or more, or a timedelta, not 'a'"),
        (lambda s: s.commit(mark="a"), "`mark` must be a number of 64 bits, not 'a'"),
        (lambda s: s.commit(mark=2**63), f"`mark` must be a number of 64 bits, not {2**63}"),
        (lambda s: s.load("edge", 3), "`path` must be the name of a file, not 3"),
        (lambda s: s.load("edge", "nowhere.csv"), "cannot open nowhere.csv: there is no such file"),
        (lambda s: s.load("edge", "/"), "cannot open /: it is a folder"),
        (lambda s: s.load("edge", __file__, delimiter=3), "`delimiter` must be text"),
        (lambda s: s.load("edge", __file__, IO="tape"), "not supported yet: IO=tape"),
        (lambda s: s.why("path", 3), "3 is not a tuple of 2 values"),
        (lambda s: s.why("path", ("a", 2)), "x: 'a' is not of type number"),
        (lambda s: s.why("path", (1, 2), limit=-1), "`limit` must be a number of premises, 0 or more, not -1"),
        (lambda s: s.why("name", (1, SURROGATE)), "n: 'a\\ud800' has a lone surrogate"),
        (lambda s: s.why_not("path", (1,)), "(1,) is not a tuple of 2 values"),
        (lambda s: s.why_not(3, (1,)), "`relation` must be the name of a relation, not 3"),
        (lambda s: s.written(3), "`facts` must be rows written out as text"),
        (lambda s: s.written(""), "there is no row"),
        (lambda s: s.add_rules(3), "`text` must be rules as text"),
        (lambda s: s.add_rules(b"a(1)."), "`text` must be rules as text"),
        (lambda s: s.add_rules("a(1)."), "unknown relation `a`"),
        (lambda s: s.add_rules(".decl edge(x: number)"), "relation `edge` is declared twice"),
        (lambda s: s.add_rules(Path("nowhere.dl")), "cannot read `nowhere.dl`"),
        (lambda s: s.drop_rules(3), "`which` must be rules written out, or the name of their relation, not 3"),
        (lambda s: s.drop_rules(""), "there is no rule in ''"),
        (lambda s: s.drop_rules("edge"), "`edge` has no rules"),
        (lambda s: s.drop_relation(3), "`relation` must be the name of a relation, not 3"),
        (lambda s: s.drop_relation("edge"), "`edge` is in use: it is read by rules for `few`, `path`"),
        (lambda s: s.drop_relation("path"), "`path` is in use: it is read by rules for `few`"),
    ],
)
def test_wrong_calls_are_named_and_change_nothing(act: Callable[[dlog.Session], Any], expected: str) -> None:
    with opened() as s:
        s.insert("edge", (7, 8))
        before = state_of(s)
        assert expected in mistake(lambda: act(s))[1]
        assert state_of(s) == before


def test_a_relation_in_use_shows_the_rules_that_read_it() -> None:
    from dlog.grammar.diagnostics import render

    with pytest.raises(dlog.DlogError) as raised:
        opened().drop_relation("edge")
    shown = render(raised.value.diagnostics[0])
    for rule in PROGRAM.splitlines()[-3:]:
        assert rule in shown


def test_a_relation_that_only_its_own_rules_and_facts_read_is_dropped() -> None:
    s = dlog.session(".decl a(x: number)\n.decl b(x: number)\na(x + 1) :- a(x), x < 3.\na(1). b(2).\n")
    assert (sorted(s["a"]), sorted(s["b"])) == ([(1,), (2,), (3,)], [(2,)])
    s.drop_relation("a")
    assert list(s) == ["b"]
    assert sorted(s["b"]) == [(2,)]


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.insert("edge", (1, 2)),
        lambda s: s.commit(),
        lambda s: s.commit_rounds({}),
        lambda s: s.rollback(),
        lambda s: s["edge"],
        lambda s: s.at(),
        lambda s: s.query("edge(1, X)"),
        lambda s: s.subscribe("edge"),
        lambda s: s.why("edge", (1, 2)),
        lambda s: s.add_rules("edge(8, 9)."),
        lambda s: s.drop_rules("path"),
        lambda s: s.drop_relation("few"),
        lambda s: s.history(1),
        lambda s: s.transaction().__enter__(),
        lambda s: s.written("edge(1, 2)."),
        lambda s: s.explain(),
    ],
)
def test_a_closed_session_refuses_everything(act: Callable[[dlog.Session], Any]) -> None:
    s = opened()
    s.close()
    s.close()
    assert mistake(lambda: act(s))[0] == "closed-session"


def test_the_examples_in_the_documentation_are_true() -> None:
    found = doctest.testmod(arguments)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_threads_that_change_one_session_get_a_round_each() -> None:
    s = dlog.session(PROGRAM)
    rounds: list[int] = []

    def put(first: int) -> None:
        for x in range(first, first + 50):
            with s.transaction() as done:
                s.insert("edge", (x, 10**6 + x))
            assert done.round is not None
            rounds.append(done.round.number)

    threads = [Thread(target=put, args=(first,)) for first in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rounds) == list(range(1, 151))
    assert s.rows("path") == 150


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({}, "`removed` those that have gone; sessions take both by `commit_rounds`"),
        ({"key": "x"}, "else removed"),
        ({"key": "x", "envelope": "debezium"}, "else removed"),
    ],
)
def test_changes_are_no_rows(options: dict[str, Any], note: str) -> None:
    s = dlog.session(".decl edge(x: number, y: number)\n", {"edge": [(1, 2), (2, 3)]})
    followed = s.subscribe("edge", snapshot=False, **options)
    s.remove("edge", (1, 2))
    s.commit()
    ((_, changes),) = followed.fetch()
    rows = Dataflow().input(x=int, y=int)
    ways = [s.insert, s.remove, s.upsert, lambda name, given: dlog.session(s.text, {name: given})]
    for way in [*ways, lambda _, given: rows.insert(given)]:
        with pytest.raises(dlog.DlogError, match=f"{type(changes).__name__} are no rows(.|\n)*{note}"):
            way("edge", changes)
    assert not s.staged
