"""The line editor: what keys do, what is completed and coloured, and what is remembered."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from dlog.highlighting import DatalogLexer
from dlog.repl import ReplOptions, Shell
from dlog.repl.commands import _file_arguments, obey
from dlog.repl.prompt import ProgramCompleter, PromptLexer, converse, data_folder
from dlog.repl.screen import Screen
from dlog.repl.statements import is_complete, split
from tests.dlog.command import ROOT, closure

ENTER, CTRL_C, CTRL_D, ALT_ENTER = "\r", "\x03", "\x04", "\x1b\r"

RELATIONS = {"edge": (("from", "number"), ("to", "number")), "echo": (("word", "symbol"),)}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DLOG_DATA", str(tmp_path / "data"))
    yield tmp_path / "data"


def typed(keys: str, options: ReplOptions | None = None, out: io.StringIO | None = None) -> str:
    """What is shown when these keys are pressed."""
    out = out or io.StringIO()
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        code = converse(Shell(options or ReplOptions(), Screen(out, out, colours=False), obey, interactive=True))
    assert code == 0
    return out.getvalue().split("\n", 1)[1]


def test_enter_executes_what_is_complete_and_goes_on_with_what_is_not() -> None:
    keys = f".decl a(x: number){ENTER}a(1).{ENTER}?- a(X),{ENTER}X < 5.{ENTER}{CTRL_D}"
    assert typed(keys) == "round 2: a +1\nX\n-\n1\n1 row\n"


def test_ctrl_c_forgets_the_line_and_ctrl_d_leaves() -> None:
    assert typed(f".decl a(x: number){ENTER}a(1), nonsense{CTRL_C}?- a(X).{ENTER}{CTRL_D}") == "0 rows\n"
    assert typed(f".quit{ENTER}") == ""


def test_alt_enter_executes_anything() -> None:
    said = typed(f"?- a(X{ALT_ENTER}{CTRL_D}")
    assert said.startswith("error: ")


def test_a_program_is_checked_before_the_first_prompt(tmp_path: Path) -> None:
    closure(tmp_path)
    options = ReplOptions(tmp_path / "closure.dl", str(tmp_path / "facts"))
    assert typed(f"?- path(1, X).{ENTER}{CTRL_D}", options) == "X\n-\n2\n3\n2 rows\n"
    (tmp_path / "closure.dl").write_text("path(1).\n")
    with pytest.raises(Exception, match="unknown relation `path`"):
        typed("", options)


@pytest.mark.slow
def test_history_is_kept(data: Path) -> None:
    typed(f".decl a(x: number){ENTER}?- a(X).{ENTER}{CTRL_D}")
    assert "+?- a(X).\n" in (data / "history").read_text()
    typed(f".decl b(x: number){ENTER}{CTRL_D}")
    entries = [line for line in (data / "history").read_text().splitlines() if line.startswith("+")]
    assert entries == ["+.decl a(x: number)", "+?- a(X).", "+.decl b(x: number)"]


def test_without_a_place_for_it_history_is_of_this_conversation(data: Path) -> None:
    data.write_text("a file, no folder")
    assert typed(f".decl a(x: number){ENTER}?- a(X).{ENTER}{CTRL_D}") == "0 rows\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
@pytest.mark.parametrize("left", ["a link", "a pipe", "a file of everybody's", "nothing yet"])
def test_nothing_is_remembered_where_others_can_write(data: Path, tmp_path: Path, left: str) -> None:
    mine = tmp_path / "mine"
    mine.write_text("kept\n")
    data.mkdir()
    path = data / "history"
    match left:
        case "a link":
            path.symlink_to(mine)
        case "a pipe":
            os.mkfifo(path)
        case "a file of everybody's":
            path.touch()
            path.chmod(0o666)
        case _:
            data.chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert typed(f".decl a(x: number){ENTER}?- a(X).{ENTER}{CTRL_D}") == "0 rows\n"
    assert mine.read_text() == "kept\n"
    assert not path.is_file() or path.stat().st_size in (0, len("kept\n"))


def test_the_place_of_data_follows_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DLOG_DATA")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/some/where")
    assert data_folder() == Path("/some/where/dlog")
    monkeypatch.setenv("XDG_DATA_HOME", "depends/on/where/it/is/started")
    assert data_folder() == Path.home() / ".local" / "share" / "dlog"


def test_data_are_kept_in_no_folder_by_way_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DLOG_DATA", "left")
    with pytest.warns(RuntimeWarning, match="DLOG_DATA: left is in the current folder, whosever that is"):
        assert typed(f".decl a(x: number){ENTER}{CTRL_D}") == ""
    assert (tmp_path / "own" / "dlog" / "history").exists() and not (tmp_path / "left").exists()


# ------------------------------------------------------------------------------------------------- completion, highlighting


def completed(text: str) -> list[str]:
    found = ProgramCompleter(lambda: RELATIONS).get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + completion.start_position] + completion.text for completion in found]


def test_relations_attributes_and_words_are_completed() -> None:
    assert completed("?- e") == ["?- edge", "?- echo"]
    assert completed("?- edge(f") == ["?- edge(from", "?- edge(floor", "?- edge(ftoi", "?- edge(ftou"]
    assert completed("?- edge(") == ["?- edge(from", "?- edge(to"]
    assert completed("a(x) :- edge(x, y),\n  ech") == ["a(x) :- edge(x, y),\n  echo"]
    assert completed(".decl a(x: num") == [".decl a(x: number"]
    assert completed("a(x) :- x = strl") == ["a(x) :- x = strlen"]


def test_commands_and_their_arguments_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(".wh") == [".why", ".whynot"]
    assert completed(".de") == [".decl"]
    assert completed(".why e") == [".why edge", ".why echo"]
    assert completed(".why edge(1, 2) ") == []
    assert completed(".help .sch") == [".help .schema"]
    assert completed(".plan ed") == [".plan edge"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").touch()
    assert completed(".load edge ed") == [".load edge edges.csv"]
    assert completed(".read edg") == [".read edges.csv"]


def test_names_of_files_are_completed_to_what_the_command_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can write to the current folder may have chosen them."""
    monkeypatch.chdir(tmp_path)
    names = ["data.csv", "data.csv errors=reject:report.txt", " data", "~root", "sub dir"]
    ending = ["data.csv\n.read x", "d\ra", "d\u2028x", "d\x85.read x"]
    for name in [*names, *ending, "d\x1b[2J", "d\xa0x", "d\u202ex", '"d', 'd" a=b', 'd"']:
        (tmp_path / name).touch()
    assert completed(".load edge da") == [".load edge data.csv", '.load edge "data.csv errors=reject:report.txt"']
    assert completed('.load edge "da') == ['.load edge "data.csv"', '.load edge "data.csv errors=reject:report.txt"']
    assert completed('.load edge "data.csv er') == ['.load edge "data.csv errors=reject:report.txt"']
    assert completed('.load edge "data.csv" headers=') == completed(".read ~") == []
    for command in (".load edge ", ".save edge ", ".read "):
        lines = completed(command)
        assert len(lines) == len(names) - 1
        assert all(len(split(line + "\n")[0]) == 1 and is_complete(line) for line in lines)
        read = {
            line[len(command) :].strip('"') if command == ".read " else str(_file_arguments(*line.split(" ", 1))[1])
            for line in lines
        }
        assert read == set(names) - {"~root"}
    (tmp_path / "sub dir").unlink()
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "sub dir" / "a.csv").touch()
    assert completed(".read sub") == ['.read "sub dir"'] and completed('.read "sub dir/') == ['.read "sub dir/a.csv"']


def test_the_words_of_the_language_have_colours() -> None:
    text = '.decl a(x: number) // why\na(x) :- edge(x, "b"), x < 2.5, x < 1_000, x > 1e-3, x = count : { c(_) }.'
    coloured = [(kind, piece) for _, kind, piece in DatalogLexer().get_tokens_unprocessed(text)]
    assert "".join(piece for _, piece in coloured) == text
    plain = (Text, Punctuation, Operator, Name.Variable)
    assert {piece: kind for kind, piece in coloured if kind not in plain} == {
        ".decl": Keyword.Declaration,
        "number": Keyword.Type,
        "a": Name.Function,
        "// why": Comment,
        "edge": Name.Function,
        '"b"': String,
        "2.5": Number,
        "1_000": Number,
        "1e-3": Number,
        "count": Name.Builtin,
        "c": Name.Function,
    }


def test_the_prompt_colours_its_commands() -> None:
    def first(text: str) -> tuple[Any, str]:
        return next((kind, piece) for _, kind, piece in PromptLexer().get_tokens_unprocessed(text))

    assert first(".why a(1)") == (Name.Builtin.Pseudo, ".why")
    assert first(".decl a(x: number)") == (Keyword.Declaration, ".decl")
    assert first("?- a(X).") == (Operator, "?-")


def test_pygments_knows_the_lexer_by_name() -> None:
    assert isinstance(get_lexer_by_name("dlog"), DatalogLexer)


# ------------------------------------------------------------------------------------------------------------------ starting


def test_the_prompt_needs_no_engine() -> None:
    """It is there at once: what takes long to import is imported when the first statement needs it."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import dlog.command.cli, dlog.repl.prompt\n"
        "print(sorted({'numpy', 'numba', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
