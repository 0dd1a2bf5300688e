"""The first rows of something with named columns, as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dlog.dataclass import dataclass
from dlog.display.render import count

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 10
"""Rows of a preview."""
SHOWN_COLUMNS = 20
"""Columns of a preview."""
MAX_VALUE_CHARACTERS = 60
"""Characters of a value in a preview."""
MORE = "..."


@dataclass(frozen=True, slots=True)
class Preview:
    """`cells` are the first of `rows` rows; `right` says which columns hold numbers."""

    title: str
    names: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    right: tuple[bool, ...] = ()
    rows: int = 0

    def text(self) -> str:
        """The title in angle brackets, then the rows below their names, if there are any."""
        lines = [f"<{self.title}>"]
        if self.cells and self.names:
            widths = [max(map(len, column)) for column in zip(self.names, *self.cells, strict=True)]
            for line in (self.names, tuple("-" * width for width in widths), *self.cells):
                aligned = zip(line, widths, self.right, strict=True)
                lines.append("  ".join(t.rjust(w) if right else t.ljust(w) for t, w, right in aligned).rstrip())
            lines += [self._rest()] if self.rows > len(self.cells) else []
        return "\n".join(lines)

    def html(self) -> str:
        """The same as a table."""
        from html import escape  # it has all of HTML's entities with it

        parts = [f"<p>{escape(self.title)}</p>"]
        if self.cells and self.names:
            parts.append('<table class="dataframe"><thead><tr>')
            parts += [f"<th>{escape(name)}</th>" for name in self.names]
            parts.append("</tr></thead><tbody>")
            for row in self.cells:
                parts += ["<tr>", *(f"<td>{escape(value)}</td>" for value in row), "</tr>"]
            parts.append("</tbody></table>")
            parts += [f"<p>{escape(self._rest())}</p>"] if self.rows > len(self.cells) else []
        return "".join(parts)

    def _rest(self) -> str:
        return f"{MORE} {count(self.rows - len(self.cells))} more"


def of_table(title: str, first: pa.Table, rows: int) -> Preview:
    """The first of `rows` rows, as Arrow has them."""
    columns = first.columns[:SHOWN_COLUMNS]
    names = [short(name) for name in first.column_names[:SHOWN_COLUMNS]]
    texts = [[short(str(value)) for value in _values(column)] for column in columns]
    right = [_is_number(column) for column in columns]
    if first.num_columns > SHOWN_COLUMNS:
        names, texts, right = [*names, MORE], [*texts, [MORE] * first.num_rows], [*right, False]
    return Preview(title, tuple(names), tuple(zip(*texts, strict=True)), tuple(right), rows)


def of_rows(title: str, names: Sequence[str], rows: Sequence[Sequence[object]], total: int) -> Preview:
    """The first of `total` rows of Python values."""
    right = tuple(isinstance(value, int | float) for value in rows[0]) if rows else ()
    return Preview(title, tuple(names), tuple(tuple(short(str(value)) for value in row) for row in rows), right, total)


def short(text: str) -> str:
    """Text on one line, without its end where it is long."""
    cut = text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - len(MORE)] + MORE
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def _is_number(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    kinds: tuple[Any, ...] = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(column.type) for is_kind in kinds)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Python's values; of dates and times their texts, as Arrow has more of them than Python."""
    import pyarrow as pa

    dated = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    found: list[Any] = (column.cast(pa.string()) if dated else column).to_pylist()
    return found
