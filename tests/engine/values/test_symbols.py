"""The symbol table against a dict."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.core.memory import MAPS
from dlog.engine.kernels.values.words import hash_bytes
from dlog.engine.values import symbols
from dlog.engine.values.symbols import NotText, SymbolTable
from tests.examples import examples

PLANTED = st.sampled_from(["", "a", "b", "12345678", "123456789", "a\0", "\0"])
WORDS = st.lists(st.one_of(PLANTED, st.text(max_size=30)), max_size=60)


def naive_ids(words: list[str]) -> list[int]:
    known: dict[str, int] = {}
    return [known.setdefault(word, len(known)) for word in words]


@examples(60)
@given(WORDS, WORDS)
def test_ids_are_dense_in_order_of_first_appearance(first: list[str], second: list[str]) -> None:
    table = SymbolTable()
    ids = [*table.intern_arrow(pa.array(first, pa.string())), *table.intern_arrow(pa.array(second, pa.large_string()))]
    assert ids == naive_ids(first + second)
    assert len(table) == len(set(first + second))
    assert [table.text(i) for i in ids] == first + second
    assert all(table.find(word) == i for word, i in zip(first + second, ids, strict=True))
    assert table.to_arrow(np.array(ids, np.int32)).to_pylist() == first + second


@examples(60)
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


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="tables that grow by instalments are large")
@pytest.mark.parametrize("crowd", ["", "end", "front", "amid"])
def test_the_table_grows_by_instalments(crowd: str) -> None:
    words = [f"word {i}" for i in range(40_000)]
    if crowd:
        low = {"end": 2**32 - 2**23, "front": 0, "amid": 2**31}[crowd]
        words += [word for word in (f"c{i}" for i in range(500_000)) if low <= hashed(word) < low + 2**23]
    draw = Random(crowd)
    draw.shuffle(words)
    table, known, growing = SymbolTable(), dict[str, int](), 0
    while len(known) < len(words):
        batch = words[len(known) : len(known) + draw.choice((1, 7, 64, 200))]
        known |= {word: number for number, word in enumerate(batch, len(known))}
        batch += draw.choices(words[: len(known)], k=3)
        assert table.intern_texts(batch).tolist() == [known[word] for word in batch]
        if table._table[L.symbols.slot_homes_edge]:
            growing += 1
            assert table.find(batch[0]) == known[batch[0]] and table.find("no word") == -1
    assert growing > 10 and len(table) == len(words)
    assert table.intern_texts(words).tolist() == [known[word] for word in words]


def hashed(word: str) -> int:
    data = np.frombuffer(word.encode(), np.uint8)
    return int(hash_bytes(int(data.ctypes.data), len(data), int(data.ctypes.data) + len(data)))


@pytest.mark.skipif(not MAPS, reason="address space is reserved on Linux")
def test_large_arrays_grow_where_they_are() -> None:
    table = SymbolTable()
    words = [f"{i} {'x' * 9}" for i in range(300_000)]
    table.intern_texts(words[:200_000])
    heap, offsets = table.strings
    table.intern_texts(words[200_000:])
    assert [a.ctypes.data for a in table.strings] == [heap.ctypes.data, offsets.ctypes.data]
    assert heap[offsets[40_000] : offsets[40_001]].tobytes().decode() == words[40_000]


def test_without_address_space_to_reserve_arrays_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(symbols.mmap, "mmap", refuse)
    table = SymbolTable()
    words = [f"{i} {'x' * 40}" for i in range(100_000)]
    assert table.intern_texts(words[:50_000]).tolist() == list(range(50_000))
    heap, offsets = table.strings
    assert table.intern_texts(words).tolist() == list(range(100_000))
    assert heap[offsets[40_000] : offsets[40_001]].tobytes().decode() == words[40_000] == table.text(40_000)


def test_sliced_and_dictionary_encoded_arrays() -> None:
    words = pa.array(["no", "a", "b", "a", "c"])
    table = SymbolTable()
    assert table.intern_arrow(words.slice(1, 3)).tolist() == [0, 1, 0]
    assert table.intern_arrow(words.dictionary_encode().slice(1)).tolist() == [0, 1, 0, 3]
    assert table.intern_arrow(pa.array([], pa.string())).tolist() == []


PIECES = st.sampled_from(
    [b"a", b"abcdefg", b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"\xed\xa0\x80", b"\xf0\x9f", b"\x98\x80", b"\xf4\x90"]
)
BYTES = st.binary(max_size=12) | st.text(max_size=12).map(str.encode) | st.lists(PIECES, max_size=6).map(b"".join)


@examples(300)
@given(st.lists(BYTES, min_size=1, max_size=12))
def test_bytes_become_symbols_if_they_are_utf8(strings: list[bytes]) -> None:
    table = SymbolTable()
    ends = np.cumsum([len(s) for s in strings])
    slices = np.frombuffer(b"".join(strings), np.uint8), ends - [len(s) for s in strings], ends
    wrong = [(i, error) for i, error in enumerate(map(_mistake, strings)) if error is not None]
    if not wrong:
        assert [table.text(i) for i in table.intern_slices(*slices).tolist()] == [s.decode() for s in strings]
        return
    index, offset = wrong[0]
    for intern in (lambda: table.intern_slices(*slices), lambda: table.intern_arrow(pa.array(strings))):
        with pytest.raises(NotText) as caught:
            intern()
        assert (caught.value.index, caught.value.offset) == (index, offset)
        assert caught.value.diagnostics[0].message == f"byte 0x{strings[index][offset]:02x} is not UTF-8"
    assert [table.text(i) for i in range(len(table))] == list(dict.fromkeys(s.decode() for s in strings[:index]))


def _mistake(data: bytes) -> int | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def test_the_first_wrong_string_is_named_by_its_row_in_chunks_and_dictionaries() -> None:
    words = pa.array([b"a", b"b", b"a", b"\xff", b"b"])
    for strings in (
        pa.chunked_array([words[:2], words[2:]]),
        words.dictionary_encode(),
        pa.chunked_array([words[:1].dictionary_encode(), words[1:].dictionary_encode()]),
        pa.StringArray.from_buffers(5, *words.buffers()[1:]),
    ):
        with pytest.raises(NotText) as caught:
            SymbolTable().intern_arrow(strings)
        assert caught.value.index == 3


FLAGS = st.lists(st.sampled_from([*"NRAF", "\0", "ä", "", "NO"]) | st.characters(max_codepoint=127), min_size=1, max_size=12)


@examples(60)
@given(st.lists(FLAGS, min_size=1, max_size=4), st.sampled_from([1, 4, 64]), st.integers(0, 3))
def test_texts_of_one_byte_have_the_ids_of_all_others(parts: list[list[str]], least: int, left: int) -> None:
    """Wherever a column begins, whether all of it is of one byte or not, and whatever has been seen before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symbols, "MIN_BYTES", least)
        table, seen = SymbolTable(), []
        for number, words in enumerate(parts):
            kind = pa.string() if number % 2 else pa.large_string()
            seen += words[left:]
            assert table.intern_arrow(pa.array(words, kind)[left:]).tolist() == [table.intern(word) for word in words[left:]]
        assert [table.find(word) for word in seen] == naive_ids(seen)


@pytest.mark.parametrize("known", [False, True])
def test_a_byte_that_is_no_text_is_named_among_flags(known: bool) -> None:
    table = SymbolTable()
    if known:
        table.intern_arrow(pa.array(["N"] * symbols.MIN_BYTES))
    with pytest.raises(NotText) as caught:
        table.intern_arrow(pa.array([b"N"] * symbols.MIN_BYTES + [b"\xff", b"N"]))
    assert caught.value.index == symbols.MIN_BYTES
    assert len(table) == 1


def test_surrogates_are_no_text() -> None:
    for intern in (SymbolTable().intern, SymbolTable().find, lambda text: SymbolTable().intern_texts([text])):
        with pytest.raises(UnicodeEncodeError):
            intern("a\udcff")


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
