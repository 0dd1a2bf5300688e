"""Sessions on disk: a state goes on where it was left, whatever ended the last session."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.engine.runtime.incremental.engines import choice
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.engine.state import files
from dlog.grammar.diagnostics import render_all
from dlog.sessions.persistence import checkpoints, folder
from tests.dlog.persistence.state_model import PROGRAM, all_rows, check, commit, expected
from tests.dlog.persistence.state_sessions import PATHS, Open, code, crash, put, refused, runs

# ------------------------------------------------------------------------------------------------------------- going on


def test_a_closed_state_is_read_without_deriving_anything(reopen: Open) -> None:
    with reopen() as s:
        assert not s.restored
        put(s, (1, 2), (2, 3))
        put(s, (3, 4))
    s = reopen()
    assert s.restored and s.round == 2
    assert sorted(s["path"]) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    assert s.rows("path") == 6 and s.rows("edge") == 3
    assert sorted(s["path"].to_arrow().column("y").to_pylist()) == [2, 3, 3, 4, 4, 4]
    assert sorted(s.query("?- path(1, X), X > 2.")) == [(3,), (4,)]
    with s.at() as view:
        assert len(view["path"]) == 6
    assert [(n, len(c)) for n, c in s.subscribe("path").fetch()] == [(2, 6)]
    assert not runs(s)
    s.remove("edge", (2, 3))
    assert sorted(s.commit().changes("path")) == [((1, 3), -1), ((1, 4), -1), ((2, 3), -1), ((2, 4), -1)]
    assert runs(s) and s.round == 3


@pytest.mark.parametrize("ends", ["close", "crash"])
def test_a_state_without_a_round_has_its_program(reopen: Open, ends: str) -> None:
    """It is the state's own from when it is opened; another one may take its place while there is no round."""
    for program in (PATHS, f"{PATHS}.decl word(t: symbol)\n"):
        s = reopen(program)
        if ends == "close":
            s.close()
    with reopen(None) as s:
        assert (s.round, s.restored, list(s)) == (0, False, ["edge", "path", "word"])
        put(s, (1, 2), (2, 3))
    with reopen(None) as s:
        assert s.restored and s.round == 1 and sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_what_a_crash_leaves_is_derived_when_it_is_read(reopen: Open) -> None:
    program = f"{PATHS}.decl word(t: symbol) .decl long(t: symbol)\nlong(t) :- word(t), strlen(t) > 2.\n"
    with reopen(program) as s:
        s.insert("word", [("ab",), ("abc",)])
        put(s, (1, 2))
    put(reopen(program), (2, 3))
    s = reopen(program)
    assert sorted(s["edge"]) == [(1, 2), (2, 3)]
    assert sorted(s["long"]) == [("abc",)]
    assert not runs(s)
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]
    assert runs(s)
    s.close()
    s = reopen(program)
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)] and not runs(s)


@pytest.mark.slow
@pytest.mark.parametrize("incremental", [True, False])
def test_all_kinds_of_values_and_rules_come_back_round_by_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, incremental: bool
) -> None:
    if not incremental:
        monkeypatch.setattr(choice, "make_engine", Recompute)
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 300)
    for number in range(8):
        session = dlog.session(PROGRAM, state=tmp_path, threads=1, sync="never")
        for rounds in (1, 1, 3, 1):
            commit(session, 5, rounds)
        assert all_rows(session) == expected(5, session.round)
        session.close() if number % 3 else crash(session)
        assert check(tmp_path, 5, close=number % 2 == 0) == 6 * (number + 1) + 1


def test_a_commit_that_finds_a_checkpoint_due_does_not_wait_for_the_disk(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it make files: that is all done beside it."""
    here: list[str] = []
    mine = threading.get_ident()

    def noted(name: str) -> None:
        done = getattr(files, name)

        def instead(*args: Any, **options: Any) -> Any:
            if threading.get_ident() == mine:
                here.append(name)
            return done(*args, **options)

        monkeypatch.setattr(files, name, instead)

    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 300)
    s = reopen(sync="never")
    for name in ("sync", "create", "fill", "sync_folder", "open_to_append"):
        noted(name)
    for number in range(100):
        put(s, (number, -1))
        if number == 20:
            here.clear()  # the first checkpoint had an image, which was copied
        if (writing := s._engine._state.checkpoints._writing) is not None:  # type: ignore[attr-defined]
            writing.join()
    assert s._engine._state._store.checkpoint_round > 50 and here == []  # type: ignore[attr-defined]
    assert set(reopen()["edge"]) == {(number, -1) for number in range(100)}


def test_no_checkpoint_is_written_for_a_program_that_is_another_by_then(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begin = checkpoints.Checkpoints._write_beside
    monkeypatch.setattr(checkpoints.Checkpoints, "_start", lambda self, target, *args: args and waiting.append((self, args)))
    monkeypatch.setattr(checkpoints.Checkpoints, "_image_due", lambda *_: False)
    waiting: list[Any] = []
    program = ".decl word(t: symbol)\n.decl other(t: symbol)\n"
    s = reopen(program, sync="never")
    s.insert("word", ("one",))
    s.commit()
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 300)
    state = s._engine._state  # type: ignore[attr-defined]
    state.checkpoints._due = 0
    s.insert("word", ("two",))
    s.commit()
    assert waiting
    s.add_rules(".decl more(t: symbol)\n.input more\n")
    s.insert("more", ("three",))
    s.commit()
    for checkpoint, args in waiting[:1]:
        begin(checkpoint, *args)
    assert state._store.checkpoint_round == 0
    for checkpoint, args in waiting[-1:]:
        begin(checkpoint, *args)
    assert state._store.checkpoint_round == state.round
    s = reopen(None)
    assert set(s["word"]) == {("one",), ("two",)} and set(s["more"]) == {("three",)}


def test_ids_are_the_same_in_every_session(reopen: Open) -> None:
    program = ".type P = [a: symbol, b: P]\n.decl word(t: symbol)\n.decl pair(p: P)\n"
    with reopen(program) as s:
        s.insert("word", [("one",), ("two",)])
        s.insert("pair", [(("x", None),), (("y", ("x", None)),)])
        s.commit()
        words, pairs = s.at().table("word").columns[0].tolist(), s.at().table("pair").columns[0].tolist()
    s = reopen(program)
    assert sorted(s.at().table("word").columns[0].tolist()) == sorted(words)
    assert sorted(s.at().table("pair").columns[0].tolist()) == sorted(pairs)
    s.insert("word", ("three",))
    s.insert("pair", (("x", None),))
    s.commit()
    s = reopen(program)
    assert sorted(s["word"]) == [("one",), ("three",), ("two",)]
    assert set(s["pair"]) == {(("x", None),), (("y", ("x", None)),)}
    assert len(set(s.at().table("word").columns[0].tolist()) - set(words)) == 1


def test_symbols_of_any_characters_come_back(reopen: Open) -> None:
    program = ".decl word(t: symbol)\n"
    with reopen(program) as s:
        s.insert("word", [("\U0001f600\uffff",), ("",), ("a\x00b",)])
        s.commit()
    assert set(reopen(program)["word"]) == {("\U0001f600\uffff",), ("",), ("a\x00b",)}


def test_relations_without_columns_come_back(reopen: Open) -> None:
    program = ".decl flag() .decl raised()\nraised() :- flag().\n"
    with reopen(program) as s:
        s.insert("flag", ())
        s.commit()
    s = reopen(program)
    assert len(s["flag"]) == len(s["raised"]) == 1
    s.remove("flag", ())
    s.commit()
    assert len(reopen(program)["raised"]) == 0


def test_facts_are_for_a_new_state(reopen: Open, tmp_path: Path) -> None:
    program = f"{PATHS}.input edge\nedge(7, 8).\n"
    (tmp_path / "edge.facts").write_text("1\t2\n")
    with reopen(program, str(tmp_path)) as s:
        assert sorted(s["path"]) == [(1, 2), (7, 8)]
        s.remove("edge", [(1, 2), (7, 8)])
        s.commit()
    s = reopen(program, str(tmp_path))
    assert s.round == 2 and sorted(s["path"]) == []
    put(s, (3, 4))
    assert sorted(s["edge"]) == [(3, 4)]


def test_facts_come_before_the_changes_of_the_first_commit(reopen: Open) -> None:
    s = reopen(".decl seen(x: number)\nseen(1). seen(2).\n", {"seen": [(2,), (3,)]})
    assert s.round == 1 and sorted(s["seen"]) == [(1,), (2,), (3,)]
    assert sorted(reopen(".decl seen(x: number)\nseen(1). seen(2).\n")["seen"]) == [(1,), (2,), (3,)]


def test_an_empty_state_is_as_new(reopen: Open) -> None:
    reopen().close()
    s = reopen()
    assert not s.restored and s.round == 0 and len(s["path"]) == 0
    assert list(s.changes("path")) == []


def test_what_the_last_round_of_another_session_changed_is_not_known(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    s = reopen()
    assert code(lambda: s.changes("path")) == "past-round"
    put(s, (2, 3))
    assert len(s.changes("path")) == 2


def test_views_of_the_state_outlive_commits(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    s = reopen()
    with s.at() as before:
        put(s, (2, 3))
        assert sorted(before["path"]) == [(1, 2)] and len(s["path"]) == 3


def test_upserts_see_the_rows_of_the_state(reopen: Open) -> None:
    program = ".decl price(item: symbol, euros: number)\n"
    with reopen(program, {"price": [("tea", 3), ("rum", 9)]}):
        pass
    s = reopen(program)
    s.upsert("price", ("tea", 4))
    s.commit()
    assert sorted(reopen(program)["price"]) == [("rum", 9), ("tea", 4)]


def test_proofs_of_a_state(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    assert reopen().why("path", (1, 3)).height == 2


def test_a_mark_comes_back(reopen: Open) -> None:
    s = reopen()
    assert s.mark is None
    s.insert("edge", (1, 2))
    s.commit(mark=700)
    put(s, (2, 3))
    assert s.mark == 700
    s = reopen()
    assert s.mark == 700
    s.commit_rounds({"edge": [(5, (3, 4), 1)]}, mark=-5)
    s.close()
    s = reopen()
    assert s.mark == -5 and s.round == 5


@pytest.mark.parametrize("ends", ["close", "kill"])
def test_marks_of_the_rounds_of_a_history_come_back(reopen: Open, ends: str) -> None:
    s = reopen(history=4)
    for k in range(6):
        s.insert("edge", (k, k + 1))
        s.commit(mark=10 * k)
    assert s.marks() == {3: 20, 4: 30, 5: 40, 6: 50}
    put(s, (7, 8))  # round 7, without one
    s.apply([(8, "edge", -1, (0, 1)), (9, "edge", -1, (1, 2))], mark={8: 70, 9: 80})
    if ends == "close":
        s.close()
    s = reopen(history=4)
    assert s.marks() == {6: 50, 8: 70, 9: 80} and s.mark == 80
    s.commit(mark=90)
    assert s.marks() == {8: 70, 9: 80, 10: 90} and sorted(s.diff(8, 9)["edge"]) == [((1, 2), -1)]
    assert reopen(history=4).marks() == {8: 70, 9: 80, 10: 90}
    assert reopen().marks() == {}


def test_marks_by_round_of_rules_about_past_rounds() -> None:
    """Their rounds are done one after the other."""
    doors = ".decl open(door: symbol)\n.decl ever(door: symbol)\never(d) :- open(d).\never(d) :- ever@-1(d).\n"
    s = dlog.session(doors, history=9)
    s.apply([(1, "open", 1, ("front",)), (3, "open", -1, ("front",))], mark={1: 5, 3: 9})
    assert s.marks() == {1: 5, 3: 9} and s.mark == 9 and s.round == 3
    for wrong, meant in (({7: 1}, "numbers of 64 bits by rounds 4 to 4, not 7"), ({4: "a"}, "a number of 64 bits, not 'a'")):
        with pytest.raises(dlog.DlogError, match=f"`mark` must be {meant}"):
            s.commit_rounds({}, mark=wrong)
    assert s.round == 3


def test_marks_are_kept_without_a_state_too() -> None:
    s = dlog.session(PATHS)
    s.commit(mark=3)
    s.commit()
    assert s.mark == 3


# ------------------------------------------------------------------------------------------------------------- the program


def test_a_changed_program_keeps_the_inputs_and_says_so(reopen: Open) -> None:
    with reopen(f"{PATHS}edge(8, 9). edge(9, 9).\n") as s:
        put(s, (1, 2), (2, 3))
    changed = PATHS.replace("path(x, z) :- path(x, y), edge(y, z).", "path(y, x) :- edge(x, y).") + "edge(9, 9). edge(5, 6).\n"
    with pytest.warns(RuntimeWarning) as told:
        s = reopen(changed)
    assert str(told[0].message) == (
        "the program is not the one that the state was left with\n"
        "  - path(x, z) :- path(x, y), edge(y, z).\n"
        "  - edge(8, 9).\n"
        "  + path(y, x) :- edge(x, y).\n"
        "  + edge(5, 6).\n"
        "  its inputs are kept, everything else was derived anew: round 3"
    )
    assert told[0].filename == reopen.__code__.co_filename  # type: ignore[attr-defined]
    assert sorted(s["edge"]) == [(1, 2), (2, 3), (5, 6), (9, 9)]
    assert sorted(s["path"]) == [(1, 2), (2, 1), (2, 3), (3, 2), (5, 6), (6, 5), (9, 9)]
    for _ in range(2):  # from the log, and from layers
        s = reopen(changed)
        assert s.round == 3 and len(s["path"]) == 7
        s.close()


def test_comments_layout_and_order_change_nothing(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = PATHS.strip().split("\n")
        s = reopen("// the same\n" + "\n".join([*lines[:2], lines[3], lines[2].replace(" ", "  ")]))
    assert s.round == 1 and sorted(s["path"]) == [(1, 2)] and not runs(s)


def test_a_program_that_fails_on_the_inputs_leaves_the_state_alone(reopen: Open) -> None:
    with reopen() as s:
        put(s, (0, 2))
    assert code(lambda: reopen(f"{PATHS}path(1 / x, y) :- edge(x, y).\n")) == "division-by-zero"
    s = reopen()
    assert s.round == 1 and sorted(s["path"]) == [(0, 2)] and not runs(s)


def test_inputs_of_other_types_are_refused(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    error = refused(
        lambda: reopen(
            PATHS.replace("edge(x: number, y: number)", "edge(x: number, y: symbol)")
            .replace("path(x: number, y: number)", "path(x: number, y: symbol)")
            .replace("path(x, z) :- path(x, y), edge(y, z).", "")
        )
    )
    assert [d.code for d in error.diagnostics] == ["state-program"]
    shown = render_all(error.diagnostics)
    assert "edge(x: number, y: number)" in shown and "edge(x: number, y: symbol)" in shown and "^^^^" in shown


def test_inputs_of_another_arity_are_refused(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    assert code(lambda: reopen(".decl edge(x: number)\n")) == "state-program"


def test_inputs_with_other_records_are_refused(reopen: Open) -> None:
    program = ".type P = [a: number, b: {}]\n.decl r(p: P)\n"
    with reopen(program.format("number"), {"r": [((1, 2),)]}):
        pass
    assert code(lambda: reopen(program.format("symbol"))) == "state-program"


def test_attributes_may_have_other_names_and_types_of_the_same_kind(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    with pytest.warns(RuntimeWarning):
        s = reopen(".type Node <: number\n" + PATHS.replace("edge(x: number, y: number)", "edge(from: Node, to: Node)"))
    assert s["edge"].attributes == ("from", "to") and sorted(s["edge"]) == [(1, 2)]


def test_the_state_of_another_program_is_refused(reopen: Open) -> None:
    with reopen(f"{PATHS}.decl node(x: number)\n") as s:
        s.insert("node", (1,))
        put(s, (1, 2))
    error = refused(lambda: reopen(".decl word(t: symbol)\n"))
    assert [d.code for d in error.diagnostics] == ["state-program"]
    assert error.diagnostics[0].message == "the state has rows of `edge` and `node`, which the program does not declare"


def test_a_relation_whose_rows_are_all_from_the_text_may_go(reopen: Open) -> None:
    program = f"{PATHS}.decl old(x: number)\nold(1). old(2).\n"
    with reopen(program) as s:
        put(s, (1, 2))
    with pytest.warns(RuntimeWarning):
        assert "old" not in reopen()
    with pytest.warns(RuntimeWarning):
        assert sorted(reopen(f"{PATHS}.decl old(x: number)\n")["old"]) == []
    with reopen(None) as s:
        s.insert("old", (3,))
        s.commit()
    assert code(reopen) == "state-program"


def test_without_a_program_the_state_has_its_own(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
        s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- path(x, y).")
    s = reopen(None)
    assert sorted(s["back"]) == [(2, 1)] and not runs(s)
    put(s, (2, 3))
    assert sorted(reopen(None)["back"]) == [(2, 1), (3, 1), (3, 2)]
    with pytest.warns(RuntimeWarning, match=r"(?s)- \.decl back.*- back\(y, x\)"):
        assert "back" not in reopen()


def test_a_new_state_without_a_program_is_empty(reopen: Open) -> None:
    s = reopen(None)
    s.add_rules(".decl seen(x: number)\nseen(1).")
    s = reopen(None)
    assert sorted(s["seen"]) == [(1,)] and s.round == 1


@pytest.mark.parametrize("settled", [True, False])
def test_relations_are_dropped_for_good(reopen: Open, settled: bool) -> None:
    s = reopen(f"{PATHS}.decl node(x: number, t: symbol)\n")
    s.insert("node", [(1, "a"), (2, "b")])
    put(s, (1, 2))
    if settled:
        s.close()
        s = reopen(None)
    s.drop_relation("node")
    s.add_rules(".decl node(x: number)")
    s.insert("node", (5,))
    s.commit()
    for _ in range(2):
        s = reopen(None)
        assert sorted(s["node"]) == [(5,)] and sorted(s["path"]) == [(1, 2)]
        s.close()


@pytest.mark.parametrize("durable", [True, False])
def test_rows_of_a_relation_that_gets_rules_stay(reopen: Open, durable: bool) -> None:
    s = reopen() if durable else dlog.session(PATHS)
    put(s, (1, 2))
    s.add_rules("edge(y, x) :- edge(x, y). path(7, 7).")
    assert sorted(s["edge"]) == [(1, 2), (2, 1)]
    s.add_rules("path(x, x) :- edge(x, _).")
    assert sorted(s["path"]) == [(1, 1), (1, 2), (2, 1), (2, 2), (7, 7)]
    if durable:
        assert sorted(reopen(None)["path"]) == [(1, 1), (1, 2), (2, 1), (2, 2), (7, 7)]


def test_another_version_of_dlog_derives_anew(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with reopen() as s:
        put(s, (1, 2))
    monkeypatch.setattr(folder, "__version__", "another")
    s = reopen()
    assert sorted(s["edge"]) == [(1, 2)] and not runs(s)
    assert sorted(s["path"]) == [(1, 2)] and runs(s)


LEAST = """
.decl edge(x: number, y: number)
.decl start(x: number, v: number)
.decl least(x: number, v: number)
least(x, v) :- start(x, _), v = min c : { start(x, c) ; least(y, c), edge(y, x) }.
"""


def test_a_limit_of_iterations_does_not_hold_for_what_is_derived_again(tmp_path: Path) -> None:
    """After a crash all rows are derived at once, which takes more iterations than any round did."""
    s = dlog.session(LEAST, state=tmp_path, max_iterations=8)
    for k in range(20):
        s.insert("start", (k, k + 1))
        s.insert("edge", (k, k + 1))
        s.commit()
    crash(s)
    s = dlog.session(LEAST, state=tmp_path, max_iterations=8)
    assert sorted(s["least"]) == [(k, 1) for k in range(20)]
    s.insert("start", [(k, k) for k in range(100, 120)])
    s.insert("edge", [(k, k + 1) for k in range(100, 120)])
    with pytest.raises(dlog.DlogError, match="more than 8 iterations"):
        s.commit()
    s.close()
    with pytest.raises(dlog.DlogError, match="more than 8 iterations"):
        dlog.session(LEAST.replace("least(y, c)", "least(y, d), c = d + 0"), state=tmp_path, max_iterations=8)


SHARED = """.type Named = [name: symbol, of: Pair]
.type Pair = [x: number, y: number]
.decl word(text: symbol)
.decl pair(p: Pair)
.decl named(n: Named)
.decl names(text: symbol)
names(text) :- named([text, _]).
"""


def test_records_with_the_words_of_one_of_another_type_are_read_back(tmp_path: Path) -> None:
    """What is inside of them was made later than they were: ids are small numbers, too."""
    names = [((text, (0, 6)),) for text in "abcd"]
    with dlog.session(SHARED, state=tmp_path / "state", threads=1) as session:
        session.insert("word", [(text,) for text in "abcd"])
        session.insert("pair", [((x, y),) for y in range(5, 9) for x in range(4)])  # (0, 6) is the fifth; ids begin with 1
        session.commit()
        session.insert("named", names)
        session.commit()
    [image] = (tmp_path / "state").glob("*.image")
    image.unlink()
    with dlog.session(None, state=tmp_path / "state", threads=1) as session:
        session.insert("word", [("e",)])
        session.commit()
        assert sorted(session["named"]) == names
        assert sorted(session["names"]) == [(text,) for text in "abcd"]
