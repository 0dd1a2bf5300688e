"""Values of algebraic data types as Python values."""

from __future__ import annotations

from typing import Any


class Branch(tuple[Any, ...]):
    """`$Node(1, $Leaf)` is `Branch("Node", 1, Branch("Leaf"))`: a tuple of the name and the arguments.

    >>> value = Branch("Node", 1, Branch("Leaf"))
    >>> value.name, value.args
    ('Node', (1, Branch('Leaf')))
    """

    __slots__ = ()
    __match_args__ = ("name", "args")

    def __new__(cls, name: str, *args: Any) -> Branch:
        return super().__new__(cls, (name, *args))

    @property
    def name(self) -> str:
        return str(self[0])

    @property
    def args(self) -> tuple[Any, ...]:
        return tuple(self[1:])

    def __repr__(self) -> str:
        return f"Branch{tuple.__repr__(self) if self.args else f'({self.name!r})'}"

    def __reduce__(self) -> tuple[type[Branch], tuple[Any, ...]]:
        return Branch, tuple(self)
