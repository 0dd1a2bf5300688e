"""What Spark says went wrong, without the stacks."""

from __future__ import annotations

import re

_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9]*(?:\.[A-Z_0-9]+)*)\] (.*)")
_CAUSE = re.compile(r"^\s*Caused by: (?:[\w$]+\.)*[\w$]+(?:: (.+))?$", re.MULTILINE)
_CLOSING = re.compile(r"\s*SQLSTATE: \w+.*$")
LENGTH_MAX = 300


def failures() -> tuple[type[Exception], ...]:
    """What calls of Spark raise: PySpark has classes of its own for some of the JVM's exceptions only."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def reason_of(error: BaseException) -> str:
    """The sentence that names the trouble: Spark's condition where it has one, with what caused it."""
    text = str(error)
    condition = _CONDITION.search(text)
    causes = [c for c in _CAUSE.findall(text) if c]
    if condition is None:
        return _sentence(causes[-1] if causes else _last_telling_line(text))
    said = _sentence(condition[2])
    cause = _sentence(_CONDITION.sub(r"\2", causes[-1])) if causes else ""
    return f"{said}: {cause}" if cause and cause not in said and said not in cause else said


def _sentence(text: str) -> str:
    """The first sentence, without a full stop."""
    text = _CLOSING.sub("", text.strip().split("\n", 1)[0])
    first = re.split(r"(?<=[^.])\.\s+(?=[A-Z])", text)[0].rstrip(". ;")
    return first if len(first) <= LENGTH_MAX else f"{first[:LENGTH_MAX]} ..."


def _last_telling_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(("at ", "..."))]
    telling = [line for line in lines if "Exception: " in line or "Error: " in line]
    return (telling or lines or ["no reason given"])[-1]
