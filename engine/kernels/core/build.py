"""Compiles all entries into one library (library.py): `python -m dlog.engine.kernels.core.build FILE PARENT`.
PARENT is the number of the process that wants it, with which this one ends.

Numba, left alone, optimizes each function together with all it calls, and again with each of its callers: most of the time
goes into doing the same many times over. Here it only lowers functions to LLVM's language; they are linked and optimized once,
as a whole, so that what several entries use is there once.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import select
import stat
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import codegen
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.extending import intrinsic

from dlog.engine.kernels.core.jit import ENTRIES, Kernel, only_lower
from dlog.engine.kernels.core.struct_types import ArrayType, StructType
from dlog.engine.kernels.core.versions import ENGINE, kernel_files

_TYPES = {"i64": types.int64, "u64": types.uint64, "bool": types.boolean, "f64": types.float64}
_DTYPES = {"u8": np.uint8, "i32": np.int32, "i64": np.int64, "u64": np.uint64}
_NAMES = {types.int64: "i64", types.uint64: "u64", types.boolean: "bool", types.float64: "f64", types.none: "none"}

# Reference counts of arrays that belong to Python, which nobody in the library needs to count.
_UNCOUNTED = """
define void @NRT_incref(ptr %0) { ret void }
define void @NRT_decref(ptr %0) { ret void }
"""


class _Unlinked(codegen.JITCodeLibrary):  # type: ignore[misc]
    """What Numba lowered of one function, neither optimized as a whole nor linked with what it calls."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def module(self) -> Any:
        return self._final_module

    @property
    def called(self) -> list[Any]:
        return self._linking_libraries  # type: ignore[no-any-return]


def _only_lower() -> Any:
    """Makes Numba's code generator keep functions as they are lowered; returns it."""
    context = cpu_target.target_context
    rtsys.initialize(context)
    njit(lambda: 0)()  # what Numba itself needs compiled must be
    generator = context.codegen()
    generator._library_class = _Unlinked
    generator.set_env = lambda name, environment: None
    only_lower()
    return generator


def _import_kernels() -> None:
    for path in kernel_files():
        name = ".".join(path.relative_to(ENGINE).with_suffix("").parts)
        if name != "kernels.core.build":
            importlib.import_module(f"dlog.engine.{name}")


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


def _flat(kernel: Kernel) -> Any:
    """The kernel as a function of scalars: an array comes as its address and shape."""
    inner, outer, number = [], [], 0
    names: dict[str, Any] = {"kernel": kernel, "pointer": _pointer, "carray": carray}
    for type in kernel.types or ():
        dtype, _, dimensions = type.partition("[")
        count = 2 + dimensions.count(",") if dimensions else 1
        given = [f"a{number + i}" for i in range(count)]
        number += count
        outer += given
        if dimensions:
            names[dtype] = _DTYPES[dtype]
            inner.append(f"carray(pointer({given[0]}), ({', '.join(given[1:])},), {dtype})")
        else:
            inner += given
    exec(f"def flat({', '.join(outer)}): return kernel({', '.join(inner)})", names)
    return Kernel(names["flat"]).dispatcher


def _flat_types(kernel: Kernel) -> tuple[Any, ...]:
    flat: list[Any] = []
    for type in kernel.types or ():
        flat += [types.int64] * (2 + type.count(",")) if "[" in type else [_TYPES[type]]
    return tuple(flat)


class _Builder:
    """The library in the making: a module of wrappers beside what was lowered."""

    def __init__(self) -> None:
        self.generator = _only_lower()
        self.context = cpu_target.target_context
        self.wrappers = self.generator._create_empty_module("dlog.entries")
        self.lowered: list[Any] = []
        self.described: dict[str, dict[str, Any]] = {}

    def add(self, kernel: Kernel) -> None:
        has_arrays = any("[" in type for type in kernel.types or ())
        dispatcher = _flat(kernel) if has_arrays else kernel.dispatcher
        arguments = _flat_types(kernel)
        _, _, arguments, _ = dispatcher.get_call_template(arguments, {})
        compiled = dispatcher.overloads[tuple(arguments)]
        result = compiled.signature.return_type
        results = list(result) if isinstance(result, types.BaseTuple) else [result]
        self.lowered.append(compiled.library)
        self._wrap(kernel.name, compiled, results)
        self.described[kernel.name] = {
            "symbol": kernel.name,
            "arguments": list(kernel.types or ()),
            "results": [_result_name(type) for type in results],
        }

    def _wrap(self, name: str, compiled: Any, results: list[Any]) -> None:
        """A function of C's calling convention; several results go, as words, to the address that is its last argument."""
        convention, description = self.context.call_conv, compiled.fndesc
        callee_type = convention.get_function_type(description.restype, description.argtypes)
        callee = ir.Function(self.wrappers, callee_type, description.llvm_func_name)
        kinds = [self.context.get_value_type(type) for type in description.argtypes]
        several = len(results) > 1
        word = ir.IntType(64)
        returned = ir.VoidType() if several or results == [types.none] else self.context.get_value_type(results[0])
        function = ir.Function(self.wrappers, ir.FunctionType(returned, [*kinds, word] if several else kinds), name)
        builder = ir.IRBuilder(function.append_basic_block())
        _, out = convention.call_function(
            builder, callee, description.restype, description.argtypes, function.args[: len(kinds)]
        )
        if several:
            target = builder.inttoptr(function.args[-1], word.as_pointer())
            for number in range(len(results)):
                builder.store(_as_word(builder, builder.extract_value(out, number)), builder.gep(target, [word(number)]))
            builder.ret_void()
        elif isinstance(returned, ir.VoidType):
            builder.ret_void()
        else:
            builder.ret(out)

    def link(self) -> Any:
        """One module of all that was lowered, in which only the entries are seen from outside."""
        whole = llvm.parse_assembly(str(self.wrappers))
        whole.link_in(llvm.parse_assembly(_UNCOUNTED))
        seen: set[int] = set()
        while self.lowered:
            part = self.lowered.pop()
            if id(part) not in seen and isinstance(part, _Unlinked):
                seen.add(id(part))
                self.lowered += part.called
                whole.link_in(part.module, preserve=True)
        for item in (*whole.functions, *whole.global_variables):
            if not item.is_declaration and item.name not in self.described:
                item.linkage = "internal"
        return whole

    def optimize(self, whole: Any) -> bytes:
        """Machine code, optimized as Numba would one function and all it calls."""
        cheap, builder = self.generator._module_pass_manager(
            loop_vectorize=self.generator._loopvect, slp_vectorize=False, opt=self.generator._opt_level, cost="cheap"
        )
        cheap.run(whole, builder)
        full, builder = self.generator._module_pass_manager()
        full.run(whole, builder)
        whole.verify()
        missing = [f.name for f in whole.functions if f.is_declaration and f.name.startswith(("NRT_", "numba", "_ZN", "Py"))]
        if missing:
            raise RuntimeError(f"kernels need what only Numba has: {', '.join(missing)}")
        return bytes(self.generator._tm.emit_object(whole))


def _result_name(type: Any) -> str:
    """Addresses and members of enumerations are words."""
    return "i64" if isinstance(type, StructType | ArrayType | types.IntEnumMember) else _NAMES[types.unliteral(type)]


def _as_word(builder: Any, value: Any) -> Any:
    word = ir.IntType(64)
    if isinstance(value.type, ir.DoubleType):
        return builder.bitcast(value, word)
    return value if value.type == word else builder.zext(value, word)


def main(path: str) -> None:
    os.umask(0o077)
    builder = _Builder()
    _import_kernels()
    for kernel in list(ENTRIES.values()):
        builder.add(kernel)
    code = builder.optimize(builder.link())
    described = json.dumps(builder.described).encode()
    content = struct.pack("<Q", len(described)) + described + code
    Path(path).write_bytes(hashlib.sha256(content).digest() + content)


def _end_with_parent(parent: int) -> None:
    """Waits for the end of standard input, a pipe that the parent holds open while it wants the library (building.py).
    Processes that this forks hold it, too: where the system tells of its end, that counts."""
    if os.name == "posix":
        while os.getppid() == parent and not select.select([0], [], [], 1.0)[0]:
            pass
    else:
        os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_end_with_parent, args=(int(sys.argv[2]),), daemon=True).start()
    main(sys.argv[1])
