"""Checks of the Python API's arguments, made before anything is done with them.

Every refusal is a DlogError with the code `bad-argument` that names the argument, what is meant, and what came."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.memory import parse_size

MAX_COUNT = 2**62
"""The largest count or round: sums and differences of a few stay within 64 bits."""
MAX_THREADS = 4096


def bad_argument(name: str, meant: str, given: object, *notes: str) -> DlogError:
    """
    >>> print(bad_argument("threads", "a whole number, 1 or more", "2"))
    error: `threads` must be a whole number, 1 or more, not '2'
    """
    return DlogError(Diagnostic("bad-argument", f"`{name}` must be {meant}, not {reprlib.repr(given)}", notes=notes))


def whole(name: str, given: Any, least: int, meant: str, most: int = MAX_COUNT) -> int:
    """A whole number from `least` to `most`, also one of NumPy's; a bool is none."""
    try:
        number = index(given)
    except TypeError:
        number = None
    if number is None or isinstance(given, bool) or not least <= number <= most:
        raise bad_argument(name, meant, given)
    return number


def whole_or_none(name: str, given: Any, least: int, meant: str, most: int = MAX_COUNT) -> int | None:
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


def check_function(name: str, given: Any, meant: str) -> None:
    if not callable(given):
        raise bad_argument(name, meant, given)


def check_function_or_none(name: str, given: Any, meant: str) -> None:
    if given is not None:
        check_function(name, given, meant)


def by_relation(name: str, given: Any, meant: str) -> Mapping[str, Any]:
    """Something for each of some relations."""
    if not isinstance(given, Mapping):
        raise bad_argument(name, meant, given, f'a dict from names of relations: {name}={{"edge": ...}}')
    return given


def threads(given: Any) -> int | None:
    return whole_or_none("threads", given, 1, "a whole number, 1 or more", MAX_THREADS)


def memory(given: Any) -> int | None:
    """Bytes, from a number of them or a size as the command line takes it.

    >>> memory("2G"), memory(100)
    (2147483648, 100)
    """
    meant = 'a number of bytes, 1 or more, or a size such as "512M" or "2G"'
    if not isinstance(given, str):
        return whole_or_none("memory", given, 1, meant)
    try:
        return whole("memory", parse_size(given), 1, meant)
    except ValueError:
        raise bad_argument("memory", meant, given) from None


_DIRECTIVE = re.compile(r"\s*[.#][A-Za-z]+\s")


def _is_like_clauses(line: str) -> bool:
    """Whether a line is what a program on one is like, and no file is called: a directive, a rule, something in parentheses
    that ends with these or with a dot."""
    ended = line.rstrip()
    closed = ended.endswith((".", ")", "}")) and "(" in ended
    return closed or ":-" in line or _DIRECTIVE.match(line) is not None


def program(given: Any) -> str | Path:
    """The text of a program, or the Path of its file: a string with a line break is text, and so is one that looks like clauses
    or directives and does not end in `.dl`, though there may be a file of that name, which anybody may have put there.

    >>> program("a(1).\\n"), program("a(1)."), program(".input a")
    ('a(1).\\n', 'a(1).', '.input a')
    """
    path("program", given, "a file, or the text of a program")
    if not isinstance(given, str):
        return Path(given)
    is_text = "\n" in given or _is_like_clauses(given)
    if is_text and ("\n" in given or not given.endswith(".dl")):
        return given
    if _is_file(given):
        return Path(given)
    if is_text:
        return given
    note = "a string without a line break is a file's name, unless it is a clause or a directive, such as `a(1).` or `.input a`"
    message = f"{reprlib.repr(given)} is neither a file that exists nor the text of a program"
    raise DlogError(Diagnostic("program-file", message, notes=(note,)))


def _is_file(name: str) -> bool:
    try:
        return "\n" not in name and Path(name).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null character
        return False
