"""Kills sessions on disk at random instants: `python -m tests.dlog.persistence.state_killing FOLDER KILLS SEED`.

Some of the changes come as frames, whose rows are files that the log names.

A child commits in a loop, single rounds and several at once, with checkpoints running beside and now and then a close and a new
opening. It says through a pipe which round it is about to commit and which one was acknowledged. The parent kills it with
SIGKILL, opens the state and compares: it is at the last acknowledged round or at the one that was under way, and every relation
is what the program gives for the inputs of that round. Prints how many rounds survived.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

import dlog
from dlog.sessions.persistence import checkpoints, external_relation, external_relations, recovery
from tests.dlog.persistence.state_frames import taking_frames
from tests.dlog.persistence.state_model import PROGRAM, check, commit

_ROUND = struct.Struct("<q")
_OPEN = 1 << 40
"""Told when the session is open."""
WORDS = (0, 4, 8, 20, 40, 80)
"""Of which a child says some before it is killed, however fast the machine is: two when it is open, two for each commit."""


def commit_until_killed(folder: Path, pipe: int, seed: int, rng: random.Random) -> None:
    while True:
        session = dlog.session(PROGRAM, state=folder, sync=rng.choice(("always", "often", "never")), threads=1)
        os.write(pipe, _ROUND.pack(session.round) + _ROUND.pack(_OPEN))
        while rng.random() > 0.02:
            rounds = rng.choice((1, 1, 1, 3))
            os.write(pipe, _ROUND.pack(-session.round - rounds))
            os.write(pipe, _ROUND.pack(commit(session, seed, rounds, rng.random() < 0.3)))
        session.close()


def kill_one(folder: Path, seed: int, rng: random.Random) -> tuple[int, int]:
    """Lets a child commit until it has said some words, and for a moment more; returns the last round it acknowledged and the
    one it was about to commit, 0 for what did not come so far."""
    reading, writing = os.pipe()
    words, patience, its = rng.choice(WORDS), rng.expovariate(20), random.Random(rng.random())
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            commit_until_killed(folder, writing, seed, its)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    told = b""
    while len(told) < words * _ROUND.size and (piece := os.read(reading, words * _ROUND.size - len(told))):
        told += piece
    time.sleep(patience)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("the session ended by itself")
    while piece := os.read(reading, 1 << 16):
        told += piece
    os.close(reading)
    rounds = [r for (r,) in _ROUND.iter_unpack(told[: len(told) // _ROUND.size * _ROUND.size]) if r != _OPEN]
    return max([0, *rounds]), max([0, *(-r for r in rounds)])


def main(folder: Path, kills: int, seed: int) -> int:
    rng = random.Random(seed)
    checkpoints.MIN_LOG_BYTES = 400  # so that there is a checkpoint under way most of the time
    checkpoints.MIN_IMAGE_LOG_BYTES = rng.choice((0, 1500))  # with what the engine keeps, always or now and then
    recovery.MIN_ROWS_PER_CHANGE = 0  # which is gone on from whatever has changed since
    external_relation.MAX_SMALL_CHUNKS = 2  # and changes pile up meanwhile
    external_relation.MIN_LARGE_ROWS = rng.choice((2, 1 << 14))
    external_relations.MAX_BULK_CHANGES = 3  # and lots are made one
    warm = folder / "warm"
    with dlog.session(PROGRAM, state=warm, threads=1) as session:  # the children inherit the kernels
        for _ in range(30):
            commit(session, seed, rng.choice((1, 3)), rng.random() < 0.3)
    check(warm, seed, close=True)
    folder = folder / "state"
    last = check(folder, seed, close=False)
    for k in range(kills):
        acknowledged, under_way = kill_one(folder, seed, rng)
        found = check(folder, seed, close=rng.random() < 0.3)
        if found != max(acknowledged, last) and found != under_way:
            raise AssertionError(
                f"kill {k}: {acknowledged} is acknowledged, {under_way} under way, {last} before, {found} found"
            )
        last = found
    return last


if __name__ == "__main__":
    with taking_frames():
        print(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
