"""Reads a file below a directory and never one outside of it, whatever symbolic links are in between.

Kubernetes mounts a Secret as links (`password` -> `..data/password` -> a dated directory), so links inside are
followed, step by step over open directories: a concurrent swap can make it fail, but not lead outside. The kernel has
openat2 with RESOLVE_BENEATH for this, but container runtimes still deny it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import PurePosixPath

_MAX_LINKS = 16
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO blocks until somebody writes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class OutsideDirectory(OSError):
    """A link leads out of the directory, or there are too many links."""


def open_directory(top: int, name: str) -> int:
    """Open a directory below an open one; the caller closes the descriptor.

    Raises:
        OutsideDirectory: it is outside.
        OSError: it cannot be opened.
    """
    with _walk(top, name) as (parent, last):
        return os.dup(parent) if last is None else os.open(last, _DIRECTORY, dir_fd=parent)


def read_file(top: int, name: str, max_bytes: int) -> bytes:
    """The content of a regular file below an open directory, by its relative path.

    Raises:
        OutsideDirectory: it is outside.
        IsADirectoryError: it is a directory.
        OSError: it is not a regular file (EINVAL), is too large (EFBIG), or cannot be opened.
    """
    with _walk(top, name) as (parent, last):
        if last is None:
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        # Before it is opened: opening a device can have effects.
        _check_regular(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode)
        with os.fdopen(os.open(last, _FILE, dir_fd=parent), "rb") as file:
            # Again, because the file may have been swapped in between.
            _check_regular(os.fstat(file.fileno()).st_mode)
            content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes} bytes")
    return content


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file")


@contextlib.contextmanager
def _walk(top: int, name: str) -> Iterator[tuple[int, str | None]]:
    """The open directory of the last path component, and that component, not a link; None: the directory itself."""
    with contextlib.ExitStack() as closing:
        opened = [top]
        steps = deque(_split_path(name))
        links = 0
        last: str | None = None
        while steps:
            step = steps.popleft()
            if step == "..":
                if len(opened) == 1:
                    raise OutsideDirectory(errno.EXDEV, "leads out of its directory")
                # The directory that led here, not its current parent.
                opened.pop()
                continue
            target = _read_link(opened[-1], step)
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise OutsideDirectory(errno.EXDEV, "leads out of its directory")
                steps.extendleft(reversed(_split_path(target)))
            elif steps:
                descriptor = os.open(step, _DIRECTORY, dir_fd=opened[-1])
                closing.callback(os.close, descriptor)
                opened.append(descriptor)
            else:
                last = step
        yield opened[-1], last


def _split_path(name: str) -> list[str]:
    if name.startswith("/") or "\0" in name:
        raise OutsideDirectory(errno.EXDEV, "leads out of its directory")
    return [step for step in PurePosixPath(name).parts if step != "."]


def _read_link(parent: int, step: str) -> str | None:
    """The target of a link; None if it is not a link."""
    try:
        return os.readlink(step, dir_fd=parent)
    except OSError as wrong:
        if wrong.errno == errno.EINVAL:
            return None
        raise
