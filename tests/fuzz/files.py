"""Files of facts and streams of changes, in each format, with bytes that are wrong: the command line must end with 0 or 1.

`mutant(seed, number)` is always the same `Files`: a program that copies its input to an output, the input's file, and the
arguments of `dlog run` or `dlog watch`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.programs import Outcome

Row = tuple[Any, ...]

TYPES = """.type List = [head: number, tail: List]
.type Tree = Tip {s: symbol} | Node {left: Tree, n: number, right: Tree} | Leaf {}
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, -1, 2**63 - 1, -(2**63)),
    "unsigned": (0, 1, 2**64 - 1),
    "float": (0.5, -1.25, 1e300, 5e-324, float("inf")),
    "symbol": ("a", "", "é", "🙂", "a b", 'say "x"', "a,b", "[1]"),
    "List": ("nil", "[1, nil]", "[1, [2, nil]]"),
    "Tree": ("$Leaf", '$Tip("a")', "$Node($Leaf, 1, $Leaf)"),
    "date": ("2024-02-29", "1969-12-31", "9999-12-31"),
    "timestamp": ("2024-02-29T12:00:00", "1969-12-31T23:59:59.999999"),
}
TEXTUAL = ("facts", "csv", "json", "ndjson", "gz")
BINARY = ("parquet", "arrow", "sqlite")


@dataclass(frozen=True)
class Files:
    """What one run of the command finds in its folder, and its arguments."""

    arguments: tuple[str, ...]
    contents: Mapping[str, bytes]

    def __str__(self) -> str:
        shown = (f"--- {name}\n{content!r}" for name, content in self.contents.items() if name != "p.dl")
        return "\n".join([f"dlog {' '.join(self.arguments)}", self.contents["p.dl"].decode(), *shown])


def attempt(files: Files) -> Outcome:
    """The command in a folder of its own."""
    from dlog.__main__ import run_command

    for path in Path.cwd().iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in files.contents.items():
        Path(name).write_bytes(content)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in "oe")
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_command([*files.arguments, "--debug"])
        except MemoryError:
            return Outcome("slow")
    if code in (0, 1):
        return Outcome("refused" if code else "ok")
    said = err.buffer.getvalue().decode("utf-8", "replace")
    frames = re.findall(r'File "[^"]*/dlog/([^"]+)", line (\d+)', said)
    return Outcome(f"exit {code} in {':'.join(frames[-1]) if frames else '?'}", said[-3000:])


# ----------------------------------------------------------------------------------------------------------------- files


def mutant(seed: int, number: int) -> Files:
    """The files with this number."""
    random = Random(f"{seed}:{number}:files")
    types = random.choices(sorted(VALUES), k=random.choice((1, 2, 2, 3, 5)))
    rows = [tuple(random.choice(VALUES[t]) for t in types) for _ in range(random.choice((0, 1, 3, 8)))]
    files = _stream(types, rows, random) if random.random() < 0.4 else _facts(types, rows, random)
    changed = next(name for name in files.contents if name != "p.dl")
    content = files.contents[changed]
    for _ in range(random.choice((0, 1, 1, 1, 2, 5))):
        content = random.choice(MUTATIONS)(content, random)
    return replace(files, contents={**files.contents, changed: content})


def _program(types: list[str], parameters: str, output: str) -> bytes:
    columns = ", ".join(f"c{i}: {t}" for i, t in enumerate(types))
    names = ", ".join(f"c{i}" for i in range(len(types)))
    return (
        f"{TYPES}.decl r({columns})\n.decl copy({columns})\n.decl n(n: number)\n.input r{parameters}\n"
        f".output n\n.output copy{output}\n"
        f"copy({names}) :- r({names}).\nn(n) :- n = count : {{ r({', '.join('_' * len(types))}) }}.\n"
    ).encode()


OUTPUTS = (
    *("", "", "(IO=stdout)", "(compress=true)", '(filename="o.csv", rfc4180=true, headers=true)', '(filename="o.json")'),
    *('(filename="o.ndjson")', '(filename="o.parquet")', '(filename="o.arrow")', '(IO=sqlite, dbname="o.sqlite")'),
)
PARAMETERS = (', errors="skip"', ', errors="reject:wrong.txt"', ', encoding="latin-1"', ', encoding="utf-16"')
FLAGS = (("--progress",), ("--snapshot",), ("--format", "json"), ("--key", "copy=c0"), ("--up-to", "3"), ("-D", "."))


def _facts(types: list[str], rows: list[Row], random: Random) -> Files:
    times = {"date", "timestamp"} & set(types)
    kind = random.choice((*TEXTUAL, *TEXTUAL) if times else (*TEXTUAL, *TEXTUAL, *BINARY))
    name, parameters, content = WRITERS[kind](types, rows, random)
    if kind in TEXTUAL and random.random() < 0.3:
        parameters += random.choice(PARAMETERS)
    flags = ("--memory", "2G") + (("--word-size", "32") if random.random() < 0.2 else ())
    program = _program(types, f"({parameters})", random.choice(OUTPUTS))
    return Files(("run", "p.dl", "-j", "1", *flags), {name: content, "p.dl": program})


def _delimited(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    delimiter = random.choice(("\t", "\t", "\t", ",", "|", "::", " "))
    text = "".join(delimiter.join(map(str, row)) + "\n" for row in rows)
    headers = random.random() < 0.2
    head = delimiter.join(f"c{i}" for i in range(len(types))) + "\n" if headers else ""
    columns = ', columns="' + ":".join(str(i) for i in range(len(types))) + '"' if random.random() < 0.1 else ""
    shown = delimiter.replace("\t", "\\t")
    return "r.facts", f'delimiter="{shown}"{", headers=true" if headers else ""}{columns}', (head + text).encode()


def _quoted(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    text = io.StringIO()
    writer = csv.writer(text)
    headers = random.random() < 0.5
    if headers:
        writer.writerow(f"c{i}" for i in range(len(types)))
    writer.writerows(rows)
    return "r.csv", f'filename="r.csv", rfc4180=true{", headers=true" if headers else ""}', text.getvalue().encode()


def _as_json(types: list[str], row: Row, random: Random) -> Any:
    shown = [_nested(value) if t == "List" else value for t, value in zip(types, row, strict=True)]
    return {f"c{i}": value for i, value in enumerate(shown)} if random.random() < 0.5 else shown


def _nested(text: str) -> Any:
    return json.loads(text.replace("nil", "null"))


def _json(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    content = json.dumps([_as_json(types, row, random) for row in rows], ensure_ascii=random.random() < 0.5)
    return "r.json", 'filename="r.json"', content.encode()


def _ndjson(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    return "r.ndjson", 'filename="r.ndjson"', "".join(f"{json.dumps(_as_json(types, r, random))}\n" for r in rows).encode()


def _packed(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    _, parameters, content = _delimited(types, rows, random)
    return "r.facts.gz", f'filename="r.facts.gz", {parameters}', gzip.compress(content, mtime=0)


def _table(types: list[str], rows: list[Row]) -> Any:
    import pyarrow as pa

    kinds = {"number": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64()}
    fields = [(f"c{i}", kinds.get(t, pa.string())) for i, t in enumerate(types)]
    return pa.table([pa.array([r[i] for r in rows], t) for i, (_, t) in enumerate(fields)], names=[n for n, _ in fields])


def _parquet(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(_table(types, rows), sink)
    return "r.parquet", 'filename="r.parquet"', sink.getvalue()


def _arrow(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    import pyarrow.feather as feather

    sink = io.BytesIO()
    feather.write_feather(_table(types, rows), sink, compression="uncompressed")
    return "r.arrow", 'filename="r.arrow"', sink.getvalue()


def _sqlite(types: list[str], rows: list[Row], random: Random) -> tuple[str, str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.sqlite"
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"CREATE TABLE r ({', '.join(f'c{i}' for i in range(len(types)))})")
            shown = [tuple(str(v) if isinstance(v, int) and abs(v) >= 2**63 else v for v in row) for row in rows]
            database.executemany(f"INSERT INTO r VALUES ({', '.join('?' * len(types))})", shown)
            database.commit()
        return "r.sqlite", 'IO=sqlite, dbname="r.sqlite"', path.read_bytes()


WRITERS: dict[str, Callable[[list[str], list[Row], Random], tuple[str, str, bytes]]] = {
    "facts": _delimited,
    "csv": _quoted,
    "json": _json,
    "ndjson": _ndjson,
    "gz": _packed,
    "parquet": _parquet,
    "arrow": _arrow,
    "sqlite": _sqlite,
}


# --------------------------------------------------------------------------------------------------------------- streams


def _stream(types: list[str], rows: list[Row], random: Random) -> Files:
    number, lines = 1, []
    as_json = random.random() < 0.5
    for row in rows:
        for diff in random.choice(((1,), (1, -1), (-1,), (1, 1))):
            number += random.choice((0, 0, 1, 5))
            lines.append(_change(types, number, row, diff, as_json, random))
    flags = [word for flag in FLAGS if random.random() < 0.15 for word in flag]
    program = _program(types, "", "")
    arguments = ("watch", "p.dl", "changes", "-j", "1", "--memory", "2G", *flags)
    return Files(arguments, {"changes": "".join(lines).encode(), "p.dl": program})


def _change(types: list[str], number: int, row: Row, diff: int, as_json: bool, random: Random) -> str:
    if as_json:
        return json.dumps({"round": number, "relation": "r", "diff": diff, "row": _as_json(types, row, random)}) + "\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([number, "r", f"{diff:+}", *row])
    return line.getvalue()


# ------------------------------------------------------------------------------------------------------------- mutations

PIECES = (
    *(b"\t", b"\n", b"\r\n", b"\0", b'"', b'""', b"\\", b",", b"[", b"]", b"{", b"}", b"$", b"(", b" ", b"-", b"+", b"\x1a"),
    *(b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"\x80"),
    *(b"nil", b"null", b"NaN", b"Infinity", b"-0", b"1e999", b"0x", b"0x1g", b"1_0", b"true", b"{}", b"[]", b"\\ud800", b"1.0"),
    *(b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"9" * 400, b"[" * 3000, b'{"a":' * 3000),
    *(b"0000-00-00", b"2023-02-29", b"24:00:00", b"T25:61", b"$Node(", b"$Tip", b"\x1f\x8b", b"PAR1", b"ARROW1\0\0"),
)


def _flipped(content: bytes, random: Random) -> bytes:
    if not content:
        return content
    at = random.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def _with_piece(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice(PIECES) + content[at + random.choice((0, 0, 1, 4)) :]


def _without_slice(content: bytes, random: Random) -> bytes:
    start, stop = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[stop:]


def _doubled_slice(content: bytes, random: Random) -> bytes:
    start, stop = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return content[:stop] + content[start:stop] * random.choice((1, 1, 20)) + content[stop:]


def _other_number(content: bytes, random: Random) -> bytes:
    found = [m.span() for m in re.finditer(rb"-?\d+", content)]
    if not found:
        return content
    start, stop = random.choice(found)
    return content[:start] + random.choice(PIECES) + content[stop:]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


MUTATIONS = (_flipped, _with_piece, _with_piece, _without_slice, _doubled_slice, _other_number, _other_number, _cut)
