# SPDX-License-Identifier: GPL-2.0
"""The user's choices, from the variables that all commands share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from .errors import UserError
from .variables import name_list

PROJECT = Path(__file__).resolve().parents[4]
"""The root of this repository, which is the overlay."""

VARIABLES = ("KERNEL", "KDIR", "PATCH", "ARCH", "PAGES", "FEATURES", "BASELINE", "O")
PAGE_SIZES = ("4K", "16K", "64K")
FEATURES = ("atomic_rmw",)
"""Features that the overlay can add to a kernel in addition to its tests."""


@dataclass(frozen=True)
class Settings:
    """The kernel, its architecture and page size, and the folders for results.

    kernel: a version of a packaged kernel ("6.12", "6.12.117") or "latest"; or a tarball, or a URL
    kdir:   the user's own tree, used instead of `kernel`, or None
    arch:   as in kunit.py's --arch: "um", "arm64", "x86_64", "riscv", ...
    pages:  size of a page on arm64: "4K", "16K" or "64K"
    features: features that the kernel gets in addition to the tests
    patch:  a patch for the private copy of the kernel, or None
    out:    results and build folders
    cache:  downloads and unpacked sources, shared by all checkouts
    """

    kernel: str
    kdir: Path | None
    arch: str
    pages: str
    features: tuple[str, ...]
    patch: Path | None
    out: Path
    cache: Path

    @property
    def page_size(self) -> str:
        """The size of a page on arm64; "" for an architecture with only one page size."""
        return self.pages if self.arch == "arm64" else ""

    @property
    def unusual(self) -> tuple[str, ...]:
        """The differences of this working copy from the usual copy of its kernel: features and patch."""
        usual = self.features == features({}, own_tree=bool(self.kdir) or is_place(self.kernel))
        patched = (f"patch-{sha256(self.patch.read_bytes()).hexdigest()[:8]}",) if self.patch else ()
        return (*(() if usual else self.features or ("stock",)), *patched)


def is_place(kernel: str) -> bool:
    """Whether KERNEL= names a file or a URL, and not a version."""
    return "/" in kernel or re.search(r"\.(tar(\.\w+)?|t[gx]z)$", kernel) is not None


def features(environ: Mapping[str, str], own_tree: bool) -> tuple[str, ...]:
    """The features in $FEATURES. By default the user's own tree gets no features, and other kernels get all features.

    Raises UserError for an unknown feature.
    """
    wanted = environ.get("FEATURES")
    if wanted is None:
        return () if own_tree else FEATURES
    for name in name_list(wanted):
        if name not in FEATURES:
            raise UserError(f"FEATURES={name}: use {', '.join(FEATURES)}, or nothing")
    return tuple(sorted(set(name_list(wanted))))


def whole(environ: Mapping[str, str], name: str, default: int, what: str = "") -> int:
    """A variable as a whole number above 0; `what` names the things counted. Raises UserError for any other value."""
    given = environ.get(name) or str(default)
    if not re.fullmatch(r"0*[1-9][0-9]{0,14}", given):
        raise UserError(f"{name}={given}: use a whole number above 0{f' ({what})' if what else ''}")
    return int(given)


def out_of(environ: Mapping[str, str]) -> Path:
    """The folder for results and builds: O=, or out/ in this repository."""
    out = Path(environ.get("O") or PROJECT / "out").absolute()
    # Kernel makefiles refuse these characters too, but do not say what to change.
    if any(c in str(out) for c in " :"):
        raise UserError(f"O={out}: kernel builds allow no space or colon in a path; choose another O=")
    return out


def from_environment(environ: Mapping[str, str], arch: str | None = None) -> Settings:
    """Read the variables. `arch`, from the command line, overrides $ARCH.

    Raises UserError for a value that is not valid.
    """
    wanted_arch = arch or environ.get("ARCH") or "um"
    pages = environ.get("PAGES") or "4K"
    if pages not in PAGE_SIZES:
        raise UserError(f"PAGES={pages}: use one of {', '.join(PAGE_SIZES)}")
    if pages != "4K" and wanted_arch != "arm64":
        raise UserError(f"PAGES={pages} needs --arch=arm64 (this is {wanted_arch})")

    kdir = environ.get("KDIR")
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '')}/.cache"
    tree = Path(kdir).expanduser().absolute() if kdir else None
    out = out_of(environ)
    if tree and (tree / "Makefile").exists() and out.resolve().is_relative_to(tree.resolve()):
        raise UserError(f"O={out} is inside KDIR={tree}, and mmcheck never writes there; choose another O=")
    if patch := environ.get("PATCH"):
        try:
            Path(patch).read_bytes()
        except OSError as error:
            raise UserError(f"PATCH={patch}: {error.strerror}") from None
    kernel = environ.get("KERNEL") or "6.12"
    if is_place(kernel) and "://" not in kernel:
        kernel = str(Path(kernel).expanduser().absolute())
    return Settings(
        kernel=kernel,
        kdir=tree,
        arch=wanted_arch,
        pages=pages,
        features=features(environ, own_tree=bool(kdir) or is_place(kernel)),
        patch=Path(patch).absolute() if patch else None,
        out=out,
        cache=Path(cache).absolute() / "mmcheck",
    )
