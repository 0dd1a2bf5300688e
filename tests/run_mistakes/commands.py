"""Mistakes of command lines: of programs as files, of the prompt, of streams of changes."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, run, untold

_TC: Final = (
    "tc.dl",
    """.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
""",
)
_EDGES: Final = ("edge.facts", "1\t2\n2\t3\n")
_ONE: Final = ("one.dl", ".decl p(x: number)\np(1).\n.output p\n")
_TIMES_8: Final = "".join(f"#define {x} {' + '.join([y] * 8)}\n" for x, y in ("A1", "BA", "CB", "DC"))
_DEEP: Final = f"{_TIMES_8}.decl p(x: number)\np(D).\n.output p\n"

COMMANDS: Final[dict[str, Example]] = {
    "bad-diff": run(
        "A change of a relation says that a row comes, `+1`, or goes, `-1`.",
        "dlog watch tc.dl changes.csv",
        _TC,
        ("changes.csv", "1,edge,+2,1,2\n"),
    ),
    "bad-key": run(
        "A key is columns of a relation: `relation=column,column`, or in Python the names of columns.",
        "dlog watch tc.dl changes.csv --key path",
        _TC,
        ("changes.csv", "1,edge,+1,1,2\n"),
    ),
    "bad-macro": run(
        "What `-M` gives is no definition of a macro: it is NAME, or NAME=VALUE.",
        "dlog run one.dl -M 3=N",
        _ONE,
    ),
    "bad-round": run(
        "Changes come in the order of their rounds, which count from 1.",
        "dlog watch tc.dl changes.csv",
        _TC,
        ("changes.csv", "2,edge,+1,1,2\n1,edge,+1,2,3\n"),
    ),
    "bad-usage": run(
        "The command line asks for what there is not, or for what does not go together. `--help` lists the options.",
        "dlog plan one.dl --rounds --stage ast",
        _ONE,
    ),
    "bad-value": run(
        "A value in a line of changes is not of its column's type: in JSON, only symbols are strings.",
        "dlog watch tc.dl changes.ndjson",
        _TC,
        ("changes.ndjson", '{"round": 1, "relation": "edge", "diff": 1, "row": [1, "two"]}\n'),
    ),
    "encoding": run(
        "A text is not UTF-8. Programs have to be; files of facts may be read with `encoding=`.",
        "dlog run tc.dl",
        ("tc.dl", '.decl p(x: symbol)\np("caf\udce9").\n.output p\n'),
    ),
    "endless-script": run(
        "A script of the prompt reads itself, which would never end.",
        "dlog repl",
        ("again.dl", '.read "again.dl"\n'),
        typed=".read again.dl\n",
    ),
    "file-changed": untold(
        "`dlog fmt --write` does not write to a program that has been changed since it was read: format it again.",
        "somebody else has to write to the file between two steps of the command",
    ),
    "file-error": run(
        "The system refuses a file or a folder: what is wrong with it is said as the system says it.",
        "dlog run tc.dl -D results",
        _TC,
        _EDGES,
        ("results", "a file, no folder\n"),
    ),
    "file-shrunk": untold(
        "A file that `dlog watch --follow` follows has become shorter: it may only grow.",
        "the file has to be cut short while the command waits for more",
    ),
    "internal": untold(
        "In an editor: analysing the program has failed, and that is a mistake of dlog's own. Please report it.",
        "it would be mended if there were one that is known",
    ),
    "missing-folder": run(
        "The folder of the files of facts is not there: `-F` names it.",
        "dlog run tc.dl -F nowhere",
        _TC,
    ),
    "missing-package": untold(
        "A part of dlog needs a package that is not installed. The note says how to install it.",
        "the example would have to take packages away",
    ),
    "no-kernels": untold(
        "The compiled kernels cannot be kept, so that each run compiles what it needs: `DLOG_CACHE` names a folder for them.",
        "the example would have to take the kernels away that all others use",
    ),
    "no-transaction": run(
        "At the prompt: `commit` or `rollback` without a transaction. `begin` opens one.",
        "dlog repl",
        typed="commit\n",
    ),
    "not-formatted": run(
        "`dlog fmt --check` has found a program that is not formatted; `dlog fmt --write` rewrites it.",
        "dlog fmt --check one.dl",
        ("one.dl", ".decl p(x:number)\np( 1 ).\n.output p\n"),
    ),
    "program-file": run(
        "The program is no file that can be read and, in Python, no text of a program: text has a line break or a clause.",
        "dlog run tx.dl",
        _TC,
    ),
    "protocol": run(
        "What comes to `dlog lsp` is not what editors send: it is started by them, not by hand.",
        "dlog lsp",
        typed="Content-Length: 999999999999\n\n",
    ),
    "too-deep": run(
        "An expression is nested so deeply that the compiler gives up: give parts of it relations or variables of their own.",
        "dlog run deep.dl",
        ("deep.dl", _DEEP),
    ),
    "unknown-command": run(
        "At the prompt: there is no such command. `.help` lists them.",
        "dlog repl",
        typed=".lst\n",
    ),
    "warning": run(
        "With `-Werror`, what a run remarks without a code of its own is a mistake, too: mend it, or leave the option out.",
        "dlog run -Werror names.dl",
        ("names.dl", '.decl name(x: symbol)\nname("Ann\\tLee").\n.output name\n'),
    ),
}
