"""FlowLog's incremental mode on a stream of changes: `python -m tests.bench.rounds_flowlog PROGRAM FOLDER PHASES` prints what a
run tells, as the program in Rust does (rust/differential/src/rounds.rs, which reads the same files).

It is told by lines on its standard input, a commit for each round, and says what each commit took, the reading of its lines not
counted, but with the changes of the result, which it prints. It has no call for many rounds: one of 1,000 is as many commits.
A whole run commits each change of the stream, which takes minutes, of components more than is given by default (--timeout).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.engine_datatoad import seconds
from tests.bench.engine_flowlog import compiled
from tests.bench.inputs import Rows
from tests.bench.rounds_twins import checksum

PROGRAMS = Path(__file__).parent / "programs" / "rounds"
CHANGE = re.compile(rb"  t=(\d+)  data=\((\d+)(?:, (\d+))?\)  diff=([+-]\d+)")


def command(name: str, folder: Path, root: int, phases: str) -> list[str]:
    """What measures a program of `programs/rounds`; raises `NotMeasured` where its compiler is absent."""
    own = PROGRAMS / f"{name}.flowlog.dl"
    text = (own if own.exists() else PROGRAMS / f"{name}.dl").read_text(encoding="ascii")
    write_facts(folder, range(root) if name == "components" else [root])
    program = compiled(text, folder, "--mode", "datalog-inc", "-D", "-")
    return [sys.executable, "-m", "tests.bench.rounds_flowlog", str(program), str(folder), phases]


def write_facts(folder: Path, nodes: range | list[int]) -> None:
    """The first edges and the root, or all nodes, as files that it reads."""
    edges = np.fromfile(folder / "first.u32", "<u4").reshape(-1, 2).tolist()
    (folder / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in edges), encoding="ascii")
    for name in ("root", "node"):
        (folder / f"{name}.facts").write_text("".join(f"{x}\n" for x in nodes), encoding="ascii")


def run(program: str, folder: Path, phases: list[tuple[int, int]]) -> dict[str, Any]:
    """One process through all phases."""
    rounds = sum(per_call * calls for per_call, calls in phases)
    changes = np.fromfile(folder / "changes.i32", "<i4").reshape(-1, 4)[:rounds]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as times, tempfile.TemporaryFile() as rows:
        given.write(lines(changes).encode())
        given.seek(0)
        subprocess.run([program, "-w", "1"], stdin=given, stdout=times, stderr=rows, check=True)
        times.seek(0)
        rows.seek(0)
        load, commits = told(times.read().decode())
        return {"load": load, "calls": calls_of(commits, phases), **answer(rows.read())}


def lines(changes: Rows) -> str:
    """
    >>> lines(np.array([(0, -1, 5, 6)]))
    'put edge "5\\\\t6" -1\\ncommit\\nquit\\n'
    """
    return "".join(f'put edge "{x}\\t{y}" {diff}\ncommit\n' for _, diff, x, y in changes.tolist()) + "quit\n"


def told(stdout: str) -> tuple[float, list[int]]:
    """Seconds of the load, files read, and nanoseconds of each commit.

    >>> told("7.5ms:\\tDataflow assembled\\n(queued put)\\n120µs:\\tCommitted & executed\\n")
    (0.0075, [120000])
    """
    load = re.findall(r"(\S+):\tDataflow assembled", stdout)
    commits = re.findall(r"(\S+):\tCommitted & executed", stdout)
    return seconds(load[0]), [round(seconds(commit) * 1e9) for commit in commits]


def calls_of(commits: list[int], phases: list[tuple[int, int]]) -> list[list[int]]:
    """Nanoseconds of each call by phase: of all its commits.

    >>> calls_of([1, 2, 3, 4, 5, 6], [(1, 2), (2, 2)])
    [[1, 2], [7, 11]]
    """
    at, found = 0, []
    for per_call, count in phases:
        last = at + per_call * count
        found.append(np.array(commits[at:last]).reshape(count, per_call).sum(1).tolist())
        at = last
    return found


def answer(printed: bytes) -> dict[str, int]:
    """Rows and their checksum when all is over, and how many changes came after the load, which is its round 0."""
    found = np.array([[int(part or 0) for part in change] for change in CHANGE.findall(printed)], np.int64).reshape(-1, 4)
    rounds, rows, diffs = found[:, 0], found[:, 1:3], found[:, 3]
    come, gone = (np.repeat(rows, np.maximum(sign * diffs, 0), axis=0) for sign in (1, -1))
    check = (checksum(come) - checksum(gone)) % 2**64
    return {"rows": len(come) - len(gone), "check": check, "changes": int((rounds > 0).sum())}


def phases_of(text: str) -> list[tuple[int, int]]:
    return [(int(per_call), int(calls)) for per_call, calls in (part.split("x") for part in text.split(","))]


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), phases_of(sys.argv[3]))))
