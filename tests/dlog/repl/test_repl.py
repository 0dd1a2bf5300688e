"""The REPL: statements and commands on a session, in a pipe and as the README shows it."""

from __future__ import annotations

import io
import os
import re
import signal
import textwrap
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dlog.interruption import heeded_interruption
from dlog.repl import ReplOptions, Shell
from dlog.repl.commands import COMMANDS, obey
from dlog.repl.manual import PAGES
from dlog.repl.prompt import GREETING
from dlog.repl.screen import Screen
from dlog.repl.statements import is_complete, split
from tests.dlog.command import CLOSURE, ROOT, closure, dlog

GRAPH = """\
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


class Conversation:
    """A shell whose output is read after each input."""

    def __init__(self, program: Path | None = None, interactive: bool = False, facts: str | None = None) -> None:
        self.out = io.StringIO()
        self.shell = Shell(ReplOptions(program, facts), Screen(self.out, self.out, colours=False), obey, interactive)

    def say(self, text: str) -> str:
        self.out.seek(0)
        self.out.truncate()
        found, rest = split(text)
        assert not rest
        self.shell.run(found)
        return self.out.getvalue()


@pytest.fixture
def graph() -> Conversation:
    """A conversation about paths 1 -> 2 -> 3."""
    found = Conversation()
    found.say(GRAPH)
    found.say("edge(1, 2). edge(2, 3).")
    return found


def text(expected: str) -> str:
    return textwrap.dedent(expected).lstrip("\n")


# ------------------------------------------------------------------------------------------------------------- statements


def test_rules_facts_and_changes_are_rounds(graph: Conversation) -> None:
    assert graph.say("edge(3, 4).") == text(
        """
        round 3: edge +1, path +3
        + path(1, 4)
        + path(2, 4)
        + path(3, 4)
        """
    )
    assert graph.say("-edge(1, 2), edge(2, 3).") == text(
        """
        round 4: edge -2, path -5
        - path(1, 2)
        - path(1, 3)
        - path(1, 4)
        - path(2, 3)
        - path(2, 4)
        """
    )
    assert graph.say("+edge(3, 4).") == "round 5\n"
    assert graph.say(".decl back(x: number, y: number)\nback(y, x) :- edge(x, y).\n") == "round 6: back +1\n+ back(4, 3)\n"


def test_queries_are_tables_with_counts(graph: Conversation) -> None:
    assert graph.say("?- path(1, X), X != 9.") == "X\n-\n2\n3\n2 rows\n"
    assert graph.say("?- path(1, 3).") == "yes\n"
    assert graph.say("?- path(3, _).") == "no\n"
    assert graph.say("?- path(3, X).") == "0 rows\n"
    graph.say('.decl name(x: number, n: symbol)\nname(1, "a [b]"). name(20, "c").\n')
    assert graph.say("?- name(X, N).") == text(
        """
         X   N
        ------------
         1   "a [b]"
        20   "c"
        2 rows
        """
    )


def test_limits_cut_tables_and_changes(graph: Conversation) -> None:
    assert graph.say(".limit 1") == "up to 1 rows are shown\n"
    assert graph.say("?- path(1, X).") == "X\n-\n2\n2 rows, 1 shown\n"
    assert graph.say("+edge(3, 4).") == "round 3: edge +1, path +3\n+ path(1, 4)\n... 2 more changes of path\n"
    assert "usage: .limit [ROWS]" in graph.say(".limit x")


def test_a_transaction_is_one_round(graph: Conversation) -> None:
    assert graph.say("begin\n-edge(2, 3).\n+edge(2, 4).\n") == text(
        """
        changes are staged until `commit` or `rollback`
        1 change staged
        2 changes staged
        """
    )
    assert graph.say("?- path(1, X).") == "X\n-\n2\n3\n2 rows\n"
    assert "changes are staged" in graph.say("path(x, x) :- edge(x, _).")
    assert graph.say("commit") == text(
        """
        round 3: edge +1 -1, path +2 -2
        - path(1, 3)
        + path(1, 4)
        - path(2, 3)
        + path(2, 4)
        """
    )
    assert graph.say("begin\n+edge(9, 9).\nrollback\n").endswith("back at round 3\n")
    assert graph.say("?- edge(9, X).") == "0 rows\n"
    assert "nothing to commit" in graph.say("commit")


def test_outputs_are_what_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(GRAPH + ".decl loop(x: number)\nloop(x) :- path(x, x).\n.output loop\n")
    told = Conversation(tmp_path / "p.dl")
    assert told.say("edge(1, 1).") == "round 1: edge +1, path +1, loop +1\n+ loop(1)\n"


def test_mistakes_point_at_what_was_typed(graph: Conversation) -> None:
    assert graph.say("?- pth(1, X).") == text(
        """
        error: unknown relation `pth`
         --> <input>:1:4
          |
        1 | ?- pth(1, X).
          |    ^^^^^^^^^
          = did you mean `path`?
        """
    )
    assert '1 | +edge(1, "a").\n  |          ^^^' in graph.say('+edge(1, "a").')
    assert "1 | +edge(X, 1).\n  |       ^" in graph.say("+edge(X, 1).")
    assert "this is not a row" in graph.say("+edge(1 + 2, 1).")
    assert "follows from rules" in graph.say("+path(7, 8).")
    assert "<input>" in graph.say("path(x, y) :- edge(x, z).")
    assert graph.shell.failed
    assert graph.say("?- path(1, X).") == "X\n-\n2\n3\n2 rows\n"


def test_of_a_program_what_is_right_takes_effect() -> None:
    told = Conversation()
    said = told.say("b(x) :- a(x).\n.decl a(x: number)\nc(x) :- a(x).\n.decl b(x: number)\na(1).\n")
    assert "unknown relation `c`" in said
    assert "`b`" not in said
    assert told.say("?- b(X).") == "X\n-\n1\n1 row\n"


def test_an_interruption_stops_a_statement_and_keeps_the_session() -> None:
    told = Conversation(interactive=True)
    told.say(GRAPH)
    told.say("edge(1, 2).")
    told.say("begin")
    told.shell.session.insert("edge", [(i, (i * 7 + j) % 3000) for i in range(3000) for j in (1, 5)])
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with heeded_interruption():
        said = told.say("commit")
    timer.join()
    assert said == "interrupted\n"
    assert told.say("rollback") == "back at round 2\n"
    assert told.say("?- path(X, Y).") == "X   Y\n-----\n1   2\n1 row\n"


# --------------------------------------------------------------------------------------------------------------- commands


def test_every_command_has_a_page_and_says_how_it_is_used() -> None:
    assert list(COMMANDS) == list(PAGES)
    told = Conversation()
    for name in COMMANDS:
        page = told.say(f".help {name}")
        assert page.startswith(f"NAME\n    {name} - ")
        assert f"SYNOPSIS\n    {PAGES[name].usage}\n" in page
    overview = told.say(".help")
    assert all(PAGES[name].summary in overview for name in COMMANDS)
    assert max(map(len, overview.splitlines())) <= 100
    assert "did you mean `.why`" in told.say(".whi")


def test_why_and_whynot(graph: Conversation) -> None:
    assert graph.say(".why path(1, 3)") == text(
        """
        path(1, 3)  by path(x, z) :- path(x, y), edge(y, z).
        |-- path(1, 2)  by path(x, y) :- edge(x, y).
        |   `-- edge(1, 2)  fact
        `-- edge(2, 3)  fact
        """
    )
    assert graph.say(".why path(1, 3). 1") == text(
        """
        path(1, 3)  by path(x, z) :- path(x, y), edge(y, z).
        |-- path(1, 2)  ...
        `-- edge(2, 3)  fact
        more: `.why path(1, 3) 2`, or `.why` one of the rows above that end in ...
        """
    )
    assert graph.say(".why path(1, 3) all") == graph.say(".why path(1, 3)")
    assert "there is no edge(2, 1)" in graph.say(".whynot path(1, 1)")
    assert "does not hold" in graph.say(".why path(1, 1)")
    assert "1 | .why path(1, X).\n  |              ^" in graph.say(".why path(1, X)")
    assert "usage: .why" in graph.say(".why")


def test_load_and_save(graph: Conversation, tmp_path: Path) -> None:
    (tmp_path / "more edges.csv").write_text("x,y\n3,4\n4,5\n")
    said = graph.say(f'.load edge "{tmp_path}/more edges.csv" delimiter="," headers=true')
    assert said.startswith("round 3: edge +2, path +7\n")
    assert graph.say(f".save path {tmp_path}/path.tsv") == f"10 rows of path in {tmp_path}/path.tsv\n"
    assert (tmp_path / "path.tsv").read_text().splitlines()[:2] == ["1\t2", "1\t3"]
    graph.say(f".save path {tmp_path}/path.parquet")
    assert pq.read_table(tmp_path / "path.parquet").num_rows == 10
    assert "there is no such file" in graph.say(f".load edge {tmp_path}/none.csv")
    assert "unknown relation `pth`" in graph.say(f".save pth {tmp_path}/x.csv")


def test_schema_relations_plan_and_drop(graph: Conversation) -> None:
    assert graph.say(".schema path") == "".join(GRAPH.splitlines(keepends=True)[1:])
    assert graph.say(".schema edge") == ".decl edge(x: number, y: number)\n"
    assert graph.say(".relations") == text(
        """
        relation                     rows
        -------------------------------------------
        edge(x: number, y: number)      2
        path(x: number, y: number)      3   derived
        """
    )
    assert graph.say(".plan path").startswith("stratum path, recursive")
    assert graph.say(".plan ?- path(1, X).") == "rows of `path` are selected\n"
    assert "come from outside" in graph.say(".plan edge")
    assert graph.say(".drop path(x, z) :- path(x, y), edge(y, z).") == "round 3: path -1\n- path(1, 3)\n"
    assert graph.say(".drop path").startswith("round 4")
    assert "unknown relation `path`" in graph.say(".schema path")


def test_read_takes_programs_and_scripts(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(GRAPH + "edge(1, 2).\n")
    (tmp_path / "script.dl").write_text("+edge(2, 3).\n?- path(1, X).\n")
    told = Conversation()
    assert told.say(f".read {tmp_path}/p.dl") == "round 1: edge +1, path +1\n+ path(1, 2)\n"
    assert told.say(f".read {tmp_path}/script.dl").endswith("X\n-\n2\n3\n2 rows\n")
    (tmp_path / "wrong.dl").write_text("\na(1).\n")
    assert f"{tmp_path}/wrong.dl:2:1" in told.say(f".read {tmp_path}/wrong.dl")


def test_stats_and_quit(graph: Conversation) -> None:
    stats = graph.say(".stats")
    assert re.fullmatch(r"round +2\nrelations +2\nrows +5\nstaged +0\nmemory .*\nlast statement .* ms\n", stats)
    assert graph.say(".quit\n+edge(5, 6).") == ""
    assert graph.shell.done


# ------------------------------------------------------------------------------------------------------------------- pipe


@pytest.mark.slow
def test_a_pipe_gives_plain_output_and_an_exit_code(tmp_path: Path) -> None:
    closure(tmp_path)
    good = dlog("repl", "closure.dl", "-F", "facts", cwd=tmp_path, stdin="?- path(1, X).\n+edge(3, 4).\n")
    assert (good.code, good.err) == (0, "")
    assert good.out == "X\n-\n2\n3\n2 rows\nround 2: edge +1, path +3\n+ path(1, 4)\n+ path(2, 4)\n+ path(3, 4)\n"
    bad = dlog("repl", "closure.dl", cwd=tmp_path, stdin="\n?- path(1, X).\n?- pth(1, X).\n?- path(2, X).\n?- path(")
    assert bad.code == 1
    assert bad.out == "0 rows\n0 rows\n"
    assert "--> <input>:3:4" in bad.err
    assert "--> <input>:5" in bad.err


@pytest.mark.slow
def test_a_pipe_says_of_every_mistake_on_which_line_it_is(tmp_path: Path) -> None:
    lines = ".drop q\n\ncommit\n.nope\n  .why path(1)\n.whynot pth(1, 2)\n.plan ?- pth(X).\n.drop path(x) :- .\n-path(1, 2).\n"
    failed = dlog("repl", cwd=tmp_path, stdin=GRAPH + lines)
    places = re.findall(r"--> <input>:(\d+:\d+)", failed.err)
    assert places == ["5:1", "7:1", "8:1", "9:6", "10:9", "11:10", "12:15", "13:1"]
    assert "error: unknown relation `q`\n --> <input>:5:1\n  | .drop q\n" in failed.err
    assert "9 | .why path(1).\n  |      ^^^^^^^" in failed.err


def test_a_statement_that_fails_stages_none_of_its_changes(graph: Conversation) -> None:
    graph.say("begin\n+edge(8, 9).")
    assert "`path` follows from rules" in graph.say("+edge(5, 6), path(7, 7).")
    assert graph.say("commit").startswith("round 3: edge +1, path +1\n+ path(8, 9)\n")


def test_mistakes_in_a_script_are_shown_in_its_file(tmp_path: Path, graph: Conversation) -> None:
    script = tmp_path / "script.dl"
    script.write_text(f"?- path(1, X).\n?- pth(1, X).\n.read {script}\n")
    told = graph.say(f".read {script}")
    assert f"--> {script}:2:4" in told
    assert f"error: {script} reads itself\n --> {script}:3:1\n" in told
    assert "--> <input>:1:4" in graph.say("?- pth(1, X).")


@pytest.mark.slow
def test_a_state_is_gone_on_with(tmp_path: Path) -> None:
    first = dlog("repl", "--state", "kept", cwd=tmp_path, stdin=f"{GRAPH}edge(1, 2).\n+edge(2, 3).\n-edge(1, 2).\n")
    assert first.code == 0 and first.out.endswith("round 3: edge -1, path -2\n- path(1, 2)\n- path(1, 3)\n")
    second = dlog("repl", "--state", "kept", cwd=tmp_path, stdin="?- path(2, X).\n+edge(3, 4).\n")
    assert (second.code, second.err) == (0, "")
    assert second.out == "X\n-\n3\n1 row\nround 4: edge +1, path +2\n+ path(2, 4)\n+ path(3, 4)\n"
    (tmp_path / "other.dl").write_text(".decl edge(x: symbol)\n")
    third = dlog("repl", "other.dl", "--state", "kept", cwd=tmp_path, stdin="")
    assert third.code == 1 and "which the program declares as edge(x: symbol)" in third.err


@pytest.mark.slow
def test_a_program_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "wrong.dl").write_text("a(1).\n")
    finished = dlog("repl", "wrong.dl", cwd=tmp_path, stdin="?- a(X).\n")
    assert (finished.code, finished.out) == (1, "")
    assert finished.err.count("error:") == 1
    assert dlog("repl", "none.dl", cwd=tmp_path).code == 1


@pytest.mark.slow
def test_a_program_in_a_pipe_takes_effect_together(tmp_path: Path) -> None:
    finished = dlog("repl", cwd=tmp_path, stdin=CLOSURE.replace(".input edge\n", "") + "edge(1, 2).\nedge(2, 3).\n.quit\nx")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out == "round 1: edge +2, path +3\n+ path(1, 2)\n+ path(1, 3)\n+ path(2, 3)\n"


# ----------------------------------------------------------------------------------------------------------------- README


def test_the_transcript_in_the_readme_is_true() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```text\n\$ dlog repl\n(.*?)```", readme, re.DOTALL)
    told = Conversation()
    entered, expected, said = "", "", GREETING + "\n"
    for line in block.splitlines(keepends=True):
        if line.startswith(("dlog> ", "  ... ")):
            assert said == expected
            entered = (entered if line.startswith(" ") else "") + line[6:]
            said, expected = "", ""
            if is_complete(entered):
                said = told.say(entered)
        else:
            expected += line
    assert said == expected
    assert "?-" in block
    assert ".why" in block
