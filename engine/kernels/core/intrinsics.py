"""The intrinsics of kernels, which Numba has no word for: one or a few machine instructions, or a C library function, each.

Only compiling needs this module (`jit.intrinsic` stands for its names elsewhere). What each does is said where its twin
without the JIT is: memory.py, words.py, numerals.py.
"""

from __future__ import annotations

import mmap
import signal
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dlog.engine.kernels.layout import WIDEST_FIXED

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_PTR = _I8.as_pointer()
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MREMAP_MOVE = 3
"""That pages may move, and that they go where they are told."""
_MADV_POPULATE_WRITE = 23
_SIGNALS_BYTES = 128
"""Of a set of signals."""


def _at(builder: Any, address: Any, index: Any, kind: Any) -> Any:
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def _loader(kind: Any, signed: bool = True) -> Any:
    @intrinsic
    def load(typing: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_at(builder, args[0], args[1], kind))
            if kind is _I64:
                return value
            return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

        return types.int64(types.int64, types.int64), generate

    return load


def _storer(kind: Any) -> Any:
    @intrinsic
    def store(typing: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[2] if kind is _I64 else builder.trunc(args[2], kind)
            builder.store(value, _at(builder, args[0], args[1], kind))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return store


def _external(name: str, arguments: int, returns: bool) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _PTR) if name in ("realloc", "free") else None
        kinds = [_PTR if i == 0 and pointer is not None else _I64 for i in range(arguments)]
        values = [pointer if i == 0 and pointer is not None else a for i, a in enumerate(args)]
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_PTR if returns else ir.VoidType(), kinds), name
        )
        result = builder.call(function, values)
        return builder.ptrtoint(result, _I64) if returns else context.get_dummy_value()

    result = types.int64 if returns else types.void

    if arguments == 1:

        @intrinsic
        def call1(typing: Any, a: Any) -> Any:
            return result(types.int64), generate

        return call1

    @intrinsic
    def call2(typing: Any, a: Any, b: Any) -> Any:
        return result(types.int64, types.int64), generate

    return call2


_SYSTEM = {
    "mmap": (_I64, [_I64, _I64, _I32, _I32, _I32, _I64]),
    "munmap": (_I32, [_I64, _I64]),
    "mremap": (_I64, [_I64, _I64, _I64, _I32, _I64]),
    "madvise": (_I32, [_I64, _I64, _I32]),
    "malloc_usable_size": (_I64, [_I64]),
    "getpid": (_I32, []),
    "sched_yield": (_I32, []),
    "usleep": (_I32, [_I32]),
    "memcpy": (_I64, [_I64, _I64, _I64]),
}
"""Functions of the system's library, addresses as words."""


def _system(name: str, arguments: int, fill: Any) -> Any:
    """A call of a function of the system's library where pages can be mapped, with the arguments that `fill` makes of those
    given."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        result, kinds = _SYSTEM[name]
        if sys.platform != "linux":
            return ir.Constant(_I64, 0)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)
        words = [ir.Constant(k, a) if isinstance(a, int) else a for k, a in zip(kinds, fill(builder, *args), strict=True)]
        found = builder.call(function, words)
        return builder.sext(found, _I64) if result is _I32 else found

    if arguments == 0:

        @intrinsic
        def call0(typing: Any) -> Any:
            return types.int64(), generate

        return call0
    if arguments == 1:

        @intrinsic
        def call1(typing: Any, a: Any) -> Any:
            return types.int64(types.int64), generate

        return call1
    if arguments == 2:

        @intrinsic
        def call2(typing: Any, a: Any, b: Any) -> Any:
            return types.int64(types.int64, types.int64), generate

        return call2
    if arguments == 3:

        @intrinsic
        def call3(typing: Any, a: Any, b: Any, c: Any) -> Any:
            return types.int64(types.int64, types.int64, types.int64), generate

        return call3

    @intrinsic
    def call4(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return types.int64(types.int64, types.int64, types.int64, types.int64), generate

    return call4


def _moving(builder: Any, address: Any, old: Any, new: Any, target: Any) -> list[Any]:
    """Arguments of mremap: to a target if there is one, else where the pages are."""
    stays = builder.icmp_signed("==", target, ir.Constant(_I64, 0))
    return [address, old, new, builder.select(stays, ir.Constant(_I32, 0), ir.Constant(_I32, _MREMAP_MOVE)), target]


load_u8, load_i32, load_i64 = _loader(_I8, signed=False), _loader(_I32), _loader(_I64)
store_u8, store_i32, store_i64 = _storer(_I8), _storer(_I32), _storer(_I64)
map_pages = _system("mmap", 1, lambda builder, size: [0, size, _READ_WRITE, _PRIVATE, -1, 0])
unmap_pages = _system("munmap", 2, lambda builder, address, size: [address, size])
move_pages = _system("mremap", 4, _moving)
advise_pages = _system("madvise", 3, lambda builder, address, size, advice: [address, size, builder.trunc(advice, _I32)])
usable_bytes = _system("malloc_usable_size", 1, lambda builder, address: [address])
process_id = _system("getpid", 0, lambda builder: [])
give_way = _system("sched_yield", 0, lambda builder: [])
pause = _system("usleep", 1, lambda builder, microseconds: [builder.trunc(microseconds, _I32)])
copy_bytes = _system("memcpy", 3, lambda builder, target, source, size: [target, source, size])
realloc, free, calloc = _external("realloc", 2, True), _external("free", 1, False), _external("calloc", 2, True)


@intrinsic
def compare_and_set(typing: Any, address: Any, old: Any, new: Any) -> Any:
    """Puts `new` into the 64-bit word at an address if it is `old`; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _at(builder, args[0], ir.Constant(_I64, 0), _I64)
        found = builder.cmpxchg(word, args[1], args[2], "acq_rel", "acquire")
        return builder.zext(builder.extract_value(found, 1), _I64)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def populate_aside(typing: Any, maker: Any) -> Any:
    """Has a thread of its own ask the system for a page and put 0 into the first of two words, of which the second is the
    page's address; does so itself where no thread can begin. The thread takes no signals, which are Python's."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if sys.platform != "linux":
            return context.get_dummy_value()
        routine, maker = _populating(builder.module), builder.inttoptr(args[0], _PTR)
        signals, before = (cgutils.alloca_once(builder, ir.ArrayType(_I8, _SIGNALS_BYTES)) for _ in range(2))
        thread = cgutils.alloca_once(builder, _I64)
        builder.store(ir.Constant(ir.ArrayType(_I8, _SIGNALS_BYTES), [255] * _SIGNALS_BYTES), signals)
        every, kept = (builder.bitcast(set_, _PTR) for set_ in (signals, before))
        mask = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [_I32, _PTR, _PTR]), "pthread_sigmask")
        create = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I32, [_I64.as_pointer(), _PTR, routine.type, _PTR]), "pthread_create"
        )
        detach = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [_I64]), "pthread_detach")
        none, set_mask = ir.Constant(_PTR, None), ir.Constant(_I32, signal.SIG_SETMASK)
        builder.call(mask, [set_mask, every, kept])
        failed = builder.call(create, [thread, none, routine, maker])
        builder.call(mask, [set_mask, kept, none])
        with builder.if_else(builder.icmp_signed("!=", failed, ir.Constant(_I32, 0))) as (alone, beside):
            with alone:
                builder.call(routine, [maker])
            with beside:
                builder.call(detach, [builder.load(thread)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _populating(module: Any) -> Any:
    """What a thread of `populate_aside` does. What is at the address meanwhile does not matter: nothing is written."""
    found = module.globals.get("dlog.populating")
    if found is not None:
        return found
    routine = ir.Function(module, ir.FunctionType(_PTR, [_PTR]), "dlog.populating")
    routine.linkage = "internal"
    builder = ir.IRBuilder(routine.append_basic_block())
    words = builder.bitcast(routine.args[0], _I64.as_pointer())
    address = builder.load(builder.gep(words, [ir.Constant(_I64, 1)]))
    result, kinds = _SYSTEM["madvise"]
    advise = cgutils.get_or_insert_function(module, ir.FunctionType(result, kinds), "madvise")
    builder.call(advise, [address, ir.Constant(_I64, mmap.PAGESIZE), ir.Constant(_I32, _MADV_POPULATE_WRITE)])
    builder.store_atomic(ir.Constant(_I64, 0), words, "release", 8)
    builder.ret(ir.Constant(_PTR, None))
    return routine


@intrinsic
def atomic_add(typing: Any, address: Any, index: Any, value: Any) -> Any:
    """Adds to the 64-bit word at (address, index) and returns the word as it was. No load or store moves across it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _at(builder, args[0], args[1], _I64), args[2], "acq_rel")

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def as_float(typing: Any, bits: Any) -> Any:
    """The double whose bit pattern is `bits`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def as_bits(typing: Any, value: Any) -> Any:
    """The bit pattern of a double."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _I64)

    return types.int64(types.float64), generate


@intrinsic
def bit_length(typing: Any, value: Any) -> Any:
    """Position of the highest set bit of a 64-bit word, from 1; 0 for 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sub(ir.Constant(_I64, 64), builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0)))

    return types.int64(types.int64), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Asks for the cache line of an address; may do nothing."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def cycles(typing: Any) -> Any:
    """The processor's time-stamp counter."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(_I64, [])), [])

    return types.int64(), generate


@intrinsic
def wrapped_product(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.mul(*args)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def wrapped_sum(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(*args)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def load_word(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64), generate


@intrinsic
def store_word(typing: Any, address: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def strtod(typing: Any, text: Any, end: Any) -> Any:
    """C's strtod: text and where to store the address behind the number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.DoubleType(), [word, word]), "strtod")
        return builder.call(function, args)

    return types.float64(types.int64, types.int64), generate


@intrinsic
def gcvt(typing: Any, value: Any, digits: Any, out: Any) -> Any:
    """C's gcvt: printf's %.17g for 17 digits, without variadic arguments."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = [ir.DoubleType(), ir.IntType(32), ir.IntType(64)]
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(64), kinds), "gcvt")
        return builder.call(function, [args[0], builder.trunc(args[1], ir.IntType(32)), args[2]])

    return types.int64(types.float64, types.int64, types.int64), generate


@intrinsic
def print_fixed(typing: Any, out: Any, value: Any) -> Any:
    """C's snprintf of "%f" into WIDEST_FIXED bytes; returns how many it wrote."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        text = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [word, word, text], var_arg=True)
        function = cgutils.get_or_insert_function(builder.module, kind, "snprintf")
        pattern = context.insert_const_string(builder.module, "%f")
        written = builder.call(function, [args[0], word(WIDEST_FIXED), pattern, args[1]])
        return builder.sext(written, word)

    return types.int64(types.int64, types.float64), generate
