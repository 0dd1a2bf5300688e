"""Mistakes of states: the folders in which sessions survive."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, run, untold

_STATE: Final = """
import dlog
{more}
with dlog.session(".decl edge(x: number, y: number)", {{"edge": [(1, 2)]}}, state="graph"):
    pass
"""


def _state(meaning: str, lines: str, more: str = "", varies: bool = False) -> Example:
    return python(meaning, _STATE.format(more=more and more + "\n") + lines, varies)


STATES: Final[dict[str, Example]] = {
    "bad-sync": python(
        "`sync` does not say when the log is forced to the disk: always, often or never.",
        """
import dlog

dlog.session(".decl p(x: number)", state="numbers", sync="sometimes")
""",
    ),
    "not-damaged": _state(
        "`dlog state repair --without` names a relation whose rows are not damaged: there is nothing to give up.",
        """from dlog.sessions.persistence.inspection import repair_state

repair_state("graph", ["edge"])  # as `dlog state repair graph --without edge`""",
    ),
    "state-corrupt": _state(
        "A file of the state is not what was written. `dlog state check` lists all damage, `dlog state repair` brings back "
        "what can be brought back.",
        """manifest = Path("graph/manifest.json")
manifest.write_text(manifest.read_text().replace('"round": 1', '"round": 7'))
dlog.session(None, state="graph")""",
        "from pathlib import Path",
    ),
    "state-file": run(
        "The system refuses a file of the state, and says why: is the disk full, may you write there?",
        "dlog repl --state notes.txt",
        ("notes.txt", "a file, no folder\n"),
        varies=True,
    ),
    "state-foreign": run(
        "The folder has files of others: a state takes an empty one, or one that is not there yet.",
        "dlog repl --state notes",
        ("notes/letter.txt", "Dear\n"),
    ),
    "state-locked": _state(
        "Another session has the state open: one at a time has the folder.",
        """first = dlog.session(None, state="graph")
dlog.session(None, state="graph")""",
        varies=True,
    ),
    "state-missing": run(
        "There is no state in the folder: name another one.",
        "dlog state check graph",
    ),
    "state-program": _state(
        "The state has rows of relations that the program does not declare, or declares with other types.",
        'dlog.session(".decl edge(x: number, y: symbol)", state="graph")',
    ),
    "state-removed": _state(
        "The folder of the state was removed while it was open: nothing can be saved in it any more.",
        """session = dlog.session(None, state="graph")
shutil.rmtree("graph")
session.insert("edge", (2, 3))
session.commit()""",
        "import shutil",
    ),
    "state-version": untold(
        "The state was written by a version of dlog that this one does not read: open it with that one.",
        "it takes a state of a later dlog",
    ),
    "text-too-long": untold(
        "The text of the program is longer than a state keeps: have its facts in files.",
        "it takes a program of 256 MiB",
    ),
}
