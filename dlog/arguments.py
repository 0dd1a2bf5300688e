"""What users pass to the Python API, checked before anything is done with it.

Every refusal is a DlogError with the code `bad-argument` that names the argument, what is meant, and what came."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

from dlog.grammar.diagnostics import Diagnostic, DlogError

MOST = 2**62
"""No count, and no round, is larger: sums and differences of a few stay within 64 bits."""
MOST_THREADS = 4096


def bad_argument(name: str, meant: str, given: object, *notes: str) -> DlogError:
    """
    >>> str(bad_argument("threads", "a whole number, 1 or more", "2"))
    "`threads` must be a whole number, 1 or more, not '2'"
    """
    return DlogError(Diagnostic("bad-argument", f"`{name}` must be {meant}, not {reprlib.repr(given)}", notes=notes))


def whole(name: str, given: Any, least: int, meant: str, most: int = MOST) -> int:
    """A whole number from `least` to `most`, also one of NumPy's; a bool is none."""
    try:
        number = index(given)
    except TypeError:
        number = None
    if number is None or isinstance(given, bool) or not least <= number <= most:
        raise bad_argument(name, meant, given)
    return number


def whole_or_none(name: str, given: Any, least: int, meant: str, most: int = MOST) -> int | None:
    return None if given is None else whole(name, given, least, meant, most)


def text(name: str, given: Any, meant: str) -> str:
    """A string."""
    if not isinstance(given, str):
        raise bad_argument(name, meant, given)
    return given


def texts(name: str, given: Any, meant: str) -> tuple[str, ...]:
    """Several strings or paths: one alone is a mistake, for it would be taken letter by letter."""
    if not isinstance(given, Sequence | set | frozenset) or isinstance(given, str | bytes):
        raise bad_argument(name, meant, given)
    for one in given:
        if not isinstance(one, str | PathLike):
            raise bad_argument(name, meant, given)
    return tuple(str(one) for one in given)


def path(name: str, given: Any, meant: str) -> str | Path:
    """The name of a file or folder."""
    if not isinstance(given, str | PathLike) or isinstance(given, bytes):
        raise bad_argument(name, meant, given)
    return given if isinstance(given, str) else Path(given)


def truth(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise bad_argument(name, "True or False", given)
    return given


def check_function_or_none(name: str, given: Any, meant: str) -> None:
    if given is not None and not callable(given):
        raise bad_argument(name, meant, given)


def by_relation(name: str, given: Any, meant: str) -> Mapping[str, Any]:
    """Something for each of some relations."""
    if not isinstance(given, Mapping):
        raise bad_argument(name, meant, given, f'a dict from names of relations: {name}={{"edge": ...}}')
    return given


def threads(given: Any) -> int | None:
    return whole_or_none("threads", given, 1, "a whole number, 1 or more", MOST_THREADS)


def memory(given: Any) -> int | None:
    return whole_or_none("memory", given, 1, "a number of bytes, 1 or more")
