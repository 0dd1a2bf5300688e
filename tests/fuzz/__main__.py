"""`python -m tests.fuzz`: exit code 1 if anything is found.

python -m tests.fuzz --minutes 60          # seed 0, from subject 0 on, in one process
python -m tests.fuzz --kind files          # only files of facts and streams of changes; or only programs
python -m tests.fuzz --seed 0 --only 1234  # one subject, with its text and what becomes of it
python -m tests.fuzz --souffle PATH        # random programs, whose rows must be those of this interpreter

Findings that raise the same at the same place are one, shown with the smallest text that was found by leaving lines and tokens
out. What takes too long is counted and named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.children import Child
from tests.fuzz.search import KINDS, kind_of, search, show


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first subject")
    parser.add_argument("--kind", choices=sorted(KINDS), help="of subjects; default: all kinds")
    parser.add_argument("--only", type=int, help="try this subject alone and show it")
    parser.add_argument("--souffle", type=Path, metavar="PATH", help="compare with this interpreter instead")
    given = parser.parse_args(arguments)
    if given.souffle is not None:
        from tests.fuzz.souffle import compare

        return 1 if compare(given.souffle, given.seed, given.minutes) else 0
    if given.only is not None:
        return _try_one(given.seed, given.only, given.kind)
    return 1 if search(given.seed, given.first, given.minutes, None, only=given.kind) else 0


def _try_one(seed: int, number: int, only: str | None) -> int:
    kind = KINDS[kind_of(number, only)]
    subject = kind.mutant(seed, number)
    child = Child(kind.attempt)
    outcome = child.attempt(subject)
    child.stop()
    show(f"{subject}\n{outcome.end}\n{outcome.detail}")
    return int(outcome.is_finding)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
