"""The manual of the REPL's commands: what `.help` shows and completion goes by."""

from __future__ import annotations

from typing import Final

from dlog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """A command's manual page: its syntax, one line, and the full text. `takes` says what completes its arguments."""

    usage: str
    summary: str
    details: str
    takes: tuple[str, ...] = ()


SYNTAX: Final = """
path(x, y) :- edge(x, y).   declarations, rules and facts change the program
+edge(1, 2), edge(2, 3).    inserts rows; -edge(1, 2). removes them
?- path(1, X), X != 3.      asks a query"""

PAGES: Final = {
    "begin": Page(
        "begin",
        "stage changes until commit or rollback",
        """
Rows that are inserted, removed or loaded from now on are staged. `commit` makes them one round, so that no relation ever shows
a part of them; `rollback` forgets them. Queries see the last round meanwhile.
""",
    ),
    "commit": Page("commit", "make what is staged the next round", "Tells what changed. If it fails, the changes stay staged."),
    "rollback": Page("rollback", "forget what is staged", "The session is at its last round."),
    ".why": Page(
        ".why ATOM [LEVELS|all]",
        "why a row holds: its proof",
        """
The tree has the row first and below each row what it follows from: rows, negated atoms of which there is no row, constraints
with their values, and aggregates with the rows they are made of. Of all derivations it is the one that the evaluation finds
first, so the proof of a recursive row is as short as can be. A row that was shown above is not shown again.

Six levels are shown; a number behind the row asks for more, `all` for everything.

    .why path(1, 5)
    .why path(1, 5) 20
    .why name("Ada", [1, nil]) all
""",
        ("atom",),
    ),
    ".whynot": Page(
        ".whynot ATOM",
        "why a row does not hold: what each rule lacks",
        """
For each rule whose head the row could be: the literals of the body that hold together, the first one that fails then, and the
values of the variables where it does. Last come the rows that are most like the one asked for.

    .whynot path(5, 1)
""",
        ("atom",),
    ),
    ".load": Page(
        ".load RELATION FILE [KEY=VALUE]...",
        "insert the rows of a file",
        """
Any format that `.input` reads: text by its parameters (delimiter, headers, rfc4180 ...), Parquet and Arrow by the name of the
file.

    .load edge edges.csv delimiter="," headers=true
    .load edge edges.parquet
""",
        ("relation", "file"),
    ),
    ".save": Page(
        ".save RELATION FILE [KEY=VALUE]...",
        "write the rows of a relation to a file",
        """
As `.output` would; the name of the file says which format.

    .save path paths.csv
    .save path paths.parquet
""",
        ("relation", "file"),
    ),
    ".relations": Page(
        ".relations",
        "list the relations and how many rows each has",
        "With attributes and types, and whether a relation is derived by rules, an input or an output.",
    ),
    ".schema": Page(
        ".schema [RELATION]",
        "show declarations and rules",
        "The program as it is now, in the layout of `dlog fmt`; of one relation its declaration and its rules.",
        ("relation",),
    ),
    ".plan": Page(
        ".plan [RELATION | ?- QUERY]",
        "show how relations are maintained, or a query is answered",
        """
Each stratum with its arrangements, and for each part of a rule that can change the joins that follow a change of it.
With a query: whether rows are selected, or what is evaluated, and by demand or not.
""",
        ("relation",),
    ),
    ".drop": Page(
        ".drop RELATION|RULE",
        "drop a relation, or a rule that is written out",
        """
A relation is dropped if nothing reads it any more. It is a round of its own.

    .drop path(x, y) :- edge(x, y).
""",
        ("relation",),
    ),
    ".read": Page(
        ".read FILE",
        "read a program or a script",
        "A program is added to the session's. In a script there may be queries, changes and commands as well.",
        ("file",),
    ),
    ".stats": Page(
        ".stats",
        "show sizes, memory and time",
        "The last round, how many rows there are and are staged, memory now and at most, and what the last statement took.",
    ),
    ".limit": Page(
        ".limit [ROWS]",
        "how many rows are shown",
        "Of the answers to a query, and of the changes of each relation in a round; 20 at first.",
    ),
    ".help": Page(".help [COMMAND]", "list the commands, or explain one", "    .help why", ("command",)),
    ".quit": Page(".quit", "leave", "So does Ctrl-D. What is staged is lost."),
}


def page_of(name: str) -> str | None:
    """The command that a name, with or without its dot, means."""
    return name if name in PAGES else f".{name}" if f".{name}" in PAGES else None
