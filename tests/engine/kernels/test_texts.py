"""Functors on strings in kernels against Python's own, on blocks of rows; and the symbol table under several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Operation, TextForm, Verdict
from dlog.engine.kernels.values.symbols import begin_reading, begin_writing, end_reading, end_writing
from dlog.engine.kernels.values.texts import Text, text_block
from dlog.engine.runtime.lowering.lowered import Tables
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.values.functions import evaluate
from dlog.engine.values.patterns import MIN_TRIED, Verdicts
from dlog.engine.values.symbols import SymbolTable
from tests.engine.kernels.workbench import EXAMPLES, EXTREMES, MAX, MIN
from tests.examples import examples
from tests.naive_functors import byte_substr

ASCII = ["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b" * 20, "b" * 19 + "a", "\0"]
PLANTED = [*ASCII, "\xe9", "\xe9" * 9, "abcdefg\u20ac", "\U0001f600\uffff"]
TEXT = st.one_of(st.sampled_from(PLANTED), st.text(max_size=9))
NUMBER = st.one_of(st.sampled_from(EXTREMES), st.integers(MIN, MAX))
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=20)
S, N, U, F = TextForm.ID, TextForm.NUMBER, TextForm.UNSIGNED, TextForm.FLOAT
TARGET = 9


class Desk:
    """A worker with a symbol table that has room to spare, and short ways to run one instruction."""

    def __init__(self, room: int = 4096) -> None:
        self.table = SymbolTable()
        self.table.intern_texts(["something before", *(f"#{i}" for i in range(room))])
        self.memory = Memory(None)
        self.memory.bytes[L.account.symbols] = self.table.address
        self.worker = Worker(self.memory)
        self.worker.prepare(Tables(registers=TARGET + 1))

    def ids(self, texts: Sequence[str]) -> np.ndarray:
        return self.table.intern_texts(texts).astype(np.int64)

    def texts(self, ids: np.ndarray) -> list[str]:
        return [self.table.text(i) for i in ids.tolist()]

    def run(self, operation: int, *args: tuple[int, np.ndarray], verdicts: int = 0) -> np.ndarray | None:
        """The values of the instruction, or None where it leaves the block to Python."""
        rows = len(args[0][1])
        for register, (_, values) in enumerate(args):
            self.worker.register(register)[:rows] = values
        forms = [word for register, (form, _) in enumerate(args) for word in (form, register)]
        code: Struct = words([Operation.EXTERNAL, 7 + len(forms), 0, operation, TARGET, verdicts, len(args), *forms])
        done = text_block(self.worker.control.address, code.address, rows)
        return self.worker.register(TARGET)[:rows].copy() if done else None

    def values(self, operation: int, *args: tuple[int, np.ndarray], verdicts: int = 0) -> np.ndarray:
        found = self.run(operation, *args, verdicts=verdicts)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk()


@pytest.mark.slow
@examples(EXAMPLES)
@given(rows=PAIRS)
def test_strings_compare_by_their_code_points_and_are_measured_in_characters(rows: list[tuple[str, str]]) -> None:
    d = Desk()
    pairs = [(a.encode(), b.encode()) for a, b in rows]
    columns = [(S, d.ids(column)) for column in zip(*rows, strict=True)]
    assert d.values(Text.LESS, *columns).tolist() == [a < b for a, b in rows] == [a < b for a, b in pairs]
    assert d.values(Text.LESS_EQUAL, *columns).tolist() == [a <= b for a, b in rows]
    assert d.values(Text.CONTAINS, *columns).tolist() == [a in b for a, b in rows]
    assert d.values(Text.CONTAINS_NOT, *columns).tolist() == [a not in b for a, b in rows]
    assert d.texts(d.values(Text.MIN, *columns)) == [min(p, key=str.encode) for p in rows]
    assert d.texts(d.values(Text.MAX, *columns)) == [max(p, key=str.encode) for p in rows]
    assert d.texts(d.values(Text.MAX, *columns, (S, d.ids(["b"] * len(rows))))) == [max(*p, "b", key=str.encode) for p in rows]
    assert d.values(Text.LENGTH, columns[0]).tolist() == [len(a) for a, _ in rows]


@examples(EXAMPLES)
@given(rows=st.lists(st.tuples(TEXT, NUMBER, NUMBER, st.floats(allow_nan=True), TEXT), min_size=1, max_size=20))
def test_cat_joins_strings_and_the_texts_of_numbers(rows: list[tuple[str, int, int, float, str]]) -> None:
    d = Desk()
    first, numbers, unsigned, floats, last = zip(*rows, strict=True)
    columns = [
        (S, d.ids(first)),
        (N, np.array(numbers, np.int64)),
        (U, np.array(unsigned, np.int64)),
        (F, np.array(floats, np.float64).view(np.int64)),
        (S, d.ids(last)),
    ]
    wanted = [f"{a}{n}{u % 2**64}{f:f}{b}" for a, n, u, f, b in rows]
    joined = d.values(Text.CAT, *columns)
    assert d.texts(joined) == wanted
    assert d.values(Text.CAT, *columns).tolist() == joined.tolist()
    assert d.ids(wanted).tolist() == joined.tolist()
    kinds = [Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL]
    typed = [c.view(np.float64) if form == F else c for form, c in columns]
    assert evaluate("cat", typed, kinds, d.table).tolist() == joined.tolist()


@examples(EXAMPLES)
@given(rows=st.lists(st.tuples(TEXT, st.integers(-3, 12) | NUMBER, st.integers(-3, 12) | NUMBER), min_size=1, max_size=20))
def test_substr_counts_characters(rows: list[tuple[str, int, int]]) -> None:
    d = Desk()
    texts, starts, lengths = zip(*rows, strict=True)
    columns = [d.ids(texts), np.array(starts, np.int64), np.array(lengths, np.int64)]
    found = d.values(Text.SUBSTR, (S, columns[0]), (N, columns[1]), (N, columns[2]))
    naive = []
    for text, start, length in rows:
        inside = 0 <= start <= len(text)
        end = None if length < 0 else start + length
        naive.append(text[start:end] if inside else "")
    assert d.texts(found) == naive
    assert d.texts(evaluate("substr", columns, [Kind.SYMBOL, Kind.NUMBER, Kind.NUMBER], d.table)) == naive


@examples(EXAMPLES)
@given(rows=st.lists(st.tuples(TEXT, st.integers(-3, 12) | NUMBER, st.integers(-3, 12) | NUMBER), min_size=1, max_size=20))
def test_byte_substr_cuts_no_character(rows: list[tuple[str, int, int]]) -> None:
    d = Desk()
    texts, starts, lengths = zip(*rows, strict=True)
    columns = [d.ids(texts), np.array(starts, np.int64), np.array(lengths, np.int64)]
    found = d.values(Text.BYTE_SUBSTR, (S, columns[0]), (N, columns[1]), (N, columns[2]))
    naive = [byte_substr(*row) for row in rows]
    assert d.texts(found) == naive
    assert d.texts(evaluate("byte_substr", columns, [Kind.SYMBOL, Kind.NUMBER, Kind.NUMBER], d.table)) == naive
    lengths_of = d.values(Text.BYTE_LENGTH, (S, columns[0])).tolist()
    assert lengths_of == [len(text.encode()) for text in texts]
    assert evaluate("byte_length", columns[:1], [Kind.SYMBOL], d.table).tolist() == lengths_of


@pytest.mark.parametrize(
    ("operation", "texts", "expected"),
    [
        (Text.NUMBER, ["12", " -7", "0x1f", "0b101", "3 apples"], [12, -7, 31, 5, 3]),
        (Text.UNSIGNED, ["12", "18446744073709551615"], [12, -1]),
        (Text.NUMBER, ["12", "apples"], None),
        (Text.NUMBER, ["9223372036854775808"], None),
        (Text.FLOAT, [""], None),
    ],
)
def test_numbers_are_read_or_left_to_python(desk: Desk, operation: int, texts: list[str], expected: list[int] | None) -> None:
    found = desk.run(operation, (S, desk.ids(texts)))
    assert (None if found is None else found.tolist()) == expected


def test_floats_are_read(desk: Desk) -> None:
    texts = ["1.5", "-2e3", "0.1", "1e300", "12345678901234567890"]
    assert desk.values(Text.FLOAT, (S, desk.ids(texts))).view(np.float64).tolist() == [float(t) for t in texts]


def test_patterns_are_tried_once_on_each_string(desk: Desk) -> None:
    verdicts, pattern = Verdicts(), desk.ids(["a.*"])
    ids = desk.ids(["a", "ab", "b", "ab"])
    columns = (S, np.repeat(pattern, 4)), (S, ids)
    assert desk.run(Text.MATCH, *columns, verdicts=verdicts.address) is None
    verdicts.of(int(pattern[0]), ids[:2], desk.table)
    assert desk.run(Text.MATCH, *columns, verdicts=verdicts.address) is None
    verdicts.of(int(pattern[0]), ids, desk.table)
    assert desk.values(Text.MATCH, *columns, verdicts=verdicts.address).tolist() == [1, 1, 0, 1]
    assert desk.values(Text.MATCH_NOT, *columns, verdicts=verdicts.address).tolist() == [0, 0, 1, 0]
    later = desk.ids(["a string that came later"])
    assert desk.run(Text.MATCH, (S, pattern), (S, later), verdicts=verdicts.address) is None


@pytest.mark.parametrize("step", [MIN_TRIED, 100])
def test_a_pattern_is_tried_on_strings_that_came_one_after_the_other_before_they_are_asked_for(step: int) -> None:
    table, verdicts, asked = SymbolTable(), Verdicts(), 0
    pattern = table.intern("a*")
    ids = table.intern_texts(["a" * (i % 3) + "b" * (i % 2) + f"{i}" * (i > 40) for i in range(900)])
    for first in range(0, len(ids), step):
        asked += int((table_of(verdicts, len(table))[ids[first : first + step]] == Verdict.UNKNOWN).any())
        found = verdicts.of(pattern, ids[first : first + step], table)
        assert [v == Verdict.YES for v in found] == [not table.text(i).strip("a") for i in ids[first : first + step].tolist()]
    assert asked <= 11


def test_strings_here_and_there_and_patterns_that_are_not_regular_are_tried_alone() -> None:
    table = SymbolTable()
    alone, sparse = table.intern_texts(["(a)\\1", "a*"]).tolist()
    ids = table.intern_texts([f"{i}" for i in range(100)])
    for pattern, asked in ((alone, ids[:10]), (sparse, ids[::3])):
        verdicts = Verdicts()
        verdicts.of(pattern, asked, table)
        assert np.flatnonzero(table_of(verdicts, len(table)) != Verdict.UNKNOWN).tolist() == asked.tolist()


def table_of(verdicts: Verdicts, count: int) -> np.ndarray:
    """The verdicts so far of so many strings."""
    known = np.full(count, Verdict.UNKNOWN, np.uint8)
    known[: len(verdicts._verdicts)] = verdicts._verdicts[:count]
    return known


def test_a_pattern_that_is_none_matches_nothing_nor_does_its_negation(desk: Desk) -> None:
    verdicts, pattern, ids = Verdicts(), desk.ids(["(a"]), desk.ids(["a"])
    with pytest.warns(RuntimeWarning, match="wrong pattern"):
        verdicts.of(int(pattern[0]), ids, desk.table)
    for operation in (Text.MATCH, Text.MATCH_NOT):
        assert desk.values(operation, (S, pattern), (S, ids), verdicts=verdicts.address).tolist() == [0]


def test_what_does_not_fit_is_left_to_python() -> None:
    d = Desk(room=0)
    long = d.ids(["x" * 100_000, "y" * 200_000])
    assert d.run(Text.CAT, (S, long), (S, long)) is None
    numbers = np.arange(L.BLOCK)
    assert d.run(Text.CAT, (N, numbers)) is None
    evaluate("cat", [numbers], [Kind.NUMBER], d.table)
    assert d.texts(d.values(Text.CAT, (N, numbers))) == [str(i) for i in range(L.BLOCK)]


def test_no_table_leaves_everything_to_python() -> None:
    d = Desk()
    ids = d.ids(["a"])
    d.memory.bytes[L.account.symbols] = 0
    assert d.run(Text.LENGTH, (S, ids)) is None


# ------------------------------------------------------------------------------------------------------------------ threads


def together(*tasks: Callable[[], None]) -> None:
    """Runs tasks in threads of their own; what one raises is raised."""
    errors: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_kernels_and_python_may_intern_the_same_strings_at_once() -> None:
    d = Desk(room=0)
    rows = range(0, 20_000, 400)

    def by_kernels() -> None:
        for start in rows:
            numbers = np.arange(start, start + 400)
            found = d.run(Text.CAT, (N, numbers))
            if found is None:
                found = evaluate("cat", [numbers], [Kind.NUMBER], d.table)
            assert d.texts(found) == [str(i) for i in numbers]

    def by_python() -> None:
        for start in reversed(rows):
            texts = [str(i) for i in range(start, start + 800)]
            assert d.texts(d.ids(texts)) == texts

    together(by_kernels, by_python, by_python)
    count = len(d.table)
    assert len(set(d.texts(np.arange(count)))) == count == 1 + max(rows) + 800


def test_readers_wait_for_a_writer_and_a_writer_for_readers() -> None:
    d = Desk()
    done: list[str] = []
    begin_reading(d.table.address)
    begin_reading(d.table.address)

    def write() -> None:
        begin_writing(d.table.address)
        done.append("written")
        end_writing(d.table.address)

    writer = threading.Thread(target=write)
    writer.start()
    end_reading(d.table.address)
    writer.join(0.05)
    assert done == []
    end_reading(d.table.address)
    writer.join()
    assert done == ["written"]

    ids = d.table.find("#1")
    begin_writing(d.table.address)
    reader = threading.Thread(target=lambda: done.append(str(d.run(Text.LENGTH, (S, np.array([ids]))))))
    reader.start()
    reader.join(0.05)
    assert done == ["written"]
    end_writing(d.table.address)
    reader.join()
    assert done == ["written", "[2]"]
