"""Tables shared with the kernels: structs of int64 words, lists of words, and NumPy views of memory that kernels own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np


class Struct:
    """`size` zeroed words whose address kernels may keep; `keep` holds what each field points to."""

    __slots__ = ("address", "keep", "words")

    def __init__(self, size: int) -> None:
        self.words = np.zeros(max(size, 1), np.int64)
        self.address = int(self.words.ctypes.data)
        self.keep: dict[int, object] = {}

    def __getitem__(self, field: int) -> int:
        return int(self.words[field])

    def __setitem__(self, field: int, value: int) -> None:
        self.words[field] = value

    def point(self, field: int, target: Struct) -> None:
        """Stores the address of another struct and keeps it alive."""
        self.words[field] = target.address
        self.keep[field] = target


def words(values: Iterable[int]) -> Struct:
    """A list of words, at an address."""
    listed = list(values)
    made = Struct(len(listed))
    made.words[: len(listed)] = listed
    return made


def view(address: int, count: int, dtype: type[np.generic]) -> np.ndarray:
    """A NumPy view of memory that kernels allocated; valid until they move or free it."""
    if count == 0 or address == 0:
        return np.empty(0, dtype)
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
