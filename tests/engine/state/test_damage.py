"""Damaged states: what a crash leaves is told from damage, which is named and never believed."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from dlog.engine.state import files, manifest
from dlog.engine.state.entries import Entries
from dlog.engine.state.images import map_image, write_image
from dlog.engine.state.records import HEADER_SIZE, Header, Record
from dlog.engine.state.repair import inspect, repair
from dlog.engine.state.segments import read_log, segment_path
from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError, render_all
from tests.engine.state.durable_model import Writer, expected, recover, updates
from tests.engine.state.states import code_of, write

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


@pytest.mark.slow
def test_a_flipped_bit_is_never_believed(tmp_path: Path) -> None:
    assert believed(tmp_path, 97) == []


@pytest.mark.exhaustive
def test_no_flipped_bit_is_ever_believed(tmp_path: Path) -> None:
    assert believed(tmp_path, 1) == []


@pytest.mark.slow
def test_no_flipped_bit_of_an_image_is_ever_believed(tmp_path: Path) -> None:
    arrays = [[np.arange(20, dtype=np.int32), np.array([7])], [np.array([1, 300, 5], np.int64)]]
    file = write_image(tmp_path, "1.image", 3, "program", ({"what": "ever"}, arrays), {})
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
