"""Which texts of a column are the same."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.values.texts import different_texts
from tests.examples import examples

FEW = st.sampled_from(["", "a", "b", "ab", "a\0", "a\0\0", "eight by", "eight byt", "eight bytes and more", "\u00e9"])


@examples(100)
@given(st.lists(st.one_of(FEW, st.text(max_size=20))), st.integers(0, 5), st.booleans())
def test_each_text_is_there_once(texts: list[str], skipped: int, many: bool) -> None:
    every = [*texts, *(str(k) for k in range(100 * many))] * 2
    found, places = different_texts(pa.array(every, pa.string()).slice(skipped))
    assert found == list(dict.fromkeys(every[skipped:]))
    assert [found[place] for place in places.tolist()] == every[skipped:]
