"""Durable state: what was acknowledged is there after anything that may happen to the process; damage is named."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.state import files, log, manifest
from dlog.engine.state.entries import Entries
from dlog.engine.state.images import map_image, write_image
from dlog.engine.state.records import HEADER_SIZE, Framing, Header, Record
from dlog.engine.state.repair import inspect, repair
from dlog.engine.state.segments import read_log, segment_path
from dlog.engine.state.store import Store
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.spine import Spine
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError, InternalError, render_all
from tests.engine.kernels.workbench import JIT, WORDS
from tests.engine.state.durable_model import Writer, expected, recover, updates
from tests.engine.trace.model import batch_of, rows_of

ROOT = Path(__file__).parents[3]


def code_of(folder: Path) -> str:
    """The code of the error that opening gives."""
    with pytest.raises(DlogError) as refused:
        Store.open(folder, "program")
    return refused.value.diagnostics[0].code


def write(folder: Path, rounds: int, checkpoint_after: int = 0, killed: bool = False) -> None:
    """A state of so many rounds: closed, or as a process leaves it that is killed."""
    writer = Writer(folder.parent / "alive" if killed else folder, "never")
    for _ in range(rounds):
        if writer.commit() == checkpoint_after:
            for _ in writer.checkpoint():
                pass
    if killed:
        shutil.copytree(folder.parent / "alive", folder)
    writer.store.close()


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


# ------------------------------------------------------------------------------------------------------------------- damage


def records_of(folder: Path) -> list[Record]:
    """Those of the first segment."""
    (segment,) = read_log(folder, manifest.read_manifest(folder).start)  # type: ignore[union-attr]
    assert segment.damage is None
    return list(segment.records)


@pytest.mark.parametrize("unwritten", ["cut off", "zeros"])
def test_a_torn_record_at_the_end_is_ignored(tmp_path: Path, unwritten: str) -> None:
    """The log ends anywhere, or has zeros from there on: the rounds whose records are whole are there, and appending goes on
    behind them."""
    write(tmp_path / "killed", 4, killed=True)
    content = segment_path(tmp_path / "killed", 1).read_bytes()
    ends = [record.next for record in records_of(tmp_path / "killed")]
    assert len(ends) == 4 and ends[-1] == len(content)
    for size in sorted({*range(HEADER_SIZE, len(content), 19), *ends[:-1], *(end - 1 for end in ends)}):
        folder = tmp_path / str(size)
        shutil.copytree(tmp_path / "killed", folder)
        rest = b"" if unwritten == "cut off" else bytes(len(content) - size)
        segment_path(folder, 1).write_bytes(content[:size] + rest)
        whole = sum(end <= size for end in ends)
        with Store.open(folder, "program", sync="never") as store:
            assert store.round == whole
            store.append(store.round + 1, {"kept": updates([((1, 1), 1)], 1)})
        with Store.open(folder, "program") as store:
            assert len(list(store.rounds())) == whole + 1


def error_of(folder: Path) -> str:
    """The error that opening gives, as text."""
    with pytest.raises(DlogError) as refused:
        Store.open(folder, "program")
    return render_all(refused.value.diagnostics)


def test_what_no_crash_leaves_behind_the_last_record_is_named(tmp_path: Path) -> None:
    write(tmp_path / "killed", 4, killed=True)
    path = segment_path(tmp_path / "killed", 1)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\x07garbage" * 9)
    assert f"the record at byte {size} of the log does not fit its checksum" in error_of(tmp_path / "killed")


def test_a_log_that_is_shorter_than_it_was_when_it_was_closed_is_named(tmp_path: Path) -> None:
    write(tmp_path, 4)
    path = segment_path(tmp_path, 1)
    content = path.read_bytes()
    ends = [0, *(record.next for record in records_of(tmp_path))]
    for size in (len(content) - 1, ends[3], ends[1] + 7):
        path.write_bytes(content[:size])
        expected = f"the log ends at byte {size}, and had {len(content)} bytes at least"
        assert expected in error_of(tmp_path)
        assert f"the rounds up to {sum(end <= size for end in ends[1:])} are intact" in error_of(tmp_path)
    path.write_bytes(content)
    assert recover(tmp_path)[0] == 4


def flip(path: Path, at: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize("part", ["head", "payload"])
def test_a_damaged_record_in_the_middle_is_named_with_its_rounds(tmp_path: Path, part: str) -> None:
    write(tmp_path / "killed", 9, killed=True)
    records = records_of(tmp_path / "killed")
    flip(segment_path(tmp_path / "killed", 1), records[2].next + 5 if part == "head" else records[3].start + 5)
    folder = tmp_path / "killed"
    assert (
        error_of(folder)
        == f"""error: the state is damaged: the record at byte {records[2].next} of the log does not fit its checksum
 --> {folder}/00000001.log
  = up to round 3 all rounds are intact
  = the record has round 4
  = behind it rounds 5 to 9 can be read, which do not count without it
  = `dlog state check {folder}` lists all damage, `dlog state repair {folder}` brings back what can be brought back
  = `dlog state dump {folder} OUT` writes what can be read to files"""
    )


def test_segments_of_the_log_belong_together(tmp_path: Path) -> None:
    """One that was cut short, one of another state, one from before a copy was put back, and one that is gone."""
    for name, rounds in (("one", 6), ("other", 5)):
        writer = Writer(tmp_path / f"{name}-alive", "never")
        for _ in range(rounds):
            writer.commit()
        next(iter(writer.checkpoint()))
        writer.commit()
        shutil.copytree(tmp_path / f"{name}-alive", tmp_path / name)
        writer.store.close()
    one, two = (segment_path(tmp_path / "one", n) for n in (1, 2))
    first, second = one.read_bytes(), two.read_bytes()
    end = len(first)
    one.write_bytes(first[:-1])
    assert f"this segment of the log ends at byte {end - 1}, and had {end} bytes" in error_of(tmp_path / "one")
    one.write_bytes(first + b"x")
    assert f"this segment of the log has {end + 1} bytes, and had {end}" in error_of(tmp_path / "one")
    one.write_bytes(first)
    two.write_bytes(segment_path(tmp_path / "other", 2).read_bytes())
    assert "this segment of the log is another one's, or another state's" in error_of(tmp_path / "one")
    two.unlink()
    with Store.open(tmp_path / "one", "program") as store:
        assert store.round == 6  # as it is when a segment has not been begun
    segment_path(tmp_path / "one", 3).write_bytes(second)
    assert "00000002.log" in error_of(tmp_path / "one") and "is missing" in error_of(tmp_path / "one")


def test_rounds_that_are_missing_between_segments_are_noticed(tmp_path: Path) -> None:
    """Even where the header that says what was before is damaged, and made anew from what there is."""
    writer = Writer(tmp_path / "alive", "never")
    for _ in range(6):
        writer.commit()
    next(iter(writer.checkpoint()))
    for _ in range(3):
        writer.commit()
    folder = tmp_path / "state"
    shutil.copytree(tmp_path / "alive", folder)
    writer.store.close()
    one, two = (segment_path(folder, n) for n in (1, 2))
    ends = [record.next for record in read_log(folder, manifest.read_manifest(folder).start)[0].records]  # type: ignore[union-attr]
    one.write_bytes(one.read_bytes()[: ends[3]])
    state = manifest.read_manifest(folder).state  # type: ignore[union-attr]
    two.write_bytes(Header(state, 2, 4, ends[3]).encode() + two.read_bytes()[HEADER_SIZE:])
    assert "the first record of the log follows on round 6, not on 4" in error_of(folder)
    flip(two, 9)
    assert "a header of the log does not fit its checksum" in error_of(folder)
    assert repair(inspect(folder), lambda name: False, {})[:2] == [
        "the header of 00000002.log is written anew",
        "lost: rounds 5 to 9; the state is at round 4",
    ]
    assert recover(folder) == expected(4)


def test_a_segment_whose_making_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "alive", "never")
    for _ in range(6):
        writer.commit()
    next(iter(writer.checkpoint()))
    for size in range(HEADER_SIZE + 1):
        folder = tmp_path / str(size)
        shutil.copytree(tmp_path / "alive", folder)
        header = segment_path(folder, 2).read_bytes()
        assert len(header) == HEADER_SIZE
        segment_path(folder, 2).write_bytes(header[:size] if size % 2 else bytes(size))
        assert recover(folder) == expected(6)
        write(folder, 1)
        assert recover(folder) == expected(7)
    writer.store.close()


def is_believed(folder: Path, files_there: dict[str, bytes], name: str, at: int, bit: int) -> bool:
    """Whether a state with a flipped bit is opened and says something else than it did."""
    for other, content in files_there.items():
        (folder / other).write_bytes(content)
    flip(folder / name, at, bit)
    try:
        return recover(folder) != expected(30)
    except DlogError as error:
        return not all(d.code == "state-corrupt" and d.place.startswith(str(folder)) for d in error.diagnostics)


def believed(tmp_path: Path, every: int) -> list[tuple[str, int, int]]:
    """Of all bits of all files, one of so many: those that are believed when they are flipped."""
    write(tmp_path / "killed", 30, 20, killed=True)
    there = {p.name: p.read_bytes() for p in (tmp_path / "killed").iterdir() if p.name not in ("lock", "manifest.copy")}
    bits = [(name, at, bit) for name, content in sorted(there.items()) for at in range(len(content)) for bit in range(8)]
    folder = tmp_path / "flipped"
    folder.mkdir()
    return [bit for bit in bits[:: every] if is_believed(folder, there, *bit)]


def test_a_flipped_bit_is_never_believed(tmp_path: Path) -> None:
    assert believed(tmp_path, 97) == []


@pytest.mark.slow
def test_no_flipped_bit_is_ever_believed(tmp_path: Path) -> None:
    assert believed(tmp_path, 1) == []


def test_no_flipped_bit_of_an_image_is_ever_believed(tmp_path: Path) -> None:
    arrays = [[np.arange(20, dtype=np.int32), np.array([7])], [np.array([1, 300, 5], np.int64)]]
    file = write_image(tmp_path, "1.image", 3, "program", ({"what": "ever"}, arrays))
    whole = (tmp_path / "1.image").read_bytes()
    assert map_image(tmp_path, file) is not None
    for at, bit in itertools.product(range(len(whole)), range(8)):
        flip(tmp_path / "1.image", at, bit)
        assert map_image(tmp_path, file) is None
        (tmp_path / "1.image").write_bytes(whole[:at])
        assert map_image(tmp_path, file) is None
        (tmp_path / "1.image").write_bytes(whole)


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    write(tmp_path, 4)
    segment_path(tmp_path, 1).unlink()
    assert code_of(tmp_path) == "state-corrupt"


@pytest.mark.parametrize("checkpoint_after", [0, 3])
def test_a_state_without_its_manifest_is_left_as_it_is(tmp_path: Path, checkpoint_after: int) -> None:
    write(tmp_path, 4, checkpoint_after)
    kept = (tmp_path / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").unlink()
    assert code_of(tmp_path) == "state-corrupt"
    (tmp_path / "manifest.json").write_bytes(kept)
    assert recover(tmp_path) == expected(4)


def test_entries_that_end_before_they_begin_are_named(tmp_path: Path) -> None:
    with Store.open(tmp_path, "program") as store:
        store.append(1, {}, {"texts": Entries.of([b"one", b"two"])})
        store.checkpoint(1, {}, {"texts": Entries.of([b"one", b"two"])})
    ends = np.array([3_000_000, 6], np.int64)
    (tmp_path / "texts.ends").write_bytes(ends.tobytes())
    assert code_of(tmp_path) == "state-corrupt"


@pytest.mark.parametrize("suffix", [".log", ".layer"])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    write(tmp_path, 30, 30)
    read = files.to_read

    def denied(path: Path) -> object:
        if path.suffix == suffix:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read(path)

    monkeypatch.setattr(files, "to_read", denied)
    with pytest.raises(DlogError, match="cannot read the state: Permission denied") as refused:
        Store.open(tmp_path, "program")
    assert refused.value.diagnostics[0].place is not None and refused.value.diagnostics[0].place.endswith(suffix)


def test_a_missing_or_short_layer_is_named(tmp_path: Path) -> None:
    write(tmp_path, 20, 20)
    path = next(tmp_path.glob("*.layer"))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert code_of(tmp_path) == "state-corrupt"
    path.write_bytes(content + b"x")
    assert code_of(tmp_path) == "state-corrupt"
    path.unlink()
    assert code_of(tmp_path) == "state-corrupt"


def test_a_damaged_layer_is_named(tmp_path: Path) -> None:
    write(tmp_path, 20, 20)
    path = next(tmp_path.glob("*.layer"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert code_of(tmp_path) == "state-corrupt"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text[: len(text) // 2], "state-corrupt"),
        (lambda text: "[]", "state-corrupt"),
        (lambda text: text.replace('"round": 20', '"round": 21'), "state-corrupt"),
        (lambda text: text.replace('"version": 3', '"version": 7'), "state-corrupt"),
    ],
)
def test_a_damaged_manifest_is_named(tmp_path: Path, change: object, code: str) -> None:
    write(tmp_path, 20, 20)
    path = tmp_path / "manifest.json"
    changed = change(path.read_text())  # type: ignore[operator]
    assert changed != path.read_text()
    path.write_text(changed)
    assert code_of(tmp_path) == code


def test_the_manifest_can_be_read_by_people(tmp_path: Path) -> None:
    write(tmp_path, 20, 20)
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told["format"] == "dlog state" and told["round"] == 20
    assert told["relations"]["kept"]["batches"][0]["upper"] == [[21]]


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    assert code_of(tmp_path) == "state-foreign"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert code_of(tmp_path / "state") == "state-file"


def test_a_second_opener_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path, "program"):
        with pytest.raises(DlogError, match="in use") as refused:
            Store.open(tmp_path, "program")
        assert refused.value.diagnostics[0].notes == (f"process {os.getpid()} has it open",)
    Store.open(tmp_path, "program").close()


# -------------------------------------------------------------------------------------------------------- fault injection


class Crash(BaseException):
    """The process is gone."""


class FailingDisk:
    """Stands for the module os in `files`: from the given operation on, of those that change the disk, nothing happens any
    more; if it is a write, half of its bytes are written. With another `failure` only writing fails."""

    def __init__(self, operations: int, failure: BaseException | None = None) -> None:
        self.left, self.failure = operations, failure

    def __getattr__(self, name: str) -> object:
        real = getattr(os, name)
        if name not in ("write", "fsync", "ftruncate", "replace", "unlink"):
            return real

        def operation(*arguments: object) -> object:
            if self.failure is not None and name != "write":
                return real(*arguments)
            self.left -= 1
            if self.left == 0 and name == "write":
                os.write(arguments[0], bytes(arguments[1])[: len(bytes(arguments[1])) // 2])  # type: ignore[arg-type]
            if self.left <= 0:
                raise self.failure or Crash
            return real(*arguments)

        return operation


def scenario(folder: Path, acknowledged: list[int]) -> None:
    writer = Writer(folder, "always")
    steps = iter(())
    try:
        for round in range(1, 15):
            acknowledged.append(writer.commit())
            next(steps, None)
            if round % 5 == 0:
                steps = writer.checkpoint()  # type: ignore[assignment]
        acknowledged.append(99)
    finally:
        with suppress(Crash):  # the system closes a dead process's files
            writer.store.close()


def test_a_crash_at_any_operation_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes before each operation on the disk in turn, in the middle of each write."""
    for operations in itertools.count(1):
        folder = tmp_path / str(operations)
        acknowledged = [0]
        with monkeypatch.context() as patched:
            patched.setattr(files, "os", FailingDisk(operations))
            with suppress(Crash):
                scenario(folder, acknowledged)
        if acknowledged[-1] == 99:
            break
        with monkeypatch.context() as patched:  # and once more while the state is being opened
            patched.setattr(files, "os", FailingDisk(operations % 3 + 1))
            with suppress(Crash):
                recover(folder)
        found = recover(folder)
        assert acknowledged[-1] <= found[0] <= acknowledged[-1] + 1, operations
        assert found == expected(found[0]), operations
    assert operations > 60


def test_a_full_disk_is_told_and_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "os", FailingDisk(1, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        with pytest.raises(DlogError, match="No space left"):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    assert writer.store.round == 3
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(4)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["create", "sync_folder", "open_to_append"])
def test_a_segment_that_is_refused_leaves_the_one_before_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Rounds go on in the old segment, the last record of which a kill may tear."""
    writer = Writer(tmp_path, "never")
    writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, step, full)
        with pytest.raises(DlogError, match="No space left"):
            writer.checkpoint()
    writer.commit()
    writer.store.close()
    with segment_path(tmp_path, 1).open("ab") as file:
        payload = log.encode(3, {"kept": updates([((8, 8), 1)], 3)}, {})
        framing = Framing.of(writer.store._manifest.state, 1)
        file.write(framing.framed(payload, file.tell(), 2, 3)[:-5])
    assert recover(tmp_path) == expected(2)


def test_a_checkpoint_that_was_prepared_goes_on_in_the_segment_that_is_there(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "alive", "never")
    writer.commit()
    writer.store.prepare()
    assert beside(tmp_path / "alive").stat().st_size == 0
    writer.commit()
    finish(writer)
    assert not beside(tmp_path / "alive").exists() and not writer.store.prepared
    writer.commit()
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    writer.store.close()
    assert recover(tmp_path / "killed") == recover(tmp_path / "alive") == expected(3)


def test_what_was_prepared_goes_with_the_store_and_when_one_that_was_killed_is_opened(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "alive", "never")
    writer.commit()
    writer.store.prepare()
    writer.commit()
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    assert beside(tmp_path / "killed").exists()
    with segment_path(tmp_path / "killed", 1).open("ab") as file:
        file.write(bytes(5))
    writer.store.close()
    for folder in (tmp_path / "killed", tmp_path / "alive"):
        assert recover(folder) == expected(2)
        assert not beside(folder).exists()


@pytest.mark.parametrize("step", ["fill", "sync_folder", "open_to_append"])
def test_a_prepared_segment_that_is_refused_leaves_the_one_before_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    writer = Writer(tmp_path, "never")
    writer.commit()
    writer.store.prepare()
    with monkeypatch.context() as patched:
        patched.setattr(files, step, full)
        with pytest.raises(DlogError, match="No space left"):
            finish(writer)
    writer.commit()
    writer.store.prepare()
    finish(writer)
    writer.store.close()
    assert recover(tmp_path) == expected(2)


def beside(folder: Path) -> Path:
    """The file that is to be the second segment."""
    return folder / "00000002.log.new"


def finish(writer: Writer) -> None:
    for _ in writer.checkpoint():
        pass


def test_an_append_that_could_not_be_taken_back_is_when_the_state_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path, "always")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", full)
        patched.setattr(os, "ftruncate", full)
        with pytest.raises(DlogError, match="No space left"):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    writer.store.close()
    assert recover(tmp_path) == expected(3)


def test_a_full_disk_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 3)
    monkeypatch.setattr(os, "write", full)
    with Store.open(tmp_path, "program") as store:
        assert store.round == 3


def test_an_interrupted_append_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "os", FailingDisk(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(4)


def kill(folder: Path, kills: int, seed: int, sync: str) -> int:
    """Runs the killer in a process of its own; returns how many rounds have been written in all."""
    command = [sys.executable, "-m", "tests.engine.state.killing", str(folder), str(kills), str(seed), sync]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    assert kill(tmp_path, 20, 1, "never") > 100


@pytest.mark.slow
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
@pytest.mark.parametrize(("seed", "sync"), [(2, "always"), (3, "never"), (4, "often")])
def test_hundreds_of_killed_writers_lose_nothing(tmp_path: Path, seed: int, sync: str) -> None:
    assert kill(tmp_path, 200, seed, sync) > 1000
