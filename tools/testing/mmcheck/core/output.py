# SPDX-License-Identifier: GPL-2.0
"""JSON=1: standard output has only JSON."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from . import dry


@contextlib.contextmanager
def as_json(environ: Mapping[str, str], found: Callable[[], str]) -> Iterator[None]:
    """With JSON=1: print what `found` returns at the end of the block; all other output goes to standard error.

    If the block raises an error, nothing is printed.
    """
    if environ.get("JSON") != "1" or dry.on():
        yield
        return
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)  # programs that the block starts write there too
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, 1)
        os.close(ours)
    print(found())
