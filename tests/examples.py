"""How many examples property tests try: few in a default run, so that it is one to wait for; `--hypothesis-profile full` tries
enough to judge a submission by, always the same ones; `random` and `quick` as many new ones as a test says."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

MOST = {"few": 5, "full": 100}
"""By profile, the most examples of a test; as many as it says in others."""


def examples(number: int, **others: Any) -> settings:
    """The settings of a property test that is worth so many examples."""
    return settings(max_examples=min(number, MOST.get(settings.get_current_profile_name(), number)), **others)
