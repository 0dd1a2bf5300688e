"""Text files from a directive's point of view: parameters in, tables or bytes out, mistakes told."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlog.engine.formats.columns import Unclear, places
from dlog.engine.formats.mistakes import explain_line, explain_text, names_of
from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.order import sorted_columns
from dlog.engine.formats.parameters import TextFormat, text_format
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.render import MADE, NO_TEXTS, SYMBOL, Rendering, Texts, render
from dlog.engine.formats.text import CODES, BadLine, BadText, load_text, read_bytes
from dlog.engine.ir.rules import Io, Kind, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError

# -------------------------------------------------------------------------------------------------------------- reading


def load_lines(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    path: Path | None,
    threads: int,
) -> Table:
    """Loads a text file, or standard input where `path` is None."""
    file = "<stdin>" if path is None else str(path)
    try:
        data = read_bytes(path)
    except (zlib.error, EOFError) as error:
        raise DlogError(Diagnostic("bad-gzip", f"{file} is not whole gzip: {error}", place=file)) from error
    form = _by_names(data, text_format(io, relation, program), relation, file)
    texts = {i: SymbolTable() for i, kind in enumerate(relation.kinds) if kind is Kind.RECORD}
    try:
        table = load_text(data, relation.kinds, form, symbols, texts, threads)
    except BadLine as mistake:
        raise DlogError(explain_line(mistake.data, mistake.position, file, relation, form)) from None
    except BadText as mistake:
        name = relation.attributes[mistake.attribute][0]
        raise DlogError(explain_text(mistake.data, mistake.start, file, name)) from None
    columns = list(table.columns)
    for i, strings in texts.items():
        try:
            ids = parse_records(strings, relation.attributes[i][1], program.types, symbols, records)
        except BadRecord as mistake:
            raise _record_error(mistake, strings, columns[i], file, relation.attributes[i][0], i, form) from None
        columns[i] = ids[columns[i]]
    return Table(table.kinds, tuple(columns), table.rows)


def _by_names(data: np.ndarray, form: TextFormat, relation: Relation, file: str) -> TextFormat:
    """The format with the columns that the line of names says, if there is one."""
    if not form.headers or form.columns is not None or not len(data) or not relation.arity:
        return form
    line, names = names_of(data, form)
    try:
        found = places([name for name, _ in relation.attributes], names)
    except Unclear as error:
        mistake = Diagnostic("unclear-columns", error.message, notes=error.notes, place=f"{file}:1:1", line=line)
        raise DlogError(mistake) from None
    in_order = found is None or found == tuple(range(len(names)))
    return form if in_order else replace(form, columns=found)


def _record_error(
    mistake: BadRecord, strings: SymbolTable, column: np.ndarray, file: str, name: str, attribute: int, form: TextFormat
) -> DlogError:
    text = strings.text(mistake.index)
    place, where = file, ""
    if not form.rfc4180:  # else a row may take several lines
        line = int(np.argmax(column == mistake.index)) + 1 + form.headers
        field = form.columns[attribute] if form.columns is not None else attribute
        place, where = f"{file}:{line}", f"line {line}, column {field + 1} (`{name}`): "
    return DlogError(Diagnostic("bad-record", f"{where}`{text}` {mistake}", place=place, line=text))


# -------------------------------------------------------------------------------------------------------------- writing


def packs(io: Io) -> bool:
    """Whether an output file is to be gzip."""
    asked = "compress" in dict(io.params) and io.get("compress").lower() != "false"
    return asked or io.get("filename").endswith(".gz")


def pieces(
    io: Io,
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    threads: int,
    headers: bool | None = None,
    packed: bool | None = None,
) -> Iterator[bytes | np.ndarray]:
    """The bytes of a text file: first the line of names (empty without one), then the rows. `headers` and `packed` overrule the
    directive."""
    form = text_format(io, relation, program)
    names = form.delimiter.join(name.encode() for name, _ in relation.attributes) + b"\n"
    first = names if (form.headers if headers is None else headers) else b""
    rows = _rows(relation, program, table, symbols, records, form, threads)
    if packs(io) if packed is None else packed:
        yield from _gzip(first, rows, threads)
    else:
        yield first
        yield from rows


def _rows(
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    form: TextFormat,
    threads: int,
) -> Iterator[np.ndarray]:
    if not table.columns:
        return iter([np.frombuffer(b"()\n", np.uint8)] if table.rows else [])
    columns = list(sorted_columns(table.kinds, table.columns, symbols))
    codes = [SYMBOL if kind is Kind.SYMBOL else CODES[kind] for kind in table.kinds]
    made = NO_TEXTS
    for i, (_, type_) in enumerate(relation.attributes):
        if type_.kind is Kind.RECORD:
            texts, which = record_texts(type_, columns[i], program.types, symbols, records, form.rfc4180)
            columns[i], codes[i] = which + (len(made.offsets) - 1), MADE
            made = Texts(
                np.concatenate([made.data, texts.data]), np.concatenate([made.offsets, made.offsets[-1] + texts.offsets[1:]])
            )
    heap = Texts(*symbols.strings)
    return render(Rendering(tuple(columns), tuple(codes), heap, made, form.delimiter, form.rfc4180), threads)


def _bytes(piece: bytes | np.ndarray) -> bytes | memoryview:
    return piece if isinstance(piece, bytes) else piece.data


def _gzip(first: bytes, rows: Iterator[np.ndarray], threads: int) -> Iterator[bytes]:
    """Packs pieces as gzip members, several at once: readers take them as one stream."""

    def pack(piece: bytes | np.ndarray) -> bytes:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(_bytes(piece)) + packer.flush()

    yield pack(first)
    with ThreadPoolExecutor(threads) as pool:
        waiting = []
        for piece in rows:
            waiting.append(pool.submit(pack, piece))
            if len(waiting) > 2 * threads:
                yield waiting.pop(0).result()
        for member in waiting:
            yield member.result()
