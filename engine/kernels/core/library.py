"""The library of compiled kernels: one file of machine code, mapped into the process by LLVM's loader alone.

The file holds a digest of all that follows, the length of a description in eight bytes, the description (JSON: of each entry
its symbol, the types of its arguments and of its result), and an object file. It is made once (build.py) for a version of the
kernels and a processor. The digest is what a damaged file is known by: LLVM would take the process down with it.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, ArgumentError, c_bool, c_double, c_int64, c_uint64
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from dlog.caches import Untrusted, own_content, own_folder
from dlog.engine.kernels.core.building import build, note_use
from dlog.engine.kernels.core.versions import cache_folder

_SCALARS: dict[str, Any] = {"i64": c_int64, "u64": c_uint64, "bool": c_bool, "f64": c_double, "none": None}
_DTYPES = {"u8": np.uint8, "i32": np.int32, "i64": np.int64, "u64": np.uint64}
_lock = threading.Lock()
DIGEST = hashlib.sha256().digest_size
"""Bytes at the start of a library."""


class Compiled(Protocol):
    """A kernel as the library finds it, with what runs it where the library cannot."""

    @property
    def name(self) -> str: ...
    @property
    def dispatcher(self) -> Any: ...


class Library:
    """The entries of one file."""

    def __init__(self, content: bytes) -> None:
        """Raises ValueError if the file is none of ours or damaged, RuntimeError if LLVM does not take it."""
        import llvmlite.binding as llvm

        if not _is_whole(content):
            raise ValueError("the library of kernels is damaged")
        content = content[DIGEST:]
        (length,) = struct.unpack_from("<Q", content)
        self._entries: dict[str, dict[str, Any]] = json.loads(content[8 : 8 + length])
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content[8 + length :]))
        self._engine.finalize_object()

    def find(self, kernel: Compiled) -> Callable[..., Any] | None:
        """The kernel as a function of Python; None if the library lacks it."""
        entry = self._entries.get(kernel.name)
        if entry is None:
            return None
        address = self._engine.get_function_address(entry["symbol"])
        types, results = entry["arguments"], entry["results"]
        if any("[" in type for type in types) or len(results) > 1:
            return _general(kernel, address, types, results)
        return _plain(kernel, CFUNCTYPE(_SCALARS[results[0]], *(_SCALARS[type] for type in types))(address))


def _plain(kernel: Compiled, function: Callable[..., Any]) -> Callable[..., Any]:
    """Scalars in, one out. NumPy's scalars are none of ctypes': they take the longer way."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ArgumentError:
            return function(*(value.item() if isinstance(value, np.generic) else value for value in arguments))

    return call


def _general(kernel: Compiled, address: int, types: list[str], results: list[str]) -> Callable[..., Any]:
    """An array goes as its address and shape; several results come in words at an address."""
    expected = [_expected(type) for type in types]
    kinds: list[Any] = []
    for type, array in zip(types, expected, strict=True):
        kinds += [_SCALARS[type]] if array is None else [c_int64] * (1 + array[1])
    several = len(results) > 1
    function = CFUNCTYPE(None if several else _SCALARS[results[0]], *kinds, *([c_int64] if several else []))(address)

    def call(*arguments: Any) -> Any:
        flat: list[Any] = []
        for array, value in zip(expected, arguments, strict=True):
            if array is None:
                flat.append(value.item() if isinstance(value, np.generic) else value)
            elif isinstance(value, np.ndarray) and (value.dtype, value.ndim) == array and value.flags.c_contiguous:
                flat += (value.ctypes.data, *value.shape)
            else:
                return kernel.dispatcher(*arguments)
        if not several:
            return function(*flat)
        words = np.empty(len(results), np.int64)
        function(*flat, words.ctypes.data)
        return tuple(_result(type, word) for type, word in zip(results, words, strict=True))

    return call


def _expected(type: str) -> tuple[np.dtype[Any], int] | None:
    """The dtype of an array's elements and how many dimensions it has; None for a scalar."""
    dtype, bracket, shape = type.rstrip("]").partition("[")
    return (np.dtype(_DTYPES[dtype]), 1 + shape.count(",")) if bracket else None


def _result(type: str, word: np.int64) -> Any:
    if type == "f64":
        return float(word.view(np.float64))
    if type == "u64":
        return int(word.view(np.uint64))
    return bool(word) if type == "bool" else int(word)


def library_path() -> Path:
    """Where the library for this processor is, or will be."""
    import llvmlite.binding as llvm

    processor, features = llvm.get_host_cpu_name() or "generic", llvm.get_host_cpu_features().flatten()
    return cache_folder() / f"library-{processor}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"


def library() -> Library | None:
    """The library, made first if there is none (minutes); None, with a warning, where it cannot be made."""
    with _lock:
        return cast("Library | None", _loaded())


@cache
def _loaded() -> Library | None:
    try:
        content = _content()
        if isinstance(content, Exception):
            raise content
        return Library(content)
    except (OSError, ValueError, RuntimeError) as problem:
        print(f"warning: the kernels could not be compiled ahead ({problem}): Numba compiles them one by one", file=sys.stderr)
        return None


def prepare() -> None:
    """Makes the library if there is none, without loading it: this may be interrupted."""
    _content()


@cache
def _content() -> bytes | Exception:
    """The library's file, which is made where there is none or a damaged one; or why it cannot be made, which takes as long to
    find out a second time."""
    try:
        return _library_bytes()
    except (OSError, ValueError, RuntimeError) as problem:
        return problem


def _library_bytes() -> bytes:
    """`_content`. Raises OSError, ValueError or RuntimeError."""
    try:
        path = library_path()
        own_folder(path.parent)
        content = _own(path)
        if not _is_whole(content):
            path.unlink(missing_ok=True)
            build(path)
            content = own_content(path)
        note_use(path)
    except OSError as problem:
        content = _not_kept(problem)
    return content


def _own(path: Path) -> bytes:
    """The file; nothing where there is none, or one that somebody else may have written."""
    try:
        return own_content(path)
    except (FileNotFoundError, Untrusted):
        return b""


def _not_kept(problem: OSError) -> bytes:
    """Compiles without keeping it: still less work than Numba's for the few kernels of a run."""
    print(f"warning: the cache cannot be used ({problem}): kernels are compiled for this run alone, a minute or two; "
          "DLOG_CACHE names another folder", file=sys.stderr)  # fmt: skip
    from dlog.temporary import lease

    with lease("kernels") as folder:
        path = own_folder(folder) / "library"
        build(path)
        return path.read_bytes()


def _is_whole(content: bytes) -> bool:
    return hashlib.sha256(content[DIGEST:]).digest() == content[:DIGEST]
