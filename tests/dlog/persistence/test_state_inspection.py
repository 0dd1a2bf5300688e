"""`dlog state check`, `repair` and `dump`: all damage is listed, what can be brought back is, and what is lost is said."""

from __future__ import annotations

import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import dlog
from dlog.__main__ import run_command
from dlog.grammar.diagnostics import DlogError, render_all
from dlog.sessions.persistence.inspection import check_state, dump_state, repair_state
from tests.dlog.persistence.state_damage import SEED, SHAPES, Files, Shape, flips, outcome, shape_of, truncations, written
from tests.dlog.persistence.state_frames import taking_frames
from tests.dlog.persistence.state_model import PROGRAM, all_rows, commit, expected, inputs_after
from tests.dlog.persistence.state_sessions import PATHS, Open, crash, put, refused


def files_of(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


def places(act: Callable[[], object]) -> set[str]:
    """The files that an error names."""
    return {Path(diagnostic.place).name for diagnostic in refused(act).diagnostics}


def replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def layer_of(folder: Path, relation: str) -> Path:
    from dlog.engine.state.manifest import read_manifest

    manifest = read_manifest(folder)
    assert manifest is not None
    return folder / manifest.relations[relation].batches[0].layers[0].name


# -------------------------------------------------------------------------------------------------------------------- check


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_check_names_the_file_that_is_damaged_and_changes_nothing(tmp_path: Path, shape: str) -> None:
    found = shape_of(shape, tmp_path / "state")
    folder = written(found.files, tmp_path / "again")
    assert check_state(folder)[0] == f"round {found.round}"
    rng = random.Random(shape)
    for name in sorted(found.files.keys() - found.leftovers):
        (damaged,) = flips(found.files[name], 1, rng)
        written({**found.files, name: damaged}, folder)
        assert name in places(lambda: check_state(folder))
        assert files_of(folder) == {**found.files, name: damaged}


def test_a_state_of_a_former_version_is_checked_and_left_as_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(Path(__file__).with_name("state_version2.zip")) as packed:
        packed.extractall(tmp_path)
    before = files_of(tmp_path)
    assert check_state(tmp_path)[0] == "round 12"
    assert files_of(tmp_path) == before
    replaced(layer_of(tmp_path, "edge"), flipped(9))
    assert places(lambda: check_state(tmp_path)) == {layer_of(tmp_path, "edge").name}


def test_all_damage_is_listed_at_once(reopen: Open, tmp_path: Path) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    folder = tmp_path / "state"
    damaged = [layer_of(folder, "edge"), layer_of(folder, "path/rows"), folder / "program.bytes", *folder.glob("*.log")]
    for path in damaged:
        replaced(path, flipped(path.stat().st_size - 2))
    assert places(lambda: check_state(folder)) == {path.name for path in damaged}
    assert places(lambda: reopen()) == {path.name for path in damaged if path != layer_of(folder, "path/rows")}


def test_what_is_no_state_or_in_use_is_refused(reopen: Open, tmp_path: Path) -> None:
    for act in (check_state, repair_state, lambda folder: dump_state(folder, tmp_path / "out")):
        assert refused(lambda act=act: act(tmp_path)).diagnostics[0].code == "state-missing"  # type: ignore[misc]
        with reopen():
            assert refused(lambda act=act: act(tmp_path / "state")).diagnostics[0].code == "state-locked"  # type: ignore[misc]
    assert not (tmp_path / "out").exists() and not (tmp_path / "lock").exists()


# ------------------------------------------------------------------------------------------------------------------- repair


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_repaired_state_is_right_as_of_its_round(tmp_path: Path, shape: str) -> None:
    """Or the repair is refused and changes nothing, where files of inputs or of tables are damaged."""
    found = shape_of(shape, tmp_path / "state")
    rng = random.Random(shape)
    folder = tmp_path / "damaged"
    repaired = set()
    with taking_frames():
        for name in sorted(found.files):
            for damage in (flips, truncations):
                (damaged,) = damage(found.files[name], 1, rng)
                before = {**found.files, name: damaged}
                written(before, folder)
                try:
                    said = repair_state(folder)
                except DlogError as error:
                    assert {Path(d.place).name for d in error.diagnostics} == {name}
                    assert files_of(folder) == before
                    continue
                repaired.add(Path(name).suffix)
                kept = folder / "damaged-1" / name
                assert not said or kept.read_bytes() == damaged
                assert name.endswith(".log") or check_state(folder)[0] == f"round {found.round}"
                assert outcome(folder, found, torn=name.endswith(".log")) in ("right", "earlier")
    assert {".log", ".json", ".copy"} <= repaired <= {".log", ".json", ".copy", ".image", ".ends", ".layer"}


def test_rounds_before_a_bad_record_are_kept_and_the_others_said(reopen: Open, tmp_path: Path) -> None:
    s, folder = reopen(), tmp_path / "copy"
    (log,) = (tmp_path / "state").glob("*.log")
    for k in range(9):
        put(s, (k, k + 1))
        if k == 4:
            middle = log.stat().st_size - 9
    shutil.copytree(tmp_path / "state", folder)
    log = folder / log.name
    content = log.read_bytes()
    replaced(log, flipped(middle))
    error = refused(lambda: dlog.session(PATHS, state=folder))
    assert "behind it rounds 6 to 9 can be read" in render_all(error.diagnostics)
    assert repair_state(folder) == [
        "lost: rounds 5 to 9; the state is at round 4",
        f"the files as they were are in {folder / 'damaged-1'}",
    ]
    assert (folder / "damaged-1" / log.name).read_bytes() == flipped(middle)(content)
    with dlog.session(PATHS, state=folder) as again:
        assert again.round == 4 and len(again["path"]) == 10
        assert put(again, (4, 5)) == 5
    assert check_state(folder)[0] == "round 5"
    assert repair_state(folder) == []


def test_a_repair_that_is_cut_off_is_done_again(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dlog.engine.state import repair

    with reopen() as s:
        put(s, (1, 2), (2, 3))
    folder = tmp_path / "state"
    replaced(layer_of(folder, "edge"), flipped(9))
    with monkeypatch.context() as patched:
        patched.setattr(repair, "write_manifest", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            repair_state(folder, ["edge"])
    assert places(lambda: check_state(folder)) == {layer_of(folder, "edge").name}
    assert repair_state(folder, ["edge"])[0] == "lost: all rows of the input `edge`"
    assert len(reopen()["path"]) == 0


def test_a_damaged_input_is_given_up_by_name_only(reopen: Open, tmp_path: Path) -> None:
    program = f"{PATHS}.decl word(t: symbol)\n.decl long(t: symbol)\nlong(t) :- word(t), strlen(t) > 2.\n"
    with reopen(program) as s:
        s.insert("word", [("ab",), ("abc",)])
        put(s, (1, 2), (2, 3))
    put(reopen(program), (7, 8))
    crash(reopen(program))
    folder = tmp_path / "state"
    replaced(layer_of(folder, "edge"), flipped(9))
    before = files_of(folder)
    error = refused(lambda: repair_state(folder))
    assert f"`dlog state repair {folder} --without edge`" in error.diagnostics[0].notes[-1]
    assert files_of(folder) == before
    assert refused(lambda: repair_state(folder, ["edge", "word"])).diagnostics[0].code == "not-damaged"
    assert files_of(folder) == before
    assert repair_state(folder, ["edge"])[0] == "lost: all rows of the input `edge`"
    s = reopen(program)
    assert s.round == 3 and {name: len(s[name]) for name in s} == {"edge": 0, "path": 0, "word": 2, "long": 1}
    put(s, (5, 6))
    assert sorted(reopen(program)["path"]) == [(5, 6)]


# --------------------------------------------------------------------------------------------------------------------- dump


@pytest.mark.parametrize("shape", SHAPES)
def test_a_dump_begins_another_state_with_the_same_rows(tmp_path: Path, shape: str) -> None:
    found = shape_of(shape, tmp_path / "state")
    folder = written(found.files, tmp_path / "again")
    dump_state(folder, tmp_path / "out")
    assert files_of(folder) == found.files
    with dlog.session(tmp_path / "out" / "program.dl", tmp_path / "out", threads=1) as s:
        assert all_rows(s) == expected(SEED, found.round)


def test_text_comes_back_from_a_dump_whatever_is_in_it(reopen: Open, tmp_path: Path) -> None:
    rows = [("a\tb",), ('say "x"',), ("two\nlines",), ("",), ("a,b",)]
    with reopen(".decl word(t: symbol)\n", {"word": rows}):
        pass
    dump_state(tmp_path / "state", tmp_path / "out")
    assert sorted(dlog.session(tmp_path / "out" / "program.dl", tmp_path / "out")["word"]) == sorted(rows)


def test_a_dump_of_a_damaged_state_has_what_can_be_read(tmp_path: Path) -> None:
    found = shape_of("reopened", tmp_path / "state")
    folder = written(found.files, tmp_path / "again")
    replaced(folder / "00000002.log", flipped(60))
    assert dump_state(folder, tmp_path / "out")[0] == "lost: rounds 8 to 11; the state is at round 7"
    replaced(layer_of(folder, "edge"), flipped(9))
    (tmp_path / "out" / "edge.csv").unlink()
    error = refused(lambda: dump_state(folder, tmp_path / "out"))
    assert error.diagnostics[0].notes == ("`edge` is not in what was written, everything else is",)
    rows = inputs_after(SEED, 7)
    with dlog.session(tmp_path / "out" / "program.dl", tmp_path / "out", threads=1) as s:
        got = {name: set(s._engine.external(name).columns[0].tolist()) for name in ("edge", "name")}
        assert got == {"edge": set(), "name": {x for x, _ in rows["name"]}}


# ------------------------------------------------------------------------------------------------------------- command line


def test_the_command_line_says_what_it_finds_and_does(
    reopen: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*words: str) -> tuple[int, list[str], str]:
        code, said = run_command(["state", *words]), capsys.readouterr()
        return code, said.out.splitlines(), said.err

    with reopen() as s:
        put(s, (1, 2), (2, 3))
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("check", "state")
    assert (code, out[0]) == (0, "state: ok, round 1")
    assert command("repair", "state")[:2] == (0, ["state: nothing is damaged"])
    damaged = layer_of(tmp_path / "state", "path/rows")
    replaced(damaged, flipped(9))
    code, _, err = command("check", "state")
    assert code == 1 and f"state/{damaged.name}" in err and "`dlog state repair state`" in err
    code, out, _ = command("repair", "state")
    assert (code, out[0]) == (0, "`path` is derived anew when the state is opened")
    code, out, _ = command("dump", "state", "out")
    assert (code, out[1:]) == (0, ["out/edge.csv: 2 rows"]) and Path("out/edge.csv").read_text() == "1,2\n2,3\n"
    assert command("check", "nowhere")[0] == 1


# ----------------------------------------------------------------------------------------------------------- copied in use


@pytest.mark.slow
def test_a_folder_that_is_copied_while_it_is_in_use_is_right_or_refused(tmp_path: Path) -> None:
    """Commits and the steps of checkpoints happen between the files that are copied."""
    rng = random.Random(1)
    session = dlog.session(PROGRAM, state=tmp_path / "state", threads=1, sync="never")
    state = session._engine._state  # type: ignore[attr-defined]
    commit(session, SEED, 1)
    outcomes = []
    for number in range(30):
        copy = tmp_path / f"copy{number}"
        copy.mkdir()
        steps = iter(())
        names = sorted(path.name for path in (tmp_path / "state").iterdir() if path.name != "lock")
        for name in rng.sample(names, len(names)):
            match rng.randrange(3):
                case 0:
                    commit(session, SEED, 1)
                case _ if next(steps, True):
                    steps = state.checkpoints.begin(state, session._engine._fingerprint, {}, None)  # type: ignore[attr-defined]
            if (tmp_path / "state" / name).exists():
                shutil.copy2(tmp_path / "state" / name, copy / name)
        for _ in steps:
            pass
        outcomes.append(outcome(copy, Shape({}, session.round, closed=False), torn=True))
        commit(session, SEED, 1)
    crash(session)
    assert set(outcomes) <= {"right", "earlier", "refused"} and {"earlier", "refused"} <= set(outcomes)


