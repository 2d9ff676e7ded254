# SPDX-License-Identifier: GPL-2.0
"""Working copies: the trees below O= that are built."""

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..core import progress
from ..core.errors import UserError
from ..core.lock import held
from ..core.settings import Settings
from ..kernel import graft, patch, shadow, source, toolchain


def patched(kernel: source.Source, settings: Settings) -> dict[str, bytes | None]:
    """The files that PATCH= changes in the private copy, with our own edits of these files."""
    if not settings.patch:
        return {}
    files = patch.apply(settings.patch, lambda name: (kernel.path / name).read_bytes())
    for edit in graft.edits(settings.features):
        content = files.get(edit.path)
        if content is not None:
            text = edit.apply(content.decode())
            if text is None:
                raise UserError(
                    f"PATCH={settings.patch}: with the patch, mmcheck cannot add the line {edit.line!r} "
                    f"to {edit.path}; change the patch"
                )
            files[edit.path] = text.encode()
    said = ", ".join(files)
    progress.say(f"PATCH={settings.patch} is applied to a private copy of linux {kernel.label}: {said}")
    return files


def working_copy(
    kernel: source.Source, settings: Settings, label: str, others: Mapping[str, bytes] | None = None
) -> Path:
    """Make or update the tree named `label`, under a lock; returns its path.

    others: files whose content differs from kernel and overlay
    """
    if others is not None and settings.patch:
        raise UserError(f"PATCH={settings.patch}: only kunit.py, kselftest, bundle and matrix apply a patch")
    tree = settings.out / "tree" / label
    files = others if others is not None else patched(kernel, settings)
    with held(settings.out / "lock" / f"{label}.tree", "it prepares the working copy"):
        shadow.make(kernel, tree, features=settings.features, others=files)
    return tree


def label_of(kernel: source.Source, settings: Settings) -> str:
    """The name of a working copy: its kernel, and the features in which it differs from the usual copy."""
    return "+".join([kernel.label, *settings.unusual])


def compiler(arch: str) -> str:
    """The compilers by path, size and time stamp. If one of these changes, the kernel is built again."""
    found = []
    for name in (f"{toolchain.cross_prefix(arch)}gcc", "clang"):
        if path := shutil.which(name):
            state = Path(path).stat()
            found.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return " ".join(found) or f"none on {platform.machine()}"
