"""Text files from a directive's point of view: parameters in, tables or bytes out, mistakes told."""

from __future__ import annotations

import warnings
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, lookup
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from dlog.engine.formats.budget import Part
from dlog.engine.formats.columns import Unclear, places
from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.order import sorted_columns
from dlog.engine.formats.parameters import TextFormat, directive_error, text_format
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.render import NO_TEXTS, SYMBOL, TEXT, Rendering, Texts, render
from dlog.engine.formats.text import column_code, load_text, read_bytes
from dlog.engine.formats.wrong_lines import names_of
from dlog.engine.formats.wrong_rows import MAX_TOLD_MISTAKES, wrong_rows
from dlog.engine.ir.rules import Io, Kind, Program, Relation, Type
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line

# -------------------------------------------------------------------------------------------------------------- reading


def load_lines(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    path: Path | None,
    folder: Path,
    threads: int,
    budget: Part,
) -> Table:
    """Loads a text file, or standard input where `path` is None. What `folder` has is found by relative names."""
    file = "<stdin>" if path is None else str(path)
    data = text_of(io, program, path, file, budget)
    form = _with_columns(data, _by_suffix(data, io, text_format(io, relation, program), relation, file), relation, file)
    texts = {i: SymbolTable() for i, kind in enumerate(relation.kinds) if kind is Kind.RECORD}
    wrong = wrong_rows(io, program, relation, form, file, folder)
    types = tuple(type_ for _, type_ in relation.attributes)
    table = load_text(
        data,
        types,
        form,
        symbols,
        texts,
        threads,
        wrong.line,
        MAX_TOLD_MISTAKES if wrong.refuses else len(data),
        partial(budget.take, file=file),
    )
    columns, good = list(table.columns), np.ones(table.rows, bool)
    for i, strings in texts.items():
        type_ = relation.attributes[i][1]
        ids, bad = _parsed_records(strings, type_, program, symbols, records)
        for row in np.flatnonzero(np.isin(columns[i], list(bad)) & good).tolist() if bad else ():
            line, text = wrong.line_of(data, row), columns[i][row]
            name = relation.attributes[i][0]
            wrong.row(data, line, partial(_record_mistake, bad[text], strings.text(text), line, file, name, i, form))
            good[row] = False
        columns[i] = ids[columns[i]]
    wrong.settle(data)
    if good.all():
        return Table(table.kinds, tuple(columns), table.rows)
    return Table(table.kinds, tuple(column[good] for column in columns), int(good.sum()))


def text_of(io: Io, program: Program, path: Path | None, file: str, budget: Part) -> np.ndarray:
    """The bytes of a file as UTF-8, unpacked and decoded as `encoding` says."""
    try:
        data = read_bytes(path, budget, file)
    except (zlib.error, EOFError) as error:
        raise DlogError(Diagnostic("bad-gzip", f"{file} is not whole gzip: {error}", place=file)) from error
    if not (encoding := io.get("encoding")):
        if data[:2].tobytes() in (BOM_UTF16_LE, BOM_UTF16_BE):
            note = 'encoding="utf-16" reads it'
            raise DlogError(Diagnostic("encoding", f"{file} is UTF-16, by its first bytes", notes=(note,), place=file))
        return data
    try:
        if lookup(encoding).name == "utf-8":
            return data
        return np.frombuffer(data.tobytes().decode(encoding).encode(), np.uint8)
    except (LookupError, TypeError):
        raise directive_error(io, program, "bad-parameter", f"encoding={encoding!r} is not known") from None
    except UnicodeError as error:
        where = f"byte {error.start + 1}: " if isinstance(error, UnicodeDecodeError) else ""
        raise DlogError(Diagnostic("encoding", f"{where}{file} is not {encoding}", place=file)) from None


def _by_suffix(data: np.ndarray, io: Io, form: TextFormat, relation: Relation, file: str) -> TextFormat:
    """A file called .csv has commas, and may have quotes, where nothing else is said, its first line has some, and no tab:
    Souffle could not read such a file."""
    said = {key for key, _ in io.params} & {"delimiter", "rfc4180"}
    if said or not file.removesuffix(".gz").endswith(".csv"):
        return form
    commas = replace(form, delimiter=b",")
    line, names = names_of(data, commas)
    wanted = form.names or tuple(name for name, _ in relation.attributes)
    if "\t" in line or "," not in line or (relation.arity == 1 and not (form.headers and wanted[0] in names)):
        return form
    return replace(commas, rfc4180=bool((data == ord('"')).any()))


def _with_columns(data: np.ndarray, form: TextFormat, relation: Relation, file: str) -> TextFormat:
    """The format with the columns that the line of names says, if there is one. Columns behind those that are wanted are left
    out, as in Souffle, with a warning, where the first line has some: one that has more than others has is wrong."""
    if form.columns is not None or not len(data) or not relation.arity:
        return form
    line, names = names_of(data, form)
    if form.headers:
        wanted = form.names or tuple(name for name, _ in relation.attributes)
        if form.names and (missing := [name for name in wanted if name not in names]):
            message = f"no column of {file} is called `{missing[0]}`"
            notes = (f"its columns are {', '.join(names)}",)
            raise DlogError(Diagnostic("unclear-columns", message, notes=notes, place=f"{file}:1:1", line=line))
        try:
            found = places(wanted, names)
        except Unclear as error:
            mistake = Diagnostic("unclear-columns", error.message, notes=error.notes, place=f"{file}:1:1", line=line)
            raise DlogError(mistake) from None
        if found is not None:
            return form if found == tuple(range(len(names))) else replace(form, columns=found)
    if len(names) <= relation.arity:
        return form
    first = "the first of them is" if relation.arity == 1 else f"the first {relation.arity} of them are"
    message = f"line 1 of {file} has {len(names)} columns: {first} read for `{relation.name}`"
    warnings.warn(one_line(message), RuntimeWarning, stacklevel=4)
    return replace(form, columns=tuple(range(relation.arity)))


def _parsed_records(
    strings: SymbolTable, type_: Type, program: Program, symbols: SymbolTable, records: RecordTables
) -> tuple[np.ndarray, dict[int, BadRecord]]:
    """The record of each text, nil for those that are none, and these: found by halves, so that few cost little."""
    try:
        return parse_records(strings, type_, program.types, symbols, records), {}
    except BadRecord as mistake:
        if len(strings) == 1:
            return np.zeros(1, np.int32), {0: mistake}
    ids, bad, middle = [], dict[int, BadRecord](), len(strings) // 2
    heap, offsets = strings.strings
    for begin, end in ((0, middle), (middle, len(strings))):
        half = SymbolTable()
        half.intern_slices(heap, offsets[begin:end], offsets[begin + 1 : end + 1])
        own, wrong = _parsed_records(half, type_, program, symbols, records)
        ids.append(own)
        bad |= {begin + index: mistake for index, mistake in wrong.items()}
    return np.concatenate(ids), bad


def _record_mistake(
    mistake: BadRecord, text: str, line: int, file: str, name: str, attribute: int, form: TextFormat
) -> Diagnostic:
    place, where = file, ""
    if not form.rfc4180:  # else a row may take several lines
        field = form.columns[attribute] if form.columns is not None else attribute
        place, where = f"{file}:{line}", f"line {line}, column {field + 1} (`{name}`): "
    return Diagnostic("bad-record", f"{where}`{text}` {mistake}", place=place, line=text)


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
    codes = [SYMBOL if t.kind is Kind.SYMBOL else column_code(t) for _, t in relation.attributes]
    made = NO_TEXTS
    for i, (_, type_) in enumerate(relation.attributes):
        if type_.kind is Kind.RECORD:
            texts, which = record_texts(type_, columns[i], program.types, symbols, records, form.rfc4180)
            columns[i], codes[i] = which + (len(made.offsets) - 1), TEXT
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
