"""Tables shared with the kernels: structs of int64 words, lists of words, and NumPy views of memory that kernels own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np


class _Slab:
    """Zeroed words at addresses next to each other, handed out one piece after the other; each piece keeps all of them."""

    WORDS = 1 << 14

    def __init__(self) -> None:
        self.words = np.zeros(self.WORDS, np.int64)
        self.address = int(self.words.ctypes.data)
        self.used = 0

    def take(self, size: int) -> tuple[np.ndarray, int]:
        start, self.used = self.used, self.used + size
        return self.words[start : self.used], self.address + 8 * start


class _Slabs(threading.local):
    """The slab from which each thread takes small structs: programs of many rules have hundred thousands."""

    def __init__(self) -> None:
        self.slab = _Slab()

    def take(self, size: int) -> tuple[np.ndarray, int]:
        if size > _Slab.WORDS // 16:
            words = np.zeros(size, np.int64)
            return words, int(words.ctypes.data)
        if self.slab.used + size > _Slab.WORDS:
            self.slab = _Slab()
        return self.slab.take(size)


_SLABS = _Slabs()


class Struct:
    """`size` zeroed words whose address kernels may keep; `keep` holds what each field points to."""

    __slots__ = ("_of", "_size", "_start", "address", "keep", "words")
    words: np.ndarray
    keep: dict[int, object]
    _of: np.ndarray
    """The words of which a part has so many, from a place on."""
    _start: int
    _size: int

    def __init__(self, size: int) -> None:
        self.words, self.address = _SLABS.take(max(size, 1))

    def __getattr__(self, name: str) -> Any:
        """Makes what nobody has asked for before: few structs have their words read by Python, or point to something."""
        if name == "keep":
            self.keep = {}
        elif name == "words":
            self.words = self._of[self._start : self._start + self._size]
        else:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def __getitem__(self, field: int) -> int:
        return int(self.words[field])

    def __setitem__(self, field: int, value: int) -> None:
        self.words[field] = value

    def part(self, start: int, size: int) -> Struct:
        """The words from `start` on as a struct."""
        made = Struct.__new__(Struct)
        made._of, made._start, made._size, made.address = self.words, start, size, self.address + 8 * start
        return made

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
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype)
