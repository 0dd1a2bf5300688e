"""Text to syntax tree: `parse(source) -> syntax.Program`.

The tables come from datalog.lark once per process and are kept in the user's cache directory between runs. One lexer serves all
states (Souffle's words are reserved everywhere), so starting costs one regular expression. A text that does not
parse is read again by `recovery`, which says what is wrong, all of it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import lark

from dlog.caches import cache_root, keep, own_content
from dlog.grammar import syntax
from dlog.grammar.actions import READING, Actions, Reading
from dlog.grammar.alike import Alike
from dlog.grammar.automaton import Automaton, Unparsable
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source, Span
from dlog.grammar.tables import read_tables, tables_as_text

GRAMMAR = Path(__file__).with_name("datalog.lark")


def parse(source: Source) -> syntax.Program:
    """The program that `source` says, or DlogError with every syntax error found.

    >>> parse(Source("edge(1, 2).")).items[0].heads[0].name
    'edge'
    """
    _check_characters(source)
    reading = Reading(source)
    token = READING.set(reading)
    try:
        tool = automaton()
        program: syntax.Program = tool.run(source.text, Alike(tool.reserved, _items))
    except Unparsable:
        from dlog.grammar.recovery import diagnose

        reading.problems.clear()
        raise DlogError(diagnose(reading, tables())) from None
    finally:
        READING.reset(token)
    if reading.problems:
        raise DlogError(sorted(reading.problems, key=lambda d: d.labels[0].span.start))
    return program


def _items(text: str) -> tuple[syntax.Item, ...]:
    """The items of a text by itself; none if there are mistakes in it."""
    reading = Reading(Source(text))
    token = READING.set(reading)
    try:
        program: syntax.Program = automaton().run(text)
    except Unparsable:
        return ()
    finally:
        READING.reset(token)
    return () if reading.problems else program.items


def _check_characters(source: Source) -> None:
    """Lone surrogates are no text: they stand for bytes that are no UTF-8, or for nothing."""
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        place = Label(Span(error.start, error.start + 1))
        raise DlogError(Diagnostic("encoding", _no_text(error.object[error.start]), (place,), (), source)) from None


def _no_text(surrogate: str) -> str:
    if "\udc80" <= surrogate <= "\udcff":  # as Python reads what is no UTF-8
        return f"byte 0x{ord(surrogate) - 0xDC00:02x} is not UTF-8"
    return f"{surrogate!r} is a lone surrogate, which is no text"


@cache
def automaton() -> Automaton:
    return Automaton(tables())


@cache
def tables() -> lark.Lark:
    """The LALR tables with the actions; built from the grammar when no usable copy is kept."""
    text = GRAMMAR.read_text()
    kept = _tables_file(text)
    if kept is None:
        return _built(text)
    try:
        return read_tables(own_content(kept), Actions())
    except Exception:  # not there, another's, damaged: whatever Lark makes of it
        made = _built(text)
    with suppress(OSError):  # a folder that cannot be written to is as good as none
        keep(kept, tables_as_text(made))
    return made


def _built(text: str) -> lark.Lark:
    return lark.Lark(
        text,
        parser="lalr",
        lexer="basic",
        start="program",
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=Actions(),
    )


def _tables_file(text: str) -> Path | None:
    """The file of this grammar's tables, in the user's own cache directory, which nobody else can write; None without one."""
    try:
        return cache_root() / f"grammar-{sha256((text + lark.__version__).encode()).hexdigest()[:16]}.json"
    except OSError:
        return None
