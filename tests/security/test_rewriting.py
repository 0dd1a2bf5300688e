"""What dlog writes anew, or puts aside, gives nobody the rights of who runs it, and goes where no link leads."""

from __future__ import annotations

import io
import os
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dlog
from dlog.__main__ import run_command
from dlog.command.explain_prompt import ExplainPrompt
from dlog.command.formatting import formatted, rewrite
from dlog.engine.state import files
from dlog.engine.state.manifest import NAME
from dlog.grammar.diagnostics import DlogError
from dlog.locks import lock
from dlog.pipeline import compile_program
from dlog.sessions.persistence.inspection import repair_state
from tests.dlog.persistence.state_sessions import PATHS, put

PROGRAM = ".decl b(x: number, y: symbol)\nb(1, \"text\").\n.output b\n"
KILLED, WRITTEN = (f".p.dl.{digit * 12}.part" for digit in "01")


def damaged(tmp_path: Path) -> Path:
    """A state whose manifest is nothing."""
    folder = tmp_path / "state"
    with dlog.session(PATHS, state=folder, threads=1) as session:
        put(session, (1, 2))
    (folder / NAME).write_bytes(b"nothing")
    return folder


def test_what_a_repair_puts_aside_does_not_run_with_the_rights_of_who_repairs(tmp_path: Path) -> None:
    folder = damaged(tmp_path)
    (folder / NAME).chmod(0o4755)
    repair_state(folder)
    aside = folder / "damaged-1"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o700
    assert stat.S_IMODE((aside / NAME).stat().st_mode) == 0o600 and (aside / NAME).read_bytes() == b"nothing"


def test_a_repair_does_not_copy_what_a_link_leads_to(tmp_path: Path) -> None:
    folder, secret = damaged(tmp_path), tmp_path / "secret"
    secret.write_text("token")
    (folder / NAME).unlink()
    (folder / NAME).symlink_to(secret)
    repair_state(folder)
    assert (folder / "damaged-1" / NAME).is_symlink() and os.readlink(folder / "damaged-1" / NAME) == str(secret)
    assert secret.read_text() == "token" and not (folder / NAME).is_symlink()


def test_a_repair_puts_nothing_where_a_planted_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, elsewhere = damaged(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "damaged-1").symlink_to(elsewhere)
    beside = files.folder_beside

    def plant(where: Path, name: str) -> tuple[Path, int]:
        path, descriptor = beside(where, name)
        path.rename(tmp_path / "moved")  # in the moment after it was made
        path.symlink_to(elsewhere)
        return path, descriptor

    monkeypatch.setattr(files, "folder_beside", plant)
    repair_state(folder)
    assert not any(elsewhere.iterdir()) and (tmp_path / "moved" / NAME).read_bytes() == b"nothing"


def test_a_formatted_program_does_not_run_with_the_rights_of_who_formats(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    program.chmod(0o4775)
    rewrite(program, PROGRAM, PROGRAM)
    assert stat.S_IMODE(program.stat().st_mode) == 0o775


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_others_cannot_write_to_a_program_that_was_theirs(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    os.chown(program, 65534, -1)
    program.chmod(0o777)
    rewrite(program, PROGRAM, PROGRAM)
    assert stat.S_IMODE(program.stat().st_mode) == 0o644 and program.stat().st_uid == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another group")
def test_another_group_has_no_rights_to_a_program_that_it_had_none_to(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    os.chown(program, -1, 65534)
    program.chmod(0o664)
    rewrite(program, PROGRAM, PROGRAM)
    assert stat.S_IMODE(program.stat().st_mode) == 0o604 and program.stat().st_gid == 0


OWN, ONE, GROUP, BOUND, OTHERS = 1, 2, 4, 16, 32
ACCESS, OF_NEW = "system.posix_acl_access", "system.posix_acl_default"


def listed(path: Path, kind: str, *entries: tuple[int, int]) -> bytes:
    """Gives a file, or what will be made in a folder, a list of rights, of which one user's are a part."""
    numbers = [(who, rights, 65534 if who == ONE else 2**32 - 1) for who, rights in entries]
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in numbers)
    try:
        os.setxattr(path, kind, content)
    except (AttributeError, OSError):
        pytest.skip("a system without such lists")
    return content


def lists(path: Path) -> list[str]:
    return [name for name in os.listxattr(path) if name == ACCESS]


def three_ways(folder: Path) -> tuple[list[Path], Callable[[], None]]:
    """A program, an output and a database, and what writes all three in the folder, which is others' too."""
    program, output, file = files = [folder / name for name in ("p.dl", "a.csv", "b.sqlite")]
    text = '.decl   a(x: number)\na(1).\n.output a\n.decl b(x: number)\nb(1).\n.output b(IO=sqlite, filename="b.sqlite")\n'
    folder.chmod(0o777)
    program.write_text(text)
    output.write_text("secret\n")
    file.write_bytes(b"")

    def write() -> None:
        dlog.run(text, output=folder)
        rewrite(program, text, formatted(program)[1])
        assert output.read_text() == "1\n" and file.stat().st_size and program.read_text().startswith(".decl a")

    return files, write


def test_who_a_list_of_rights_leaves_out_has_none_to_the_file_in_its_place(tmp_path: Path) -> None:
    files, write = three_ways(tmp_path)
    for path in files:
        path.chmod(0o600)
        content = listed(path, ACCESS, (OWN, 6), (ONE, 6), (GROUP, 0), (BOUND, 6), (OTHERS, 0))
    write()
    entries = [(struct.unpack_from("<HHI", os.getxattr(path, ACCESS), at)) for path in files for at in range(4, 44, 8)]
    assert [rights for who, rights, _ in entries if who in (GROUP, OTHERS)] == [0] * 6
    assert [rights for who, rights, _ in entries if who == ONE] == [6] * 3
    for path in (files[0], files[2]):  # an output has no more than a new file
        assert (os.getxattr(path, ACCESS), stat.S_IMODE(path.stat().st_mode)) == (content, 0o660)


def test_a_list_that_a_folder_has_for_new_files_gives_nobody_rights_to_one_in_the_place_of_another(tmp_path: Path) -> None:
    files, write = three_ways(tmp_path)
    for path in files:
        path.chmod(0o640)
    listed(tmp_path, OF_NEW, (OWN, 6), (ONE, 6), (GROUP, 0), (BOUND, 6), (OTHERS, 0))
    write()
    assert [(stat.S_IMODE(path.stat().st_mode), lists(path)) for path in files] == [(0o640, [])] * 3


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to others")
@pytest.mark.parametrize("given", [(65534, -1), (-1, 65534)])
def test_a_list_of_rights_to_what_was_others_leaves_the_owner_alone(tmp_path: Path, given: tuple[int, int]) -> None:
    files, write = three_ways(tmp_path)
    for path in files:
        os.chown(path, *given)
        listed(path, ACCESS, (OWN, 6), (ONE, 4), (GROUP, 0), (BOUND, 4), (OTHERS, 4))
    write()
    assert [stat.S_IMODE(path.stat().st_mode) & 0o077 for path in files] == [0, 0, 0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another group")
def test_who_is_left_out_as_a_group_is_not_among_all_others_then(tmp_path: Path) -> None:
    files, write = three_ways(tmp_path)
    for path in files:
        os.chown(path, -1, 65534)
        path.chmod(0o604)
    write()
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600, 0o600, 0o600]


@pytest.mark.parametrize("way", ["file", "folder"])
def test_a_formatted_program_replaces_no_file_that_a_link_leads_to_since_it_was_read(tmp_path: Path, way: str) -> None:
    """Else who can write to the folder of a program has any file of who formats it say what they want."""
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    other.mkdir()
    program, victim = shared / "p.dl", other / ("p.dl" if way == "folder" else "profile")
    program.write_text("//$(touch run)\n.decl   a(x:number)\n")
    victim.write_text("precious\n")
    before, after = formatted(program)
    program.unlink()
    if way == "file":
        program.symlink_to(victim)
    else:
        shared.rmdir()
        shared.symlink_to(other)
    with pytest.raises(DlogError, match=r"p\.dl has been changed since it was read"):
        rewrite(program, before, after)
    assert victim.read_text() == "precious\n" and [path.name for path in other.iterdir()] == [victim.name]


@pytest.mark.parametrize("left", ["pipe", "bytes", "link", "nothing"])
def test_a_formatted_program_replaces_nothing_that_has_been_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".decl   a(x:number)\n")
    before, after = formatted(program)
    resolved = program.resolve()
    monkeypatch.setattr(Path, "resolve", lambda path: resolved)  # what follows comes after it was
    program.unlink()
    match left:
        case "pipe":
            os.mkfifo(program)
        case "bytes":
            program.write_bytes(b"\xff")
        case "link":
            (tmp_path / "same").write_text(before)
            program.symlink_to(tmp_path / "same")
    with pytest.raises(DlogError, match=r"p\.dl has been changed since it was read"):
        rewrite(program, before, after)
    assert not list(tmp_path.glob(".*")) and after != before
    assert left != "link" or (tmp_path / "same").read_text() == before


def test_a_formatted_program_keeps_its_links(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("\ufeff.decl   a(x:number)\r\n", newline="")
    (tmp_path / "p.dl").symlink_to("there")
    rewrite(tmp_path / "p.dl", *formatted(tmp_path / "p.dl"))
    assert (tmp_path / "p.dl").is_symlink() and (tmp_path / "there").read_bytes() == b".decl a(x: number)\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="elsewhere files cannot be locked while they are renamed")
@pytest.mark.parametrize("text", [PROGRAM, PROGRAM.replace(" ", "  ")])
def test_what_a_killed_formatter_left_goes_with_the_next_one(tmp_path: Path, text: str) -> None:
    """Whether that has anything to rewrite or not; what another one writes stays."""
    program, left, written, other = (tmp_path / name for name in ("p.dl", KILLED, WRITTEN, ".p.dl.mine"))
    for path in (program, left, written, other):
        path.write_text(text)
    with written.open("r+") as held:
        assert lock(held.fileno())
        assert run_command(["fmt", "--write", str(program)]) == 0
    assert program.read_text() == formatted(program)[1] and set(tmp_path.iterdir()) == {program, written, other}


KILLING = """import os, signal, sys
from dlog.__main__ import run_command
os.replace = os.rename = lambda *names, **places: os.kill(os.getpid(), signal.SIGKILL)
run_command(["fmt", "--write", "p.dl"])
"""


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="elsewhere files cannot be locked while they are renamed")
def test_a_formatter_that_is_killed_leaves_what_the_next_one_removes(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM.replace(" ", "  "))
    killed = subprocess.run([sys.executable, "-c", KILLING], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 2
    assert run_command(["fmt", "--write", str(program)]) == 0
    assert list(tmp_path.iterdir()) == [program]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("place", ["shared", "shared/own"])
def test_proofs_are_not_written_where_a_link_or_a_pipe_leads(tmp_path: Path, place: str) -> None:
    """An own folder within one of others is what they put in its place, from one moment to the next."""
    shared, victim = tmp_path / place, tmp_path / "victim"
    shared.mkdir(parents=True)
    victim.write_text("kept")
    (shared / "proof.txt").symlink_to(victim)
    os.mkfifo(shared / "pipe.txt")
    (tmp_path / "shared").chmod(0o777)
    out = io.StringIO()
    commands = [f"output {shared}/proof.txt", f"output {shared}/pipe.txt", f"output {tmp_path}/none/x.txt", "measure b"]
    with dlog.session(PROGRAM) as session:
        ExplainPrompt(session, compile_program(PROGRAM), io.StringIO("\n".join(commands)), out).run()
    assert victim.read_text() == "kept"
    said = out.getvalue().splitlines()
    assert len(said) == 4 and said[-1] == "1" and all(str(tmp_path) in line for line in said[:3])
