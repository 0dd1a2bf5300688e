"""What structs (structs.py) are to Numba: addresses with a type, of which each access is one load or store.

Only compiling needs this module; jit.py has it register what is declared before Numba sees a kernel.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_cast
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    lower_getattr,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
    unbox,
)

from dlog.engine.kernels.core.structs import STRUCTS, WORD, ArrayOf, InsideOf, PointerTo, Struct, i64, numba_types

_WORD = ir.IntType(64)


class StructType(types.Type):  # type: ignore[misc]
    """The address of a struct."""

    def __init__(self, struct: str) -> None:
        self.struct = struct
        super().__init__(name=f"dlog.{struct}")

    @property
    def declaration(self) -> type[Struct]:
        return STRUCTS[self.struct]


class RefsType(types.Type):  # type: ignore[misc]
    """The fields of a struct, each as the address of a word."""

    def __init__(self, struct: StructType) -> None:
        self.struct = struct
        super().__init__(name=f"{struct.name}.ref")


class ArrayType(types.Type):  # type: ignore[misc]
    """The address of elements of some type."""

    def __init__(self, declared: ArrayOf) -> None:
        self.element = declared.element
        super().__init__(name=f"dlog.{declared.name}")


@register_model(StructType)
@register_model(RefsType)
@register_model(ArrayType)
class _AddressModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)


def numba_type(declared: Any) -> types.Type:
    """What a value of a declared type is to Numba."""
    if isinstance(declared, InsideOf):
        declared = declared.pointer
    if isinstance(declared, PointerTo):
        return StructType(declared.struct)
    return ArrayType(declared) if isinstance(declared, ArrayOf) else types.int64


# --------------------------------------------------------------------------------------------------- loads and stores


def _read(builder: Any, declared: Any, address: Any, number: Any) -> Any:
    """The value of a declared type that is the one with this number from an address on."""
    if isinstance(declared, InsideOf):
        return builder.add(address, builder.mul(number, _WORD(declared.size)))
    value = builder.load(_place(builder, declared, address, number))
    if declared.size == WORD:
        return value
    return builder.zext(value, _WORD) if declared.name.startswith("u") else builder.sext(value, _WORD)


def _write(builder: Any, declared: Any, address: Any, number: Any, value: Any) -> None:
    value = value if declared.size == WORD else builder.trunc(value, ir.IntType(declared.size * 8))
    builder.store(value, _place(builder, declared, address, number))


def _place(builder: Any, declared: Any, address: Any, number: Any) -> Any:
    return builder.gep(builder.inttoptr(address, ir.IntType(declared.size * 8).as_pointer()), [number])


# -------------------------------------------------------------------------------------------------------------- structs


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, struct: StructType, name: str) -> Any:
        if name == "address":
            return types.int64
        if name == "ref":
            return RefsType(struct)
        field = struct.declaration.layout.get(name)
        return None if field is None else numba_type(field.declared)


@infer_getattr
class _Refs(AttributeTemplate):  # type: ignore[misc]
    key = RefsType

    def generic_resolve(self, refs: RefsType, name: str) -> Any:
        return ArrayType(ArrayOf(i64)) if name in refs.struct.declaration.layout else None


@infer_getattr
class _ArrayAddress(AttributeTemplate):  # type: ignore[misc]
    key = ArrayType

    def generic_resolve(self, array: ArrayType, name: str) -> Any:
        return types.int64 if name == "address" else None


@infer_getattr
class _Size(AttributeTemplate):  # type: ignore[misc]
    """The bytes of a struct: `Support.size`."""

    key = types.Function

    def generic_resolve(self, function: Any, name: str) -> Any:
        return types.int64 if name == "size" and function.typing_key in STRUCTS.values() else None


@lower_getattr(types.Function, "size")
def _get_size(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return _WORD(kind.typing_key.size)


@lower_getattr_generic(StructType)
def _get_field(context: Any, builder: Any, kind: StructType, value: Any, name: str) -> Any:
    if name in ("address", "ref"):
        return value
    field = kind.declaration.layout[name]
    if isinstance(field.declared, InsideOf):
        return builder.add(value, _WORD(field.offset))
    return _read(builder, field.declared, value, _WORD(field.offset // field.declared.size))


@lower_getattr_generic(RefsType)
def _get_ref(context: Any, builder: Any, kind: RefsType, value: Any, name: str) -> Any:
    return builder.add(value, _WORD(kind.struct.declaration.layout[name].offset))


@lower_getattr_generic(ArrayType)
def _get_address(context: Any, builder: Any, kind: ArrayType, value: Any, name: str) -> Any:
    return value


@lower_setattr_generic(StructType)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    field = sig.args[0].declaration.layout[name]
    value = context.cast(builder, args[1], sig.args[1], numba_type(field.declared))
    _write(builder, field.declared, args[0], _WORD(field.offset // field.declared.size), value)


# --------------------------------------------------------------------------------------------------------------- arrays


@infer_global(operator.getitem)
class _GetElement(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        array, index = args
        if isinstance(array, ArrayType) and isinstance(index, types.Integer):
            return signature(numba_type(array.element), array, types.int64)
        return None


@infer_global(operator.setitem)
class _SetElement(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        array, index, _ = args
        if isinstance(array, ArrayType) and isinstance(index, types.Integer):
            return signature(types.none, array, types.int64, numba_type(array.element))
        return None


@lower_builtin(operator.getitem, ArrayType, types.int64)
def _get_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _read(builder, sig.args[0].element, *args)


@lower_builtin(operator.setitem, ArrayType, types.int64, types.int64)
@lower_builtin(operator.setitem, ArrayType, types.int64, StructType)
@lower_builtin(operator.setitem, ArrayType, types.int64, ArrayType)
def _set_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    _write(builder, sig.args[0].element, *args)
    return context.get_dummy_value()


# ----------------------------------------------------------------------------------------------- tests, casts, calls


def _is_address(kind: Any) -> bool:
    return isinstance(kind, StructType | ArrayType)


@infer_global(bool)
@infer_global(operator.truth)
@infer_global(operator.not_)
class _Test(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.boolean, args[0]) if len(args) == 1 and _is_address(args[0]) else None


@infer_global(operator.eq)
@infer_global(operator.ne)
class _Compare(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.boolean, *args) if all(_is_address(kind) for kind in args) else None


def _lower_tests(kind: Any) -> None:
    @lower_builtin(bool, kind)
    @lower_builtin(operator.truth, kind)
    def is_there(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.is_not_null(builder, args[0])

    @lower_builtin(operator.not_, kind)
    def is_null(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.is_null(builder, args[0])

    @lower_builtin(operator.eq, kind, kind)
    def is_same(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_unsigned("==", *args)

    @lower_builtin(operator.ne, kind, kind)
    def is_other(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_unsigned("!=", *args)


for _kind in (StructType, ArrayType):
    _lower_tests(_kind)


@lower_cast(types.Integer, StructType)
@lower_cast(types.Integer, ArrayType)
def _to_address(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    return context.cast(builder, value, given, types.int64)


@lower_cast(StructType, types.Integer)
@lower_cast(ArrayType, types.Integer)
@lower_cast(StructType, StructType)
@lower_cast(ArrayType, ArrayType)
@lower_cast(StructType, ArrayType)
@lower_cast(ArrayType, StructType)
def _same_address(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    return value


@box(StructType)
@box(ArrayType)
def _box(kind: Any, value: Any, c: Any) -> Any:
    """Python gets an integer."""
    return c.pyapi.long_from_longlong(value)


@unbox(StructType)
@unbox(ArrayType)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    """Python passes an integer, or an address of structs.py, which is one where an integer is wanted."""
    number = c.pyapi.number_long(value)
    word = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(word, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


def _is_castable(kind: Any) -> bool:
    return isinstance(kind, types.Integer) or _is_address(kind)


def _cast(named: Any, kind: Any) -> None:
    """Makes what a kernel calls by a name a cast to a type."""

    @type_callable(named)
    def type_of_cast(context: Any) -> Any:
        return lambda address: kind if _is_castable(address) else None

    @lower_builtin(named, types.Integer)
    @lower_builtin(named, StructType)
    @lower_builtin(named, ArrayType)
    def from_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[0], sig.args[0], types.int64)


@cache
def register(struct: type[Struct]) -> None:
    """Lets kernels cast to a struct."""
    _cast(struct, StructType(struct.__name__))


def register_all() -> None:
    for struct in tuple(STRUCTS.values()):
        register(struct)


@cache
def array_cast(name: str, declared: ArrayOf) -> types.Type:
    """The type of the cast to an array, which kernels call by a name."""
    _cast(declared, ArrayType(declared))
    context = cpu_target.typing_context
    context.refresh()
    return context._lookup_global(declared)


numba_types.numba_type, numba_types.array_cast = numba_type, array_cast
