"""Requests that the client library lacks, written to the broker by hand: delete commits, and commits that expire.

For tests on a broker of one node, which coordinates every group. The formats are those of Kafka's protocol guide.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence

_OFFSET_COMMIT = 8
_OFFSET_DELETE = 47


def delete_commits(address: str, group: str, topic: str, partitions: Sequence[int]) -> None:
    """Forget the group's commits, as `kafka-consumer-groups --delete-offsets` does.

    Raises:
        RuntimeError: the broker refuses.
    """
    numbers = b"".join(struct.pack(">i", number) for number in partitions)
    body = _text(group) + struct.pack(">i", 1) + _text(topic) + struct.pack(">i", len(partitions)) + numbers
    answer = _ask(address, _OFFSET_DELETE, 0, body)
    (whole,) = struct.unpack_from(">h", answer)
    errors = [whole] if whole else _errors(answer[6:])
    if any(errors):
        raise RuntimeError(f"the broker refuses to delete commits: {errors}")


def commit_for(address: str, group: str, topic: str, offsets: Mapping[int, int], milliseconds: int) -> None:
    """Commit offsets of partitions that the broker may forget after so long.

    Version 2 of the request still carries a time of its own; without it a broker keeps commits for a minute at least.

    Raises:
        RuntimeError: the broker refuses.
    """
    commits = b"".join(struct.pack(">iq", number, offset) + _text("") for number, offset in offsets.items())
    body = _text(group) + struct.pack(">i", -1) + _text("") + struct.pack(">q", milliseconds)
    body += struct.pack(">i", 1) + _text(topic) + struct.pack(">i", len(offsets)) + commits
    errors = _errors(_ask(address, _OFFSET_COMMIT, 2, body))
    if any(errors):
        raise RuntimeError(f"the broker refuses to commit: {errors}")


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode("ascii")


def _errors(answer: bytes) -> list[int]:
    """The error codes of the partitions of the one topic that was asked for."""
    topics, length = struct.unpack_from(">ih", answer)
    if topics != 1:
        raise RuntimeError(f"asked for one topic, answered for {topics}")
    (count,) = struct.unpack_from(">i", answer, 6 + length)
    return [struct.unpack_from(">ih", answer, 10 + length + 6 * number)[1] for number in range(count)]


def _ask(address: str, request: int, version: int, body: bytes) -> bytes:
    """The body of the answer."""
    host, port = address.rsplit(":", 1)
    message = struct.pack(">hhi", request, version, 1) + _text("tests") + body
    with socket.create_connection((host, int(port)), timeout=10) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)[4:]
