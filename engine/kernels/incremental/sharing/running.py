"""A part of a step, whichever it is."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.sharing.buckets import evaluate_part
from dlog.engine.kernels.incremental.sharing.claims import claim_part
from dlog.engine.kernels.incremental.sharing.derivations import add_part, list_part
from dlog.engine.kernels.incremental.sharing.entering import enter_part, number_part
from dlog.engine.kernels.incremental.sharing.loads import load_part
from dlog.engine.kernels.incremental.sharing.paths import follow_part
from dlog.engine.kernels.incremental.sharing.placing import hash_part, place_part
from dlog.engine.kernels.incremental.sharing.rounds import settle_part
from dlog.engine.kernels.incremental.sharing.taking import take_part
from dlog.engine.kernels.round_structs import Control, Share


@kernel
def run_part(share: Share, ctl: Control, part, parts):
    """Does a part of the step at hand; false with ctl.error set."""
    kind = share.kind
    if kind == Shared.PATH:
        return follow_part(ctl, share, part, parts)
    if kind >= Shared.SURVEY:
        return load_part(ctl, share, part, parts)
    ctl.run_path = share.path
    if Shared.HASH <= kind <= Shared.ENTER:
        return enter_found(ctl, share, part, parts)
    if kind == Shared.SUPPORTS:
        return add_part(ctl, share, part, parts)
    if kind == Shared.SUPPORT_NOTES:
        return list_part(ctl, share, part, parts)
    if kind == Shared.BUCKET:
        return evaluate_part(ctl, share, part, parts)
    if kind == Shared.ROUND:
        return settle_part(ctl, share, part, parts)
    return take_part(ctl, share, part, parts)


@kernel
def enter_found(ctl: Control, share: Share, part, parts):
    """Does a part of a step that enters what a path has found; false with ctl.error set."""
    kind = share.kind
    if kind == Shared.HASH:
        return hash_part(ctl, share, part, parts)
    if kind == Shared.PLACE:
        return place_part(ctl, share, parts)
    if kind == Shared.CLAIM:
        return claim_part(ctl, share, parts)
    if kind == Shared.NUMBER:
        return number_part(ctl, share)
    return enter_part(ctl, share, part)
