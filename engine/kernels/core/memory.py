"""Raw memory for kernels: typed loads and stores at an address, and the C allocator.

An address is a plain int64, so a kernel takes any number of arrays through one table of addresses and compiles for one
signature. Indices count elements, not bytes. Nothing is checked: bounds are the callers' invariants. Without the JIT
(`NUMBA_DISABLE_JIT=1`) the same functions work through ctypes, slowly, for coverage: what is loaded are NumPy's scalars, which
wrap around and divide as compiled code does.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import time
from typing import Any

import numpy as np

from dlog.engine.kernels.core.jit import JIT, intrinsic

MAPS = sys.platform == "linux"
"""Whether pages can be mapped, moved and huge (blocks.py)."""

if JIT:
    load_u8, load_i32, load_i64 = intrinsic("load_u8"), intrinsic("load_i32"), intrinsic("load_i64")
    store_u8, store_i32, store_i64 = intrinsic("store_u8"), intrinsic("store_i32"), intrinsic("store_i64")
    realloc, free, calloc = intrinsic("realloc"), intrinsic("free"), intrinsic("calloc")
    map_pages, unmap_pages, move_pages = intrinsic("map_pages"), intrinsic("unmap_pages"), intrinsic("move_pages")
    usable_bytes, copy_bytes = intrinsic("usable_bytes"), intrinsic("copy_bytes")
    advise_pages, atomic_add, bit_length = intrinsic("advise_pages"), intrinsic("atomic_add"), intrinsic("bit_length")
    as_float, as_bits, prefetch, cycles = (
        intrinsic("as_float"),
        intrinsic("as_bits"),
        intrinsic("prefetch"),
        intrinsic("cycles"),
    )
    wrapped_product, wrapped_sum = intrinsic("wrapped_product"), intrinsic("wrapped_sum")
    process_id, compare_and_set = intrinsic("process_id"), intrinsic("compare_and_set")
    populate_aside, give_way, pause = intrinsic("populate_aside"), intrinsic("give_way"), intrinsic("pause")

else:
    np.seterr(all="ignore")
    _libc = ctypes.CDLL(None)
    _libc.realloc.restype = _libc.calloc.restype = ctypes.c_void_p
    _libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    _libc.free.argtypes = [ctypes.c_void_p]

    def _python_load(kind: Any) -> Any:
        size = ctypes.sizeof(kind)
        return lambda address, index: np.int64(kind.from_address(int(address) + int(index) * size).value)

    def _python_store(kind: Any) -> Any:
        size = ctypes.sizeof(kind)

        def store(address: int, index: int, value: int) -> None:
            kind.from_address(int(address) + int(index) * size).value = int(value)

        return store

    load_u8, load_i32, load_i64 = (_python_load(k) for k in (ctypes.c_uint8, ctypes.c_int32, ctypes.c_int64))
    store_u8, store_i32, store_i64 = (_python_store(k) for k in (ctypes.c_uint8, ctypes.c_int32, ctypes.c_int64))

    def wrapped_product(left: int, right: int) -> int:
        """A product modulo 2**64. Of `left * right` LLVM may assume that it does not overflow."""
        return np.int64((int(left) * int(right) + 2**63) % 2**64 - 2**63)

    def wrapped_sum(left: int, right: int) -> int:
        """A sum modulo 2**64, of which LLVM must not assume that it does not overflow either."""
        return np.int64((int(left) + int(right) + 2**63) % 2**64 - 2**63)

    def realloc(address: int, size: int) -> int:
        return _libc.realloc(int(address) or None, int(size)) or 0

    def calloc(count: int, size: int) -> int:
        return _libc.calloc(int(count), int(size)) or 0

    def free(address: int) -> None:
        _libc.free(int(address) or None)

    if MAPS:
        _libc.mmap.restype = _libc.mremap.restype = ctypes.c_ssize_t
        _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t]
        _libc.mremap.argtypes = [*[ctypes.c_size_t] * 3, ctypes.c_int, ctypes.c_size_t]
        _libc.munmap.argtypes = [ctypes.c_size_t] * 2
        _libc.malloc_usable_size.argtypes, _libc.malloc_usable_size.restype = [ctypes.c_size_t], ctypes.c_size_t

    def map_pages(size: int) -> int:
        return _libc.mmap(None, int(size), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

    def unmap_pages(address: int, size: int) -> None:
        _libc.munmap(int(address), int(size))

    def move_pages(address: int, old: int, new: int, target: int) -> int:
        return _libc.mremap(int(address), int(old), int(new), 3 if target else 0, int(target))

    def usable_bytes(address: int) -> int:
        return _libc.malloc_usable_size(int(address))

    def copy_bytes(target: int, source: int, size: int) -> None:
        ctypes.memmove(int(target), int(source), int(size))

    def advise_pages(address: int, size: int, advice: int) -> int:
        """Nothing without the JIT."""
        return 0

    def populate_aside(maker: int) -> None:
        """Nothing, at once, without the JIT."""
        store_i64(maker, 0, 0)

    def process_id() -> int:
        return os.getpid()

    def give_way() -> int:
        """Lets other threads run that are waiting for a core."""
        time.sleep(0)
        return 0

    def pause(microseconds: int) -> int:
        """Lets other threads run for so long."""
        time.sleep(microseconds / 1e6)
        return 0

    def compare_and_set(address: int, old: int, new: int) -> int:
        with _atomic:
            same = load_i64(address, 0) == old
            if same:
                store_i64(address, 0, new)
        return int(same)

    _atomic = threading.Lock()

    def atomic_add(address: int, index: int, value: int) -> int:
        with _atomic:
            old = load_i64(address, index)
            store_i64(address, index, old + int(value))
        return old

    def bit_length(value: int) -> int:
        return (int(value) & 0xFFFFFFFFFFFFFFFF).bit_length()

    def prefetch(address: int) -> None:
        return None

    def cycles() -> int:
        return time.perf_counter_ns()

    def as_float(bits: int) -> float:
        return np.float64(ctypes.c_double.from_buffer(ctypes.c_int64(int(bits))).value)

    def as_bits(value: float) -> int:
        return np.int64(ctypes.c_int64.from_buffer(ctypes.c_double(float(value))).value)
