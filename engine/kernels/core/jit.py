"""The decorators of compiled code.

Kernels are compiled ahead of their use into one library (build.py), which a run maps into memory without Numba (library.py):
bringing the compiler into the process would cost more than most runs. A kernel that is no entry of the library (tests call
many) is compiled by Numba when Python calls it, and kept in Numba's own cache beside the library (versions.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from typing import Any, TypeVar, cast

from dlog.caches import own_folder, own_tree
from dlog.engine.kernels.core.compiler import import_numba
from dlog.engine.kernels.core.structs import addresses_of, with_addresses
from dlog.engine.kernels.core.versions import cache_folder

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""False where kernels run as the Python functions they are, for coverage."""
ENTRIES: dict[str, Kernel] = {}
"""Kernels that Python calls, by module and name: what the library has."""


@cache
def _keeps() -> bool:
    """Whether the cache folder can be written, Numba would otherwise write beside the sources; and whether all that is there
    is this user's, for Numba keeps pickles."""
    try:
        return os.access(own_folder(cache_folder()), os.W_OK) and own_tree(cache_folder())
    except OSError:
        return False


class Kernel:
    """A function that is compiled. Called from Python it runs in the library, or where that lacks it, through Numba; Numba
    takes it, in another kernel, for its dispatcher."""

    def __init__(self, function: Callable[..., Any], types: tuple[str, ...] | None = None, inlined: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.types = types
        self.inlined = inlined
        self._run: Callable[..., Any] = self._find

    @property
    def name(self) -> str:
        return f"{self.py_func.__module__}.{self.py_func.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def _find(self, *arguments: Any) -> Any:
        """The first call: decides who serves the others."""
        found = None
        if self.name in ENTRIES:
            from dlog.engine.kernels.core.library import library

            loaded = library()
            found = loaded.find(self) if loaded is not None else None
        self._run = with_addresses(self.dispatcher, lambda: self.addresses) if found is None else found
        return self._run(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's."""
        numba = import_numba()
        from dlog.engine.kernels.core import struct_types

        struct_types.register_all()
        options = {"cache": _keeps()} if _callable else {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        if options.get("cache"):
            numba.config.CACHE_DIR = str(cache_folder())
        options["forceinline"] = self.inlined
        dispatcher = numba.njit(nogil=True, error_model="numpy", boundscheck=False, **options)(self.py_func)
        dispatcher.get_call_template = self._call_template(dispatcher.get_call_template)
        return dispatcher

    def _call_template(self, found: Callable[..., Any]) -> Callable[..., Any]:
        """Numba's way to compile a kernel for a call, in which addresses come as what the kernel says that they are: it is
        compiled once, and not for an integer, a struct, and one that begins like that."""

        def find(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            from dlog.engine.kernels.core.struct_types import numba_type

            wanted = [numba_type(self.addresses[i]) if i in self.addresses else given for i, given in enumerate(arguments)]
            return found(tuple(wanted), keywords)

        return find

    @cached_property
    def addresses(self) -> dict[int, Any]:
        """The parameters that are addresses of structs or arrays, by position."""
        return addresses_of(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


class Intrinsic:
    """Stands in a module of kernels for the intrinsic of this name in intrinsics.py, which only Numba needs."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        from dlog.engine.kernels.core import intrinsics

        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(getattr(intrinsics, self.name))


def intrinsic(name: str) -> Any:
    """The name of an intrinsic in a module of kernels."""
    return Intrinsic(name)


_callable = True


def only_lower() -> None:
    """From now on what Numba makes of kernels is for the library: neither kept in its cache nor called from Python."""
    global _callable
    _callable = False


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel without the JIT, which casts addresses as compiled ones do."""
    addresses = cache(lambda: addresses_of(function))
    return with_addresses(function, addresses) if function.__annotations__ else function


Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compiles a function over structs, arrays and scalars; releases the GIL, wraps integers, divides without raising."""
    return cast(Function, Kernel(function) if JIT else _plain(function))


def inlined(function: Function) -> Function:
    """A kernel whose body takes the place of its calls. For what runs once or twice per row and is called in one or two places:
    LLVM judges by the length of a body, not by how often it runs."""
    return cast(Function, Kernel(function, inlined=True) if JIT else _plain(function))


def entry(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel that Python calls: it is in the library for arguments of these types (`i64`, `bool`, `f64`, and contiguous
    arrays as in `u8[:]`, `i64[:,:]`), by default all `i64`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not JIT:
            return _plain(function)
        count = function.__code__.co_argcount
        made = Kernel(function, types or ("i64",) * count)
        ENTRIES[made.name] = made
        return made

    return decorate
