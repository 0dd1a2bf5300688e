"""A dataflow and its rules, over the same random changes of inputs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import dlog
from dlog.dataflow import Collection, Dataflow, Input

Row = tuple[Any, ...]
RowMaker = Callable[[random.Random], Row]


class Compared:
    """Outputs of a dataflow, captured, and the rules for them. `rows` makes random rows of each input, by name."""

    def __init__(
        self, flow: Dataflow, inputs: list[Input], outputs: Mapping[str, Collection], rows: Mapping[str, RowMaker], *sets: str
    ) -> None:
        self.flow, self.inputs, self.rows, self.sets = flow, {str(each.name): each for each in inputs}, rows, sets
        self.captured = {name: each.capture() for name, each in outputs.items()}
        self.rules = dlog.rules(sets=sets, **outputs)
        self.there: dict[str, Counter[Row]] = {name: Counter() for name in self.inputs}

    def changes(self, rng: random.Random, size: int) -> dict[str, Counter[Row]]:
        """Changes of how often rows are there, which the dataflow has staged; a set has none twice, no input any less than
        never."""
        found: dict[str, Counter[Row]] = {}
        for name, make in self.rows.items():
            there, before = self.there[name], Counter(self.there[name])
            for _ in range(size):
                if there and rng.random() < 0.35:
                    there[rng.choice(list(there))] -= 1
                else:
                    there[make(rng)] += 1
                for row in [row for row, number in there.items() if number <= 0]:
                    del there[row]
                if name in self.sets:
                    there.update({row: 1 - number for row, number in there.items()})
            diffs = Counter(there)
            diffs.subtract(before)
            found[name] = Counter({row: diff for row, diff in diffs.items() if diff})
            if found[name]:
                self.inputs[name].update(list(found[name]), list(found[name].values()))
        return found

    def check(self, results: Any) -> None:
        for name, captured in self.captured.items():
            assert shown(self.rules.counts(results, name)) == shown(captured.counts()), f"{name}:\n{self.rules.text}"

    def check_rounds(self, rounds: int = 6, size: int = 8, seed: int = 5, **options: Any) -> None:
        """Compares a session after each round, and a run with the rows of the last one."""
        rng, filled = random.Random(seed), set()
        with closing(self.rules.session(**options)) as s:
            for _ in range(rounds):
                stage(s, self.changes(rng, size))
                self.flow.commit()
                s.commit()
                self.check(s)
                filled |= {name for name, captured in self.captured.items() if captured.counts()}
        assert filled == self.captured.keys()
        self.check_run(**options)

    def check_run(self, **options: Any) -> None:
        rows = {name: list(there.elements()) for name, there in self.there.items()}
        self.check(self.rules.run(rows, **options))


def shown(counts: Mapping[Row, int]) -> dict[str, int]:
    """Counts by the text of rows, in which NaN is equal to itself, and zeros differ by their sign."""
    return {repr(row): number for row, number in counts.items()}


def stage(s: Any, changes: Mapping[str, Counter[Row]]) -> None:
    """Stages changes in a session."""
    for name, diffs in changes.items():
        for sign in (-1, 1):
            rows = [row for row, diff in diffs.items() for _ in range(diff * sign)]
            if rows:
                s.update(name, rows, sign)


def pairs(nodes: int) -> RowMaker:
    return lambda rng: (rng.randrange(nodes), rng.randrange(nodes))


def singles(nodes: int) -> RowMaker:
    return lambda rng: (rng.randrange(nodes),)
