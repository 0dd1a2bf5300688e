"""dlog's `dataclass` makes what the standard library's does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from dlog.dataclass import dataclass

Make = Callable[..., Any]
OPTIONS = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "repr": False},
]


def made(make: Make, options: dict[str, bool]) -> tuple[Any, Any, Any]:
    @make(**options)
    class Point:
        """A point."""

        shared: ClassVar[int] = 7
        x: int
        y: int = 2
        seen: list[int] = field(default_factory=list, compare=False)
        name: str = field(default="p", repr=False, kw_only=True)
        twice: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.x)

    @make(**options)
    class Named(Point):
        label: str = "none"

        def __repr__(self) -> str:
            return f"<{self.label}>"

    @make(**options)
    class Alike:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    return Point, Named, Alike


def told(call: Callable[[], object]) -> object:
    """What a call gives, or the mistake that it makes."""
    try:
        return call()
    except (FrozenInstanceError, TypeError, AttributeError) as mistake:
        return type(mistake)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
def test_classes_are_what_the_standard_library_makes(options: dict[str, bool]) -> None:
    def seen(make: Make) -> list[object]:
        point, named, alike = made(make, options)
        p, q, n, a = point(x=1), point(x=1, y=2, seen=[3], name="p"), named(x=1, label="n"), alike(x=4)
        found: list[object] = [
            *map(is_dataclass, (point, n)),
            [(f.name, f.init, f.repr, f.compare, f.kw_only) for f in fields(n)],
            (p.x, p.y, p.seen, p.name, p.twice, p.shared, n.label, q.seen),
            repr(p).partition("Point")[2] if options.get("repr", True) else "",
            repr(n),
            (p == q, p == n, p != q, p == replace(p, x=2), p == 1, a == 5),
            told(lambda: hash(p) == hash(q)),
            told(lambda: {p: 1}[q] if options.get("eq", True) else 0),
            told(lambda: isinstance(hash(a), int)),
            told(lambda: setattr(p, "x", 3)),
            isinstance(told(lambda: setattr(p, "other", 3)), type),  # with slots the library's own is a TypeError by mistake
            told(lambda: delattr(p, "y")),
            told(lambda: point()),
            told(lambda: point(1, 2, [], "p")),
            told(lambda: point(1, 2, zzz=3)),
            (replace(q, y=5).y, replace(q, y=5).seen, copy.copy(q).seen is q.seen, copy.deepcopy(q).seen),
            (point.__doc__, getattr(point, "__match_args__", None), getattr(point, "__slots__", None)),
        ]
        return found

    assert seen(dataclass) == seen(dataclasses.dataclass)


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


@dataclass
class Loose:
    c: list[int] = field(default_factory=list)


class Wider(Kept):
    """Not a dataclass: what it adds may be set."""


def test_instances_are_pickled_and_compared_as_values() -> None:
    for value in (Kept(1, (2, 3)), Loose([1])):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and type(again) is type(value)
    match Kept(1, (2,)):
        case Kept(a, (b,)):
            assert (a, b) == (1, 2)


def test_a_class_that_is_no_dataclass_may_add_what_is_set() -> None:
    wider: Any = Wider(1)
    wider.other = 3
    with pytest.raises(FrozenInstanceError):
        wider.a = 3
    assert wider.other == 3


def test_a_class_without_text_of_its_own_is_called_by_its_name() -> None:
    assert Kept.__doc__ == "Kept"
