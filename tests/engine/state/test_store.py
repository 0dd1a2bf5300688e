"""Durable state: appended rounds, checkpoints, layers and tables come back as they were."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.state import log
from dlog.engine.state.entries import Entries
from dlog.engine.state.store import Store
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.spine import Spine
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import InternalError
from tests.engine.kernels.workbench import WORDS
from tests.engine.state.durable_model import Writer, expected, recover
from tests.engine.state.states import write
from tests.engine.trace.model import batch_of, rows_of

# ------------------------------------------------------------------------------------------------------- opening and replay


def test_a_new_state_is_empty(tmp_path: Path) -> None:
    with Store.open(tmp_path / "state", "program") as store:
        assert (store.round, store.checkpoint_round, store.relations, store.tables) == (0, 0, {}, {})
        assert list(store.rounds()) == []


@pytest.mark.parametrize("sync", ["always", "often", "never"])
def test_appended_rounds_come_back(tmp_path: Path, sync: str) -> None:
    writer = Writer(tmp_path, sync)  # type: ignore[arg-type]
    for _ in range(12):
        writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(12)


@pytest.mark.parametrize("after", [1, 5, 12])
def test_checkpoints_take_the_place_of_the_log(tmp_path: Path, after: int) -> None:
    write(tmp_path, 12, after)
    assert recover(tmp_path) == expected(12)
    with Store.open(tmp_path, "program") as store:
        assert store.checkpoint_round == after
        assert len(list(store.rounds())) == 12 - after


def test_many_rounds_in_one_append_keep_their_numbers(tmp_path: Path) -> None:
    changes = Updates((np.array([5, 6, 5]),), np.array([1, 1, -1]), np.array([3, 4, 9]))
    with Store.open(tmp_path, "program") as store:
        store.append(9, {"edge": changes})
    with Store.open(tmp_path, "program") as store:
        (logged,) = store.rounds()
    assert (logged.round, store.round) == (9, 9)
    assert [c.tolist() for c in (*logged.changes["edge"].columns, logged.changes["edge"].diffs)] == [[5, 6, 5], [1, 1, -1]]
    assert logged.changes["edge"].rounds.tolist() == [3, 4, 9]


def test_rounds_only_go_forward(tmp_path: Path) -> None:
    with Store.open(tmp_path, "program") as store:
        store.append(3, {})
        with pytest.raises(InternalError, match="round 3 is appended after round 3"):
            store.append(3, {})
        with pytest.raises(InternalError, match="checkpoint of round 2"):
            store.checkpoint(2, {})


def test_rounds_may_be_appended_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(6):
        writer.commit()
    steps = writer.checkpoint()
    for _ in steps:
        writer.commit()
    assert writer.round > 8
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(writer.round)
    with Store.open(tmp_path, "program") as store:
        assert store.checkpoint_round == 6


def test_a_checkpoint_may_be_given_up(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(6):
        writer.commit()
    next(iter(writer.checkpoint()))
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(7)
    assert not list(tmp_path.glob("*.layer"))


def test_layers_on_disk_are_not_written_again(tmp_path: Path) -> None:
    write(tmp_path, 30, 30)
    before = {path.name for path in tmp_path.glob("*.layer")}
    with Store.open(tmp_path, "program") as store:
        kept, moving = store.relations["kept"], store.relations["moving"]
        store.append(31, {})
        store.checkpoint(31, {"kept": (kept.kinds, kept.batches), "moving": (moving.kinds, moving.batches)})
    assert {path.name for path in tmp_path.glob("*.layer")} == before


def test_files_that_no_longer_count_are_removed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(5):
        writer.commit()
        for _ in writer.checkpoint():
            pass
    assert len(list(tmp_path.glob("*.log"))) == 1
    assert len(list(tmp_path.glob("*.layer"))) <= 1 + len(writer.spine.batches) * 2
    size = writer.store.log_bytes
    writer.commit()
    assert writer.store.log_bytes > size
    writer.store.close()


def test_mapped_layers_outlive_their_files(tmp_path: Path) -> None:
    write(tmp_path, 20, 20)
    with Store.open(tmp_path, "program") as store:
        table = store.relations["kept"].table()
        store.append(21, {})
        store.checkpoint(21, {})
        assert not list(tmp_path.glob("*.layer"))
    assert set(zip(*(c.tolist() for c in table.columns), strict=True)) == expected(20)[1]


def test_a_changed_program_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, 3, 2)
    with Store.open(tmp_path, "another") as store:
        assert store.changed and store.stored_fingerprint == "program"
        store.checkpoint(3, {})
        assert not store.changed
    with Store.open(tmp_path, "program") as store:
        assert store.changed


# ---------------------------------------------------------------------------------------------------------- what is stored


def test_tables_of_all_kinds_come_back(tmp_path: Path) -> None:
    columns = (
        np.array([-(2**40), 7, 2**62]),
        np.array([2**64 - 1, 0, 1], np.uint64),
        np.array([0.5, -0.0, np.inf]),
        np.array([3, 1, 2], np.int32),
        np.array([0, 0, 9], np.int32),
    )
    kinds = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL, Kind.RECORD)
    with Store.open(tmp_path, "program") as store:
        store.append(1, {})
        store.checkpoint(1, {"all": Table(kinds, columns), "none": Table(kinds[:1], (np.empty(0, np.int64),))})
    with Store.open(tmp_path, "program") as store:
        table = store.relations["all"].table()
        assert store.relations["none"].table().rows == 0
    assert table.kinds == kinds
    assert [c.dtype for c in table.columns] == [np.dtype(t) for t in (np.int64, np.uint64, np.float64, np.int32, np.int32)]
    assert sorted(zip(*(c.tolist() for c in table.columns), strict=True)) == sorted(
        zip(*(c.tolist() for c in columns), strict=True)
    )


def test_rows_of_a_table_are_stored_once(tmp_path: Path) -> None:
    with Store.open(tmp_path, "program") as store:
        store.append(1, {})
        twice = Table((Kind.NUMBER,), (np.array([4, 4, 1]),))
        store.checkpoint(1, {"twice": twice, "yes": Table((), (), 3), "no": Table((), (), 0)})
    with Store.open(tmp_path, "program") as store:
        assert store.relations["twice"].table().columns[0].tolist() == [1, 4]
        assert [store.relations[name].table().rows for name in ("yes", "no")] == [1, 0]


def test_histories_come_back_with_their_times(tmp_path: Path) -> None:
    spine = Spine(2, 2)
    handle = spine.handle()
    rng = np.random.default_rng(0)
    listed = []
    for round in range(8):
        made = [((int(x), int(y)), (round, int(i)), int(d)) for x, y, i, d in rng.integers(1, 4, (300, 4))]
        listed += made
        spine.insert(batch_of(made, 2, Antichain.at(round, 0), Antichain.at(round + 1, 0)))
    kinds = (Kind.NUMBER, Kind.NUMBER)
    with Store.open(tmp_path, "program") as store:
        store.append(7, {})
        store.checkpoint(7, {"edge": (kinds, spine.batches)})
    other = Spine(2, 2)
    with Store.open(tmp_path, "program") as store:
        for batch in store.relations["edge"].batches:
            other.insert(batch)
        with pytest.raises(ValueError, match="has a history"):
            store.relations["edge"].table()
    again = other.handle()
    for time in itertools.product(range(8), range(4)):
        assert rows_of(again.read_at(time)) == rows_of(handle.read_at(time))
    other.settle()
    assert rows_of(again.read_at((7, 3))) == rows_of(handle.read_at((7, 3)))


arrays = st.lists(WORDS, max_size=6)
pieces = st.lists(st.binary(max_size=5), max_size=5)


names = st.text(max_size=5)


@given(st.integers(-5, 2**62), st.dictionaries(names, st.tuples(arrays, arrays)), st.dictionaries(names, pieces))
def test_records_say_what_was_appended(
    round: int, changes: dict[str, tuple[list[int], list[int]]], texts: dict[str, list[bytes]]
) -> None:
    given_changes = {
        name: Updates((np.array(a[:n], np.int64),), np.array(b[:n], np.int64), np.arange(n))
        for name, (a, b) in changes.items()
        for n in [min(len(a), len(b))]
    }
    record = log.encode(round, given_changes, {name: Entries.of(listed) for name, listed in texts.items()})
    found = log.decode(memoryview(record), round)
    assert found.round == round
    assert list(found.changes) == list(changes) and {n: e.pieces() for n, e in found.tables.items()} == texts
    for name, change in found.changes.items():
        same = (*given_changes[name].columns, given_changes[name].diffs, given_changes[name].rounds)
        for a, b in zip((*change.columns, change.diffs, change.rounds), same, strict=True):
            assert a.tolist() == b.tolist() and a.dtype == np.int64
