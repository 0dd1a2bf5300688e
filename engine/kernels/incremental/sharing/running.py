"""A part of a step, whichever it is."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.incremental.sharing.buckets import evaluate_part
from dlog.engine.kernels.incremental.sharing.derivations import add_part
from dlog.engine.kernels.incremental.sharing.loads import load_part
from dlog.engine.kernels.incremental.sharing.paths import follow_part
from dlog.engine.kernels.incremental.sharing.rounds import settle_part
from dlog.engine.kernels.round_structs import Control, Share


@entry()
def run_part(share: Share, ctl: Control, part, parts):
    """Does a part of the step at hand; false with ctl.error set."""
    if share.kind == Shared.PATH:
        return follow_part(ctl, share, part, parts)
    if share.kind >= Shared.DIVIDE:
        return load_part(ctl, share, part, parts)
    ctl.run_path = share.path
    if share.kind == Shared.SUPPORTS:
        return add_part(ctl, share, part, parts)
    if share.kind == Shared.BUCKET:
        return evaluate_part(ctl, share, part, parts)
    return settle_part(ctl, share, part, parts)
