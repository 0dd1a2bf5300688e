"""States that somebody has forged with all checksums right: what is in them is refused or legal, and no memory is touched."""

from __future__ import annotations

import shutil
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.state.entries import Entries
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.bulk_files import TABLE
from dlog.sessions.persistence.folder import PROGRAM as TEXTS
from dlog.sessions.persistence.folder import State
from dlog.sessions.persistence.inspection import check_state, dump_state
from dlog.sessions.persistence.references import References
from tests.dlog.persistence.state_damage import SHAPES, Shape, shape_of
from tests.dlog.persistence.state_forging import FORGERS, wrong
from tests.dlog.persistence.state_frames import Frame, taking_frames
from tests.dlog.persistence.state_sessions import crash

NAMES = """.decl name(x: number, text: symbol)
.decl long(x: number, n: number)
long(x, strlen(text)) :- name(x, text).
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shape]:
    return {name: shape_of(name, tmp_path_factory.mktemp("shape") / "state") for name in SHAPES}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORGERS)
def test_forged_files_end_nothing(shapes: dict[str, Shape], tmp_path: Path, kind: str) -> None:
    with taking_frames():
        for name, shape in shapes.items():
            for seed in range(4):
                assert wrong(shape.files, tmp_path / "state", kind, seed) == [], (name, seed)


def forged_in_the_log(folder: Path, id: int) -> None:
    """A state whose log has a row with a symbol of this number."""
    session = dlog.session(NAMES, state=folder, threads=1)
    session.insert("name", [(1, "one")])
    session.commit()
    row = (np.array([2]), np.array([id]))
    session._engine._state.append(2, {"name": Updates(row, np.array([1]), np.array([2]))})  # type: ignore[attr-defined]
    crash(session)


@pytest.mark.parametrize("id", [-1, 1, 1 << 30, -(1 << 31), 1 << 32, 1 << 62])
def test_a_symbol_that_is_not_there_is_damage_of_the_log(tmp_path: Path, id: int) -> None:
    forged_in_the_log(tmp_path / "state", id)
    session = dlog.session(NAMES, state=tmp_path / "state", threads=1)
    with pytest.raises(DlogError, match="rows of `name` make no sense") as error:
        list(session["long"])
    crash(session)
    assert error.value.diagnostics[0].place.endswith(".log")


def test_the_text_of_a_state_reads_no_files(tmp_path: Path) -> None:
    """It was preprocessed before it was stored."""
    (tmp_path / "secret.dl").write_text('.decl secret(x: symbol)\nsecret("read").\n')
    rewritten(tmp_path / "state", zlib.compress(f'#include "{tmp_path}/secret.dl"\n{NAMES}'.encode()))
    folder = tmp_path / "state"
    for use in (lambda: dump_state(folder, tmp_path / "dumped"), lambda: dlog.session(None, state=folder)):
        with pytest.raises(DlogError, match="the text of its program is no program"):
            use()
    assert not (tmp_path / "dumped").exists()


@pytest.mark.parametrize("id", [-1, 1, 1 << 30])
def test_a_check_looks_at_ids(tmp_path: Path, id: int) -> None:
    folder = tmp_path / "a state"
    forged_in_the_log(folder, id)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}
    with pytest.raises(DlogError, match="rows of `name` make no sense") as error:
        check_state(folder)
    [found] = error.value.diagnostics
    assert found.place.startswith(str(folder)) and f"dlog state check '{folder}'" in found.notes[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"} == before


def rewritten(folder: Path, packed: bytes) -> None:
    """A state whose log has another text for its program."""
    session = dlog.session(NAMES, state=folder, threads=1)
    session.insert("name", [(1, "one")])
    session.commit()
    crash(session)
    state = State(folder, "never", None)
    state._store.append(2, {}, {TEXTS: Entries.of([packed])})
    state.close()


def test_a_text_that_unpacks_to_any_number_of_bytes_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.sessions.persistence.folder.TEXT_MOST", 1 << 20)
    rewritten(tmp_path / "state", zlib.compress(f"{NAMES}//{' ' * (64 << 20)}".encode()))
    tracemalloc.start()
    try:
        with pytest.raises(DlogError, match="the text of its program cannot be read"):
            dlog.session(None, state=tmp_path / "state")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_text_that_ends_early_is_damage(tmp_path: Path) -> None:
    rewritten(tmp_path / "state", zlib.compress(NAMES.encode())[:-8])
    with pytest.raises(DlogError, match="the text of its program cannot be read"):
        dlog.session(None, state=tmp_path / "state")


def test_a_program_whose_text_a_state_does_not_keep_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.sessions.persistence.folder.TEXT_MOST", 50)
    with pytest.raises(DlogError, match="a state keeps 50 at most"), dlog.session(NAMES, state=tmp_path / "state") as session:
        session.commit()


def test_changes_between_lots_with_other_columns_are_damage(tmp_path: Path) -> None:
    """The first rows are those of an earlier relation of that name, with as many columns as the changes."""
    folder, other = tmp_path / "state", tmp_path / "other"
    with dlog.session(".decl r(a: number, b: number, c: number)", state=folder, threads=1) as session:
        session.insert("r", [(1, 2, 3)])
        session.commit()
    pairs = ".decl r(a: number, b: number)\n.decl s(a: number)\ns(a) :- r(a, _).\n"
    with taking_frames():
        with dlog.session(pairs, state=other, threads=1) as session:
            session.insert("r", Frame.of(*((n, n) for n in range(200_000))))
            session.commit()
            entries = session._engine._state._external_relations.entries  # type: ignore[attr-defined]
        state = State(folder, "never", None)
        state._store.append(2, {}, {TEXTS: Entries.of([zlib.compress(pairs.encode())]), TABLE: Entries.of(entries)})
        marks = np.array([1])
        state._store.append(3, {"r": Updates((marks, marks, marks), marks, 3 * marks)}, {})
        state._store.append(4, {}, {TABLE: Entries.of(entries)})
        state.close()
        for part in other.glob("*.parquet"):
            shutil.copy(part, folder)
        session = dlog.session(None, state=folder, threads=1)
        with pytest.raises(DlogError, match="rows of `r` make no sense"):
            len(session["s"])
        crash(session)


NUMBER, SYMBOL = Type("number", Kind.NUMBER), Type("symbol", Kind.SYMBOL)
LIST = Type("List", Kind.RECORD, (("head", "number"), ("tail", "List")))
TREE = Type("Tree", Kind.RECORD, (("left", "Leaf"), ("right", "Tree")))
LEAF = Type("Leaf", Kind.RECORD, (("tree", "Tree"),))
NAMED = Type("Named", Kind.RECORD, (("name", "symbol"), ("of", "List")))
EXPR = Type("Expr", Kind.RECORD, (("", "number"),) * 3, ("$Name", "$Pair"))
NAME = Type("$Name", Kind.RECORD, (("", "number"), ("name", "symbol"), ("", "number")), adt="Expr", arity=1)
PAIR = Type("$Pair", Kind.RECORD, (("", "number"), ("left", "Expr"), ("right", "Expr")), adt="Expr", arity=2)
BOX = Type("Box", Kind.RECORD, (("expr", "Expr"),))
TYPES = {type.name: type for type in (NUMBER, SYMBOL, LIST, TREE, LEAF, NAMED, EXPR, NAME, PAIR, BOX)}


class Records:
    """Tables of records as somebody has forged them."""

    def __init__(self, **rows: list[tuple[int, ...]]) -> None:
        self.of = {int(arity[1:]): np.array(listed, np.int64) for arity, listed in rows.items()}
        self.restored = {arity: len(found) for arity, found in self.of.items()}

    def table(self, arity: int) -> Records:
        self.rows, self.found = self.restored.get(arity, 0), self.of.get(arity, np.empty((0, arity), np.int64))
        return self

    def column(self, number: int) -> np.ndarray:
        return self.found[:, number]


def held(type: Type, ids: list[int], records: Records, symbols: int = 3) -> bool:
    found = References(TYPES, range(symbols), records, records.restored)  # type: ignore[arg-type]
    return found.hold([type], [np.array(ids, np.int32)])


def test_ids_of_records_are_followed_to_all_that_is_inside() -> None:
    lists = Records(a2=[(7, 0), (8, 1), (9, 2)])
    assert held(LIST, [0, 1, 2, 3], lists)
    assert not held(LIST, [4], lists) and not held(LIST, [-1], lists)
    assert held(SYMBOL, [0, 2], lists) and not held(SYMBOL, [3], lists) and not held(SYMBOL, [-1], lists)
    assert held(NAMED, [1], Records(a2=[(2, 0)])) and not held(NAMED, [1], Records(a2=[(3, 0)]))
    several = Records(a2=[(7, 0), (1, 1), (8, 50), (9, 3), (2, 4)])
    assert held(LIST, [1, 2], several)
    assert not held(LIST, [3], several) and not held(LIST, [4], several) and not held(NAMED, [5], several)


@pytest.mark.parametrize("rows", [[(7, 1)], [(7, 2), (7, 1)], [(7, 3), (1, 0), (7, 4), (8, 1)], [(7, 3), (1, 0), (7, 9)]])
def test_a_list_inside_itself_is_none(rows: list[tuple[int, ...]]) -> None:
    assert not held(LIST, [1], Records(a2=rows))


def test_a_record_may_have_had_its_words_as_another_type_before_what_is_inside_was_made() -> None:
    assert held(LIST, [1, 3], Records(a2=[(7, 2), (8, 0), (9, 1)]))
    assert held(NAMED, [1], Records(a2=[(1, 2), (8, 0)]))
    assert held(EXPR, [1, 2], Records(a3=[(1, 2, 3), (0, 1, 0), (0, 2, 0)]))


def test_branches_have_tags_and_fields_of_their_type() -> None:
    """Rows of arity 3: the tag, `$Name` or `$Pair`, and the fields."""
    several = Records(
        a3=[(0, 2, 0), (1, 1, 1), (1, 2, 1), (2, 0, 0), (-1, 0, 0), (1, 0, 1), (0, 3, 0), (1, 1, 7), (1, 5, 1), (1, 10, 1)]
    )
    assert held(EXPR, [1, 2, 3], several) and not held(EXPR, [0], several)
    assert not any(held(EXPR, [wrong], several) for wrong in range(4, 11))
    inside = Records(a3=[(0, 1, 0)], a1=[(1,), (0,), (2,)])
    assert held(BOX, [0, 1], inside) and not held(BOX, [2], inside) and not held(BOX, [3], inside)


def test_records_of_several_arities_are_not_inside_themselves() -> None:
    assert held(TREE, [1, 2], Records(a1=[(0,), (1,)], a2=[(1, 0), (2, 1)]))
    assert not held(TREE, [1], Records(a1=[(1,)], a2=[(1, 0)]))
    assert not held(TREE, [3], Records(a1=[(2,), (1,)], a2=[(1, 0), (2, 0), (1, 1)]))
    assert held(LIST, [1], Records(a1=[(1,)], a2=[(1, 0)]))
