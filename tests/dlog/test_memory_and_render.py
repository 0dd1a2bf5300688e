"""Sizes and rows as people write and read them."""

import pytest

from dlog.display.render import count, rows_text, value_text
from dlog.engine.values.sizes import byte_size
from dlog.memory import current_bytes, parse_size, peak_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("100", 100), ("1K", 1024), ("512m", 512 << 20), ("2G", 2 << 30), ("1.5GiB", 3 << 29), ("3 TB", 3 << 40), (" 7b ", 7)],
)
def test_sizes_are_read_in_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "0", "0.0M", "-1", "2X", "1,5G", "2 G B", "inf"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_peak_memory_is_at_least_what_is_used_now() -> None:
    assert 1 << 20 < current_bytes() <= peak_bytes()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (5 << 20, "5 MiB"), (3 << 50, "3072 TiB")],
)
def test_bytes_are_shown_in_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert byte_size(size) == text


def test_thousands_are_grouped() -> None:
    assert count(1234567) == "1,234,567"


def test_values_are_shown_as_in_files() -> None:
    assert value_text((1, ("a b", None), 2.5)) == "[1, [a b, nil], 2.5]"


def test_rows_are_lines_with_tabs_and_the_rest_is_counted() -> None:
    rows = [(1, "a"), (2, "b"), (3, None)]
    assert rows_text(rows) == "1\ta\n2\tb\n3\tnil"
    assert rows_text(rows, limit=1) == "1\ta\n... 2 more rows"
    assert rows_text([()]) == "()"
    assert rows_text([]) == ""
