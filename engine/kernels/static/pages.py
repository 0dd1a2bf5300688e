"""Pages that are made ahead: in a small commit at most one, before something comes to it.

The system zeroes a huge page when it is first touched, which takes as long as some commits of few rows. Columns of a relation,
and of those that rules derive of it, come to the end of a page at the same row. So the pages that an array is given in a small
commit wait, and the system is asked for one of them at the end of each. A table that has been given places waits for them
before it begins to move anything there.

Until its turn has come a page may have become another array's, or nobody's: it is made or refused, and nothing is written.
A thread of its own makes it (page_maker.py), as that may take much longer than the commit; commits of more changes make some
themselves, which takes less than the changes do. In large commits workers that wait for the next step make pages for
those that are not done.
"""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import HUGE_PAGE, MADV_POPULATE_WRITE, PAGE, fresh_pages, start_of
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import advise_pages, atomic_add, compare_and_set
from dlog.engine.kernels.core.page_maker import is_making, make_aside
from dlog.engine.kernels.machine_structs import Account
from dlog.engine.kernels.round_structs import Control

PLACES = 32
"""Stretches of pages that can wait; more are made when they are touched."""
ROWS_THAT_WAIT = 2048
"""Rows that come to tables in a small commit before these go on all the same."""
CHANGES_PER_PAGE = 512
"""Changes of a commit for each of which it has one more page made."""


@entry()
def begin_small(ctl: Control):
    """A commit of few changes begins."""
    ctl.account.small = ROWS_THAT_WAIT


@entry()
def end_small(ctl: Control, changes):
    """A commit of so many changes is over, or some of them lead to many."""
    account = ctl.account
    account.small = 0
    if account.waiting + account.making != 0:
        make_pages(account, changes // CHANGES_PER_PAGE)


@kernel
def may_move(ctl: Control, coming):
    """Whether a table that grows may go on before so many rows come to it: not where pages of it may be waiting. A commit in
    which many come is large, however few changes led to them: a table that takes in rows and moves none gets ever slower."""
    account = ctl.account
    if account.small == 0 or account.waiting + account.making == 0:
        return True
    account.small = max(account.small - coming, 0)
    return False


@kernel
def note_pages(account: Account, address, old, new):
    """Has the pages wait, in a small commit, that a block of `old` bytes, all of which are touched, has been given for `new`
    ones; in others workers make them that have nothing else to do."""
    n = account.waiting
    if account.small == 0:
        if account.idle != 0 and new > old:
            want_pages(account, address, old, new)
    elif new > old and n < PLACES:
        pages = fresh_pages(address, old, new)
        if pages != 0:
            account.places[2 * n] = start_of(address + old) + HUGE_PAGE
            account.places[2 * n + 1] = pages
            account.waiting = n + 1


@kernel
def make_pages(account: Account, at_once):
    """Makes some of the pages that wait, and has one more be made meanwhile, unless one still is."""
    while at_once > 0 and account.waiting != 0:
        advise_pages(next_page(account), PAGE, MADV_POPULATE_WRITE)
        at_once -= 1
    account.making = 1 if is_making(account.maker) else 0
    if account.making == 0 and account.waiting != 0:
        make_aside(account.maker, next_page(account))
        account.making = 1


@kernel
def next_page(account: Account):
    """Takes one of the pages that wait: the last one, as tables begin to move there."""
    at = account.waiting - 1
    start = account.places[2 * at]
    left = account.places[2 * at + 1] - 1
    account.places[2 * at + 1] = left
    if left == 0:
        account.waiting = at
    return start + left * HUGE_PAGE


# ---------------------------------------------------------------------------------------------------------- large commits


@kernel
def want_pages(account: Account, address, old, new):
    """Lists the pages that a block has been given, for whoever looks for something to do."""
    pages = fresh_pages(address, old, new)
    if pages == 0 or compare_and_set(account.ref.lock, 0, 1) == 0:
        return
    n = account.wanted_count
    if n < PLACES:
        account.wanted[2 * n] = start_of(address + old) + HUGE_PAGE
        account.wanted[2 * n + 1] = pages
        account.wanted_count = n + 1
    atomic_add(account.ref.lock, 0, -1)


@kernel
def make_wanted(account: Account):
    """Makes one of the pages that are listed, unless it is nobody's any more; false where none is listed."""
    page = take_wanted(account)
    if page != 0:
        advise_pages(page, PAGE, MADV_POPULATE_WRITE)
    return page != 0


@kernel
def take_wanted(account: Account):
    """Takes a page off the list, of the block that came last the first: somebody is about to write there. 0: there is none."""
    if account.wanted_count == 0 or compare_and_set(account.ref.lock, 0, 1) == 0:
        return 0
    page = 0
    at = account.wanted_count - 1
    if at >= 0:
        page = account.wanted[2 * at]
        account.wanted[2 * at] = page + HUGE_PAGE
        account.wanted[2 * at + 1] -= 1
        if account.wanted[2 * at + 1] == 0:
            account.wanted_count = at
    atomic_add(account.ref.lock, 0, -1)
    return page
