"""Patterns that no automaton knows (references, look-around), tried by Python's `re`: whose time may double with each byte, and
which takes a quarter of an hour to compile some patterns of a megabyte.

So it works in a process of its own, which the system ends after some seconds of work, with or without this one. It gets nothing
but the pattern and the texts, and imports nothing but what Python brings.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from dlog.grammar.diagnostics import Diagnostic, DlogError

TRIAL_CPU_SECONDS = 10
"""The processor's seconds for one trial of up to `TEXTS_PER_TRIAL` texts."""
TEXTS_PER_TRIAL = 10_000
CLOCK_PER_CPU_SECONDS = 20
"""Seconds on the clock for each of the processor, on a machine that is busy."""
WRONG_PATTERN_EXIT = 3
"""The exit code for a pattern that is none."""

_TRIAL = """
import re, struct, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
given = sys.stdin.buffer
length, count = struct.unpack("<QQ", given.read(16))
try:
    pattern = re.compile(given.read(length).decode(), re.ASCII)
except (re.error, OverflowError, RecursionError) as error:
    sys.stdout.buffer.write(str(error).encode())
    sys.exit(int(sys.argv[2]))
ends = struct.unpack(f"<{count}Q", given.read(8 * count))
texts = given.read()
found = (pattern.fullmatch(texts[start:end].decode()) is not None for start, end in zip((0, *ends), ends))
sys.stdout.buffer.write(bytes(found))
"""


class WrongPattern(Exception):
    """What `re` does not take; says why."""


def fullmatches(pattern: str, texts: bytes, ends: np.ndarray) -> np.ndarray:
    """Whether the pattern matches each text (UTF-8), told by where it ends. Raises WrongPattern, or DlogError where finding out
    takes too long."""
    out = np.zeros(len(ends), np.bool_)
    for first in range(0, len(ends), TEXTS_PER_TRIAL):
        some = ends[first : first + TEXTS_PER_TRIAL]
        start = int(ends[first - 1]) if first else 0
        out[first : first + TEXTS_PER_TRIAL] = _tried(pattern, texts[start : int(some[-1])], some - start)
    return out


def _tried(pattern: str, texts: bytes, ends: np.ndarray) -> np.ndarray:
    source = pattern.encode()
    given = b"".join((np.array([len(source), len(ends)], "<u8").tobytes(), source, ends.astype("<u8").tobytes(), texts))
    command = [sys.executable, "-I", "-S", "-c", _TRIAL, str(TRIAL_CPU_SECONDS), str(WRONG_PATTERN_EXIT)]
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, timeout=CLOCK_PER_CPU_SECONDS * TRIAL_CPU_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _too_slow(pattern) from None
    except OSError as error:
        message = f"a pattern with references or look-around needs a process of its own: {error.strerror}"
        raise DlogError(Diagnostic("no-process", message)) from error
    if done.returncode == WRONG_PATTERN_EXIT:
        raise WrongPattern(done.stdout.decode())
    if done.returncode or len(done.stdout) != len(ends):
        raise _too_slow(pattern)
    return np.frombuffer(done.stdout, np.bool_)


def _too_slow(pattern: str) -> DlogError:
    message = f'match("{pattern}") takes more than {TRIAL_CPU_SECONDS} seconds on some of the texts'
    note = "references and look-around are tried way by way; patterns without them take time in proportion to the text"
    return DlogError(Diagnostic("slow-pattern", message, notes=(note,)))
