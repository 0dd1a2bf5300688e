"""A state whose every round is known beforehand, and what can be recovered of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.state.entries import Entries
from dlog.engine.state.store import Store, Sync
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.cursor import Cursor
from dlog.engine.trace.spine import Spine
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates

NUMBERS = (Kind.NUMBER, Kind.NUMBER)
Pair = tuple[int, int]
State = tuple[int, set[Pair], set[Pair], list[bytes]]
"""The last round, the rows of `kept` and of `moving`, the symbols."""
WINDOW = 5


def changes_of(round: int) -> dict[str, list[tuple[Pair, int]]]:
    """`kept` gains rows for ever; `moving` loses those that are WINDOW rounds old."""
    kept = [((round, k), 1) for k in range(round % 4)]
    moving = [((round % 7, round), 1)]
    if round > WINDOW:
        moving.append((((round - WINDOW) % 7, round - WINDOW), -1))
    return {"kept": kept, "moving": moving}


def symbols_of(round: int) -> list[bytes]:
    return [f"text {round}".encode()] if round % 3 else []


def expected(round: int) -> State:
    kept = {(r, k) for r in range(1, round + 1) for k in range(r % 4)}
    moving = {(r % 7, r) for r in range(max(1, round - WINDOW + 1), round + 1)}
    return round, kept, moving, [text for r in range(1, round + 1) for text in symbols_of(r)]


def updates(changes: list[tuple[Pair, int]], round: int) -> Updates:
    columns = tuple(np.array([row[c] for row, _ in changes], np.int64) for c in range(2))
    return Updates(columns, np.array([d for _, d in changes], np.int64), np.full(len(changes), round, np.int64))


class Writer:
    """Appends the rounds that come next and writes checkpoints: `kept` as a table, `moving` as the batches of a spine."""

    def __init__(self, folder: Path, sync: Sync) -> None:
        self.store = Store.open(folder, "program", sync=sync)
        self.round, self.kept, moving, self.symbols = recovered(self.store)
        self.spine = Spine(2, 1)
        self.handle = self.spine.handle()
        self._insert([(row, 1) for row in sorted(moving)], self.round)

    def _insert(self, changes: list[tuple[Pair, int]], round: int) -> None:
        columns = updates(changes, round)
        upper = Antichain.at(round + 1)
        self.spine.insert(Batch.of(self.spine.upper, upper, columns.columns, (round,), columns.diffs))
        self.handle.set_logical_compaction(Antichain.at(round))

    def commit(self) -> int:
        round = self.round + 1
        changes = changes_of(round)
        texts = {"symbols": Entries.of(symbols_of(round))} if symbols_of(round) else {}
        self.store.append(round, {name: updates(listed, round) for name, listed in changes.items()}, texts)
        self.round = round
        self.kept |= {row for row, _ in changes["kept"]}
        self.symbols += symbols_of(round)
        self._insert(changes["moving"], round)
        return round

    def checkpoint(self) -> Iterator[None]:
        rows = np.array(sorted(self.kept), np.int64).reshape(-1, 2)
        kept = Table(NUMBERS, (rows[:, 0].copy(), rows[:, 1].copy()))
        relations = {"kept": kept, "moving": (NUMBERS, self.spine.batches)}
        return self.store.checkpoint_steps(self.round, relations, {"symbols": Entries.of(self.symbols)})


def recovered(store: Store) -> State:
    """Checkpoint and replayed rounds together."""
    kept, moving = set[Pair](), set[Pair]()
    if store.relations:
        table, history = store.relations["kept"].table(), store.relations["moving"]
        kept = set(zip(*(c.tolist() for c in table.columns), strict=True))
        round = store.checkpoint_round
        cursor = Cursor(2, 1, history.batches, Antichain.at(round), Antichain.at(round + 1))
        found = cursor.read_at((round,))
        assert set(found.diffs.tolist()) <= {1}
        moving = set(zip(*(c.tolist() for c in found.columns), strict=True))
    symbols = store.tables["symbols"].pieces() if "symbols" in store.tables else []
    last = store.checkpoint_round
    for logged in store.rounds():
        assert logged.round == last + 1
        last = logged.round
        for name, rows in (("kept", kept), ("moving", moving)):
            change = logged.changes[name]
            for x, y, diff in zip(*(c.tolist() for c in change.columns), change.diffs.tolist(), strict=True):
                (rows.add if diff > 0 else rows.remove)((x, y))
        if "symbols" in logged.tables:
            symbols += logged.tables["symbols"].pieces()
    assert last == store.round
    return last, kept, moving, symbols


def recover(folder: Path) -> State:
    with Store.open(folder, "program") as store:
        return recovered(store)
