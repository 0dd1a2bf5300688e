"""Commits rounds of random changes to a state, and says each, until it is killed: `python -m tests.dlog.as_rules.killed
FOLDER`."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from tests.dlog.as_rules.cases import searches
from tests.dlog.as_rules.compared import Compared, stage

SEED, SIZE = 23, 6


def rounds(both: Compared) -> Iterator[dict]:
    """The changes of each round, which the dataflow does when the next one is asked for."""
    rng = random.Random(SEED)
    while True:
        yield both.changes(rng, SIZE)
        both.flow.commit()


def main(folder: str) -> None:
    both = searches("roots")
    with both.rules.session(state=folder, threads=1) as s:
        for changed in rounds(both):
            stage(s, changed)
            print(s.commit().number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
