"""Patterns that no automaton knows (references, look-around), and what groups capture, tried by Python's `re`: whose time may
double with each byte, and which takes a quarter of an hour to compile some patterns of a megabyte.

So it works in a process of its own, which the system ends after some seconds of work, with or without this one, and gives only
so much memory: a group that is repeated keeps a place for each time. It gets nothing but the pattern and the texts, and imports
nothing but what Python brings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock

import numpy as np

from dlog.engine.values.sizes import byte_size
from dlog.grammar.diagnostics import Diagnostic, DlogError

TRIAL_CPU_SECONDS = 10
"""The processor's seconds for one trial of up to `TEXTS_PER_TRIAL` texts."""
TEXTS_PER_TRIAL = 10_000
CLOCK_PER_CPU_SECONDS = 20
"""Seconds on the clock for each of the processor, on a machine that is busy."""
WRONG_PATTERN_EXIT = 3
"""The exit code for a pattern that is none."""
CAPTURED, CAPTURED_PER_BYTE = 1 << 24, 4
"""Characters that groups may take in one trial, at the least, and for each byte of its texts: look-ahead takes them again."""
TOO_MUCH_EXIT = 4
"""The exit code where they take more."""
TRIAL_BYTES, TRIAL_BYTES_PER_BYTE = 1 << 32, 16
"""Memory that a trial may take where no limit is given: at the least, and for each byte of its texts."""
PYTHON_BYTES = 1 << 25
"""What Python itself takes, which is on nobody's account."""
TOO_LARGE_EXIT = 5
"""The exit code where a trial would take more."""
_WAY_BY_WAY = "references, look-around and captures are tried way by way; matches without take time in proportion to the text"

_room: ContextVar[int | None] = ContextVar("_room", default=None)
_alone = Lock()
"""Held by a trial whose memory is limited: two at once would take twice as much."""

_TRIAL = """
import os, re, struct, sys
sys.excepthook = lambda kind, *other: os._exit(int(sys.argv[9]) if kind is MemoryError else 1)
try:
    import resource
    given, most = int(sys.argv[8]), resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = given if most == resource.RLIM_INFINITY else min(given, most)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # Linux: killed with the process that waits for it, which may be killed itself
    if os.getppid() != int(sys.argv[4]):  # and was before
        sys.exit(1)
except (ImportError, OSError, AttributeError):
    pass
given = sys.stdin.buffer
length, count = struct.unpack("<QQ", given.read(16))
try:
    pattern = re.compile(given.read(length).decode(), re.ASCII)
except (re.error, OverflowError, RecursionError) as error:
    sys.stdout.buffer.write(str(error).encode())
    sys.exit(int(sys.argv[2]))
ends = struct.unpack(f"<{count}Q", given.read(8 * count))
data = given.read()
texts = (data[start:end].decode() for start, end in zip((0, *ends), ends))
if sys.argv[3] == "match":
    sys.stdout.buffer.write(bytes(pattern.fullmatch(text) is not None for text in texts))
else:
    import json
    room = max(int(sys.argv[5]), int(sys.argv[6]) * len(data))
    def groups(match):
        global room
        found = (match.group(0), *match.groups())
        room -= sum(len(text) for text in found if text is not None)
        if room < 0:
            sys.exit(int(sys.argv[7]))
        return found
    found = [[groups(match) for match in pattern.finditer(text)] for text in texts]
    sys.stdout.buffer.write(json.dumps(found).encode())
"""


@contextmanager
def within(room: int) -> Iterator[None]:
    """A block in which trials take so many bytes of memory at most."""
    before = _room.set(room)
    try:
        yield
    finally:
        _room.reset(before)


class WrongPattern(Exception):
    """What `re` does not take; says why."""


def fullmatches(pattern: str, texts: bytes, ends: np.ndarray) -> np.ndarray:
    """Whether the pattern matches each text (UTF-8), told by where it ends. Raises WrongPattern, or DlogError where finding out
    takes too long."""
    out = np.zeros(len(ends), np.bool_)
    for first in range(0, len(ends), TEXTS_PER_TRIAL):
        some = ends[first : first + TEXTS_PER_TRIAL]
        start = int(ends[first - 1]) if first else 0
        said = _run_trial("match", pattern, texts[start : int(some[-1])], some - start)
        if len(said) != len(some):
            raise _too_slow("match", pattern)
        out[first : first + TEXTS_PER_TRIAL] = np.frombuffer(said, np.bool_)
    return out


def captured(pattern: str, texts: Sequence[str]) -> list[list[tuple[int, int, str]]]:
    """For each text what the groups of the pattern take: the number of the match, the group, 0 for all of it, and the text.
    Raises as `fullmatches` does."""
    found: list[list[tuple[int, int, str]]] = []
    for first in range(0, len(texts), TEXTS_PER_TRIAL):
        some = [text.encode() for text in texts[first : first + TEXTS_PER_TRIAL]]
        ends = np.cumsum([len(text) for text in some])
        said = json.loads(_run_trial("regex_captures", pattern, b"".join(some), ends))
        found += [[(n, g, t) for n, groups in enumerate(one) for g, t in enumerate(groups) if t is not None] for one in said]
    return found


def _run_trial(name: str, pattern: str, texts: bytes, ends: np.ndarray) -> bytes:
    """What the process says for the function of a name."""
    source = pattern.encode()
    given = b"".join((np.array([len(source), len(ends)], "<u8").tobytes(), source, ends.astype("<u8").tobytes(), texts))
    command = [sys.executable, "-I", "-S", "-c", _TRIAL, str(TRIAL_CPU_SECONDS), str(WRONG_PATTERN_EXIT), name]
    room = _room.get()
    most = PYTHON_BYTES + (max(TRIAL_BYTES, TRIAL_BYTES_PER_BYTE * len(given)) if room is None else room)
    command += map(str, (os.getpid(), CAPTURED, CAPTURED_PER_BYTE, TOO_MUCH_EXIT, most, TOO_LARGE_EXIT))
    try:
        with nullcontext() if room is None else _alone:
            done = subprocess.run(
                command, input=given, capture_output=True, timeout=CLOCK_PER_CPU_SECONDS * TRIAL_CPU_SECONDS, check=False
            )
    except subprocess.TimeoutExpired:
        raise _too_slow(name, pattern) from None
    except OSError as error:
        message = f'{name}("{pattern}") needs a process of its own: {error.strerror}'
        raise DlogError(Diagnostic("no-process", message)) from error
    if done.returncode == WRONG_PATTERN_EXIT:
        raise WrongPattern(done.stdout.decode())
    if done.returncode == TOO_MUCH_EXIT:
        note = f"that is more than {CAPTURED_PER_BYTE} for each of the texts': look-ahead takes the same ones again and again"
        message = f'{name}("{pattern}") takes more than {CAPTURED:,} characters'
        raise DlogError(Diagnostic("many-captures", message, notes=(note,)))
    if done.returncode == TOO_LARGE_EXIT:
        message = f'out of memory: {name}("{pattern}") takes more than the {byte_size(most)} that there are'
        raise DlogError(Diagnostic("out-of-memory", message, notes=(_WAY_BY_WAY,)))
    if done.returncode:
        raise _too_slow(name, pattern)
    return done.stdout


def _too_slow(name: str, pattern: str) -> DlogError:
    message = f'{name}("{pattern}") takes more than {TRIAL_CPU_SECONDS} seconds on some of the texts'
    return DlogError(Diagnostic("slow-pattern", message, notes=(_WAY_BY_WAY,)))
