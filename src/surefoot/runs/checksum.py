"""The one checksum of what surefoot stores.

A file carries the SHA-256 of all its bytes, the checksum itself counted as zeros. Damage anywhere,
in the numbers too, is noticed before a parser sees it: of bit-flipped Parquet files polars reads
half without an error, and aborts the process on some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from surefoot.errors import InputError
from surefoot.runs.files import Buffer

MARK = b"surefoot-sha256:"
BLANK = b"0" * 64
PLACEHOLDER = (MARK + BLANK).decode()
"""What a writer puts where the checksum shall stand."""


def stamp(head: bytes, rest: Sequence[Buffer] = ()) -> list[Buffer]:
    """`head` and `rest` with the checksum of both in place of the placeholder in `head`."""
    digest = hashlib.sha256(head)
    for piece in rest:
        digest.update(piece)
    at = head.index(MARK + BLANK) + len(MARK)
    return [head[:at] + digest.hexdigest().encode() + head[at + len(BLANK) :], *rest]


def verify(data: bytes, source: object) -> None:
    """Refuse bytes that are not what was written."""
    at = data.find(MARK) + len(MARK)
    if at < len(MARK):
        raise InputError(f"{source}: has no checksum: cut short, or not written by surefoot")
    end = at + len(BLANK)
    digest = hashlib.sha256(b"".join((data[:at], BLANK, data[end:])))
    if digest.hexdigest().encode() != data[at:end]:
        raise InputError(f"{source}: is damaged, its content does not match its checksum")
