"""Drives the tests of a checkout of Soufflé's repository.

    python -m tests.souffle DIR                    # all of them: a table of what does not hold, and the counts
    python -m tests.souffle DIR -k magic --all     # those with `magic` in their names, also what holds
    python -m tests.souffle DIR --list             # what there is
    python -m tests.souffle DIR --json FILE        # the outcomes for programs
    python -m tests.souffle DIR --command /path/to/souffle   # the same of another program that takes Soufflé's flags

The counts are of the tests that need neither functors in C++ nor a prompt; those follow in lines of their own. Exit code 1 if
one of them does not hold.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.souffle.attempts import GIB, End, Limits, Outcome, outcomes
from tests.souffle.cases import Case, cases


def group(case: Case) -> str:
    """What a test is counted under."""
    if case.functors:
        return "with functors in C++"
    if case.dialog is not None:
        return "with a prompt"
    return "negative" if case.negative else "positive"


def table(found: Sequence[Outcome], everything: bool) -> str:
    """A line for each test that does not hold, or for all."""
    shown = sorted((o for o in found if everything or o.end is not End.HOLDS), key=lambda o: (o.end, o.case.name))
    width = max((len(o.case.name) for o in shown), default=0)
    return "\n".join(f"{o.end:16}  {o.case.name:{width}}  {o.seconds:5.1f} s  {o.detail[:200]}".rstrip() for o in shown)


def summary(found: Sequence[Outcome]) -> str:
    """The counts of each group."""
    lines = []
    for name in ("positive", "negative", "with functors in C++", "with a prompt"):
        own = [o for o in found if group(o.case) == name]
        ends = Counter(o.end for o in own)
        others = [f"{count} {end}" for end, count in sorted(ends.items()) if end is not End.HOLDS]
        if for_want := sum(o.for_want for o in own):
            others.append(f"{for_want} of the former only because something is not supported")
        if own:
            lines.append("; ".join([f"{name}: {ends[End.HOLDS]} of {len(own)} hold", *others]))
    return "\n".join(lines)


def as_json(found: Sequence[Outcome]) -> str:
    rows = [
        {"name": o.case.name, "group": group(o.case), "end": o.end.value, "detail": o.detail, "seconds": round(o.seconds, 3)}
        for o in sorted(found, key=lambda o: o.case.name)
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def _chosen(checkout: Path, words: Sequence[str]) -> list[Case]:
    return [case for case in cases(checkout) if not words or any(word in case.name for word in words)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.souffle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", metavar="DIR", type=Path, help="a checkout of Soufflé's repository")
    parser.add_argument("-k", metavar="NAME", action="append", default=[], help="only tests with NAME in theirs; repeatable")
    parser.add_argument("--list", action="store_true", help="print what there is, and run nothing")
    parser.add_argument("--all", action="store_true", help="show what holds, too")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the outcomes to a file")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one test (60)")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB of addresses for one test (8)")
    parser.add_argument("--processes", type=int, default=2, help="tests at the same time (2)")
    parser.add_argument("--command", default="", help="another program to run, with Soufflé's flags")
    options = parser.parse_args(arguments)
    chosen = _chosen(options.checkout.resolve(), options.k)
    if options.list:
        print("\n".join(f"{case.name}  ({group(case)})" for case in chosen))
        return 0
    limits = Limits(options.seconds, int(options.memory * GIB), options.processes, tuple(shlex.split(options.command)))
    with tempfile.TemporaryDirectory(prefix="dlog-souffle-") as scratch:
        found = list(outcomes(chosen, Path(scratch), limits))
    print(f"{table(found, options.all)}\n\n{summary(found)}".strip())
    if options.json is not None:
        options.json.write_text(as_json(found), encoding="utf-8")
    return 1 if any(outcome.end is not End.HOLDS for outcome in found) else 0


if __name__ == "__main__":
    sys.exit(main())
