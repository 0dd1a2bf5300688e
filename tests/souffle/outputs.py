"""Whether a run wrote what its test expects: lines without the spaces at their ends, sorted, must be equal.

So Soufflé compares, too: a float is right if its digits are. Of relations all CSV files count, none may be missing or in
excess; what is packed, a database or JSON is unpacked first.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.souffle.cases import Case

SHOWN = 3
"""Lines that a difference shows of what is missing, and of what is in excess."""


def difference(case: Case, folder: Path, stdout: Path) -> str:
    """What differs first between the expected files and those in `folder`, and standard output; empty if nothing does."""
    _unpack(case, folder)
    pattern = "*.csv"
    expected, written = ({path.name for path in where.glob(pattern)} for where in (case.expected, folder))
    if expected != written:
        return "; ".join(
            f"{what}: {', '.join(sorted(names))}"
            for what, names in (("not written", expected - written), ("not expected", written - expected))
            if names
        )
    pairs = [(case.expected / name, folder / name) for name in sorted(expected)]
    if case.extra == "json":
        pairs += [(path, folder / path.name) for path in sorted(case.expected.glob("*.json"))]
    pairs.append((case.expected / f"{case.program.stem}.out", stdout))
    return next((found for wanted, own in pairs if (found := _compare(wanted, own))), "")


def _compare(expected: Path, written: Path) -> str:
    if not written.is_file():
        return f"not written: {written.name}"
    wanted, own = _lines(expected), _lines(written)
    if wanted == own:
        return ""
    missing, excess = _without(wanted, own), _without(own, wanted)
    parts = [f"{sign} {line}" for sign, lines in (("-", missing), ("+", excess)) for line in lines[:SHOWN]]
    return f"{written.name} ({len(missing)} missing, {len(excess)} in excess): {' | '.join(parts)}"


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        lines = sorted(line.rstrip() for line in file)
    return lines if lines != [""] else []


def _without(lines: list[str], others: list[str]) -> list[str]:
    """The lines that are not among the others, as often as they are more there."""
    left = dict[str, int]()
    for line in others:
        left[line] = left.get(line, 0) + 1
    rest = []
    for line in lines:
        left[line] = left.get(line, 0) - 1
        if left[line] < 0:
            rest.append(line)
    return rest


def _unpack(case: Case, folder: Path) -> None:
    """Writes what packed files and databases hold to CSV files with their names."""
    if case.extra == "gzip":
        for path in folder.glob("*.gz.output"):
            path.with_name(path.name.removesuffix(".gz.output")).write_bytes(gzip.decompress(path.read_bytes()))
    elif case.extra == "sqlite3":
        for path in folder.glob("*.sqlite.output"):
            query = (case.expected / f"{path.name}.script").read_text(encoding="utf-8")
            with closing(sqlite3.connect(path)) as database:
                rows = ["|".join("" if value is None else str(value) for value in row) for row in database.execute(query)]
            text = "".join(f"{row}\n" for row in rows)
            path.with_name(f"{path.name.removesuffix('.sqlite.output')}.csv").write_text(text, encoding="utf-8")
