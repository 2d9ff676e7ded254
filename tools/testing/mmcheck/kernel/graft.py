# SPDX-License-Identifier: GPL-2.0
"""Copies the overlay into a kernel tree, in place, and removes it again.

A graft adds our kernel-side files to the tree, and edits the files that must refer to them. Before
that it writes a journal into the tree. With the journal ungraft restores the tree byte for byte,
even after an interrupted graft.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import disk
from ..core.errors import PASSED, UserError
from ..core.settings import PROJECT

JOURNAL = ".mmcheck-graft"
SELFTESTS = "tools/testing/selftests"
OVERLAY = ("Kconfig.kunit", "lib", "mm", "arch", SELFTESTS)
"""The files and folders of this repository that go into a kernel tree."""


@dataclass(frozen=True)
class Insertion:
    """One line that is added to a file of the tree, after the first line that matches `after`."""

    path: str
    after: str
    line: str

    def apply(self, text: str) -> str | None:
        """`text` with our line in it; None if no line matches `after`."""
        if re.search(f"^{re.escape(self.line)}$", text, re.MULTILINE):
            return text
        anchor = re.search(f"^{self.after}$", text, re.MULTILINE)
        if anchor is None:
            return None
        gap = "\n\n" if self.path == "Kconfig" else "\n"
        return text[: anchor.end()] + gap + self.line + text[anchor.end() :]

    def remove(self, text: str) -> str:
        """`text` without our line: the inverse of apply(), even if other lines have changed since."""
        gap = "\n\n" if self.path == "Kconfig" else "\n"
        return text.replace(gap + self.line, "", 1)


@dataclass(frozen=True)
class Replacement:
    """An edit that replaces the text `after` in a file of the tree with the text `line`."""

    path: str
    after: str
    line: str

    def apply(self, text: str) -> str | None:
        """`text` with `line` in place of `after`; None if `after` is not found."""
        if self.line in text:
            return text
        return text.replace(self.after, self.line, 1) if self.after in text else None

    def remove(self, text: str) -> str:
        """The inverse of apply()."""
        return text.replace(self.line, self.after, 1)


EDITS = (
    Insertion("Kconfig", r'source "lib/Kconfig\.debug"', 'source "Kconfig.kunit"'),
    Insertion(
        "lib/Makefile",
        r"obj-\$\(CONFIG_FIRMWARE_TABLE\)\s*\+= fw_table\.o",
        "obj-$(CONFIG_PGTABLE_KUNIT) += pgtable_kunit/",
    ),
    Insertion(
        "lib/Makefile",
        r"obj-\$\(CONFIG_FIRMWARE_TABLE\)\s*\+= fw_table\.o",
        "obj-$(CONFIG_RMAP_ID) += rmap_id/",
    ),
    Insertion(
        "lib/Makefile",
        r"obj-\$\(CONFIG_FIRMWARE_TABLE\)\s*\+= fw_table\.o",
        "obj-$(CONFIG_MM_AUDIT) += mm_audit/",
    ),
    Insertion(
        "mm/Makefile",
        r"obj-\$\(CONFIG_SHRINKER_DEBUG\)\s*\+= shrinker_debug\.o",
        "obj-$(CONFIG_PGTABLE_KUNIT) += tests/",
    ),
    Insertion(
        "arch/arm64/mm/Makefile",
        r"obj-\$\(CONFIG_ARM64_CONTPTE\)\s*\+= contpte\.o",
        "obj-$(CONFIG_PGTABLE_KUNIT) += tests/",
    ),
    Insertion(
        "arch/riscv/mm/Makefile",
        r"obj-\$\(CONFIG_HUGETLB_PAGE\)\s*\+= hugetlbpage\.o",
        "obj-$(CONFIG_PGTABLE_KUNIT) += tests/",
    ),
    Insertion(f"{SELFTESTS}/mm/Makefile", r"TEST_GEN_FILES \+= droppable", "include folio_tests.mk"),
)

FAULT = "arch/arm64/mm/fault.c"
FEATURES: dict[str, tuple[Insertion | Replacement, ...]] = {
    "atomic_rmw": (
        Insertion(
            "arch/arm64/Kconfig",
            r'endmenu # "ARMv8\.1 architectural features"',
            'source "arch/arm64/Kconfig.atomic_rmw"',
        ),
        Insertion(FAULT, r"#include <asm/acpi\.h>", "#include <asm/atomic_rmw.h>"),
        Replacement(
            FAULT,
            "handle_mm_fault(vma, addr, mm_flags | FAULT_FLAG_VMA_LOCK, regs)",
            "handle_mm_fault(vma, addr, atomic_rmw_fault_flags(vma, mm_flags, regs) |\n"
            "\t\t\t\tFAULT_FLAG_VMA_LOCK, regs)",
        ),
        Replacement(
            FAULT,
            "handle_mm_fault(vma, addr, mm_flags, regs)",
            "handle_mm_fault(vma, addr, atomic_rmw_fault_flags(vma, mm_flags, regs),\n\t\t\t\tregs)",
        ),
    ),
}
"""Features that the overlay can add to a tree, each with the edits that connect the feature to the kernel."""


def overlay_files(project: Path = PROJECT) -> Iterator[str]:
    """Relative names of the files that go into a kernel tree, in a fixed order."""
    for top in OVERLAY:
        if (project / top).is_file():
            yield top
        for folder, folders, files in os.walk(project / top):
            folders.sort()
            for name in sorted(files):
                if not name.endswith(("~", ".swp", ".orig", ".rej", ".pyc")):
                    yield str((Path(folder) / name).relative_to(project))


def edits(features: Iterable[str]) -> list[Insertion | Replacement]:
    """All edits of a tree that gets `features`."""
    return [*EDITS, *(edit for feature in features for edit in FEATURES[feature])]


def edited(tree: Path, features: Sequence[str] = (), without: Iterable[str] = ()) -> dict[str, str]:
    """The files of `tree` that a graft edits, with their new text.

    without: features to remove

    Raises UserError if an edit has no place in the tree; the message names the file.
    """
    result: dict[str, str] = {}

    def text(path: str) -> str:
        try:
            return result[path] if path in result else (tree / path).read_bytes().decode()
        except OSError as error:
            why = f"{error.strerror}; mmcheck must add a line to the file"
            raise UserError(f"cannot read {tree / path}: {why}") from None

    for feature in without:
        for edit in FEATURES[feature]:
            result[edit.path] = edit.remove(text(edit.path))
    for edit in edits(features):
        new = edit.apply(text(edit.path))
        if new is None:
            where = f"{tree / edit.path}: no line matches {edit.after!r}, so mmcheck cannot add {edit.line!r}"
            raise UserError(where if edit in EDITS else f"{where}; leave the feature out with FEATURES=")
        result[edit.path] = new
    return result


@dataclass
class Journal:
    """What a graft does to a tree.

    copied:  for each added file, by relative name, the digests that the file may have: two while a
             newer overlay replaces an older one, otherwise one
    edited:  relative names of the edited files
    folders: the added folders, outermost first
    features: features that are added in addition to the tests
    """

    copied: dict[str, list[str]]
    edited: list[str]
    folders: list[str]
    features: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, tree: Path) -> "Journal | None":
        """The journal of `tree`; None if nothing was grafted."""
        try:
            fields: dict[str, Any] = json.loads((tree / JOURNAL).read_text())
            return cls(**fields)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise UserError(f"{tree / JOURNAL} is damaged; restore the tree from your version control") from None

    def save(self, tree: Path) -> None:
        """Write the journal; it is on disk when this returns."""
        disk.replace(tree / JOURNAL, json.dumps(vars(self), indent=1).encode())

    def refuse_changed(self, tree: Path) -> None:
        """Raise UserError if the user changed one of our files in the tree: the change would be lost."""
        for name, digests in self.copied.items():
            path = tree / name
            if path.exists() and disk.digest(path.read_bytes()) not in digests:
                raise UserError(f"{path} was changed since the graft; first move this file to a safe place")


def graft(tree: Path, project: Path = PROJECT, features: Sequence[str] = ()) -> str:
    """Copy the overlay into `tree`; returns what was done, in one line. A second graft changes nothing."""
    journal = Journal.load(tree) or Journal({}, [], [])
    journal.refuse_changed(tree)
    without = [feature for feature in journal.features if feature not in features]
    texts = edited(tree, features, without)
    contents = {name: (project / name).read_bytes() for name in overlay_files(project)}
    for name, content in contents.items():
        path = tree / name
        if name not in journal.copied and path.exists() and path.read_bytes() != content:
            raise UserError(
                f"{path} exists and is not from mmcheck; nothing was changed: move the file away, or use another tree"
            )

    changed = [name for name, content in contents.items() if not disk.same(tree / name, content)]
    lines = [name for name, text in texts.items() if not disk.same(tree / name, text.encode())]
    gone = [name for name in journal.copied if name not in contents]
    if not (changed or lines or gone):
        return f"{tree}: grafted already, nothing to do"

    for name in changed:
        journal.copied.setdefault(name, []).append(disk.digest(contents[name]))
        for parent in reversed(Path(name).parents[:-1]):
            if not (tree / parent).exists() and str(parent) not in journal.folders:
                journal.folders.append(str(parent))
    journal.edited += [name for name in lines if name not in journal.edited]
    journal.features = sorted({*journal.features, *features})
    journal.save(tree)

    for name in changed:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        disk.replace(tree / name, contents[name])
    for name in lines:
        disk.replace(tree / name, texts[name].encode())
    for name in gone:
        (tree / name).unlink(missing_ok=True)
    journal.copied = {name: digests[-1:] for name, digests in journal.copied.items() if name not in gone}
    journal.features = list(features)
    journal.save(tree)
    return f"{tree}: {len(contents)} files were added, and lines were added to {len(texts)} other files"


def ungraft(tree: Path) -> str:
    """Remove the overlay from `tree`; returns what was done, in one line."""
    journal = Journal.load(tree)
    if journal is None:
        return f"{tree}: nothing grafted, nothing to do"
    journal.refuse_changed(tree)
    for edit in edits(journal.features):
        if edit.path in journal.edited:
            path = tree / edit.path
            now = path.read_bytes()
            # Remove only our line: changes that the user made since the graft stay.
            before = edit.remove(now.decode()).encode()
            if now != before:
                disk.replace(path, before)
    for name in journal.copied:
        (tree / name).unlink(missing_ok=True)
    for name in [*journal.copied, *journal.edited, JOURNAL]:
        disk.tidy(tree / name)
    for folder in reversed(journal.folders):
        if (tree / folder).is_dir() and not any((tree / folder).iterdir()):
            (tree / folder).rmdir()
    (tree / JOURNAL).unlink()
    return f"{tree}: ungrafted"


def run(environ: Mapping[str, str], verb: str = "graft") -> int:
    """The command, on the tree $KDIR; returns the exit status."""
    from ..core.settings import features
    from .source import from_folder

    tree = environ.get("KDIR")
    if not tree:
        raise UserError(f"KDIR= is not set; name the tree: make {verb} KDIR=/path/to/linux")
    path = from_folder(Path(tree).expanduser().absolute()).path
    wanted = features(environ, own_tree=True)
    try:
        print(graft(path, features=wanted) if verb == "graft" else ungraft(path))
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}; run ungraft to restore the tree") from None
    return PASSED


def run_ungraft(environ: Mapping[str, str]) -> int:
    """The command `ungraft`; returns the exit status."""
    return run(environ, "ungraft")
