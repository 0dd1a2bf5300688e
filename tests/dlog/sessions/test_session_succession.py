"""Programs that change in a live session go on with what comes about as before."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.cluster.sharded_engine import ShardedRounds
from dlog.engine.runtime.incremental.batches import runner
from dlog.engine.runtime.incremental.batches.runner import BatchRunner
from dlog.engine.runtime.incremental.engines.choice import EmbeddedMaker
from dlog.engine.state import files
from dlog.relation import Relation
from dlog.sessions import options, replacing
from dlog.sessions.changing import Changing
from dlog.sessions.persistence import checkpoints, recovery
from tests.dlog.persistence.state_sessions import PATHS, Open, crash, put
from tests.dlog.persistence.test_state_failures import full
from tests.dlog.sessions.live_rules import Life, live, lives
from tests.examples import examples
from tests.shards import exchanging_rounds, sharded_rounds
from tests.strategies import graph_programs, programs, random_programs
from tests.strategies_views import staged_programs


@examples(60)
@given(life=lives(random_programs()))
def test_random_programs_change_while_they_live(life: Life) -> None:
    with dlog.session(life.case.text, threads=1) as session:
        live(session, life)


@examples(60)
@given(life=lives(staged_programs()))
def test_programs_with_stages_change_while_they_live(life: Life) -> None:
    with dlog.session(life.case.text, threads=1) as session:
        live(session, life)


@examples(80)
@given(life=lives(graph_programs()))
def test_programs_on_graphs_change_while_they_live(life: Life) -> None:
    with dlog.session(life.case.text, threads=1) as session:
        live(session, life)


class Workers(EmbeddedMaker):
    """Makes engines whose workers are threads."""

    elsewhere = True

    def __init__(self, made: Callable[..., Any]) -> None:
        super().__init__(1)
        self._made = made

    def __call__(self, program: Any, *, old: Any = None, **limits: Any) -> Any:
        return self._made(program, old=old, **limits)

    def resumed(self, *_: Any, **__: Any) -> None:
        return None


@contextmanager
def on_workers(made: Callable[..., Any]) -> Iterator[list[int]]:
    """Sessions opened meanwhile are of several workers; gives how many rows each answer of theirs brings here."""
    brought: list[int] = []
    real = ShardedRounds._collect

    def collected(self: ShardedRounds, *args: Any) -> Any:
        found = real(self, *args)
        brought.append(found.rows)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options.Options, "_maker", lambda self: Workers(made))
        patch.setattr(Changing, "_row_source", lambda self, r: Relation(r, self._engine.table(r.name), self._codec))
        patch.setattr(ShardedRounds, "_collect", collected)
        yield brought


@pytest.mark.slow
@examples(40)
@given(life=lives(random_programs()), made=st.sampled_from([sharded_rounds, exchanging_rounds]))
def test_random_programs_change_while_workers_have_them(life: Life, made: Any) -> None:
    with on_workers(made), dlog.session(life.case.text) as session:
        live(session, life)


@pytest.mark.slow
@examples(40)
@given(life=lives(graph_programs()), made=st.sampled_from([sharded_rounds, exchanging_rounds]))
def test_programs_on_graphs_change_while_workers_have_them(life: Life, made: Any) -> None:
    with on_workers(made), dlog.session(life.case.text) as session:
        live(session, life)


@pytest.mark.parametrize("made", [sharded_rounds, exchanging_rounds])
def test_rows_that_workers_have_do_not_come_here_when_rules_do(made: Any) -> None:
    many = 2_000
    with on_workers(made) as brought, dlog.session(PATHS, {"edge": [(i, -i) for i in range(1, many)]}) as session:
        brought.clear()
        round = session.add_rules(".decl back(x: number, y: number) back(y, x) :- edge(x, y). path(x, x) :- edge(x, -7).")
        assert sorted(round.changes("path")) == [((7, 7), 1)]
        assert session.rows("back") == many - 1 and max(brought) == 1
        round = session.drop_rules("path(x, x) :- edge(x, -7).")
        assert list(round.changes("path")) == [((7, 7), -1)]
        assert max(brought) == 1


@pytest.mark.exhaustive
@examples(1500)
@given(life=lives(programs(), most=10))
def test_thousands_of_programs_change_while_they_live(life: Life) -> None:
    with dlog.session(life.case.text, threads=1) as session:
        live(session, life)


@examples(60)
@given(life=lives(programs()), seed=st.integers(0, 99))
def test_steps_that_are_interrupted_anywhere_leave_no_trace(life: Life, seed: int) -> None:
    interrupt_steps(life, seed)


@examples(100)
@given(life=lives(staged_programs()), seed=st.integers(0, 99))
def test_steps_of_programs_with_stages_that_are_interrupted_anywhere_leave_no_trace(life: Life, seed: int) -> None:
    interrupt_steps(life, seed)


def interrupt_steps(life: Life, seed: int) -> None:
    rng = Random(seed)
    finish = BatchRunner._finish

    @contextmanager
    def trouble() -> Iterator[None]:
        left = rng.randrange(4)

        def interrupted(self: BatchRunner, *args: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0 and rng.random() < 0.5:
                raise KeyboardInterrupt
            finish(self, *args)
            if left == 0:
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BatchRunner, "_finish", interrupted)
            yield

    with dlog.session(life.case.text, threads=1) as session:
        live(session, life, trouble=trouble)


@examples(40)
@given(life=lives(graph_programs()), seed=st.integers(0, 99))
def test_programs_that_change_are_closed_killed_and_opened(life: Life, seed: int) -> None:
    close_and_open(life, seed)


@examples(40)
@given(life=lives(staged_programs()), seed=st.integers(0, 99))
def test_programs_with_stages_are_closed_killed_and_opened(life: Life, seed: int) -> None:
    close_and_open(life, seed)


def close_and_open(life: Life, seed: int) -> None:
    rng = Random(seed)

    def between(session: dlog.Session) -> dlog.Session:
        if rng.random() < 0.6:
            return session
        session.close() if rng.random() < 0.5 else crash(session)
        return dlog.session(None, **options)

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(checkpoints, "MIN_LOG_BYTES", 200)
        patch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
        patch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)
        options: dict[str, Any] = {"state": folder, "threads": 1, "sync": "never"}
        session = dlog.session(life.case.text, **options)
        session.commit()
        crash(live(session, life, between))


# ------------------------------------------------------------------------------------------------------------ what is taken


def taken(session: dlog.Session) -> set[str]:
    engine = session._engine
    return set((engine.working or engine).reused_relations)


def closure(*edges: tuple[int, int], **options: Any) -> dlog.Session:
    return dlog.session(PATHS, {"edge": list(edges)}, threads=1, **options)


def test_what_does_not_change_is_not_derived_again() -> None:
    s = closure(*((k, k + 1) for k in range(30)))
    s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- path(x, y).")
    assert taken(s) == {"edge", "path"} and s.rows("back") == 31 * 30 // 2
    assert s.explain().startswith("kept as it was when the rules changed: path\n\nstratum path, recursive")
    s.add_rules(".decl far(x: number, y: number)\nfar(x, y) :- back(x, z), path(z, y).\nback(x, x) :- edge(x, _).")
    assert taken(s) == {"edge", "path"}
    s.drop_rules("path(x, z) :- path(x, y), edge(y, z).")
    assert taken(s) == {"edge"} and s.rows("path") == 30
    s.drop_relation("far")
    assert taken(s) == {"edge", "path", "back"}


def test_a_new_relation_has_all_rows_of_the_old_ones_and_none_that_are_gone() -> None:
    s = closure(*((k, k + 1) for k in range(40)))
    s.remove("edge", [(k, k + 1) for k in range(0, 40, 3)])
    s.commit()
    left = set(s["path"])
    round = s.add_rules(".decl copy(x: number, y: number)\ncopy(x, y) :- path(x, y).")
    assert set(s["copy"]) == left and {row for row, diff in round.changes("copy") if diff > 0} == left
    assert list(round.changes("path")) == []
    s.insert("edge", (0, 1))
    assert sorted(s.commit().changes("copy")) == [((0, y), 1) for y in (1, 2, 3)]


def test_a_count_whose_rows_are_looked_up_from_now_on_is_made_again_and_nothing_else() -> None:
    s = closure((1, 2), (2, 3), (3, 1), (7, 8))
    s.add_rules(".decl n(x: number, c: number)\nn(x, c) :- path(x, _), c = count : { path(x, _) }.")
    s.add_rules(".decl some(x: number)\nsome(x) :- edge(x, _), n(x, c), c > 2.")
    assert taken(s) == {"edge", "path"} and sorted(s["some"]) == [(1,), (2,), (3,)]
    s.insert("edge", [(8, 9), (9, 10)])
    assert sorted(s.commit().changes("some")) == [((7,), 1)]
    s.drop_rules("some")
    assert taken(s) == {"edge", "path", "n"} and sorted(s["n"]) == [(1, 3), (2, 3), (3, 3), (7, 3), (8, 2), (9, 1)]


def test_rows_besides_rules_are_taken_over_when_rules_come_and_go() -> None:
    s = dlog.session(".decl a(x: number) .decl b(x: number)\n", {"a": [(1,)], "b": [(5,)]}, threads=1)
    s.add_rules("b(x) :- a(x).")
    assert taken(s) == {"a"} and sorted(s["b"]) == [(1,), (5,)]
    assert sorted(s.changes("b")) == [((1,), 1)]
    s.insert("a", (2,))
    s.commit()
    s.add_rules("b(x + 1) :- b(x), x < 3. b(9).")
    assert sorted(s["b"]) == [(1,), (2,), (3,), (5,), (9,)]
    s.drop_rules("b")
    assert sorted(s["b"]) == [(5,), (9,)] and sorted(s.changes("b")) == [((k,), -1) for k in (1, 2, 3)]


def test_an_index_that_held_values_has_the_rows_that_new_rules_ask_for() -> None:
    rng = Random(5)
    edges = {(rng.randrange(300), rng.randrange(300)) for _ in range(3000)}
    text = ".decl e(x: number, y: number)\n.decl t(x: number, y: number, z: number)\nt(x, y, z) :- e(x, y), e(y, z), e(z, x).\n"
    s = dlog.session(text, {"e": list(edges)}, threads=1)
    for way in ("e(x, y), e(y, z)", "e(x, y), e(z, y)", "e(y, x), e(y, z)"):
        s.add_rules(f".decl two(x: number, z: number)\ntwo(x, z) :- {way}, x != z.")
        assert taken(s) == {"e", "t"}
        other = dlog.session(s.text + "\n", {"e": list(s["e"])}, threads=1)
        assert set(s["two"]) == set(other["two"])
        for k in range(3):
            both = [(rng.randrange(300), rng.randrange(300)) for _ in range(5)]
            for session in (s, other):
                session.insert("e", both)
                session.remove("e", sorted(edges)[k * 7 : k * 7 + 3])
                session.commit()
            for name in s:
                assert set(s.changes(name)) == set(other.changes(name)) and set(s[name]) == set(other[name])
        s.drop_relation("two")


def test_memory_does_not_grow_with_rules_that_come_and_go() -> None:
    s = closure(*((k, k + 1) for k in range(200)))
    used = []
    for _ in range(6):
        s.add_rules(".decl pair(x: number, y: number)\npair(x, y) :- path(x, z), path(y, z), edge(x, y).")
        s.drop_relation("pair")
        used.append(s._engine.memory.used)  # type: ignore[attr-defined]
    assert len(set(used[1:])) == 1


def test_what_went_with_the_old_rules_gives_its_memory_back_at_once() -> None:
    s = closure(*((k, k + 1) for k in range(200)))
    used = s._engine.memory.used  # type: ignore[attr-defined]
    s.add_rules("path(x, x) :- edge(x, _).")
    assert s._engine.memory.used < used + (used >> 2)  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------------------------- failures


def goes_on(s: dlog.Session) -> None:
    """A session of `closure((1, 2), (2, 3))` after a change of rules that failed."""
    assert (list(s), s.round, sorted(s["path"])) == (["edge", "path"], 1, [(1, 2), (1, 3), (2, 3)])
    s.insert("edge", (3, 4))
    assert sorted(s.commit().changes("path")) == [((1, 4), 1), ((2, 4), 1), ((3, 4), 1)]
    s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- path(x, y).")
    s.remove("edge", (2, 3))
    assert sorted(s.commit().changes("back")) == [((3, 1), -1), ((3, 2), -1), ((4, 1), -1), ((4, 2), -1)]


@pytest.mark.parametrize(
    "rules",
    [
        ".decl q(x: number)\nq(1 / (x - 1)) :- path(x, y), path(y, _).",
        ".decl q(x: number)\nq(1 / (x - 9)) :- path(x, _).\nedge(8, 9). edge(9, 1).",
        "path(0, 1 / (x - 9)) :- edge(x, _).\nedge(8, 9). edge(9, 1).",
    ],
)
def test_rules_that_fail_leave_everything_as_it_was(rules: str) -> None:
    s = closure((1, 2), (2, 3))
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules(rules)
    assert raised.value.diagnostics[0].code == "division-by-zero"
    goes_on(s)


def test_an_interruption_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    s = closure((1, 2), (2, 3))
    with monkeypatch.context() as patched:
        patched.setattr(BatchRunner, "_finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            s.add_rules(".decl q(x: number)\nq(x) :- path(x, _).")
    goes_on(s)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("facts", ["", "edge(5, 6)."])
def test_what_fails_when_the_engine_has_taken_over_is_taken_back(monkeypatch: pytest.MonkeyPatch, facts: str) -> None:
    s = closure((1, 2), (2, 3))
    with monkeypatch.context() as patched:
        patched.setattr(replacing, "between", interrupted)
        with pytest.raises(KeyboardInterrupt):
            s.add_rules(f".decl q(x: number)\nq(x) :- path(x, _).\npath(x, x) :- edge(x, _).\n{facts}")
    with pytest.raises(dlog.DlogError, match=r"no longer kept|gone"):
        s.changes("path")
    goes_on(s)


def test_a_program_that_cannot_be_logged_is_taken_back(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    s = reopen()
    put(s, (1, 2), (2, 3))
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", full)
        with pytest.raises(dlog.DlogError):
            s.add_rules(".decl q(x: number)\nq(x) :- path(x, _).\nedge(5, 6).")
    goes_on(s)
    s = reopen(None)
    assert sorted(s["back"]) == [(2, 1), (4, 3)]


def test_rules_that_need_too_much_memory_are_refused() -> None:
    s = closure(*((k, k + 1) for k in range(150)), memory=4 << 20)
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules(".decl q(x: number, y: number, z: number)\nq(x, y, z) :- path(x, y), path(y, z).")
    assert raised.value.diagnostics[0].code == "out-of-memory"
    assert s.rows("path") == 151 * 150 // 2
    s.insert("edge", (150, 151))
    assert len(s.commit().changes("path")) == 151


def test_what_goes_with_the_old_rules_is_no_obstacle_to_the_new_ones() -> None:
    s = closure(*((k, k + 1) for k in range(300)))
    used = s._engine.memory.used  # type: ignore[attr-defined]
    s = closure(*((k, k + 1) for k in range(300)), memory=used + (used >> 1))
    s.add_rules("path(x, x) :- edge(x, _).")
    assert s.rows("path") == 301 * 300 // 2 + 300


@pytest.mark.slow
def test_others_read_while_rules_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_ROWS_PER_CALL", 1000)
    s = closure(*((k, k + 1) for k in range(120)))
    expected, stop, wrong = set(s["path"]), threading.Event(), list[object]()

    def read() -> None:
        while not stop.is_set():
            with s.at() as view:
                rows = (len(view["path"]), s.rows("path"), len(view["edge"]))
            if rows not in ((len(expected), len(expected), 120), (len(expected) + 3, len(expected) + 3, 122)):
                wrong.append(rows)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for k in range(15):
        s.add_rules(f".decl q{k}(x: number, z: number)\nq{k}(x, z) :- path(x, y), path(y, z), edge(z, _).")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong and set(s["path"]) == expected
