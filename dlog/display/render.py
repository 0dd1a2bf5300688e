"""Numbers, rows and rule costs as terminal text. Values come in, text goes out; nothing here computes or stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dlog.branch import Branch
from dlog.engine.values.sizes import byte_size
from dlog.grammar.diagnostics import printable

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from dlog.display.report import Report
    from dlog.engine.runtime.static.executor import RuleProfile


def count(number: int) -> str:
    """A whole number with its thousands grouped.

    >>> count(3541956)
    '3,541,956'
    """
    return f"{number:,}"


def value_text(value: object) -> str:
    """A value as it stands in an output file: records as `[a, b]`, nil as `nil`, branches as `$Branch(a, b)`.

    >>> value_text((1, ("x", None)))
    '[1, [x, nil]]'
    """
    match value:
        case None:
            return "nil"
        case Branch(name, args):
            return f"${name}({', '.join(map(value_text, args))})" if args else f"${name}"
        case datetime():
            return value.isoformat()
        case tuple():
            return "[" + ", ".join(value_text(field) for field in value) + "]"
        case _:
            return str(value)


def quoted_text(value: object) -> str:
    """A value as text that reads back as it whatever its symbols hold.

    >>> quoted_text(Branch("Name", 'a "b", c', 1))
    '$Name("a \\\\"b\\\\", c", 1)'
    """
    match value:
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case Branch(name, args):
            return f"${name}({', '.join(map(quoted_text, args))})" if args else f"${name}"
        case tuple():
            return f"[{', '.join(map(quoted_text, value))}]"
        case _:
            return value_text(value)


def rows_text(rows: Iterable[Sequence[object]], limit: int | None = None) -> str:
    """Rows in order, one line each, columns separated by tabs; the first `limit` of them and how many were left out."""
    lines = ["\t".join(value_text(value) for value in row) if row else "()" for row in rows]
    if limit is not None and len(lines) > limit:
        lines = [*lines[:limit], f"... {count(len(lines) - limit)} more rows"]
    return "\n".join(lines)


def print_statistics(report: Report) -> None:
    """Prints the costs of every rule, dearest first, and the totals, on standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        console = Console(stderr=True, width=160)
    console.print(_rule_table(report.rules))
    console.print(
        f"load {report.load_seconds:.3f} s, evaluate {report.evaluate_seconds:.3f} s, write {report.write_seconds:.3f} s, "
        f"peak memory {byte_size(report.peak_bytes)}",
        highlight=False,
    )


def _rule_table(rules: Sequence[RuleProfile]) -> RichTable:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("seconds", "derived", "new rows", "iterations"):
        table.add_column(name, justify="right")
    table.add_column("rule", overflow="fold")
    for rule in sorted(rules, key=lambda rule: -rule.seconds):
        # Text, not str: the brackets of a record are not markup.
        text = Text(printable(" ".join(rule.text.split())))
        table.add_row(f"{rule.seconds:.3f}", count(rule.derived), count(rule.new), count(rule.iterations), text)
    return table
