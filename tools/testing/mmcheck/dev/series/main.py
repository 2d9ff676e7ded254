# SPDX-License-Identifier: GPL-2.0
"""make series: writes the overlay as patches for `git am`, one for each suite, without the features of the overlay.

The includes of a suite and the Makefile that lists its objects determine the files of its patch. The Makefiles also
determine the order of the patches. After each patch, Makefiles and Kconfig files name only files that exist, so every
step builds. After the last patch, the tree equals a tree that was grafted with FEATURES=, except for an entry in
MAINTAINERS.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from ...core import git, ours
from ...core.errors import UserError
from ...core.settings import PROJECT, from_environment
from ...kernel import graft, source
from . import core, cover, maintainers, message
from .overlay import Overlay
from .steps import Step, plan

OLDEST = (6, 12)
"""The oldest kernel that the suites support."""


def version(tree: Path) -> str:
    """The version in the Makefile of a kernel tree. Raises UserError if the tree is too old for the suites."""
    text = (tree / "Makefile").read_text()
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) = *(\S*)$", text, re.MULTILINE))
    numbers = [found.get(name) or "0" for name in ("VERSION", "PATCHLEVEL")]
    whole = ".".join(numbers) + (f".{found['SUBLEVEL']}" if found.get("SUBLEVEL", "0") != "0" else "")
    if not all(number.isdecimal() for number in numbers) or tuple(map(int, numbers)) < OLDEST:
        raise UserError(f"{tree}: Linux {whole} is too old; use {'.'.join(map(str, OLDEST))} or newer")
    return f"{whole}{found.get('EXTRAVERSION', '')}"


def base_files(tree: Path, overlay: Overlay) -> dict[str, str]:
    """The files of a kernel tree to which the series adds lines. Raises UserError if the series would not apply."""
    if graft.Journal.load(tree):
        raise UserError(f"{tree} contains the overlay; remove it with make ungraft KDIR={tree}, or use another tree")
    for name in overlay.texts:
        if (tree / name).exists():
            raise UserError(f"{tree / name} exists already; use a tree without the overlay")
    names = [*graft.edited(tree), maintainers.FILE]
    if git.commit_of(tree) and (changed := git.asked(tree, "diff", "--name-only", "HEAD", "--", *names)):
        raise UserError(
            f"{tree / changed.split()[0]} has uncommitted changes, so git am would fail; commit or stash them"
        )
    try:
        return {name: (tree / name).read_bytes().decode() for name in names}
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}; mmcheck must add lines to the file") from None


def make(tree: Path, target: Path, person: tuple[str, str], date: str, out: Path, overlay: Overlay) -> list[list[Path]]:
    """Write the patches for `tree` into the new folder `target`.

    Returns the patches of each series in their order, the cover letter first. If there are several series, each series
    has its own folder.

    out: the folder with the results of runs, which the cover letters summarize
    """
    base = version(tree)
    files = base_files(tree, overlay)
    steps = plan(overlay)
    signed = f"{person[0]} <{person[1]}>"
    several = len(overlay.parts) > 1
    places = [target / str(number) if several else target for number, _ in enumerate(overlay.parts, 1)]
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        repository = git.Repository(Path(folder), person, date)
        repository.commit(files, "base")
        repository.git("tag", "base")
        for step, state in zip(steps, states(tree, files, overlay, steps, signed), strict=True):
            said = message.compose(step.subject, {name: overlay.texts[name] for name in step.heads})
            repository.commit(state, f"{said}\n\nSigned-off-by: {signed}\n")
            repository.git("branch", "--force", f"part{step.part}")
        for number, place in enumerate(places):
            own = [step for step in steps if step.part == number]
            table = cover.figures(out, {step.name for step in own if step.name})
            letter = cover.letter(overlay, own, base, git.commit_of(tree), table, overlay.letters[number])
            repository.git("config", f"branch.part{number}.description", letter)
            covered = ("--cover-letter", "--cover-from-description=subject")
            plain = ("--zero-commit", "--no-signature", "--no-renames", "--abbrev=12", "--quiet")
            before = f"part{number - 1}" if number else "base"
            repository.git("format-patch", *covered, *plain, "-o", str(place), f"{before}..part{number}")
    return [sorted(place.iterdir()) for place in places]


def states(
    tree: Path, base: Mapping[str, str], overlay: Overlay, steps: Sequence[Step], signed: str
) -> Iterator[dict[str, str]]:
    """For each patch, the content after this patch of all files that the series adds or edits."""
    sources: set[str] = set()
    before: Set[str] = set()
    maintained: list[str] = []
    for step in steps:
        sources.update(step.sources)
        state = overlay.tree(base, sources)
        new = state.keys() - before - base.keys()
        theirs = {f"{Path(name).parent}/{file.name}" for name in new for file in (tree / name).parent.glob("*")}
        maintained += maintainers.patterns(new, theirs | (overlay.texts.keys() - new))
        before = state.keys()
        yield {**state, maintainers.FILE: maintainers.with_entry(base[maintainers.FILE], signed, maintained)}


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    settings = from_environment({**environ, "PAGES": "", "PATCH": ""})
    if not shutil.which("git"):
        raise UserError("git is needed to make patches; install git")
    person = git.author()
    date = git.asked(PROJECT, "log", "-1", "--format=%cI")
    if not date:
        raise UserError(f"{PROJECT} has no git history, but the patches need the date of its last commit; use a clone")
    tree = source.obtain(settings).path
    short = environ.get("CORE") == "1"
    overlay = core.Core(tree) if short else Overlay()
    try:
        target = settings.out / ("series-core" if short else "series")
        ours.claim(target)
        with tempfile.TemporaryDirectory(prefix=".series-", dir=settings.out) as folder:
            made = make(tree, Path(folder) / "new", person, date, settings.out, overlay)
            counts = [_added(series) for series in made]
            (Path(folder) / "new" / ours.MARKER).touch()
            if target.exists():
                target.rename(Path(folder) / "old")
            (Path(folder) / "new").rename(target)
    except OSError as error:
        raise UserError(f"cannot write {settings.out}: {error.strerror}; choose another O=") from None
    for number, (series, count) in enumerate(zip(made, counts, strict=True), 1):
        which = f"series {number}: " if len(made) > 1 else ""
        print(f"{which}{len(series) - 1} patches that add {count:,} lines, and a cover letter")
    print(f"to apply them: git am --empty=drop {target}{'/*' if len(made) > 1 else ''}/*.patch")
    return 0


def _added(series: Sequence[Path]) -> int:
    """The number of lines that the patches of a series add."""
    return sum(len(re.findall(r"^\+(?!\+\+ )", path.read_text(), re.MULTILINE)) for path in series)
