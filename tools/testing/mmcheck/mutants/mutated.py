# SPDX-License-Identifier: GPL-2.0
"""Builds a kernel with mutants. Mutants that do not build are left out."""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ..core import progress
from ..core.errors import UserError
from ..core.settings import Settings
from ..kernel import shadow, source, toolchain
from ..kernel.make import LOG
from ..run.launch import Launch
from ..run.request import Request, parse
from ..run.workspace import RunSpec, Workspace
from . import catalogue, reach, schemata
from .catalogue import Mutant

SWITCH_FILE = "lib/mmcheck_mutant.c"

CONFIG = ["CONFIG_DEBUG_KERNEL=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"]
CONFIG_OF = {
    "arm64": [
        "CONFIG_EFI=y",
        "CONFIG_HUGETLBFS=y",
        "CONFIG_MEMORY_HOTPLUG=y",
        "CONFIG_MEMORY_HOTREMOVE=y",
        "CONFIG_ZONE_DEVICE=y",
        "CONFIG_DEVICE_PRIVATE=y",
        "CONFIG_MEMORY_FAILURE=y",
        "CONFIG_DEBUG_PAGEALLOC=y",
        "CONFIG_KFENCE=y",
        "CONFIG_KFENCE_SAMPLE_INTERVAL=0",
    ]
}
"""Kconfig options that some cases need. They cost little time, so all kernels with mutants get them."""


@dataclass
class Kernel:
    """A kernel that holds mutants.

    number:    the number of each mutant; the command line enables a mutant by this number
    files:     the files that differ from the usual tree
    functions: the functions that each mutant changes
    noted:     the number of each function; the kernel notes this number when the function runs
    """

    number: dict[str, int]
    files: dict[str, bytes]
    functions: dict[str, list[catalogue.Function]] = field(default_factory=dict)
    noted: dict[catalogue.Function, int] = field(default_factory=dict)


def combine(
    mutants: Sequence[tuple[Mutant, Mapping[str, str]]], read: Callable[[str], str], without: Sequence[str] = ()
) -> Kernel:
    """One kernel with all of `mutants` that can be enabled at boot, except the mutants `without`.

    The other mutants keep their numbers, so only objects with an excluded mutant change.
    """
    variants: dict[str, dict[tuple[str, int], list[tuple[int, str]]]] = {}
    number: dict[str, int] = {}
    functions: dict[str, list[catalogue.Function]] = {}
    for place, (mutant, files) in enumerate(mutants, 1):
        bodies = {name: schemata.changed(read(name), text) for name, text in files.items()}
        if any(not found for found in bodies.values()):
            continue
        functions[mutant.name] = [(name, function) for name, found in bodies.items() for function in found or {}]
        if mutant.name in without:
            continue
        number[mutant.name] = place
        for name, found in bodies.items():
            for function, body in (found or {}).items():
                variants.setdefault(name, {}).setdefault(function, []).append((number[mutant.name], body))
    # Functions of excluded mutants get numbers too, so that the other objects stay the same.
    noted = reach.numbers(functions)
    merged = {}
    for name, bodies_of in variants.items():
        own = {function: place for (file, function), place in noted.items() if file == name}
        merged[name] = schemata.merge(read(name), bodies_of, own).encode()
    with contextlib.suppress(OSError):
        merged[reach.KUNIT] = reach.hooked(merged.get(reach.KUNIT, b"").decode() or read(reach.KUNIT)).encode()
    makefile = read("lib/Makefile") + "\nobj-y += mmcheck_mutant.o\n"
    switch = (catalogue.FOLDER / "mmcheck_mutant.c").read_bytes()
    differ = {**merged, "lib/Makefile": makefile.encode(), SWITCH_FILE: switch}
    return Kernel(number, differ, {name: functions[name] for name in number}, noted)


def own_kernel(mutant: Mutant, files: Mapping[str, str], usual: Kernel) -> Kernel:
    """The kernel of one mutant that cannot be enabled at boot. Cases have the same numbers as in `usual`."""
    own = {name: usual.files[name] for name in ("lib/Makefile", SWITCH_FILE, reach.KUNIT) if name in usual.files}
    changed = {name: text.encode() for name, text in files.items()}
    if "lib/Makefile" in files:
        changed["lib/Makefile"] += b"\nobj-y += mmcheck_mutant.o\n"
    return Kernel({mutant.name: 0}, {**own, **changed})


def culprits(log: str, kernel: Kernel, build: Path | None = None) -> set[str]:
    """The mutants that do not compile. In `log` the compiler reports errors in them.

    build: the build folder. Tests compile copies of some functions there, with the same marks of mutants.
    """
    names = {number: name for name, number in kernel.number.items()}
    errors = re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", log, re.MULTILINE)
    # If the error is in a macro or an inline function, the mutant may be in the code that uses the macro or function.
    around = re.findall(r"(?:inlined from .* at |^)(\S+?):(\d+):(?:\d+:?)?", log, re.MULTILINE) if errors else []
    for lines in (errors, around):
        found = set()
        for file, line in lines:
            for text in _texts(file, kernel, build):
                number = schemata.at_line(text, int(line))
                found |= {names[number]} if number in names else set()
        if found:
            return found
    return set()


def _texts(file: str, kernel: Kernel, build: Path | None) -> list[str]:
    """The text of a file that a message names: a file that we changed, or a copy that the build made."""
    ours = [text.decode() for name, text in kernel.files.items() if f"/{file}".endswith(f"/{name}")]
    copy = build / file if build else None
    if not ours and copy and copy.is_file():
        return [copy.read_text(errors="replace")]
    return ours


def switch(number: int, early: bool) -> list[str]:
    """The words of the kernel's command line that enable the mutant `number`. 0 enables no mutant."""
    return [f"{schemata.SWITCH}{'_early' if early else ''}={number}"] if number else []


class Builder:
    """Builds the kernels of one run, one after the other, in one working copy and one build folder."""

    kind = "mutants"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        source.judge(settings)
        toolchain.provide([*toolchain.requirements(settings.arch, own_compiler=False), "patch"])
        toolchain.advise()
        self.source = source.obtain(settings)
        self.label = "+".join([self.source.label, *settings.unusual, self.kind])
        self.read = shadow.reader(self.source.path, settings.features)
        self.build = Path()

    def space(self, files: Mapping[str, bytes]) -> Workspace:
        """The workspace of a kernel with these files. With -k one build reports all mutants that do not compile."""
        request = self.request()
        request = dataclasses.replace(request, arguments=[*request.arguments, "--make_options=-k"])
        return Workspace(RunSpec(self.settings, request, self.kind, files), self.source)

    def alone(self) -> AbstractContextManager[None]:
        """Hold the lock on this kernel, from the working copy to the last verdict.

        Another run may give the same numbers to other mutants. Without the lock we would boot the kernel of that run.
        """
        return self.space({}).hold()

    def request(self) -> Request:
        """The request to kunit.py for the kernel."""
        config = [f"--kconfig_add={line}" for line in CONFIG + CONFIG_OF.get(self.settings.arch, [])]
        return parse(["build", f"--arch={self.settings.arch}", *config])

    def built(self, launch: Launch) -> None:
        """Build the programs that this kind of session needs. `launch` has built the kernel."""

    def attempt(self, kernel: Kernel) -> bool:
        """Build one kernel. Returns whether the build succeeded."""
        space = self.space(kernel.files)
        space.prepare()
        launch = Launch(space)
        self.build = launch.build
        (launch.build / LOG).unlink(missing_ok=True)
        with contextlib.suppress(UserError):
            launch.run()
            self.built(launch)
            return True
        return False

    def log(self) -> str:
        """The output of the last build."""
        try:
            return (self.build / LOG).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def make(self, mutants: list[tuple[Mutant, Mapping[str, str]]]) -> tuple[Kernel, list[str]]:
        """Build the kernel. Returns the kernel, and the names of the mutants that do not build."""
        broken: list[str] = []
        while True:
            kernel = combine(mutants, self.read, broken)
            if self.attempt(kernel):
                return kernel, broken
            log = self.log()
            wrong = culprits(log, kernel, self.build) or {self.culprit(mutants, kernel, broken, log)}
            progress.say(f"these mutants do not build and are left out: {', '.join(sorted(wrong))}")
            broken += sorted(wrong)

    def culprit(
        self, mutants: list[tuple[Mutant, Mapping[str, str]]], kernel: Kernel, broken: Sequence[str], log: str
    ) -> str:
        """Find a mutant that does not build by bisection, for the case that no message of the compiler names one."""

        def builds(names: Sequence[str]) -> bool:
            return self.attempt(
                combine(mutants, self.read, [name for name in kernel.number if name not in names] + [*broken])
            )

        every = list(kernel.number)
        files = {file for file, _ in re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", log, re.MULTILINE)}
        near = [
            name
            for name in every
            if any(f"/{file}".endswith(f"/{own}") for own, _ in kernel.functions[name] for file in files)
        ]
        good, suspects = [name for name in every if name not in near], near
        if not near or not builds(good):
            good, suspects = [], every
            if not builds([]):
                raise UserError(f"linux {self.label} does not build: see {self.build / LOG}")
        progress.say(f"the build fails, and no message names a mutant: bisecting {len(suspects)} mutants")
        first, last = 0, len(suspects)  # suspects[:first] build, suspects[:last] do not
        while last - first > 1:
            middle = (first + last) // 2
            if builds(good + suspects[:middle]):
                first = middle
            else:
                last = middle
        return suspects[first]
