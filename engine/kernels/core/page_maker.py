"""Pages that another thread has the system make, while commits go on.

The system zeroes a huge page when it is first touched, and the host of a virtual machine may first have to find it: between 0.1
and 10 ms, where a small commit takes as much. Who knows where an array will grow asks for its next page, finds out later
whether it is there, and asks for the next one then. A process makes one at a time, in a native thread that ends with it and
holds nothing of Python.
"""

from __future__ import annotations

import ctypes

from dlog.engine.kernels.core.jit import JIT, kernel
from dlog.engine.kernels.core.memory import MAPS, compare_and_set, load_i64, populate_aside, process_id, store_i64


def _new_maker() -> int:
    """The address of two words: the process that a page is being made in (0: none is), and that page's address. They are never
    given back, as a thread may outlive whoever began it."""
    calloc = ctypes.pythonapi.PyMem_RawCalloc
    calloc.restype = ctypes.c_void_p
    return int(calloc(ctypes.c_size_t(2), ctypes.c_size_t(8)) or 0)


MAKER = _new_maker() if MAPS and JIT else 0
"""That of this process; 0 where pages are made when they are touched."""


@kernel
def is_making(maker):
    """Whether a page is being made. A forked process does not have the thread that made one in its parent."""
    return maker != 0 and load_i64(maker, 0) == process_id()


@kernel
def make_aside(maker, address):
    """Begins to have the page at an address made; false, and nothing asked for, while another one is. What has become of the
    address by then does not matter: a page is made or refused, and nothing is written."""
    if maker == 0:
        return True
    process = process_id()
    before = load_i64(maker, 0)
    if before == process or compare_and_set(maker, before, process) == 0:
        return False
    store_i64(maker, 1, address)
    populate_aside(maker)
    return True
