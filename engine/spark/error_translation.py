"""Translates Spark's errors: what went wrong, without the stacks."""

from __future__ import annotations

import re
import sys

DISTRIBUTION = "dlog-engine"
"""What pip calls dlog: on the package index the name `dlog` is another project's."""
_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9]*(?:\.[A-Z_0-9]+)*)\] (.*)")
_CAUSE = re.compile(r"^\s*Caused by: (?:[\w$]+\.)*[\w$]+(?:: (.+))?$", re.MULTILINE)
_LOST = re.compile(r"ExecutorLostFailure \([^)]*\) Reason: (.+)")
_WRAPPED = re.compile(r"^(?:Job aborted)?:? *org\.apache\.spark\.SparkException: ")
_OVER_MEMORY = re.compile(r"memory limits|exit (?:code|status):? (?:137|143)|[Cc]ontainer OOM|exited with code 137")
_CLOSING = re.compile(r"\s*SQLSTATE: \w+.*$")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
LENGTH_MAX = 300


def failures() -> tuple[type[Exception], ...]:
    """The exceptions that calls of Spark raise: PySpark has classes of its own for some of the JVM's exceptions only."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def reason_of(error: BaseException) -> str:
    """The sentence that names the trouble: Spark's condition where it has one, with what caused it."""
    text = str(error)
    lost = _LOST.findall(text)
    if lost:
        return f"it lost an executor: {_sentence(lost[-1])}"
    absent = _NO_MODULE.search(text)
    if absent is not None:
        return f"its Python workers have no module {absent[1]}"
    condition = _CONDITION.search(text)
    causes = [c for c in _CAUSE.findall(text) if c]
    if condition is None:
        return _sentence(causes[-1] if causes else _last_telling_line(text))
    said = _sentence(condition[2])
    cause = _sentence(_CONDITION.sub(r"\2", causes[-1])) if causes else ""
    return f"{said}: {cause}" if cause and cause not in said and said not in cause else said


def advice(error: BaseException) -> tuple[str, ...]:
    """Advice on trouble that has to do with where executors run."""
    text = str(error)
    if any(_OVER_MEMORY.search(reason) for reason in _LOST.findall(text)):
        return (
            "workers keep rows outside Java's heap: give executors more spark.executor.memoryOverhead, or take more of them",
        )
    if _NO_MODULE.search(text) or "[PYTHON_VERSION_MISMATCH]" in text:
        return (
            f"before Spark starts, set PYSPARK_PYTHON to a Python that is on all of its machines and has {DISTRIBUTION}[spark]",
            f"where they have the files of this one, that is PYSPARK_PYTHON={sys.executable}",
        )
    if "pyspark.daemon" in text and "port number" in text:
        return ("an executor's log says why; on YARN spark.python.unix.domain.socket.enabled must be false",)
    return ()


def _sentence(text: str) -> str:
    """The first sentence, without a full stop."""
    text = _CLOSING.sub("", text.strip().split("\n", 1)[0])
    first = re.split(r"(?<=[^.])\.\s+(?=[A-Z])", text)[0].rstrip(". ;")
    return first if len(first) <= LENGTH_MAX else f"{first[:LENGTH_MAX]} ..."


def _last_telling_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(("at ", "..."))]
    telling = [line for line in lines if "Exception: " in line or "Error: " in line]
    return _WRAPPED.sub("", (telling or lines or ["no reason given"])[-1])
