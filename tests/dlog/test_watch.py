"""`dlog watch`: streams of changes in, changes of the outputs out, each round whole."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dlog.branch import Branch
from dlog.watch import writing
from dlog.watch.change_lines import weight
from tests.dlog.command import arguments, dlog
from tests.dlog.watching import CHANGES, STREAM, RunWatch


@pytest.mark.parametrize("header", ["", "round,relation,diff,from,to\n", "\ufeffround,relation,diff\n", "\n"])
def test_1_s_changes_come_out_round_by_round(watch: RunWatch, header: str) -> None:
    finished = watch("closure.dl", header + STREAM)
    assert (finished.code, finished.out, finished.err) == (0, CHANGES, "")


@pytest.mark.slow
def test_lines_may_end_as_on_windows_and_the_last_need_not_end(folder: Path) -> None:
    finished = dlog("watch", "closure.dl", "-", cwd=folder, stdin=STREAM.replace("\n", "\r\n").rstrip())
    assert (finished.code, finished.out) == (0, CHANGES)


def test_json_lines_answer_json_lines(watch: RunWatch) -> None:
    stream = (
        '{"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}\n'
        '{"diff": -1, "row": {"to": 2, "from": 1}, "round": 2, "relation": "edge"}\n'
    )
    finished = watch("closure.dl", stream)
    assert [json.loads(line) for line in finished.out.splitlines()] == [
        {"round": 1, "relation": "path", "diff": 1, "row": [1, 2]},
        {"round": 2, "relation": "path", "diff": -1, "row": [1, 2]},
    ]


def test_the_format_can_be_chosen(watch: RunWatch) -> None:
    finished = watch("closure.dl", "1,edge,+1,1,2\n", "--format", "json")
    assert finished.out == '{"round": 1, "relation": "path", "diff": 1, "row": [1, 2]}\n'


def test_values_of_every_kind_pass_in_both_formats(watch: RunWatch) -> None:
    csv = '1,all,+1,-9223372036854775808,18446744073709551615,0.1,"a, ""b""","[1,[2,nil]]"\n1,flag,+1\n'
    out = '1,copy,+1,-9223372036854775808,18446744073709551615,0.10000000000000001,"a, ""b""","[1, [2, nil]]"\n1,raised,+1\n'
    finished = watch("kinds.dl", csv)
    assert (finished.err, finished.out) == ("", out)
    again = watch("kinds.dl", out.replace("copy", "all").replace("raised", "flag"), "--format", "json")
    row = [-(2**63), 2**64 - 1, 0.1, 'a, "b"', [1, [2, None]]]
    assert [json.loads(line) for line in again.out.splitlines()] == [
        {"round": 1, "relation": "copy", "diff": 1, "row": row},
        {"round": 1, "relation": "raised", "diff": 1, "row": []},
    ]
    back = watch("kinds.dl", again.out.replace("copy", "all").replace("raised", "flag"), "--format", "csv")
    assert back.out == out


def test_facts_that_are_there_before_are_round_0(watch: RunWatch, folder: Path) -> None:
    (folder / "facts").mkdir()
    (folder / "facts" / "edge.facts").write_text("1\t2\n")
    finished = watch("closure.dl", "1,edge,+1,2,3\n", "-F", "facts")
    assert finished.out == "0,path,+1,1,2\n1,path,+1,1,3\n1,path,+1,2,3\n"
    finished = watch("closure.dl", "", "-F", "facts")
    assert finished.out == "0,path,+1,1,2\n"


def test_changes_go_to_a_file_for_each_output(watch: RunWatch, folder: Path) -> None:
    finished = watch("closure.dl", STREAM, "-D", "out/changes")
    assert (finished.code, finished.out) == (0, "")
    assert (folder / "out/changes/path.changes.csv").read_text() == CHANGES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_changes_are_not_written_to_what_may_have_come_with_the_folder(watch: RunWatch, folder: Path, kind: str) -> None:
    (folder / "out").mkdir()
    (folder / "letter").write_text("dear")
    place = folder / "out" / "path.changes.csv"
    place.symlink_to(folder / "letter") if kind == "link" else os.mkfifo(place)
    finished = watch("closure.dl", STREAM, "-D", "out")
    assert (finished.code, finished.out) == (1, "")
    assert f"path.changes.csv: it is a {kind}" in finished.err
    assert (folder / "letter").read_text() == "dear"


def test_without_outputs_all_that_follows_is_watched(watch: RunWatch, folder: Path) -> None:
    (folder / "p.dl").write_text(".decl a(x: number)\n.decl b(x: number)\nb(x + 1) :- a(x).\n")
    assert watch("p.dl", "1,a,+1,1\n").out == "1,b,+1,2\n"


def test_no_value_but_a_whole_one_is_ever_written(watch: RunWatch, folder: Path) -> None:
    """The two sides of the quotient come by paths of different length."""
    (folder / "p.dl").write_text(
        ".decl a(v: float)\n.decl b(v: float)\n.decl c(v: float)\n.decl d(q: float)\n.output d\n"
        "b(v + 1) :- a(v).\nc(v + 1) :- b(v).\nd(x / y) :- b(x), c(y).\n"
    )
    finished = watch("p.dl", "1,a,+1,0\n2,a,-1,0\n2,a,+1,1\n")
    assert finished.out == "1,d,+1,0.5\n2,d,-1,0.5\n2,d,+1,0.66666666666666663\n"


# ------------------------------------------------------------------------------------------------------------------ live


@pytest.mark.slow
def test_a_round_is_written_as_soon_as_the_next_one_begins(folder: Path) -> None:
    process = subprocess.Popen(
        arguments("watch", "closure.dl"), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("1,edge,+1,1,2\n2,edge,+1,2,3\n")
    process.stdin.flush()
    assert process.stdout.readline() == "1,path,+1,1,2\n"
    process.stdin.write("3,edge,-1,1,2\n")
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(2)] == ["2,path,+1,1,3\n", "2,path,+1,2,3\n"]
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "3,path,-1,1,2\n3,path,-1,1,3\n")


@pytest.mark.slow
def test_a_growing_file_is_followed_until_ctrl_c(folder: Path) -> None:
    stream = folder / "changes.csv"
    stream.write_text("1,edge,+1,1,2\n2,edge,+1,")
    process = subprocess.Popen(
        arguments("watch", "closure.dl", "changes.csv", "--follow"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with stream.open("a") as file:
        for text in ("5,6\n3,ed", "ge,-1,1,2\n"):
            time.sleep(0.2)
            file.write(text)
            file.flush()
    assert [process.stdout.readline() for _ in range(2)] == ["1,path,+1,1,2\n", "2,path,+1,5,6\n"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_a_followed_file_that_becomes_shorter_is_a_mistake(folder: Path) -> None:
    stream = folder / "changes.csv"
    stream.write_text(STREAM)
    flags = ("watch", "closure.dl", "changes.csv", "--follow")
    process = subprocess.Popen(arguments(*flags), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    before = [process.stdout.readline() for _ in range(7)]
    stream.write_text("6,edge,+1,7,8\n")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "".join(before) + out) == (1, CHANGES[: CHANGES.index("5,path")])
    assert f"changes.csv has become shorter: {len(STREAM)} bytes were read, 14 are left" in err


@pytest.mark.slow
def test_many_rounds_pass_quickly_and_exactly(folder: Path) -> None:
    """A window of one edge moves along: each round one path goes and one comes."""
    rounds = 3000
    lines = [f"{i},edge,+1,{i},{i + 1}\n" + (f"{i},edge,-1,{i - 1},{i}\n" if i > 1 else "") for i in range(1, rounds + 1)]
    finished = dlog("watch", "closure.dl", cwd=folder, stdin="".join(lines))
    expected = [(f"{i},path,-1,{i - 1},{i}\n" if i > 1 else "") + f"{i},path,+1,{i},{i + 1}\n" for i in range(1, rounds + 1)]
    assert finished.out == "".join(expected)


PRICES = """.decl offer(shop: symbol, item: symbol, euros: number)
.decl best(item: symbol, euros: number)
.output best
best(i, e) :- offer(_, i, _), e = min x : { offer(_, i, x) }.
"""
OFFERS = '1,offer,+1,here,tea,4\n2,offer,+1,there,tea,3\n2,offer,+1,there,rum,9\n4,offer,-1,there,rum,9\n'


def test_1_s_what_becomes_of_keys_is_written_with_progress(watch: RunWatch, folder: Path) -> None:
    (folder / "prices.dl").write_text(PRICES)
    flags = "--key", "best=item", "--progress"
    assert watch("prices.dl", OFFERS, *flags).out == (
        "0,,progress\n"
        "1,best,upsert,tea,4\n1,,progress\n"
        "2,best,upsert,rum,9\n2,best,upsert,tea,3\n2,,progress\n"
        "4,best,delete,rum\n4,,progress\n"
    )
    lines = watch("prices.dl", OFFERS, *flags, "--format", "json").out.splitlines()
    assert [json.loads(line) for line in lines[-2:]] == [
        {"round": 4, "relation": "best", "key": ["rum"], "row": None},
        {"round": 4, "progress": True},
    ]


def test_1_s_what_keys_were_before_is_written_as_events(watch: RunWatch, folder: Path) -> None:
    (folder / "prices.dl").write_text(PRICES)
    flags = "--key", "best=item", "--envelope", "debezium"
    assert watch("prices.dl", OFFERS, *flags).out == (
        "1,best,c,,,tea,4\n2,best,c,,,rum,9\n2,best,u,tea,4,tea,3\n4,best,d,rum,9,,\n"
    )
    lines = watch("prices.dl", OFFERS, *flags, "--format", "json").out.splitlines()
    assert [json.loads(line) for line in lines[-2:]] == [
        {
            "round": 2, "relation": "best", "op": "u", "key": {"item": "tea"},
            "before": {"item": "tea", "euros": 4}, "after": {"item": "tea", "euros": 3},
        },
        {
            "round": 4, "relation": "best", "op": "d", "key": {"item": "rum"},
            "before": {"item": "rum", "euros": 9}, "after": None,
        },
    ]  # fmt: skip
    done = watch("prices.dl", OFFERS, "--envelope", "debezium")
    assert done.code == 1 and "`--envelope debezium` is about keys: name some, --key relation=column" in done.err


def test_changes_of_a_round_are_written_in_an_order(watch: RunWatch, folder: Path) -> None:
    (folder / "prices.dl").write_text(PRICES)
    stream = "".join(f"1,offer,+1,here,{item},{euros}\n" for item, euros in (("tea", 4), ("rum", 9), ("ice", 2), ("gin", 9)))
    done = watch("prices.dl", stream + "2,offer,-1,here,tea,4\n", "--order", "best=-euros,item")
    assert done.out == "1,best,+1,gin,9\n1,best,+1,rum,9\n1,best,+1,tea,4\n1,best,+1,ice,2\n2,best,-1,tea,4\n"
    assert "`best` is no order" in watch("prices.dl", stream, "--order", "best").err
    assert "no column `eros`" in watch("prices.dl", stream, "--order", "best=-eros").err


def test_a_watch_ends_before_a_round(watch: RunWatch) -> None:
    assert watch("closure.dl", STREAM, "--up-to", "5").out == CHANGES.partition("5,")[0]
    assert watch("closure.dl", STREAM, "--up-to", "1").out == ""


def test_the_rows_at_first_are_written_when_that_is_wanted(watch: RunWatch, folder: Path) -> None:
    facts = folder / "facts"
    facts.mkdir()
    (facts / "edge.facts").write_text("7\t8\n")
    flags = "-F", "facts", "--state", "state"
    assert watch("closure.dl", "3,edge,+1,8,9\n", *flags, "--no-snapshot").out == "3,path,+1,7,9\n3,path,+1,8,9\n"
    expected = "3,path,+1,7,8\n3,path,+1,7,9\n3,path,+1,8,9\n4,path,-1,7,8\n4,path,-1,7,9\n"
    assert watch("closure.dl", "4,edge,-1,7,8\n", *flags, "--snapshot").out == expected
    assert watch("closure.dl", "5,edge,-1,8,9\n", *flags).out == "5,path,-1,8,9\n"


AS_OF_2 = "2,path,+1,1,2\n2,path,+1,1,4\n2,path,+1,2,4\n"
"""The rows as of round 2 of `STREAM`, as insertions."""


@pytest.mark.parametrize("given", ["2", "3", "4"])
def test_a_watch_begins_with_the_rows_as_of_a_round_to_come(watch: RunWatch, given: str) -> None:
    later = CHANGES[CHANGES.index("5,") :]
    expected = AS_OF_2.replace("2,path", f"{given},path") + later
    assert watch("closure.dl", STREAM, "--as-of", given).out == expected
    assert watch("closure.dl", STREAM, "--as-of", given, "--no-snapshot").out == later
    assert watch("closure.dl", STREAM, "--as-of", given, "--up-to", "5").out == AS_OF_2.replace("2,path", f"{given},path")


def test_as_of_the_last_round_of_a_stream_all_rows_are_written_after_it_nothing(watch: RunWatch) -> None:
    last = watch("closure.dl", STREAM, "--as-of", "5", "--progress").out.splitlines()
    assert last[-1] == "5,,progress" and all(line.startswith("5,path,+1,") for line in last[:-1]) and len(last) == 10
    assert watch("closure.dl", STREAM, "--as-of", "6").out == ""
    assert watch("closure.dl", STREAM, "--as-of", "0").out == CHANGES


@pytest.mark.parametrize("given", ["2", "4"])
def test_a_watch_begins_with_a_past_round_that_its_state_keeps(watch: RunWatch, given: str) -> None:
    """The rounds of the stream, which are 1, 2 and 5, of several runs; the session has its own numbers."""
    kept = "--state", "state", "--history", "10"
    lines = STREAM.splitlines(keepends=True)
    for part in (lines[:2], lines[2:]):
        watch("closure.dl", "".join(part), *kept)
    first = AS_OF_2.replace("2,path", f"{given},path")
    later = CHANGES[CHANGES.index("5,") :]
    assert watch("closure.dl", "6,edge,-1,4,1\n", *kept, "--as-of", given, "--up-to", "5").out == first
    found = watch("closure.dl", "7,edge,+1,8,9\n", *kept, "--as-of", given, "--format", "csv")
    assert found.out == first + later + "7,path,+1,8,9\n"


def test_as_of_the_facts_a_state_has_all_rounds(watch: RunWatch, folder: Path) -> None:
    (folder / "facts").mkdir()
    (folder / "facts" / "edge.facts").write_text("7\t8\n")
    kept = "-F", "facts", "--state", "state", "--history", "10"
    assert watch("closure.dl", STREAM, *kept).out == "0,path,+1,7,8\n" + CHANGES
    found = watch("closure.dl", "", *kept, "--as-of", "0", "--progress").out
    assert [line for line in found.splitlines() if "progress" not in line] == ["0,path,+1,7,8", *CHANGES.splitlines()]
    assert re.findall(r"(\d),,progress", found) == ["0", "1", "2", "5"]


def test_changes_as_of_a_past_round_begin_their_file_anew(watch: RunWatch, folder: Path) -> None:
    kept = "--state", "state", "--history", "10", "-D", "out"
    watch("closure.dl", STREAM, *kept)
    assert (folder / "out" / "path.changes.csv").read_text() == CHANGES
    watch("closure.dl", "", *kept, "--as-of", "2", "--format", "csv")
    assert (folder / "out" / "path.changes.csv").read_text() == AS_OF_2 + CHANGES[CHANGES.index("5,") :]


def test_a_past_round_that_no_state_keeps_is_refused(watch: RunWatch) -> None:
    watch("closure.dl", STREAM, "--state", "state")
    done = watch("closure.dl", "", "--state", "state", "--history", "5", "--as-of", "2")
    assert done.code == 1 and "round 2 cannot be read: the state has round 5\n" in done.err and "--history ROUNDS" in done.err
    watch("closure.dl", "6,edge,+1,8,9\n7,edge,+1,9,8\n", "--state", "state", "--history", "5")
    done = watch("closure.dl", "", "--state", "state", "--history", "5", "--as-of", "2")
    assert done.code == 1 and "round 2 cannot be read: the state has rounds 6 to 7\n" in done.err
    assert watch("closure.dl", "", "--state", "state", "--history", "5", "--as-of", "6", "--format", "csv").code == 0
    done = watch("closure.dl", "", "--history", "5")
    assert done.code == 1 and "`--history` is for what a state keeps" in done.err


def test_answers_to_questions_are_watched_in_the_place_of_outputs(watch: RunWatch) -> None:
    """With a name before it, or numbered."""
    asked = "--query", "path(1, x)", "--query", "many: n = count : { path(_, _) }"
    assert watch("closure.dl", STREAM, *asked, "--up-to", "5").out == (
        "1,query,+1,2\n1,query,+1,3\n1,many,-1,0\n1,many,+1,3\n2,query,-1,3\n2,query,+1,4\n"
    )
    past = watch("closure.dl", STREAM, "--query", "?- path(1, X), X > 2.", "--as-of", "2", "--order", "query=-X")
    assert past.out == "2,query,+1,4\n"


def test_a_question_is_watched_as_of_a_past_round(watch: RunWatch) -> None:
    kept = "--state", "state", "--history", "5"
    watch("closure.dl", STREAM, *kept)
    found = watch("closure.dl", "", *kept, "--as-of", "1", "--query", "from1: path(1, x)", "--format", "csv").out
    assert found == "1,from1,+1,2\n1,from1,+1,3\n2,from1,-1,3\n2,from1,+1,4\n5,from1,+1,1\n"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("paht(1, x)", "unknown relation `paht`"),
        ("path: edge(1, x)", "a question has the name of a relation: `path`"),
        ("path@-1(1, x)", "a question that is followed is about one round at a time"),
        ("", "a query"),
    ],
)
def test_a_question_that_is_none_is_refused(watch: RunWatch, question: str, expected: str) -> None:
    done = watch("closure.dl", STREAM, "--query", question)
    assert done.code == 1 and expected in done.err and "Traceback" not in done.err
    twice = watch("closure.dl", STREAM, "--query", "a: path(1, x)", "--query", "a: path(2, x)")
    assert "a question has the name of another question: `a`" in twice.err


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("best", "`best` is no key: write relation=column,column"),
        ("offer=item", "`offer=item` is no key: write relation=column,column"),
        ("best=shop", "`best` has no column `shop`: it has item, euros"),
    ],
)
def test_a_key_that_is_none_is_refused(watch: RunWatch, folder: Path, key: str, expected: str) -> None:
    (folder / "prices.dl").write_text(PRICES)
    done = watch("prices.dl", OFFERS, "--key", key)
    assert done.code == 1 and expected in done.err


def test_a_round_whose_changes_take_more_than_the_memory_is_refused_where_that_shows(watch: RunWatch) -> None:
    """They wait until the round is whole, and counted for nothing."""
    lines = [f"2,edge,+1,{-i},{-i}\n" for i in range(1, 10_000)]
    finished = watch("closure.dl", "1,edge,+1,1,2\n" + "".join(lines), "--memory", "4M")
    assert (finished.code, finished.out) == (1, "1,path,+1,1,2\n")
    said = re.search(r"out of memory: the limit is 4 MiB\n --> changes.txt:(\d+):1\n", finished.err)
    assert said is not None and 4 * 2**20 / 800 < int(said[1]) < 4 * 2**20 / 400, finished.err
    assert "the changes of round 2 up to here take about 4 MiB until they are committed" in finished.err
    small = [f"{i},edge,+1,{-i},{-i}\n" for i in range(2, 10_000)]  # as many, in rounds of one each
    finished = watch("closure.dl", "1,edge,+1,1,2\n" + "".join(small), "--memory", "64M")
    assert (finished.code, finished.out.count("\n")) == (0, 9_999)


def test_a_change_is_counted_with_all_that_its_values_hold() -> None:
    deep: Any = None
    for number in range(5_000):
        deep = (number, deep)
    assert weight((1, 2)) < weight((1, "text")) < weight(("x" * 1_000,)) < weight((deep,))
    assert 4_000 < weight(("x" * 1_000,)) < 8_000 and weight((deep,)) > 5_000 * 150
    assert weight((Branch("Leaf", "x" * 1_000),)) > 4_000


def test_a_line_without_an_end_takes_no_more_than_the_memory(watch: RunWatch) -> None:
    finished = watch("closure.dl", "1,edge,+1,1,2\n2,edge,+1," + "3" * 4_000_000, "--memory", "4M")
    assert (finished.code, finished.out) == (1, "")
    assert re.search(r"out of memory: the limit is 4 MiB\n --> changes.txt:2:1\n", finished.err), finished.err


@pytest.mark.parametrize("what", ["write", "flush"])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Not standard output, which has no name, on a full disk."""

    class Full:
        def __getattr__(self, name: str) -> Callable[..., object]:
            def refuse(*given: object) -> object:
                if name == what:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return None

            return refuse

    monkeypatch.setattr(writing, "text_to_extend", lambda path, anew: Full())
    writer = writing.Writer(str(tmp_path), "csv", ["p"], anew=True)
    with pytest.raises(OSError, match="No space left") as raised:
        writer.write([writing.Line(1, "p", 1, (1,))])
        writer.flush()
    assert raised.value.filename == str(tmp_path / "p.changes.csv")


TIMED = """
.decl offer(item: symbol, from: number, to: number)
.decl open(item: symbol)
.decl order(id: number, item: symbol)
.decl price(item: symbol, p: number)
.decl pay(id: number, p: number)
.output open, pay
open(i) :- offer(i, from, to), from <= now(), now() < to.
pay(o, p) :- @order(o, i), price(i, p).
"""


def test_rounds_of_the_stream_are_those_of_the_clock(folder: Path, watch: RunWatch) -> None:
    """Those in between pass, too, and rows appear and vanish in them; with a state, a stream goes on as if it were one."""
    (folder / "timed.dl").write_text(TIMED)
    stream = "1,offer,+1,tea,0,3\n1,price,+1,tea,7\n5,offer,+1,rum,0,9\n5,order,+1,1,tea\n6,price,-1,tea,7\n9,order,-1,1,tea\n"
    changes = "1,open,+1,tea\n3,open,-1,tea\n5,open,+1,rum\n5,pay,+1,1,7\n9,open,-1,rum\n"
    assert watch("timed.dl", stream).out == changes
    lines, found = stream.splitlines(keepends=True), ""
    for part in (lines[:2], lines[2:4], lines[4:]):
        found += watch("timed.dl", "".join(part), "--state", "state").out
    assert found == changes
    with_progress = watch("timed.dl", stream, "--progress").out
    assert [line for line in with_progress.splitlines() if "progress" in line] == [f"{n},,progress" for n in (0, 1, 5, 6, 9)]


def test_a_clock_that_facts_have_started_is_at_most_as_far_ahead(folder: Path, watch: RunWatch) -> None:
    (folder / "timed.dl").write_text(TIMED + 'offer("a", 1, 4).\n')
    out = watch("timed.dl", "1,offer,+1,b,2,9\n7,offer,+1,c,0,8\n8,offer,-1,b,2,9\n", "--snapshot").out
    assert out == "0,open,+1,a\n1,open,+1,b\n4,open,-1,a\n7,open,+1,c\n8,open,-1,b\n8,open,-1,c\n"


def test_a_clock_is_watched_as_of_rounds_in_between(folder: Path, watch: RunWatch) -> None:
    (folder / "timed.dl").write_text(TIMED)
    stream = "1,offer,+1,tea,0,3\n1,offer,+1,rum,0,8\n5,offer,+1,gin,0,9\n9,offer,-1,rum,0,8\n"
    later = "5,open,+1,gin\n8,open,-1,rum\n9,open,-1,gin\n"
    assert watch("timed.dl", stream, "--as-of", "2").out == f"2,open,+1,rum\n2,open,+1,tea\n3,open,-1,tea\n{later}"
    assert watch("timed.dl", stream, "--as-of", "4", "--no-snapshot").out == later
    watch("timed.dl", stream, "--state", "state", "--history", "20")
    again = watch("timed.dl", "12,offer,+1,tea,0,99\n", "--state", "state", "--history", "20", "--as-of", "4").out
    assert again == f"4,open,+1,rum\n{later}12,open,+1,tea\n"
