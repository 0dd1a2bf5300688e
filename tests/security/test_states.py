"""Files that somebody left in a state folder: they are refused as damage is, and never run."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np
import pytest

import dlog
from dlog.__main__ import run_command
from dlog.caches import Untrusted
from dlog.engine.state import parts
from dlog.engine.state.entries import read_table
from dlog.engine.state.files import checksum
from dlog.engine.state.images import _HEAD, MAGIC, map_image, write_image
from dlog.engine.state.manifest import Manifest, _checksum, read_manifest, write_manifest
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.inspection import check_state, dump_state, repair_state
from tests.conftest import ROOT
from tests.dlog.persistence.state_frames import Frame, parts_of, taking_frames
from tests.dlog.persistence.state_sessions import PATHS, put
from tests.security.planted import STARTER, nest, pickled, run

TEXTS = """.type Pair = [a: number, rest: Pair]
.decl said(a: symbol, b: symbol)
.decl pair(p: Pair)
.decl heard(text: symbol, size: number)
.decl first(a: number, b: number)
heard(cat(b, a), strlen(b)) :- said(a, b).
first(a, b) :- pair([a, [b, _]]).
"""


def written(folder: Path) -> list[str]:
    with dlog.session(PATHS, state=folder, threads=1) as session:
        for number in range(5):
            put(session, (number, number + 1))
    return sorted(path.name for path in folder.iterdir() if path.is_file())


STEALTHY = """.decl edge(a: number, b: number)
.input edge(errors="reject:{file}")
.output edge(IO=sqlite, table="kept")
"""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_program_of_a_state_names_nothing_to_be_written(tmp_path: Path) -> None:
    """Whoever made the folder has chosen it; the user says what is read, and where to it is written."""
    mine, rows, table = tmp_path / "mine", tmp_path / "rows.facts", tmp_path / "tables.db"
    mine.write_text("kept\n")
    rows.write_text("1\t2\nwrong\n")
    with closing(sqlite3.connect(table)) as database:
        database.execute("CREATE TABLE kept (x)")
    with dlog.session(STEALTHY.format(file=mine), state=tmp_path / "state") as session:
        session.insert("edge", [(1, 2)])
        session.commit()
    command = ("repl", "--state", str(tmp_path / "state"))
    typed = f'.load edge {rows}\n.save edge {table} IO=sqlite\n.load edge {rows} errors="reject:bad"\n'
    done = run(sys.executable, "-P", "-c", STARTER, *command, cwd=tmp_path, said=typed)
    assert "line 2" in done.stderr and mine.read_text() == "kept\n" and (tmp_path / "bad").read_text() == "wrong\n"
    with closing(sqlite3.connect(table)) as database:
        assert [*database.execute("SELECT sql FROM sqlite_master WHERE name = 'kept'")] == [("CREATE TABLE kept (x)",)]


def test_the_program_of_a_state_without_rounds_names_no_files_to_read(tmp_path: Path) -> None:
    """Nor what Spark reads, which may be a query that runs code."""
    (tmp_path / "secret").write_text("7\n")
    program = f'.decl edge(a: number)\n.input edge(filename="{tmp_path / "secret"}")\n'
    with dlog.session(program, state=tmp_path / "state"):
        pass
    with dlog.session(program, state=tmp_path / "later") as session:
        session.insert("edge", [(1,)])
        session.commit()
    told = json.loads((tmp_path / "state" / "manifest.json").read_text())
    told["tables"] = json.loads((tmp_path / "later" / "manifest.json").read_text())["tables"]
    for name in ("program.bytes", "program.ends"):
        shutil.copy(tmp_path / "later" / name, tmp_path / "state")
    told.pop("checksum")
    for name in ("manifest.json", "manifest.copy"):
        (tmp_path / "state" / name).write_text(json.dumps({**told, "checksum": _checksum(told)}))
    with dlog.session(None, state=tmp_path / "state", facts=tmp_path) as session:
        assert list(session["edge"]) == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pickles_in_a_state_are_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "was run"
    names = written(tmp_path / "state")
    assert len(names) > 8
    for name in names:
        folder = tmp_path / f"state of {name}"
        written(folder)
        (folder / name).write_bytes(pickled(marker))
        try:
            with dlog.session(PATHS, state=folder, threads=1) as session:
                assert len(session["path"]) == 15
        except DlogError as error:
            assert "damaged" in str(error)
        assert not marker.exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_is_written_where_links_in_a_state_lead(tmp_path: Path) -> None:
    names = [*written(tmp_path / "state"), "manifest.json.new"]
    for name in names:
        folder, mine = tmp_path / f"state of {name}", tmp_path / f"not {name}"
        written(folder)
        mine.write_text("kept")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(mine)
        with suppress(DlogError), dlog.session(PATHS, state=folder, threads=1) as session:
            for number in range(20, 25):
                put(session, (number, number + 1))
        assert mine.read_text() == "kept", name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_is_written_to_what_has_another_name_elsewhere(tmp_path: Path) -> None:
    """Some systems let everybody give names to the files of others. A table that is said to be empty would be cut to that."""
    names = [*written(tmp_path / "state"), "manifest.json.new"]
    for name in names:
        folder, mine = tmp_path / f"state of {name}", tmp_path / f"not {name}"
        written(folder)
        whole = (folder / name).read_bytes() if (folder / name).exists() else b""
        mine.write_bytes(whole + b"kept")
        (folder / name).unlink(missing_ok=True)
        (folder / name).hardlink_to(mine)
        folder.chmod(0o777)
        with suppress(DlogError), dlog.session(PATHS, state=folder, threads=1) as session:
            for number in range(20, 25):
                put(session, (number, number + 1))
                session.insert("edge", [(number, number)])
        assert mine.read_bytes() == whole + b"kept", name


def test_a_dump_is_not_written_where_a_link_leads(tmp_path: Path) -> None:
    written(tmp_path / "state")
    output, mine = tmp_path / "dumped", tmp_path / "mine"
    mine.write_text("kept")
    output.mkdir()
    for name in ("program.dl", "program.dl.new", "edge.csv"):
        (output / name).symlink_to(mine)
    dump_state(tmp_path / "state", output)
    assert mine.read_text() == "kept" and ".decl edge" in (output / "program.dl").read_text()


def test_nothing_is_appended_where_a_whole_log_is_a_link(tmp_path: Path) -> None:
    written(tmp_path / "state")
    [log] = (tmp_path / "state").glob("*.log")
    whole = log.rename(tmp_path / "elsewhere").read_bytes()
    log.symlink_to(tmp_path / "elsewhere")
    with suppress(DlogError), dlog.session(PATHS, state=tmp_path / "state", threads=1) as session:
        put(session, (20, 21))
    assert (tmp_path / "elsewhere").read_bytes() == whole


def test_what_somebody_else_says_an_engine_keeps_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of rows in it are where kernels write; all checksums may be right."""
    state, theirs = tmp_path / "state", str(tmp_path / "their cache")
    written(state)
    forged = _forged(state, lambda m: _as(theirs, lambda: _image(state, m), monkeypatch))
    write_manifest(state, forged)
    with dlog.session(PATHS, state=state, threads=1) as session:
        assert len(session["path"]) == 15
        with pytest.warns(RuntimeWarning, match="was written by somebody else, or elsewhere; everything is derived anew"):
            put(session, (5, 6))
        assert len(session["path"]) == 21
    found = read_manifest(state)
    assert found is not None and found.image is not None
    tables = {name: read_table(state, name, size) for name, size in found.tables.items()}
    assert map_image(state, found.image, tables) is not None  # this user's own again


@pytest.mark.parametrize("known", [("symbols",), ("records",), ("symbols", "records")])
def test_an_image_of_another_state_is_not_believed(tmp_path: Path, known: tuple[str, ...]) -> None:
    """It is this user's own, and its ids lead out of tables that have fewer entries. Whoever can write to folders of states
    moves it there."""
    many, few = tmp_path / "many", tmp_path / "few"
    for folder, rows in ((many, 2000), (few, 1)):
        with dlog.session(TEXTS, state=folder, threads=1) as session:
            if "symbols" in known:
                session.insert("said", [(f"some text {n}", f"other {n}") for n in range(rows)])
            if "records" in known:
                session.insert("pair", [((n, (n, None)),) for n in range(rows)])
            session.commit()
    theirs, own = read_manifest(many), read_manifest(few)
    assert theirs is not None and own is not None and theirs.image is not None and own.image is not None
    (many / theirs.image.name).replace(few / own.image.name)
    write_manifest(few, replace(own, image=replace(theirs.image, name=own.image.name)))
    with dlog.session(TEXTS, state=few, threads=1) as session:
        with pytest.warns(RuntimeWarning, match="was written with other symbols or records than are there"):
            session.insert("said", [("x", "y")])
            session.commit()
        assert len(session["heard"]) == ("symbols" in known) + 1 and len(session["first"]) == ("records" in known)


@pytest.mark.parametrize("text", ["", "x", "xx", "xxx"])
def test_a_description_of_an_image_ends_where_it_did(tmp_path: Path, text: str) -> None:
    """Blanks fill it up to eight bytes: as the beginning of what follows they would move all columns."""
    file = write_image(tmp_path, "1.image", 1, "program", ({"text": text}, [[np.arange(9, dtype=np.int32)]]), {})
    path = tmp_path / file.name
    whole = path.read_bytes()
    start = len(MAGIC) + _HEAD.size
    length, _, _, seal = _HEAD.unpack(whole[len(MAGIC) : start])
    assert map_image(tmp_path, file, {}) is not None
    for shorter in range(1, length - len(whole[start : start + length].rstrip()) + 1):
        told, rest = whole[start : start + length - shorter], whole[start + length - shorter :]
        head = MAGIC + _HEAD.pack(len(told), checksum(told), checksum(rest), seal)
        path.write_bytes(head + told + rest)
        with pytest.raises(Untrusted):
            map_image(tmp_path, replace(file, checksum=checksum(head)), {})


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no modes")
def test_an_image_that_others_can_write_to_is_not_believed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    mask = os.umask(0)
    try:
        written(state)
    finally:
        os.umask(mask)
    [image] = state.glob("*.image")
    assert image.stat().st_mode & 0o777 == 0o644
    image.chmod(0o646)
    with dlog.session(PATHS, state=state, threads=1) as session:
        with pytest.warns(RuntimeWarning, match="others can write to"):
            put(session, (5, 6))
        assert len(session["path"]) == 21


def _forged(state: Path, change: Callable[[Manifest], Manifest]) -> Manifest:
    found = read_manifest(state)
    assert found is not None and found.image is not None
    return change(found)


def _as(cache: str, do: Callable[[], Manifest], monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """What another user does."""
    with monkeypatch.context() as other:
        other.setenv("DLOG_CACHE", cache)
        return do()


def _image(state: Path, manifest: Manifest) -> Manifest:
    """The image with other numbers, and all that says that it is right."""
    assert manifest.image is not None
    content = map_image(state, manifest.image)
    assert content is not None
    head, arrays = content
    far = [[np.full(len(c), 1 << 30, np.int32) if len(c) > 4 else c for c in array] for array in arrays]
    old = manifest.image
    return replace(manifest, image=write_image(state, old.name, old.round, old.fingerprint, (head, far), {}))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_nobody_waits_for_a_pipe_in_the_place_of_a_file(tmp_path: Path) -> None:
    names = [*written(tmp_path / "state"), "manifest.json.new"]
    for name in names:
        folder = shutil.copytree(tmp_path / "state", tmp_path / f"state of {name}")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    done = run(sys.executable, "-P", "-W", "ignore", "-c", OPENING, str(ROOT), *names, cwd=tmp_path)
    said = dict(zip(names, done.stdout.splitlines(), strict=True))
    assert said["manifest.json"] == "cannot read the state: it is no file", done.stderr
    assert said["manifest.json.new"] == said["manifest.copy"] == "opened"


OPENING = """import sys
sys.path.insert(0, sys.argv[1])
import dlog
from tests.dlog.persistence.state_sessions import PATHS, put
for name in sys.argv[2:]:
    try:
        with dlog.session(PATHS, state=f"state of {name}", threads=1) as session:
            put(session, (20, 21))
        print("opened")
    except dlog.DlogError as error:
        print(error.diagnostics[0].message)
"""


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "..", "inner/file", ""])
@pytest.mark.parametrize("what", ["layer", "table", "image"])
def test_a_state_names_no_files_of_others(tmp_path: Path, what: str, name: str) -> None:
    state = tmp_path / "state"
    written(state)
    for manifest in ("manifest.json", "manifest.copy"):
        (state / manifest).write_text(_naming((state / manifest).read_text(), what, name))
    for use in (lambda: dlog.session(PATHS, state=state, threads=1), lambda: repair_state(state), lambda: check_state(state)):
        with pytest.raises(DlogError, match="which is no file of a state"):
            use()
    with pytest.raises(DlogError, match="a part of a relation is missing"):
        parts.check(state, parts.Part(name, 0, 0))


def _naming(text: str, what: str, name: str) -> str:
    told = json.loads(text)
    if what == "layer":
        next(r for r in told["relations"].values() if r["batches"])["batches"][0]["layers"][0]["file"] = name
    elif what == "table":
        told["tables"][name] = [0, 0, 0, 0]
    else:
        told["image"]["name"] = name
    del told["checksum"]
    return json.dumps({**told, "checksum": _checksum(told)})


@pytest.mark.parametrize("where", ["extra", "damaged"])
def test_forged_names_in_a_state_are_shown_as_signs(tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    state, name = tmp_path / "state", "\x1b]0;x\x07\nerror: forged"
    written(state)
    for manifest in ("manifest.json", "manifest.copy"):
        told = json.loads((state / manifest).read_text())
        added = copy.deepcopy(next(r for r in told["relations"].values() if r["batches"]))
        if where == "damaged":
            added["batches"][0]["layers"][0]["checksum"] ^= 1
        told["relations"][name + ("/rows" if where == "damaged" else "")] = added
        del told["checksum"]
        (state / manifest).write_text(json.dumps({**told, "checksum": _checksum(told)}))
    run_command(["state", "repair" if where == "damaged" else "check", str(state)])
    said = "".join(capsys.readouterr())
    assert "\u241b]0;x\u2407\u2424error: forged" in said and "\x1b" not in said and "\nerror: forged" not in said


def test_a_planted_link_of_incoming_rows_is_removed_and_not_followed(tmp_path: Path) -> None:
    written(tmp_path / "state")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kept").write_text("kept")
    (tmp_path / "state" / "incoming-x").symlink_to(mine)
    with dlog.session(PATHS, state=tmp_path / "state", threads=1) as session:
        assert len(session["path"]) == 15
    assert not os.path.lexists(tmp_path / "state" / "incoming-x") and (mine / "kept").read_text() == "kept"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="paths that are as long")
def test_incoming_rows_in_many_folders_in_one_another_are_removed(tmp_path: Path) -> None:
    written(tmp_path / "state")
    nest(tmp_path / "state" / "incoming-x", 1100, tmp_path)
    with dlog.session(PATHS, state=tmp_path / "state", threads=1) as session:
        assert len(session["path"]) == 15
    assert not (tmp_path / "state" / "incoming-x").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no modes")
def test_rows_elsewhere_are_logged_where_others_can_write_to_the_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with taking_frames(), dlog.session(PATHS, state=state, threads=1) as session:
        state.chmod(0o777)
        session.insert("edge", Frame.of((1, 2), (2, 3)))
        assert int(session.commit()) == 1 and parts_of(state) == set()
        state.chmod(0o700)
        session.insert("edge", Frame.of((3, 4)))
        state.chmod(0o777)
        with pytest.raises(DlogError, match="not written to a folder that others can change"):
            session.commit()
        assert parts_of(state) == set() and session.round == 1
        session.rollback()
        session.insert("edge", Frame.of((3, 4)))
        assert int(session.commit()) == 2 and parts_of(state) == set() and session["path"].rows == 6
    with dlog.session(PATHS, state=state, threads=1) as session:
        assert session["path"].rows == 6


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no modes")
@pytest.mark.parametrize("planted", ["folder", "link", "name", "pipe"])
def test_files_are_not_taken_in_from_where_links_lead(tmp_path: Path, planted: str) -> None:
    state, mine = tmp_path / "state", tmp_path / "mine"
    state.mkdir()
    mine.mkdir()
    (mine / "rows.parquet").write_text("kept")
    incoming = parts.incoming(state)
    if planted == "folder":
        incoming.symlink_to(mine)
    else:
        incoming.mkdir()
        path = incoming / "rows.parquet"
        {"name": path.hardlink_to, "pipe": lambda _: os.mkfifo(path)}.get(planted, path.symlink_to)(mine / "rows.parquet")
    with pytest.raises(DlogError, match="cannot write the state"):
        parts.take_in(state, incoming)
    assert (mine / "rows.parquet").read_text() == "kept" and not list(state.glob("*.parquet"))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_files_of_others_are_not_taken_in(tmp_path: Path, what: str) -> None:
    incoming = parts.incoming(tmp_path)
    incoming.mkdir()
    (incoming / "rows.parquet").write_text("rows")
    os.chown(incoming if what == "folder" else incoming / "rows.parquet", 65534, 65534)
    with pytest.raises(DlogError, match="somebody else has put it there"):
        parts.take_in(tmp_path, incoming)


def test_what_is_taken_in_is_what_was_written(tmp_path: Path) -> None:
    incoming = parts.incoming(tmp_path)
    incoming.mkdir()
    (incoming / "rows.parquet").write_text("rows")
    (incoming / "_SUCCESS").write_text("")
    [part] = parts.take_in(tmp_path, incoming)
    parts.check(tmp_path, part)
    assert [path.name for path in tmp_path.iterdir()] == [part.name] and part.size == 4


def _exchanged(folder: Path, mine: Path) -> None:
    """What others do who can write to the folder that a state is in."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(mine)


LOOKS = {
    "the lock is not held yet": "dlog.engine.state.store.Lock",
    "the manifest is not read yet": "dlog.engine.state.manifest.read_manifest",
    "it is about to be repaired": "dlog.sessions.persistence.inspection.inspect",
}


@pytest.mark.skipif(os.name == "nt", reason="folders have no descriptors there")
@pytest.mark.parametrize("look", LOOKS)
def test_a_state_stays_the_folder_that_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str) -> None:
    folder, mine = tmp_path / "shared" / "state", tmp_path / "mine"
    module, _, name = LOOKS[look].rpartition(".")
    folder.parent.mkdir()
    for state in (folder, mine):
        written(state)
        (state / "00000099.layer").write_text("of no use")  # removed when a state is opened
        if name == "inspect":
            [log] = state.glob("*.log")
            log.write_bytes(log.read_bytes()[:-3])  # mended by a repair
    kept = {path.name: path.read_bytes() for path in mine.iterdir()}
    original = getattr(sys.modules[module], name)

    def exchanging(*arguments: object) -> object:
        if not folder.is_symlink():
            _exchanged(folder, mine)
        return original(*arguments)

    monkeypatch.setattr(LOOKS[look], exchanging)
    with suppress(DlogError):
        if name == "inspect":
            repair_state(folder)
        else:
            with dlog.session(None, state=folder, threads=1) as session:
                put(session, (20, 21))
    assert folder.is_symlink() and {path.name: path.read_bytes() for path in mine.iterdir()} == kept


@pytest.mark.skipif(os.name == "nt", reason="folders have no descriptors there")
def test_no_other_folder_is_opened_by_the_path_of_one_that_is_open(tmp_path: Path) -> None:
    """What the first session writes would go into the one that was opened last."""
    folder, mine = tmp_path / "shared" / "state", tmp_path / "mine"
    folder.parent.mkdir()
    for state in (folder, mine):
        written(state)
    kept = {path.name: path.read_bytes() for path in mine.iterdir()}
    with dlog.session(PATHS, state=folder, threads=1) as session:
        _exchanged(folder, mine)
        for look in (lambda: dlog.session(PATHS, state=folder, threads=1), lambda: check_state(folder)):
            with pytest.raises(DlogError, match="another folder has taken the place of one that is open"):
                look()
        folder.unlink()
        folder.with_name("moved").rename(folder)
        put(session, (20, 21))
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == kept
    with dlog.session(PATHS, state=folder, threads=1) as session:
        assert (20, 21) in set(session["path"])


def test_a_state_is_where_it_was_opened_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        sessions.append(dlog.session(PATHS, state="state", threads=1))
    for session, edge in zip(sessions, [(1, 2), (3, 4)], strict=True):
        put(session, edge)
        session.close()
    for name, edge in (("a", (1, 2)), ("b", (3, 4))):
        with dlog.session(PATHS, state=tmp_path / name / "state", threads=1) as session:
            assert set(session["edge"]) == {edge}


def test_a_lock_that_is_somebodys_file_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "a web application"}')
    (tmp_path / "lock").write_text("mine")
    for use in (lambda: dlog.session(PATHS, state=tmp_path), lambda: check_state(tmp_path)):
        with pytest.raises(DlogError):
            use()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "manifest.json"]
    assert (tmp_path / "lock").read_text() == "mine"


def test_a_state_is_copied_without_what_others_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    copied: list[str] = []
    written(folder)
    for name in ("anything", "more.tar"):
        (folder / name).write_text("large")
    original = shutil.copyfileobj

    def copying(source: BinaryIO, target: BinaryIO) -> None:
        copied.append(target.name)
        original(source, target)

    monkeypatch.setattr(shutil, "copyfileobj", copying)
    assert check_state(folder)[0] == "round 5"
    assert copied and not [name for name in copied if name.endswith(("anything", "more.tar"))]


def test_a_copy_that_would_fill_the_disk_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "state")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=8))
    with pytest.raises(DlogError, match="No space left on device"):
        check_state(tmp_path / "state")


@pytest.mark.skipif(sys.platform != "linux", reason="files of nothing take their size elsewhere")
def test_a_log_of_any_size_is_refused(tmp_path: Path) -> None:
    """It may be of nothing but a size, and come in an archive of a few bytes."""
    written(tmp_path / "state")
    [log] = (tmp_path / "state").glob("*.log")
    os.truncate(log, 1 << 43)
    for use in (check_state, lambda folder: dlog.session(None, state=folder)):
        with pytest.raises(DlogError, match="Cannot allocate memory"):
            use(tmp_path / "state")
