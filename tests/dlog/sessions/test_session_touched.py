"""After a commit a session asks its engine about nothing that the commit has not touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dlog
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates

MANY = 30
TEXT = "".join(f".decl a{i}(x: number)\n.decl b{i}(x: number)\nb{i}(x * 1) :- a{i}(x), x > 3.\n" for i in range(MANY))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations whose changes an engine was asked for."""
    found: list[str] = []
    real: Callable[[Maintained, str], Updates] = Maintained.changes

    def changes(engine: Maintained, relation: str) -> Updates:
        found.append(relation)
        return real(engine, relation)

    monkeypatch.setattr(Maintained, "changes", changes)
    return found


def test_a_round_names_what_it_changed(asked: list[str]) -> None:
    with dlog.session(TEXT, {"a1": [(1,)]}) as session:
        session.insert("a7", (5,))
        session.insert("a2", (1,))
        done = session.commit()
        assert (list(done), len(done)) == (["a2", "a7", "b7"], 3)
        assert set(asked) == {"a2", "a7", "b7"}
        asked.clear()
        assert list(session.commit()) == []
        assert asked == []


def test_history_and_views_note_what_was_touched(asked: list[str]) -> None:
    with dlog.session(TEXT, {"a1": [(1,)]}, history=2) as session:
        asked.clear()
        session.insert("a7", (5,))
        session.commit()
        assert set(asked) == {"a7", "b7"}
        asked.clear()
        session.remove("a7", (5,))
        session.commit()
        assert asked == []  # the engine keeps changes until somebody reads, but where a relation had no rows
        assert [sorted(session.at(round)["b7"]) for round in (1, 2, 3)] == [[], [(5,)], []]


def test_subscribers_of_what_was_touched_are_told(asked: list[str]) -> None:
    heard: list[str] = []
    with dlog.session(TEXT, {"a1": [(1,)]}) as session:
        for i in reversed(range(MANY)):
            session.subscribe(f"b{i}", lambda _round, _changes, i=i: heard.append(f"b{i}"), snapshot=False)
        session.subscribe("b4", lambda round, _changes: heard.append(f"progress {round}"), progress=True)
        session.subscribe("b5", lambda round, _changes: heard.append(f"from {round}"), as_of=4)
        session.insert("a1", (1,))
        session.commit()
        heard.clear()
        asked.clear()
        session.insert("a7", (5,))
        session.insert("a9", (5,))
        session.commit()
        assert heard == ["b9", "b7", "progress 3"]
        assert set(asked) <= {"a7", "b7", "a9", "b9", "b4", "b5"}
        heard.clear()
        session.insert("a5", (5,))
        session.commit()
        assert heard == ["b5", "progress 4", "from 4"]
        heard.clear()
        session.insert("a5", (6,))
        session.commit()
        assert heard == ["b5", "progress 5", "from 5"]


def test_closed_subscriptions_are_let_go() -> None:
    with dlog.session(TEXT, {"a1": [(1,)]}) as session:
        for _ in range(3):
            session.subscribe("b1").close()
        ended = session.subscribe("b2", up_to=3)
        session.commit()
        assert ended.closed
        session.insert("a1", (9,))
        session.commit()
        assert session._followers.nobody(session.round)


def test_a_subscription_to_a_dropped_relation_ends() -> None:
    with dlog.session(TEXT, {"a1": [(1,)]}) as session:
        subscription = session.subscribe("b1")
        session.drop_relation("b1")
        assert subscription.closed
