"""The symbol table against a dict."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.engine.values import symbols
from dlog.engine.values.symbols import SymbolTable

PLANTED = st.sampled_from(["", "a", "b", "12345678", "123456789", "a\0", "\0"])
WORDS = st.lists(st.one_of(PLANTED, st.text(max_size=30)), max_size=60)


def naive_ids(words: list[str]) -> list[int]:
    known: dict[str, int] = {}
    return [known.setdefault(word, len(known)) for word in words]


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS)
def test_ids_are_dense_in_order_of_first_appearance(first: list[str], second: list[str]) -> None:
    table = SymbolTable()
    ids = [*table.intern_arrow(pa.array(first, pa.string())), *table.intern_arrow(pa.array(second, pa.large_string()))]
    assert ids == naive_ids(first + second)
    assert len(table) == len(set(first + second))
    assert [table.text(i) for i in ids] == first + second
    assert all(table.find(word) == i for word, i in zip(first + second, ids, strict=True))
    assert table.to_arrow(np.array(ids, np.int32)).to_pylist() == first + second


@settings(max_examples=60, deadline=None)
@given(WORDS)
def test_ranks_order_like_bytes(words: list[str]) -> None:
    table = SymbolTable()
    table.intern_texts(words)
    ranks = table.ranks()
    distinct = sorted(set(words), key=lambda word: word.encode())
    assert [int(ranks[table.find(word)]) for word in distinct] == list(range(len(distinct)))


def test_ranks_follow_a_table_that_grows() -> None:
    table = SymbolTable()
    table.intern_texts(["b", "c"])
    assert table.ranks().tolist() == [0, 1]
    table.intern("a")
    assert table.ranks().tolist() == [1, 2, 0]


def test_many_strings_of_all_lengths_survive_growth() -> None:
    words = [str(i) * (i % 23) for i in range(40_000)]
    table = SymbolTable()
    assert table.intern_arrow(pa.chunked_array([words[:100], words[100:]])).tolist() == naive_ids(words)
    assert table.intern_texts(words).tolist() == naive_ids(words)


def test_a_string_longer_than_the_heap_is_kept() -> None:
    table = SymbolTable()
    assert table.intern("x" * 100_000) == 0
    assert table.intern("y" + "x" * 99_999) == 1
    assert table.intern("x" * 100_000) == 0
    assert len(table.text(1)) == 100_000


def test_sliced_and_dictionary_encoded_arrays() -> None:
    words = pa.array(["no", "a", "b", "a", "c"])
    table = SymbolTable()
    assert table.intern_arrow(words.slice(1, 3)).tolist() == [0, 1, 0]
    assert table.intern_arrow(words.dictionary_encode().slice(1)).tolist() == [0, 1, 0, 3]
    assert table.intern_arrow(pa.array([], pa.string())).tolist() == []


def test_bytes_that_are_not_utf8_come_back() -> None:
    table = SymbolTable()
    data = np.frombuffer(b"\xff\xe4", np.uint8)
    ids = table.intern_slices(data, np.array([0, 1]), np.array([2, 2]))
    assert [table.text(int(i)).encode("utf-8", "surrogateescape") for i in ids] == [b"\xff\xe4", b"\xe4"]
    assert table.find(table.text(0)) == 0


@pytest.mark.parametrize("word", ["a", "", "unseen"])
def test_find_does_not_intern(word: str) -> None:
    table = SymbolTable()
    assert table.find(word) == -1
    assert len(table) == 0


def test_threads_agree_on_ids() -> None:
    table = SymbolTable()
    words = [[f"w{(i * step) % 5003}" for i in range(20_000)] for step in (1, 7, 11, 13)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda w: table.intern_arrow(pa.array(w)), words))
    assert len(table) == 5003
    for found, wanted in zip(ids, words, strict=True):
        assert table.to_arrow(found).to_pylist() == wanted


def test_kernels_compile_once_whether_arrays_may_be_written_or_not() -> None:
    table = SymbolTable()
    data = np.array([97, 98], np.uint8)
    fixed = data.copy()
    fixed.flags.writeable = False
    for text in (data, fixed):
        table.intern_slices(text, np.array([0, 1]), np.array([1, 2]))
    assert len(getattr(symbols.intern, "signatures", ())) <= 1  # plain Python where the compiler is off
