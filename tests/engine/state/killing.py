"""Kills writers of a durable state at random instants: `python -m tests.engine.state.killing FOLDER KILLS SEED SYNC`.

A child commits in a loop, with checkpoints in between, and reports each round that was acknowledged through a pipe. The parent
kills it with SIGKILL, opens the state, and compares: all acknowledged rounds are there, at most the one in flight besides, and
every relation is exactly what it was after the last of them. Prints how many rounds survived.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

from tests.engine.state.durable_model import Writer, expected, recover

_ROUND = struct.Struct("<q")
WORDS = (0, 1, 2, 10, 20, 40)
"""Of which a child says some before it is killed, however fast the machine is."""


def write_until_killed(folder: Path, pipe: int, seed: int, sync: str) -> None:
    rng = random.Random(seed)
    writer = Writer(folder, sync)  # type: ignore[arg-type]
    os.write(pipe, _ROUND.pack(-writer.round - 1))  # it is open now
    steps = iter(())
    while True:
        os.write(pipe, _ROUND.pack(writer.commit()))
        if next(steps, True) is True and rng.random() < 0.1:
            steps = writer.checkpoint()  # type: ignore[assignment]


def kill_one(folder: Path, seed: int, sync: str, words: int, patience: float) -> int:
    """Lets a child write until it has said so many words, the first that the state is open, and for a moment more; returns the
    last round it acknowledged, -1 where it did not come so far."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write_until_killed(folder, writing, seed, sync)
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
        raise AssertionError("the writer ended by itself")
    while piece := os.read(reading, 1 << 16):
        told += piece
    os.close(reading)
    rounds = [r for (r,) in _ROUND.iter_unpack(told[: len(told) // _ROUND.size * _ROUND.size]) if r > 0]
    return rounds[-1] if rounds else -1


def write_some(folder: Path) -> int:
    """A few rounds and checkpoints, so that the children inherit the kernels; returns the last round."""
    writer = Writer(folder, "never")
    for _ in range(30):
        writer.commit()
    for _ in writer.checkpoint():
        pass
    writer.store.close()
    recover(folder)
    return writer.round


def main(folder: Path, kills: int, seed: int, sync: str) -> int:
    rng = random.Random(seed)
    last = write_some(folder)
    for k in range(kills):
        acknowledged = max(last, kill_one(folder, seed * 1000 + k, sync, rng.choice(WORDS), rng.uniform(0, 0.01)))
        found = recover(folder)
        if not acknowledged <= found[0] <= acknowledged + 1:
            raise AssertionError(f"kill {k}: {acknowledged} rounds acknowledged, {found[0]} found")
        if found != expected(found[0]):
            raise AssertionError(f"kill {k}: the state after round {found[0]} is another one")
        last = found[0]
    return last


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
