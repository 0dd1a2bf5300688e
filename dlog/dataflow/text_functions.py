"""Functions of texts, worked out by Arrow, or by a kernel, for all texts of a column at once. Regular expressions are RE2's.

What is wrong with an argument is said when the function is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dlog.arguments import bad_argument, text, whole
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Kind
from dlog.engine.kernels.values.text_search import match_column
from dlog.engine.values.addresses import address_of
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

Found: TypeAlias = "pa.Array | np.ndarray"
"""What a function gives: an array of Arrow's, or words."""


@dataclass(frozen=True, slots=True, eq=False)
class TextFunction:
    """A function of texts, as it is called behind a column, and what works it out for strings without nulls, of which there are
    some: its values are texts as Arrow has them, others also as words."""

    name: str
    arguments: tuple[Any, ...]
    kind: Kind
    apply: Callable[[pa.Array], Found]

    def __repr__(self) -> str:
        shown = ("literal=True" if each is True else repr(each) for each in self.arguments)
        return f"{self.name}({', '.join(shown)})"


def _has_parts(parts: Sequence[bytes]) -> Callable[[pa.Array], np.ndarray]:
    """Whether a text is some parts, one after the other with anything between them; the first and the last one may be empty."""
    ends, together = np.array([*accumulate(map(len, parts))], np.int64), np.frombuffer(b"".join(parts) or b"\0", np.uint8)

    def find(texts: pa.Array) -> np.ndarray:
        rows, given = len(texts), (address_of(together), address_of(ends), len(ends))
        found = np.empty(rows, np.int64)
        _, offsets, data = texts.buffers()
        start = 0 if data is None else data.address
        match_column(start, offsets.address + 4 * texts.offset, rows, *given, address_of(found))
        return found

    return find


# --------------------------------------------------------------------------------------------------------------- searching


def contains(pattern: Any, literal: bool = False) -> TextFunction:
    part = _bytes("pattern", pattern, "a text" if literal else "a regular expression")
    if literal or not set(pattern) & set(r"\.^$*+?{}[]|()"):
        return TextFunction("contains", (pattern, True), bool, _has_parts((b"", part, b"") if part else (b"", b"")))
    return TextFunction("contains", (pattern,), bool, _matching(pattern))


def starts_with(prefix: Any) -> TextFunction:
    return TextFunction("starts_with", (prefix,), bool, _has_parts((_bytes("prefix", prefix, "a text"), b"")))


def ends_with(suffix: Any) -> TextFunction:
    return TextFunction("ends_with", (suffix,), bool, _has_parts((b"", _bytes("suffix", suffix, "a text"))))


def like(pattern: Any) -> TextFunction:
    r"""SQL's: `%` stands for anything, `_` for one character, and `\` takes the character behind it as it is."""
    parts = like_parts(pattern)
    if any(None in part for part in parts):
        written = (".".join(re.escape(piece) for piece in _pieces(part)) for part in parts)
        return TextFunction("like", (pattern,), bool, _matching(rf"(?s)\A{'.*'.join(written)}\z"))
    found = [_bytes("pattern", "".join(filter(None, part)), "a text") for part in parts]
    some = [part for k, part in enumerate(found) if part or k in (0, len(found) - 1)]
    return TextFunction("like", (pattern,), bool, _has_parts(some))


def like_parts(pattern: Any) -> list[list[str | None]]:
    """What is between the `%` of a pattern: characters, None for any one."""
    parts: list[list[str | None]] = [[]]
    characters = iter(text("pattern", pattern, "a text in which `%` and `_` stand for others"))
    for character in characters:
        if character == "%":
            parts.append([])
        elif character == "\\":
            following = next(characters, None)
            if following is None:
                raise bad_argument("pattern", "a text that does not end in the middle of an escape", pattern)
            parts[-1].append(following)
        else:
            parts[-1].append(None if character == "_" else character)
    return parts


def _pieces(part: Sequence[str | None]) -> list[str]:
    """What is between the characters that may be any."""
    found = [""]
    for character in part:
        if character is None:
            found.append("")
        else:
            found[-1] += character
    return found


def among_texts(wanted: Sequence[str]) -> TextFunction:
    """Whether it is one of some texts."""
    arrow, compute = _arrow(), _compute()
    values = arrow.array([_bytes("values", each, "a list of texts") for each in wanted], arrow.binary()).cast(arrow.string())
    return TextFunction("is_in", (list(wanted),), bool, lambda texts: compute.is_in(texts, value_set=values))


def _matching(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Whether a regular expression is found. Raises DlogError where it is none."""
    compute, arrow = _compute(), _arrow()

    def match(texts: pa.Array) -> pa.Array:
        return compute.match_substring_regex(texts, pattern)

    try:
        match(arrow.array(["a"]))
    except arrow.ArrowInvalid as error:
        note = "`literal=True` takes it as a text"
        raise bad_argument("pattern", f"a regular expression ({error})", pattern, note) from None
    return match


# ----------------------------------------------------------------------------------------------------- lengths, other texts


def len_bytes() -> TextFunction:
    return TextFunction("len_bytes", (), int, _compute().binary_length)


def len_chars() -> TextFunction:
    return TextFunction("len_chars", (), int, _compute().utf8_length)


def to_uppercase() -> TextFunction:
    return TextFunction("to_uppercase", (), str, _letters(_compute().ascii_upper, _compute().utf8_upper))


def to_lowercase() -> TextFunction:
    return TextFunction("to_lowercase", (), str, _letters(_compute().ascii_lower, _compute().utf8_lower))


def _letters(of_ascii: Callable[[Any], Any], of_all: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The one of two functions that is enough: that of ASCII takes a tenth of the time."""
    compute = _compute()

    def change(texts: pa.Array) -> pa.Array:
        return (of_ascii if compute.all(compute.string_is_ascii(texts)).as_py() else of_all)(texts)

    return change


def strip_chars(characters: Any = None) -> TextFunction:
    compute = _compute()
    if characters is None:
        return TextFunction("strip_chars", (), str, compute.utf8_trim_whitespace)
    _bytes("characters", characters, "a text, of the characters to take away, or None for white space")
    return TextFunction("strip_chars", (characters,), str, lambda texts: compute.utf8_trim(texts, characters))


def slice_text(offset: Any, length: Any = None) -> TextFunction:
    start = whole("offset", offset, -(2**31), "a whole number: of a character, from the end where it is negative", 2**31)
    stop: int | None = None
    if length is not None:
        stop = start + whole("length", length, 0, "a whole number of characters, 0 or more, or None", 2**31)
        stop = None if start < 0 <= stop else stop
    compute, given = _compute(), (start,) if length is None else (start, int(length))
    return TextFunction("slice", given, str, lambda texts: compute.utf8_slice_codeunits(texts, start, stop))


def replace_all(old: Any, new: Any, literal: bool = False) -> TextFunction:
    _bytes("old", old, "a text" if literal else "a regular expression")
    _bytes("new", new, "a text")
    if not old:
        raise bad_argument("old", "something to be found, one character or more", old)
    compute = _compute()
    if literal:
        return TextFunction("replace_all", (old, new, True), str, lambda texts: compute.replace_substring(texts, old, new))
    _matching(old)
    written = _rewrite(new)

    def replace(texts: pa.Array) -> pa.Array:
        return compute.replace_substring_regex(texts, old, written)

    try:
        replace(_arrow().array(["a"]))
    except _arrow().ArrowInvalid as error:
        raise bad_argument("new", f"a text with groups that the expression has ({error})", new) from None
    return TextFunction("replace_all", (old, new), str, replace)


def _rewrite(new: str) -> str:
    r"""A replacement with `$1` or `${1}` for groups, and `$$` for a dollar, as RE2 has it: `\1`."""

    def written(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is None or len(number := found[1].strip("{}")) > 1:
            note = "`$1` or `${1}` up to 9 stand for groups, by number, `$$` is a dollar; `literal=True` takes `$` as it is"
            raise bad_argument("new", "a text with numbers of groups behind `$`", new, note)
        return rf"\{number}"

    return re.sub(r"\$(?:\$|(\d+|\{\d+\})|)", written, new.replace("\\", r"\\"))


# ----------------------------------------------------------------------------------------------------------------- helpers


def _bytes(name: str, given: Any, meant: str) -> bytes:
    """A text in UTF-8. Raises DlogError for what is none."""
    try:
        return text(name, given, meant).encode()
    except UnicodeEncodeError as error:
        raise DlogError(Diagnostic("bad-argument", f"`{name}` is no text: {error}")) from None


def _arrow() -> Any:
    """The library, imported when it is needed."""
    import pyarrow

    return pyarrow


def _compute() -> Any:
    import pyarrow.compute

    return pyarrow.compute
