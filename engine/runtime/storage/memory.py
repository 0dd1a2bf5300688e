"""The account of the memory that kernels own, and what is said when it does not suffice."""

from __future__ import annotations

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.page_maker import MAKER
from dlog.engine.kernels.static.pages import PLACES
from dlog.engine.runtime.storage.native import Struct, begin_line
from dlog.engine.values.array_pool import ArrayPool
from dlog.engine.values.sizes import byte_size
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Memory:
    """The account of what kernels allocated, with its limit; every worker's control block points to it, and through it to the
    symbol table."""

    def __init__(self, limit: int | None, threads: int = 1) -> None:
        begin_line()
        self.bytes = Struct(L.account.size)
        begin_line()
        self.bytes.point(L.account.places, Struct(2 * PLACES))
        self.bytes.point(L.account.wanted, Struct(2 * PLACES))
        self.bytes[L.account.maker] = MAKER
        self.threads = threads
        self.limit = limit if limit is not None else 2**62
        self.control = self.new_control(L.control.size)
        self.array_pool = ArrayPool()
        """For what is handed out of the kernels' memory; on nobody's account."""

    def new_control(self, size: int) -> Struct:
        control = Struct(size)
        control.point(L.control.account, self.bytes)
        control[L.control.limit] = self.limit
        return control

    @property
    def used(self) -> int:
        return self.bytes[L.account.bytes]

    @property
    def limited(self) -> bool:
        return self.limit < 2**62

    def check(self, control: Struct | None = None) -> None:
        """Raises the user's error if a kernel could not allocate."""
        control = control or self.control
        if control[L.control.error]:
            raise self.failure(control)

    def failure(self, control: Struct | None = None) -> DlogError:
        """The user's error after a kernel that says it failed. The mark may be gone: threads share this block."""
        control = control or self.control
        code, control[L.control.error] = control[L.control.error], 0
        if code == Error.ROWS:
            return DlogError(Diagnostic("too-many-rows", "a relation would have more than 2147483646 rows"))
        return self.exhausted()

    def exhausted(self) -> DlogError:
        held = f"{byte_size(self.used)} are in use"
        if self.limited:
            return over_limit(self.limit, held)
        return DlogError(Diagnostic("out-of-memory", "out of memory", notes=(held,)))


def over_limit(limit: int, *notes: str, place: str = "", line: str = "") -> DlogError:
    """What is said where more than so many bytes would be needed."""
    message = f"out of memory: the limit is {byte_size(limit)}"
    return DlogError(Diagnostic("out-of-memory", message, notes=notes, place=place, line=line))


def is_exhausted(error: BaseException) -> bool:
    """Whether it says that memory did not suffice."""
    return isinstance(error, DlogError) and all(d.code == "out-of-memory" for d in error.diagnostics)
