"""Numbers of bytes as people read them."""

from __future__ import annotations


def byte_size(size: int) -> str:
    """A number of bytes in the largest unit that keeps it at or above one.

    >>> byte_size(512), byte_size(3 << 19), byte_size(3 << 20)
    ('512 B', '1.5 MiB', '3 MiB')
    """
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{f'{size / 1024**power:.1f}'.removesuffix('.0')} {'KMGT'[power - 1]}iB"
