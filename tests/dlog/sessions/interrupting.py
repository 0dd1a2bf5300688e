"""SIGINT at every moment of a call at which Python could notice one.

Python looks for signals between bytecodes: when a function is entered, at backward jumps, and after calls. `interrupted` runs a
function once for each such moment in dlog's own code (or some of them), with a SIGINT that arrives there.
"""

from __future__ import annotations

import dis
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_ROOT = Path(__file__).parents[2]
_OWN = tuple(str(_ROOT / folder) + "/" for folder in ("dlog", "engine", "grammar"))
_AFTER = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "FOR_ITER")


class Moments:
    """Counts the moments of a call, or raises SIGINT at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.count = 0
        self.where = ""
        self._previous: dict[int, str] = {}

    def run(self, call: Callable[[], object]) -> BaseException | None:
        """What the call raised."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        except BaseException as error:
            return error
        finally:
            sys.settrace(before)
        return None

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_OWN):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._previous[id(frame)] = "RESUME"
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            if self._previous.get(id(frame), "").startswith(_AFTER):
                self._moment(frame)
            self._previous[id(frame)] = _names(frame)[frame.f_lasti // 2]
        elif event == "return":
            self._previous.pop(id(frame), None)
        return self._step

    def _moment(self, frame: FrameType) -> None:
        self.count += 1
        if self.count == self.at:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
            signal.raise_signal(signal.SIGINT)


_NAMES: dict[Any, list[str]] = {}


def _names(frame: FrameType) -> list[str]:
    """The name of the instruction at each place of the frame's code."""
    code = frame.f_code
    if code not in _NAMES:
        names = [""] * (len(code.co_code) // 2 + 1)
        for instruction in dis.get_instructions(code):
            names[instruction.offset // 2] = instruction.opname
        _NAMES[code] = names
    return _NAMES[code]
