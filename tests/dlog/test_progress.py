"""The live display: on a terminal, after a while, and nowhere else."""

import io
import os
import pty
import time
from dataclasses import dataclass

from dlog.display.progress import Display, Loading, Writing, describe


@dataclass(frozen=True, slots=True)
class Evaluating:
    """What the executor reports."""

    stratum: int
    strata: int
    relations: tuple[str, ...]
    iteration: int
    delta: int
    rows: int
    bytes: int


STEP = Evaluating(2, 3, ("path",), 17, 1200, 34000, 1 << 20)


def shown_on_a_terminal(delay: float, seconds: float) -> str:
    """What a display of STEP writes to a pseudo-terminal in `seconds`."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, Display(terminal, delay) as display:
        display.show(STEP)
        time.sleep(seconds)
    os.set_blocking(master, False)
    try:
        return os.read(master, 1 << 16).decode()
    except (BlockingIOError, OSError):
        return ""
    finally:
        os.close(master)


def test_a_terminal_shows_stratum_iteration_delta_and_totals() -> None:
    text = shown_on_a_terminal(delay=0.0, seconds=0.6)
    for part in ("stratum 2/3", "path", "iteration 17", "+1,200", "34,000 tuples"):
        assert part in text


def test_a_short_run_shows_nothing() -> None:
    assert shown_on_a_terminal(delay=5.0, seconds=0.1) == ""


def test_a_pipe_shows_nothing() -> None:
    stream = io.StringIO()
    with Display(stream, delay=0.0) as display:
        display.show(STEP)
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_closing_before_it_appeared_keeps_it_away() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        display = Display(terminal, 0.0)
        display.close()
        display._appear()
        assert display._live is None
    os.close(master)


def test_each_stage_has_its_line() -> None:
    assert describe(None, 1.0) == "compiling"
    assert describe(Loading(1, 4, 5000), 2.0) == "loading 1/4 inputs | 5,000 rows | 2,500/s"
    assert describe(Writing(0, 2), 1.0) == "writing 0/2 outputs"
    assert describe(STEP, 2.0) == "stratum 2/3 path | iteration 17 | +1,200 | 34,000 tuples | 17,000/s"


def test_a_large_stratum_is_cut_short() -> None:
    many = Evaluating(1, 1, tuple(f"relation_{i}" for i in range(40)), 0, 0, 0, 0)
    assert "..." in describe(many, 0.0)
    assert len(describe(many, 0.0)) < 140
