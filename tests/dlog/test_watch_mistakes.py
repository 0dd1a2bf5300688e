"""`dlog watch`: lines that are none of a stream of changes are shown at their place, and rounds before them written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dlog.command import dlog
from tests.dlog.watching import RunWatch


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("2,edge,+1,x,3", "2:11", "`x` is not a number"),
        ("2,edge,+1,1,9223372036854775808", "2:13", "`9223372036854775808` does not fit a number"),
        ("2,edge,+1,1", "2:11", "`edge` has 2 columns, but 1 value here"),
        ("2,edge,+1,1,2,3", "2:11", "`edge` has 2 columns, but 3 values here"),
        ("2,egde,+1,1,2", "2:3", "unknown relation `egde`"),
        ("2,path,+1,1,2", "2:3", "`path` follows from rules"),
        ("2,edge,+2,1,2", "2:8", "`+2` is not +1 or -1"),
        ("two,edge,+1,1,2", "2:1", "`two` is not a round"),
        ("\u0662,edge,+1,1,2", "2:1", "`\u0662` is not a round"),
        (f"{2**62 + 1},edge,+1,1,2", "2:1", f"this round is too late: the last one is {2**62}"),
        (f"{'9' * 5000},edge,+1,1,2", "2:1", "this round is too late"),
        (f"2,edge,+1,1,-{'9' * 5000}", "2:13", "9` does not fit a number"),
        ("0,edge,+1,1,2", "2:1", "rounds count from 1, not 0"),
        ("edge", "2:5", "a change is round,relation,+1 or -1,values..."),
        ('2,edge,+1,"1,2', "2:11", "never closed"),
    ],
)
def test_bad_lines_are_shown_at_their_place(watch: RunWatch, line: str, place: str, message: str) -> None:
    finished = watch("closure.dl", f"1,edge,+1,1,2\n{line}\n")
    assert finished.code == 1
    assert message in finished.err
    assert f"--> changes.txt:{place}\n" in finished.err
    assert line[:150] in finished.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"round": 2, "relation": "edge", "diff": 1, "row": [1, 2]', "this is not JSON"),
        ('{"round": 2, "relation": "edge", "diff": 1}', "the change has no `row`"),
        ('{"round": "2", "relation": "edge", "diff": 1, "row": [1, 2]}', '`"2"` is not a round'),
        ('{"round": 2, "relation": "edge", "diff": 0, "row": [1, 2]}', "`0` is not 1 or -1"),
        ('{"round": 2, "relation": "edge", "diff": 1, "row": [1]}', "a list of 2 values"),
        ('{"round": 2, "relation": "edge", "diff": 1, "row": {"from": 1, "two": 2}}', "the columns of `edge` are from, to"),
        ('{"round": 2, "relation": "edge", "diff": 1, "row": [1, "2"]}', '`"2"` is not a number'),
        ('{"round": 2, "relation": "edge", "diff": 1, "row": [1, true]}', "`true` is not a number"),
        ('{"round": 2, "relation": "edge", "diff": true, "row": [1, 2]}', "`true` is not 1 or -1"),
        (f'{{"round": 2, "relation": "edge", "diff": 1, "row": [1, {"9" * 5000}]}}', "a number that is too long"),
        (f'{{"round": 2, "relation": "edge", "diff": 1, "row": {"[" * 100_000}', "nested too deeply"),
        ("[1]", "a change is {"),
    ],
)
def test_bad_json_is_shown_at_its_line(watch: RunWatch, line: str, message: str) -> None:
    first = '{"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}'
    finished = watch("closure.dl", f"{first}\n{line}\n")
    assert (finished.code, message in finished.err) == (1, True)
    assert " --> changes.txt:2:" in finished.err


def test_a_lone_surrogate_is_shown_at_its_line(watch: RunWatch, folder: Path) -> None:
    (folder / "p.dl").write_text(".decl s(t: symbol)\n.decl q(t: symbol)\nq(t) :- s(t).\n")
    finished = watch("p.dl", '{"round": 1, "relation": "s", "diff": 1, "row": ["a\\ud800"]}\n')
    assert (finished.code, "has a lone surrogate, which is no text\n --> changes.txt:1:" in finished.err) == (1, True)


@pytest.mark.parametrize(
    ("relation", "value", "message"),
    [
        ("t", '"$S(\\"\\ud800\\", 1.5)"', "has a lone surrogate, which is no text"),
        ("f", "9" * 400, f"`{'9' * 400}` does not fit a float"),
        ("f", f"-{'9' * 400}", "does not fit a float"),
        ("l", "[1, " * 900 + "null" + "]" * 900, "nested too deeply"),
    ],
)
def test_values_that_python_cannot_turn_into_others_are_wrong_lines(
    watch: RunWatch, folder: Path, relation: str, value: str, message: str
) -> None:
    types = ".type T = Leaf {} | S {s: symbol, f: float}\n.type L = [h: number, t: L]\n"
    program = f"{types}.decl t(x: T)\n.decl f(x: float)\n.decl l(x: L)\n.decl ok(x: float)\n.output ok\nok(x) :- f(x).\n"
    (folder / "p.dl").write_text(program + "ok(0.0) :- t(_), l(_).\n")
    good = '{"round": 1, "relation": "f", "diff": 1, "row": [10000000000000000000000]}'
    finished = watch("p.dl", f'{good}\n{{"round": 2, "relation": "{relation}", "diff": 1, "row": [{value}]}}\n')
    assert (finished.code, finished.out) == (1, '{"round": 1, "relation": "ok", "diff": 1, "row": [1e+22]}\n')
    assert message in finished.err and " --> changes.txt:2:" in finished.err


def test_zeros_before_a_number_do_not_count(watch: RunWatch) -> None:
    assert watch("closure.dl", f"{'0' * 60}1,edge,+1,-{'0' * 60}1,2\n").out == "1,path,+1,-1,2\n"


def test_rounds_do_not_go_down(watch: RunWatch) -> None:
    finished = watch("closure.dl", "3,edge,+1,1,2\n2,edge,+1,1,2\n")
    assert finished.code == 1
    assert "round 2 comes after round 3" in finished.err


def test_rounds_that_were_complete_before_a_bad_line_are_written(watch: RunWatch) -> None:
    finished = watch("closure.dl", "1,edge,+1,1,2\n2,edge,+1,5,6\n3,edge,+1,7,8\nbad\n")
    assert (finished.code, finished.out) == (1, "1,path,+1,1,2\n2,path,+1,5,6\n")


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("2,edge,+1,x,6", True),
        ("2,egde,+1,5,6", True),
        ("2,edge", True),
        ("1,edge,+1,x,6", False),
        ("x,edge,+1,5,6", False),
        ('{"round": 2, "relation": "edge", "diff": 1, "row": [5]}', True),
        ('{"round": 2, "relation": "edge", ', True),
        ('{"round": 1, "relation": "edge", "diff": 1, "row": [5]}', False),
        ('{"relation": "edge", "diff": 1, "row": [5, 6]}', False),
    ],
)
def test_a_bad_line_ends_a_round_if_it_begins_a_later_one(watch: RunWatch, line: str, ended: bool) -> None:
    csv, json = "1,edge,+1,1,2\n", '{"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}\n'
    finished = watch("closure.dl", (json if line.startswith("{") else csv) + f"{line}\n", "--format", "csv")
    assert (finished.code, finished.out) == (1, "1,path,+1,1,2\n" if ended else "")
    assert " --> changes.txt:2:" in finished.err


def test_rounds_before_one_that_fails_are_written(watch: RunWatch, folder: Path) -> None:
    (folder / "p.dl").write_text(".decl n(x: number)\n.decl q(y: number)\n.output q\nq(100 / x) :- n(x).\n")
    finished = watch("p.dl", "1,n,+1,5\n2,n,+1,0\n3,n,+1,4\n")
    assert (finished.code, finished.out) == (1, "1,q,+1,20\n")
    assert "division by zero" in finished.err


@pytest.mark.slow
def test_a_missing_stream_is_the_users_mistake(folder: Path) -> None:
    finished = dlog("watch", "closure.dl", "none.csv", cwd=folder)
    assert (finished.code, "none.csv" in finished.err) == (1, True)


@pytest.mark.parametrize("flag", ["--as-of", "--up-to"])
def test_a_round_that_is_no_number_is_told(watch: RunWatch, flag: str) -> None:
    finished = watch("closure.dl", "", flag, "x")
    assert finished.code == 1
    assert f"Invalid value for '{flag}': 'x' is not a valid round: a whole number, 0 or more." in finished.err
