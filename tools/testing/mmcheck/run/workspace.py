# SPDX-License-Identifier: GPL-2.0
"""Working copies and build folders below O=, and the locks on them."""

import contextlib
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core import disk, dry, progress
from ..core.errors import UserError
from ..core.lock import held
from ..core.settings import Settings
from ..kernel import graft, patch, shadow, source, toolchain
from .request import Request


def patched(kernel: source.Source, settings: Settings) -> dict[str, bytes | None]:
    """The new content of the files that PATCH= changes in the private copy, with our own edits of these files."""
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


@dataclass(frozen=True)
class RunSpec:
    """The kernel and tests of a run. Only command lines read the environment; other code takes this object.

    settings: kernel or tree, architecture, pages, features, patch, and where results go
    request:  configuration, tests and machine, as arguments of kunit.py
    variant:  a word for the difference from the usual copy, or ""
    files:    the files that differ, with their content; None for the files that PATCH= changes
    """

    settings: Settings
    request: Request
    variant: str = ""
    files: Mapping[str, bytes] | None = None


class Workspace:
    """The working copy and the build folder of a specification, and the lock on them.

    label: the name of the working copy: kernel, features, digest of the patch, variant
    tree:  the working copy
    build: the build folder; its name also has the architecture, the pages, and a digest of the configuration. It is in
           the working copy, so kbuild calls the source "..", and ccache finds objects from other working copies
    stamp: identifies the source and the compiler; with an unchanged stamp nothing is built; "" if unknown

    Kernels of one variant share both folders, since another folder costs a whole build. So the lock of a kernel that is
    in use also keeps other runs away from the working copy.
    """

    def __init__(self, spec: RunSpec, kernel: source.Source | None = None, stamp: str = "") -> None:
        self.spec, self.settings, self.stamp = spec, spec.settings, stamp
        given, kdir = spec.request.known.build_dir, spec.settings.kdir
        if given and kdir and Path(given[-1]).resolve().is_relative_to(kdir.resolve()):
            raise UserError(
                f"--build_dir={given[-1]} is inside KDIR={kdir}, and mmcheck never writes there; choose another folder"
            )
        self.kernel = kernel or source.obtain(spec.settings)
        self.label = "+".join(filter(None, [label_of(self.kernel, spec.settings), spec.variant]))
        self.tree = self.settings.out / "tree" / self.label
        self.build = Path(given[-1]) if given else self.tree / self._name()

    def _name(self) -> str:
        """The name of the build folder, which begins with the name of the working copy.

        Each configuration has its own folder, since a change of configuration rebuilds all.
        """
        known = self.spec.request.known
        parts = [self.label, self.settings.arch, self.settings.page_size]
        config = [*(known.kunitconfig or []), *(known.kconfig_add or [])]
        if config:
            parts.append(disk.digest("\n".join(config).encode())[:8])
        return "-".join(filter(None, parts))

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other runs away during the block, which may be inside another such block.

        A command that boots the kernel that it builds holds the lock from the build to the last boot.
        """
        locks = self.settings.out / "lock"
        what = f"it uses {self.build}"
        tree = held(locks / f"{self.label}.tree", what) if self.spec.variant else contextlib.nullcontext()
        with tree, held(locks / f"{self.build.name}.build", what):
            yield

    def prepare(self) -> None:
        """Make or update the working copy."""
        files, settings = self.spec.files, self.settings
        if files is not None and settings.patch:
            raise UserError(f"PATCH={settings.patch}: only kunit.py, kselftest, bundle and matrix apply a patch")
        tree = f"{self.tree}, a working copy of {self.kernel.path}"
        if dry.instead("tree", tree + f" with {settings.patch}" * bool(settings.patch)):
            return
        others = files if files is not None else patched(self.kernel, settings)
        with held(settings.out / "lock" / f"{self.label}.tree", "it prepares the working copy"):
            shadow.make(self.kernel, self.tree, features=settings.features, others=others)


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
