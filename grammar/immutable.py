"""Immutable values of which there are many: nodes of trees, of rules and of plans."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar, dataclass_transform

from dlog.dataclass import dataclass

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """A dataclass with slots that nobody changes, which type checkers see to. Python's own `frozen` looks when a program runs,
    too, and has each value take thrice as long to be made."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
