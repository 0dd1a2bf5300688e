"""Ctrl-C ends a process that cannot react, and leaves one alone that can."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dlog.interruption import prompt_interruption

BUSY = """
import hashlib
from dlog.interruption import prompt_interruption
with prompt_interruption(0.3):
    print("ready", flush=True)
    # One call without the GIL that never looks at signals.
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100_000_000)
"""

WHOLE = """
import hashlib, sys
from dlog.interruption import prompt_interruption, whole
with prompt_interruption(0.1):
    with whole():
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000)
        print("all is written", file=sys.stderr, flush=True)
"""

ATTENTIVE = """
import time
from dlog.interruption import prompt_interruption
with prompt_interruption(5):
    print("ready", flush=True)
    time.sleep(20)
"""


IN_A_FINALIZER = """
import signal, time
from dlog.interruption import heeded_interruption
class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
with heeded_interruption():
    try:
        held = Held()
        del held
        time.sleep(20)
    except KeyboardInterrupt:
        print("heeded")
"""


def interrupt(program: str) -> tuple[int, float, str]:
    """Exit code, seconds from the signal to the end, and standard error of a program that gets SIGINT once it is ready."""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    return process.returncode, time.perf_counter() - started, errors


def test_a_process_deep_in_foreign_code_ends_after_the_grace_period() -> None:
    code, seconds, errors = interrupt(BUSY)
    assert (code, errors) == (130, "interrupted\n")
    assert seconds < 10  # about one, on a machine that is not busy


def test_an_interruption_waits_for_what_is_to_be_whole() -> None:
    code, _, errors = interrupt(WHOLE)
    assert code == -signal.SIGINT and "KeyboardInterrupt" in errors and "all is written" in errors


def test_a_process_that_reacts_raises_keyboard_interrupt_as_ever() -> None:
    code, seconds, errors = interrupt(ATTENTIVE)
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert seconds < 10  # about one, on a machine that is not busy


@pytest.mark.slow
def test_an_interruption_that_hits_a_finalizer_is_not_lost() -> None:
    process = subprocess.run([sys.executable, "-c", IN_A_FINALIZER], capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (0, "heeded\n", "")


def test_the_wakeup_descriptor_is_given_back() -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with prompt_interruption():
        pass
    after = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(after)
    assert after == before


def test_elsewhere_than_in_the_main_thread_nothing_is_installed() -> None:
    def block() -> str:
        with prompt_interruption():
            return "ran"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(block).result() == "ran"


@pytest.mark.parametrize("exception", [ValueError, KeyboardInterrupt])
def test_exceptions_pass_through(exception: type[BaseException]) -> None:
    with pytest.raises(exception), prompt_interruption():
        raise exception
