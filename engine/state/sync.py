"""When appended rounds are forced to the disk."""

from __future__ import annotations

from typing import Literal

Sync = Literal["always", "often", "never"]
"""Before each append returns; every `OFTEN_SECONDS`, as appends come; or when the system likes. A killed process loses nothing
in any case; a machine that loses power may lose what was not forced."""
OFTEN_SECONDS = 0.1
"""Between two times that the log is forced to the disk `often`: trades what a loss of power takes against forcing."""
