"""`dataclass`, for a program that has hundreds of them and is to start at once.

The standard library's compiles up to six functions for each class, which was a quarter of the time in which a session opens.
What is made here are dataclasses of the standard library (`fields`, `replace`, `is_dataclass`), for which `__init__` alone is
compiled at once: the others are closures over the names of the fields, or compiled when they are first called. To type checkers
it is the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

Class = type[Any]
Method = Callable[..., Any]

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`, with `frozen`, `slots`, `eq`, `repr` and `kw_only`."""
        return _make_dataclass(cls, **options) if cls is not None else lambda cls: _make_dataclass(cls, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def immutable(cls: type[T]) -> type[T]:
    """A dataclass with slots that nobody changes, which type checkers see to: for nodes of trees, rules and plans, of which
    there are many. With `frozen` it is looked at when a program runs, too, and each takes thrice as long to be made."""
    return _make_dataclass(cls, slots=True, hashed=True)


def _make_dataclass(
    cls: Class,
    *,
    frozen: bool = False,
    hashed: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
    kw_only: bool = False,
) -> Class:
    own = dict(vars(cls))
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else it were the signature, which takes long to find out
    made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    fields = dataclasses.fields(made)
    methods: dict[str, Any] = {"__init__": _init(made, fields, frozen)}
    if repr:
        methods["__repr__"] = _repr([field.name for field in fields if field.repr])
    if eq:
        methods["__eq__"] = _eq(made, [field.name for field in fields if field.compare])
        names = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
        methods["__hash__"] = _hash(made, names) if frozen or hashed else None
    if frozen:
        methods |= _immutable(made, [field.name for field in fields], slots)
    for name, method in methods.items():
        # A class with an `__eq__` of its own has the hash None, if none of its own.
        if name not in own or (name == "__hash__" and own[name] is None and "__eq__" in own):
            setattr(made, name, method)
            if method is not None:
                method.__qualname__ = f"{made.__qualname__}.{name}"
    return made


def _init(cls: Class, fields: Iterable[Field[Any]], frozen: bool) -> Method:
    """`__init__`: the parameters are the fields that are to be given, in order."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    given: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for field in fields:
        name, default, made = field.name, f"_default_{field.name}", f"_make_{field.name}"
        value, parameter = name, name
        if field.default_factory is not MISSING:
            known[made] = field.default_factory
            value = f"{made}() if {name} is _MISSING else {name}" if field.init else f"{made}()"
            parameter = f"{name}=_MISSING"
        elif field.default is not MISSING:
            known[default] = field.default
            value, parameter = name if field.init else default, f"{name}={default}"
        elif not field.init:
            continue
        if field.init:
            given[bool(field.kw_only)].append(parameter)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self", *given[False], *(["*", *given[True]] if given[True] else [])]
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)
    init: Method = known["__init__"]
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return init


def _repr(names: list[str]) -> Method:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _eq(cls: Class, names: list[str]) -> Method:
    def __eq__(self: Any, other: object) -> Any:
        body = f"{_tuple('self', names)} == {_tuple('other', names)} if other.__class__ is self.__class__ else NotImplemented"
        cls.__eq__ = _compiled(cls, "__eq__", "self, other", body)
        return cls.__eq__(self, other)

    return __eq__


def _hash(cls: Class, names: list[str]) -> Method:
    def __hash__(self: Any) -> int:
        cls.__hash__ = method = _compiled(cls, "__hash__", "self", f"hash({_tuple('self', names)})")
        found: int = method(self)
        return found

    return __hash__


def _compiled(cls: Class, name: str, parameters: str, value: str) -> Method:
    """A method, compiled when it is first called: most classes are neither compared nor hashed."""
    known: dict[str, Any] = {}
    exec(f"def {name}({parameters}): return {value}", known)
    method: Method = known[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _tuple(instance: str, names: list[str]) -> str:
    return f"({''.join(f'{instance}.{name}, ' for name in names)})"


def _immutable(cls: Class, names: list[str], slots: bool) -> dict[str, Method]:
    """What keeps fields as they are; and with slots, how an instance is pickled all the same."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    methods: list[Any] = [__setattr__, __delattr__, *([__getstate__, __setstate__] if slots else [])]
    return {method.__name__: method for method in methods}
