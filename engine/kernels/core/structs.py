"""Structs: memory at an address with named fields, declared once for kernels, for Python and for readers.

    class Support(Struct):
        old: i64                         # a word

    class Collection(Relation):          # begins with the fields of Relation
        support: Array[i32]              # the address of an array: collection.support[row]
        inner: History                   # the address of a struct: collection.inner.bits
        indexes: Array[Pointer[Index]]   # an array of addresses of structs
        columns: Array[Column]           # an array of structs: collection.columns[c].width
        homes: Inside[Homes]             # a struct that lies in this one
        operands: Inside[Array[i64]]     # an array that begins here; nothing comes behind it

A kernel annotates its parameters with such classes; Python, and kernels, may pass plain addresses. `Collection(address)` casts,
`.address` is the way back; a pointer is false where it is null. `collection.ref.rows` is the address of the field, as an array
of one word, for kernels that are told which field to change. Numba compiles an access to one load or store (struct_types.py);
without the JIT, and in Python, the classes here do the same through ctypes. Python holds most structs as arrays of words, in
which `Collection.place.rows` is the number of the field.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import wraps
from inspect import get_annotations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

Value = TypeVar("Value")
STRUCTS: dict[str, type[Struct]] = {}
"""All that are declared, by name: they may refer to each other wherever they are."""
WORD = 8
numba_types: Any = SimpleNamespace()
"""What these types are to Numba: `numba_type` and `array_cast` of struct_types.py, which only compiling imports."""


# ------------------------------------------------------------------------------------------------------- types of fields


class Scalar:
    """Numbers in memory. Kernels compute with 64 bits whatever the width."""

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind
        self.size = self.align = ctypes.sizeof(kind)

    def read(self, at: int) -> Any:
        return np.int64(self.kind.from_address(at).value)

    def write(self, at: int, value: Any) -> None:
        self.kind.from_address(at).value = int(value)


class _Pointing:
    """What is a word in memory, and points at something."""

    name: str
    size = align = WORD

    def __call__(self, address: Any) -> Any:
        raise NotImplementedError

    def read(self, at: int) -> Any:
        return self(ctypes.c_int64.from_address(at).value)

    def write(self, at: int, value: Any) -> None:
        ctypes.c_int64.from_address(at).value = int(value)


class PointerTo(_Pointing):
    """Addresses of structs of some name."""

    def __init__(self, struct: str) -> None:
        self.name = self.struct = struct

    def __call__(self, address: Any) -> Any:
        return STRUCTS[self.struct](address)


class ArrayOf(_Pointing):
    """Addresses of arrays with elements of some type."""

    def __init__(self, element: Any) -> None:
        element = field_type(element)
        if isinstance(element, _Pointer):
            self.element: Any = element.to
            self.name = f"Array[Pointer[{self.element.name}]]"
        else:
            self.element = InsideOf(element) if isinstance(element, PointerTo) else element
            self.name = f"Array[{element.name}]"

    def __call__(self, address: Any) -> Any:
        return Array(address, self.element)

    @property
    def _numba_type_(self) -> Any:
        """Of the name as a kernel has it, which calls it to cast."""
        return numba_types.array_cast(self.name, self)


class InsideOf:
    """What lies where it is declared, not elsewhere: a struct, or an array behind which there is nothing."""

    align = WORD

    def __init__(self, declared: Any) -> None:
        self.pointer = field_type(declared)
        self.name = f"Inside[{self.pointer.name}]"

    @property
    def size(self) -> int:
        return STRUCTS[self.pointer.struct].size if isinstance(self.pointer, PointerTo) else 0

    def read(self, at: int) -> Any:
        return self.pointer(at)


class _Pointer:
    """Says of an array's elements that they are addresses."""

    def __init__(self, to: PointerTo) -> None:
        self.to = to


_ARRAYS: dict[str, ArrayOf] = {}
"""All types of arrays that are declared, by name."""


def field_type(annotation: Any) -> Any:
    """The type that an annotation declares."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return PointerTo(annotation.__name__)
    return annotation


def evaluate(annotation: Any, names: dict[str, Any]) -> Any:
    """The type that an annotation declares, which may be text; names that are not known are those of structs."""
    if not isinstance(annotation, str):
        return field_type(annotation)
    if annotation in ("int", "bool", "float", "None"):
        return None
    name, _, argument = annotation.partition("[")
    if not name.isidentifier():
        return None
    declared: Any = names[name] if name in names else PointerTo(name)
    return field_type(declared[evaluate(argument.removesuffix("]"), names)] if argument else declared)


if TYPE_CHECKING:
    i64: TypeAlias = int
    i32: TypeAlias = int
    u32: TypeAlias = int
    u8: TypeAlias = int
    Pointer: TypeAlias = Annotated[Value, "pointer"]
    Inside: TypeAlias = Annotated[Value, "inside"]
else:
    i64, i32 = Scalar("i64", ctypes.c_int64), Scalar("i32", ctypes.c_int32)
    u32, u8 = Scalar("u32", ctypes.c_uint32), Scalar("u8", ctypes.c_uint8)

    class Pointer:
        """Of elements of an array: they are addresses of structs, not structs."""

        def __class_getitem__(cls, struct):
            return _Pointer(field_type(struct))

    class Inside:
        """Of a field: what it names lies within the struct."""

        def __class_getitem__(cls, declared):
            return InsideOf(declared)


# --------------------------------------------------------------------------------------------------------- their values


class Address:
    """An address with a type."""

    __slots__ = ("address",)
    address: int

    def __init__(self, address: Any) -> None:
        object.__setattr__(self, "address", np.int64(int(address)))

    def __bool__(self) -> bool:
        return bool(self.address != 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and bool(self.address == other.address)

    def __hash__(self) -> int:
        return hash(self.address)

    def __index__(self) -> int:
        return int(self.address)

    @property
    def _numba_type_(self) -> Any:
        return numba_types.numba_type(self.declared)

    @property
    def declared(self) -> Any:
        """The type of the address."""
        raise NotImplementedError


class Array(Address, Generic[Value]):
    """The address of elements, which are found by number. Nothing is checked."""

    __slots__ = ("element",)

    element: Any

    def __init__(self, address: Any, element: Any = None) -> None:
        super().__init__(address)
        object.__setattr__(self, "element", element)

    @property
    def declared(self) -> Any:
        return ArrayOf(self.element.pointer if isinstance(self.element, InsideOf) else
                       _Pointer(self.element) if isinstance(self.element, PointerTo) else self.element)  # fmt: skip

    if TYPE_CHECKING:

        def __getitem__(self, index: int) -> Value: ...

        def __setitem__(self, index: int, value: Value | int) -> None: ...

    else:

        def __class_getitem__(cls, element):
            made = ArrayOf(element)
            return _ARRAYS.setdefault(made.name, made)

        def __getitem__(self, index):
            return self.element.read(int(self.address) + int(index) * self.element.size)

        def __setitem__(self, index, value):
            self.element.write(int(self.address) + int(index) * self.element.size, value)


class _Field:
    """A field of a struct: its type, and how many bytes from the struct's start it is."""

    def __init__(self, declared: Any, offset: int) -> None:
        self.declared = declared
        self.offset = offset

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        return self if struct is None else self.declared.read(int(struct.address) + self.offset)

    def __set__(self, struct: Struct, value: Any) -> None:
        self.declared.write(int(struct.address) + self.offset, value)


class _Refs:
    """The fields of a struct as arrays of one word."""

    def __init__(self, struct: Struct) -> None:
        self._struct = struct

    def __getattr__(self, name: str) -> Any:
        return Array(int(self._struct.address) + type(self._struct).layout[name].offset, i64)


_RESERVED = frozenset({"address", "declared", "layout", "place", "ref", "size"})
"""Names that no field may have."""


class Struct(Address):
    """The address of a struct; declarations derive from this class."""

    __slots__ = ()
    layout: ClassVar[dict[str, _Field]] = {}
    """The fields, by name."""
    size: ClassVar[int] = 0
    """Bytes."""
    place: ClassVar[Any] = SimpleNamespace()
    """Numbers of fields, as if all were of the field's size; `size` is how many of its first field's size the struct takes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__name__ in STRUCTS and STRUCTS[cls.__name__].__module__ != cls.__module__:
            raise TypeError(f"two structs are called {cls.__name__}")
        STRUCTS[cls.__name__] = cls
        cls.layout = dict(cls.layout)
        names = vars(sys.modules[cls.__module__])
        for name, annotation in get_annotations(cls).items():
            cls._declare(name, evaluate(annotation, names))
        places = {name: field.offset // (field.declared.size or WORD) for name, field in cls.layout.items()
                  if not isinstance(field.declared, InsideOf)}  # fmt: skip
        unit = next((field.declared.size for field in cls.layout.values()), WORD) or WORD
        cls.place = SimpleNamespace(**places, **cls._places_inside(), size=cls.size // unit)

    @classmethod
    def _places_inside(cls) -> dict[str, int]:
        """The places of what lies within, and of its fields: `slot_homes`, `slot_homes_count`."""
        found: dict[str, int] = {}
        for name, field in cls.layout.items():
            if isinstance(field.declared, InsideOf):
                found[name] = field.offset // WORD
                if isinstance(field.declared.pointer, PointerTo):
                    inner = vars(STRUCTS[field.declared.pointer.struct].place)
                    found.update({f"{name}_{part}": found[name] + at for part, at in inner.items()})
        return found

    @classmethod
    def _declare(cls, name: str, declared: Any) -> None:
        if name in _RESERVED:
            raise TypeError(f"{cls.__name__}.{name}: every struct has this name")
        known = cls.layout.get(name)
        offset = known.offset if known is not None else -(-cls.size // declared.align) * declared.align
        cls.layout[name] = field = _Field(declared, offset)
        cls.size = max(cls.size, offset + declared.size)
        setattr(cls, name, field)

    @property
    def declared(self) -> Any:
        return PointerTo(type(self).__name__)

    @property
    def ref(self) -> Any:
        """The addresses of the fields."""
        return _Refs(self)


def addresses_of(function: Callable[..., Any]) -> dict[int, Any]:
    """The parameters of a kernel that are addresses, by position, with the types that it declares."""
    code = function.__code__
    annotated = ((i, function.__annotations__.get(name)) for i, name in enumerate(code.co_varnames[: code.co_argcount]))
    given = {i: evaluate(annotation, function.__globals__) for i, annotation in annotated if annotation is not None}
    return {i: declared for i, declared in given.items() if isinstance(declared, PointerTo | ArrayOf)}


def with_addresses(function: Callable[..., Any], addresses: Callable[[], dict[int, Any]]) -> Callable[..., Any]:
    """A kernel as Python may call it: with plain addresses in the place of structs."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        given = list(arguments)
        for i, declared in addresses().items():
            given[i] = declared(given[i])
        return function(*given)

    return call
