"""Mistakes of files of facts and of results."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, run

_AGES: Final = ".decl age(name: symbol, years: number)\n.output age\n"
_TEXT: Final = ("ages.dl", f"{_AGES}.input age\n")
_JSON: Final = ("ages.dl", f'{_AGES}.input age(filename="ages.json")\n')
_SQLITE: Final = f'{_AGES}.input age(IO=sqlite, dbname="ages.db", table="age")\n'
_PARQUET: Final = """
import pyarrow as pa
from pyarrow import parquet

parquet.write_table(pa.table({columns}), "age.parquet")
dlog.run('.decl age(name: symbol, years: {type})\\n.input age(filename="age.parquet")\\n', facts=".")
"""


def _parquet(meaning: str, columns: str, type: str = "number", varies: bool = False) -> Example:
    return python(meaning, "import dlog" + _PARQUET.format(columns=columns, type=type), varies)


FILES: Final[dict[str, Example]] = {
    "bad-file": run(
        "A file of Parquet or Arrow is none, or is damaged: write it again, or say by `IO=` what it is.",
        "dlog run ages.dl",
        ("ages.dl", f'{_AGES}.input age(filename="ages.parquet")\n'),
        ("ages.parquet", "Ann\t41\n"),
        varies=True,
    ),
    "bad-gzip": run(
        "A compressed file has been cut short or is damaged: get it again.",
        "dlog run ages.dl",
        ("ages.dl", f'{_AGES}.input age(filename="age.facts.gz")\n'),
        ("age.facts.gz", "\x1f\udc8b\x08\0\0\0\0\0\0\x03"),
        varies=True,
    ),
    "bad-json": run(
        "A file is no JSON, or no list of rows. One with a row on each line is called `.ndjson`, or has `IO=ndjson`.",
        "dlog run ages.dl",
        _JSON,
        ("ages.json", '[["Ann", 41], ["Bob" 17]]\n'),
    ),
    "bad-number": run(
        "A value in a file of facts is not the number that its column wants. `errors=skip` leaves such rows out.",
        "dlog run ages.dl",
        _TEXT,
        ("age.facts", "Ann\t41\nBob\tunknown\n"),
    ),
    "bad-parameter": run(
        "A parameter of a directive has a value that says nothing, or does not go with the kind of file.",
        "dlog run ages.dl",
        ("ages.dl", f'{_AGES}.input age(errors="ignore")\n'),
        ("age.facts", "Ann\t41\n"),
    ),
    "bad-record": run(
        "A value in a file is not of its record type, or of its algebraic data type: `[1, [2, nil]]`, `$Branch(1)`.",
        "dlog run trips.dl",
        ("trips.dl", ".type Place = [town: symbol, zip: number]\n.decl trip(to: Place)\n.input trip\n.output trip\n"),
        ("trip.facts", "[Ulm, 89073]\n[Bonn]\n"),
    ),
    "missing-file": run(
        "A file of facts is not there: `-F` names the folder, `filename=` the file.",
        "dlog run ages.dl",
        _TEXT,
        ("ages.facts", "Ann\t41\n"),
    ),
    "missing-table": python(
        "A database has no table or view of that name: `table=` names it.",
        f"""
import dlog
import sqlite3

with sqlite3.connect("ages.db") as database:
    database.execute("CREATE TABLE ages (name, years)")
dlog.run('''{_SQLITE}''', facts=".")
""",
    ),
    "needs-spark": run(
        "`IO=spark` reads and writes what Spark has: only the Spark engine can.",
        "dlog run ages.dl",
        ("ages.dl", f'{_AGES}.input age(IO=spark, format="orc", path="ages")\n'),
    ),
    "null-value": _parquet(
        "A column of Parquet or Arrow has nulls, which relations do not hold: leave these rows out, or fill them.",
        '{"name": ["Ann", None], "years": [41, 17]}',
    ),
    "number-out-of-range": run(
        "A number does not fit into its column: floats and symbols hold greater ones.",
        "dlog run ages.dl",
        _TEXT,
        ("age.facts", "Ann\t41\nBob\t9223372036854775808\n"),
    ),
    "sqlite": run(
        "SQLite refuses a database, and says why: is it one, is it damaged, does another program have it open?",
        "dlog run ages.dl",
        ("ages.dl", _SQLITE),
        ("ages.db", "this is no database, whatever it is called\n"),
        varies=True,
    ),
    "too-many-mistakes": run(
        "A file has so many wrong lines that the rest is not read: is it the right one? The first twenty are told before.",
        "dlog run ages.dl",
        _TEXT,
        ("age.facts", "Ann 41\n" * 20),
        beside="wrong-column-count",
    ),
    "unbalanced": run(
        "A quote in a line of a file is not closed, or text follows behind it.",
        "dlog run ages.dl",
        ("ages.dl", f"{_AGES}.input age(rfc4180=true)\n"),
        ("age.facts", '"Ann",41\n"Bob,17\n'),
    ),
    "unclear-columns": run(
        "The names of a file's columns do not say which one is meant for each attribute: `columns=` does.",
        "dlog run ages.dl",
        ("ages.dl", f"{_AGES}.input age(headers=true)\n"),
        ("age.facts", "years\twho\n41\tAnn\n"),
    ),
    "unreadable-file": python(
        "A file of facts cannot be read: the system says why. A database is not read either where a link lies beside it.",
        f"""
import dlog
import os
import sqlite3

with sqlite3.connect("ages.db") as database:
    database.execute("CREATE TABLE age (name, years)")
os.symlink("elsewhere", "ages.db-journal")
dlog.run('''{_SQLITE}''', facts=".")
""",
    ),
    "unwritable-file": run(
        "A file of results cannot be written: the system says why.",
        "dlog run ages.dl",
        _TEXT,
        ("age.facts", "Ann\t41\n"),
        ("age.csv/here", "in a folder that has the name of the file\n"),
    ),
    "wrong-column-count": run(
        "A row has more or fewer values than its relation has columns: is the delimiter another one?",
        "dlog run ages.dl",
        _TEXT,
        ("age.facts", "Ann\t41\nBob\n"),
    ),
    "wrong-type": _parquet(
        "A column of Parquet or Arrow has values of another type than its attribute: declare it so, or cast the column.",
        '{"name": [1, 2], "years": [41, 17]}',
    ),
}
