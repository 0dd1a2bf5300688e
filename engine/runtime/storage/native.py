"""Tables shared with the kernels: structs of int64 words, lists of words, and NumPy views of memory that kernels own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

_memory = ctypes.pythonapi["PyMemoryView_FromMemory"]
_memory.restype, _memory.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_WRITABLE = 0x200
"""CPython's `PyBUF_WRITE`."""
LINE_WORDS = 16
"""Words of two cache lines: processors fetch them by pairs."""


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

    def begin_line(self) -> None:
        self.used += -(self.address // 8 + self.used) % LINE_WORDS


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


def begin_line() -> None:
    """Has the next struct that this thread makes begin a cache line: two threads that write to one line wait for each other,
    though they write to different words."""
    _SLABS.slab.begin_line()


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
        return _part(self.words, self.address, start, size)

    def keep_parts(self, places: Places) -> None:
        """Has `keep` hold parts of these words, made when somebody asks for them: those of most structs only kernels use."""
        self.keep = Parts(self.words, self.address, places)

    def point(self, field: int, target: Struct) -> None:
        """Stores the address of another struct and keeps it alive."""
        self.words[field] = target.address
        self.keep[field] = target


def _part(words: np.ndarray, address: int, start: int, size: int) -> Struct:
    made = Struct.__new__(Struct)
    made._of, made._start, made._size, made.address = words, start, size, address + 8 * start
    return made


class Place(NamedTuple):
    """Where a part begins among all words, how many it has, and where those are that it points to, by field."""

    start: int
    size: int
    places: Places = MappingProxyType({})


Places: TypeAlias = Mapping[int, Place]


class Parts(dict[int, object]):
    """What the fields of a struct point to: parts of the same words, and whatever else is put here."""

    __slots__ = ("_address", "_places", "_words")

    def __init__(self, words: np.ndarray, address: int, places: Places) -> None:
        super().__init__()
        self._words, self._address, self._places = words, address, places

    def __missing__(self, field: int) -> Struct:
        place = self._places[field]
        self[field] = made = _part(self._words, self._address, place.start, place.size)
        if place.places:
            made.keep = Parts(self._words, self._address, place.places)
        return made

    def __contains__(self, field: object) -> bool:
        return super().__contains__(field) or field in self._places


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
    # An array type of ctypes would be a class for each length.
    return np.frombuffer(_memory(address, count * np.dtype(dtype).itemsize, _WRITABLE), dtype)
