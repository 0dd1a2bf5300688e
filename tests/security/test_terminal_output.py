"""What a terminal is told by mistakes and warnings: whatever the data, nothing that it would obey."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dlog import run as dlog_run
from dlog import session as session_of
from tests.security.planted import STARTER, dlog, run

COMMANDS = "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x9b2J\x7f\u202e"
"""Of terminals: a text for the clipboard, a screen without anything, a line from right to left."""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
NUMBERS = """.decl n(a: number)
.input n({parameters})
.decl s(a: number)
s(a) :- n(a).
.output s
"""
PATTERNS = """.decl p(a: symbol)
.input p
.decl s(a: symbol)
s(a) :- p(a), match(a, "x").
.output s
"""


def told(folder: Path, program: str) -> str:
    (folder / "p.dl").write_text(program)
    done = dlog("run", "p.dl", cwd=folder)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_fields_of_facts_are_shown_with_signs_for_controls(tmp_path: Path) -> None:
    (tmp_path / "n.facts").write_text(f"1\n{COMMANDS}\n")
    said = told(tmp_path, NUMBERS.format(parameters=""))
    assert said.startswith("error") and "␛]52;c;cm0gLXJmIH4K␇␛[2J�2J␡�" in said and not OBEYED.search(said)


def test_names_of_columns_are_shown_with_signs_for_controls(tmp_path: Path) -> None:
    pq.write_table(pa.table({COMMANDS: [1], "b": [2]}), tmp_path / "n.parquet")
    said = told(tmp_path, NUMBERS.format(parameters='IO=parquet, filename="n.parquet"'))
    assert said.startswith("error") and "␛]52" in said and not OBEYED.search(said)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [f"({COMMANDS}", f"(?=x)({COMMANDS}"])
def test_wrong_patterns_are_shown_with_signs_for_controls(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "p.facts").write_text(f"{pattern}\n")
    said = told(tmp_path, PATTERNS)
    assert said.startswith("warning: wrong pattern") and "␛]52" in said and not OBEYED.search(said)


def test_warnings_of_the_library_show_signs_for_controls(tmp_path: Path) -> None:
    """Python prints them as they are."""
    (tmp_path / "n.facts").write_text(f"1\n{COMMANDS}\n")
    (tmp_path / "p.facts").write_text(f"({COMMANDS}\n")
    with pytest.warns(RuntimeWarning) as warned:
        for program in (NUMBERS.format(parameters="errors=skip"), PATTERNS):
            dlog_run(program, facts=tmp_path)
    said = [str(warning.message) for warning in warned]
    assert len(said) == 2 and all("␛]52" in text and not OBEYED.search(text) for text in said)


FORGED = "a\nerror: forged\r\u2028error: forged\u2029error: forged\u061c\u2066"


def forged_key(folder: Path) -> str:
    (folder / "n.json").write_text(json.dumps([{FORGED: 1}]))
    return 'IO=jsonfile, filename="n.json"'


def forged_column(folder: Path) -> str:
    pq.write_table(pa.table({FORGED: [1], "b": [2]}), folder / "n.parquet")
    return 'IO=parquet, filename="n.parquet"'


def forged_table(folder: Path) -> str:
    with sqlite3.connect(folder / "n.db") as database:
        database.execute(f'CREATE TABLE "{FORGED}" (a)')
    return 'IO=sqlite, filename="n.db"'


def forged_column_of_a_table(folder: Path) -> str:
    with sqlite3.connect(folder / "n.db") as database:
        database.execute(f'CREATE TABLE n ("{FORGED}")')
    return 'IO=sqlite, filename="n.db", columns="b"'


def forged_function(folder: Path) -> str:
    with sqlite3.connect(folder / "n.db") as database:
        database.execute(f'CREATE VIEW n AS SELECT "{FORGED}"(1) AS a')
    return 'IO=sqlite, filename="n.db"'


@pytest.mark.slow
@pytest.mark.parametrize("left", [forged_key, forged_column, forged_table, forged_column_of_a_table, forged_function])
def test_names_from_outside_forge_no_lines(tmp_path: Path, left: Callable[[Path], str]) -> None:
    said = told(tmp_path, NUMBERS.format(parameters=left(tmp_path)))
    assert "forged" in said
    assert [line for line in said.splitlines() if line.startswith("error")] == said.splitlines()[:1]
    assert not re.search("[\r\u2028\u2029\u061c\u2066]", said)


def test_patterns_from_outside_forge_no_lines(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps([["(\nerror: forged"]]))
    said = told(tmp_path, PATTERNS.replace(".input p", '.input p(IO=jsonfile, filename="p.json")'))
    assert said.startswith('warning: wrong pattern provided for match("(␤error: forged"') and "\nerror" not in said


ASKED = """.decl p(a: symbol)
.input p
.decl q(a: symbol)
q(a) :- p(a).
.output q
"""


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (("repl", "-F", ".", "p.dl"), '?- p(a).\np("new").\n.why p(a).\nr(a) :- p(a).\n'),
        (("run", "-t", "explain", "p.dl"), "query q(x)\n;\n"),
    ],
)
def test_prompts_show_rows_with_signs_for_controls(tmp_path: Path, command: tuple[str, ...], typed: str) -> None:
    (tmp_path / "p.dl").write_text(ASKED)
    (tmp_path / "p.facts").write_text(f"{COMMANDS}\n")
    done = run(sys.executable, "-P", "-c", STARTER, *command, cwd=tmp_path, said=typed)
    assert "␛]52;c;cm0gLXJmIH4K" in done.stdout and not OBEYED.search(done.stdout + done.stderr)


def test_proofs_are_shown_with_signs_for_controls() -> None:
    text = f"{COMMANDS}\nforged"
    with session_of(".decl p(a: symbol)\n.decl q(a: symbol)\nq(a) :- p(a).\n") as session:
        session.insert("p", [(text,)])
        session.commit()
        proofs = session.why("q", (text,)), session.why_not("q", (f"another {text}",))
        for said in (show(proof) for proof in proofs for show in (str, repr)):
            assert "␛]52;c;cm0gLXJmIH4K" in said and "\nforged" not in said and not OBEYED.search(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [*(("plan", "--stage", stage) for stage in ("ast", "typed", "strata", "plan")), ("run", "--stats"), ("check",)]
)
def test_what_is_shown_of_a_program_has_signs_for_controls(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    name = f"{COMMANDS}.dl"
    (tmp_path / name).write_text(f'{ASKED.replace(".input p", "")}q(a) :- p(a), a != "{COMMANDS}".\np("x").\n')
    done = dlog(*arguments, name, cwd=tmp_path)
    assert done.returncode == 0 and "␛]52;c;cm0gLXJmIH4K" in done.stdout + done.stderr
    assert not OBEYED.search(done.stdout + done.stderr)


def test_names_of_formatted_programs_are_shown_with_signs_for_controls(tmp_path: Path) -> None:
    (tmp_path / f"{COMMANDS}.dl").write_text(".decl   a(x:number)\n")
    done = dlog("fmt", "--write", f"{COMMANDS}.dl", cwd=tmp_path)
    assert done.stderr.startswith("formatted ␛]52") and not OBEYED.search(done.stderr)
