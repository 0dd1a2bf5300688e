"""States of every shape, what damage does to their files, and what a session makes of it.

A session on a damaged state says what is right, or refuses by the name of a file: rows that are not those of its round, a
traceback or an empty answer are wrong. Of a log that was cut short it may say an earlier round, if a crash can have done that.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import dlog
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence import checkpoints
from tests.dlog.persistence.state_frames import parts_of, taking_frames
from tests.dlog.persistence.state_model import PROGRAM, Rows, all_rows, commit, expected
from tests.dlog.persistence.state_sessions import crash

SEED = 5
HISTORY = 4
"""Past rounds that sessions keep."""
Files = dict[str, bytes]


@dataclass(frozen=True)
class Shape:
    """The files of a state, after so many rounds; `closed` is how its last session ended. `leftovers` do not count."""

    files: Files
    round: int
    closed: bool
    leftovers: frozenset[str] = frozenset()


def _killed(folder: Path) -> Shape:
    """Rounds in the log and nothing else."""
    session = _opened(folder)
    for _ in range(6):
        commit(session, SEED, 1)
    return _left(folder, session, closed=False)


def _closed(folder: Path) -> Shape:
    """Layers, tables and an image, and a log without a round."""
    session = _opened(folder)
    for rounds in (1, 3, 1, 1):
        commit(session, SEED, rounds)
    return _left(folder, session, closed=True)


def _reopened(folder: Path) -> Shape:
    """All of these."""
    _closed(folder)
    session = _opened(folder)
    for _ in range(4):
        commit(session, SEED, 1)
    return _left(folder, session, closed=False)


def _under_way(folder: Path) -> Shape:
    """A checkpoint that did not come to its end: two segments of the log."""
    session = _opened(folder)
    for _ in range(4):
        commit(session, SEED, 1)
    next(iter(session._engine._state.checkpoints.begin(session._engine._state, "", {}, None)))  # type: ignore[attr-defined]
    for _ in range(3):
        commit(session, SEED, 1)
    left = _left(folder, session, closed=False)
    return replace(left, leftovers=frozenset(name for name in left.files if name.endswith(".layer")))


def _lots(folder: Path) -> Shape:
    """Rows in files of their own, and what became of them."""
    session = _opened(folder)
    for number in range(9):
        commit(session, SEED, 1, frames=number % 2 == 0)
    session.close()
    assert parts_of(folder)
    session = _opened(folder)
    for number in range(3):
        commit(session, SEED, 1, frames=number % 2 == 0)
    return _left(folder, session, closed=False)


SHAPES: dict[str, Callable[[Path], Shape]] = {
    "killed": _killed,
    "closed": _closed,
    "reopened": _reopened,
    "under way": _under_way,
    "lots": _lots,
}


def _opened(folder: Path) -> dlog.Session:
    return dlog.session(PROGRAM, state=folder, threads=1, sync="never", history=HISTORY)


def _left(folder: Path, session: dlog.Session, closed: bool) -> Shape:
    """The state as the session leaves it."""
    round = session.round
    if closed:
        session.close()
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}
    crash(session)
    return Shape(files, round, closed)


@cache
def _expected(round: int) -> Rows:
    return expected(SEED, round)


def _expected_past(round: int) -> Rows:
    return _expected(round) if round else {name: set() for name in _expected(1)}


def written(files: Files, folder: Path) -> Path:
    """A folder with these files and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


# ------------------------------------------------------------------------------------------------------------------- damage


def flips(content: bytes, most: int, rng: random.Random) -> Iterator[bytes]:
    """A bit flipped: at every offset, or at so many."""
    for at in sorted(rng.sample(range(len(content)), min(most, len(content)))):
        yield content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def truncations(content: bytes, most: int, rng: random.Random) -> Iterator[bytes]:
    """The file shorter: of every size, or of so many."""
    for size in sorted(rng.sample(range(len(content)), min(most, len(content)))):
        yield content[:size]


def outcome(folder: Path, shape: Shape, torn: bool) -> str:
    """"right", "refused", "earlier" where the state may be `torn`; whatever else it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what can be derived anew is, with a warning
        try:
            return _said(folder, shape, torn)
        except DlogError as error:
            named = [d for d in error.diagnostics if d.code.startswith("state-") and d.place.startswith(str(folder))]
            return "refused" if len(named) == len(error.diagnostics) else f"refused without a name: {error}"
        except Exception as error:  # whatever it is
            return f"{type(error).__name__}: {error}"


def _said(folder: Path, shape: Shape, torn: bool) -> str:
    """What a session says of its relations, and of them after one more commit, for which it reads the image."""
    session = _opened(folder)
    try:
        round = session.round
        if round > shape.round or (round < shape.round and not torn):
            return f"opened at round {round}"
        if all_rows(session) != (_expected(round) if round else {name: set() for name in session}):
            return f"wrong rows of round {round}"
        for past in range(session._followers.oldest(), round):
            if {name: set(session.at(past)[name]) for name in session} != _expected_past(past):
                return f"wrong rows of round {past} as of round {round}"
        commit(session, SEED, 1)
        if all_rows(session) != _expected(round + 1):
            return f"wrong rows of round {round}, and one more"
        return "right" if round == shape.round else "earlier"
    finally:
        crash(session)


def is_last_segment(shape: Shape, name: str) -> bool:
    return name == max(n for n in shape.files if n.endswith(".log"))


def of_each_kind(files: Files, rng: random.Random) -> list[str]:
    """A file of each kind."""
    names = sorted(files)
    return [rng.choice([name for name in names if name.endswith(kind)]) for kind in {Path(name).suffix: 0 for name in names}]


def wrong_outcomes(shape: Shape, folder: Path, names: Iterable[str], most: int, seed: int) -> dict[tuple[str, str], int]:
    """What becomes of flips and truncations of files, but for what is right: how often. So many are tried of each; fewer of
    images, which cost time and nothing else, and of the copy of the manifest."""
    rng = random.Random(seed)
    found: dict[tuple[str, str], int] = {}
    for name in names:
        tried = min(most, 200) if name.endswith((".image", ".copy")) else most
        for damage in (flips, truncations):
            for damaged in damage(shape.files[name], tried, rng):
                torn = damage is truncations and not shape.closed and is_last_segment(shape, name)
                written({**shape.files, name: damaged}, folder)
                said = outcome(folder, shape, torn)
                if said not in ("right", "refused", "earlier"):
                    found[name, said] = found.get((name, said), 0) + 1
    return found


def shape_of(name: str, folder: Path) -> Shape:
    """A state of this shape. Its commits begin no checkpoint by themselves."""
    with taking_frames():
        least = checkpoints.FIRST_IMAGE_BYTES
        checkpoints.FIRST_IMAGE_BYTES = 1 << 40
        try:
            return SHAPES[name](folder)
        finally:
            checkpoints.FIRST_IMAGE_BYTES = least
