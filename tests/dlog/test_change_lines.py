"""Lines of changes, from whatever pieces a file or a pipe gives them in."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dlog.watch import change_lines
from dlog.watch.change_lines import LineSource


@given(text=st.text("ab\n", max_size=60), size=st.integers(1, 9))
def test_lines_are_the_same_in_pieces_of_any_size(text: str, size: int) -> None:
    with TemporaryDirectory() as folder, patch.object(change_lines, "_CHUNK", size):
        path = Path(folder, "changes")
        path.write_text(text)
        assert list(LineSource(str(path))) == text.removesuffix("\n").split("\n")[: None if text else 0]


def test_a_line_in_many_pieces_is_put_together_once(tmp_path: Path) -> None:
    """Not once for each piece: a line of 200 MB took a minute and a half."""
    (tmp_path / "changes").write_text("x" * 1000 + "\n")
    with patch.object(change_lines, "_CHUNK", 1):
        source = LineSource(str(tmp_path / "changes"))
        pieces = 0
        take = source._take

        def counted(data: bytes) -> None:
            nonlocal pieces
            take(data)
            pieces = max(pieces, len(source._rest))

        with patch.object(source, "_take", counted):
            assert next(iter(source)) == "x" * 1000
    assert pieces == 1000
