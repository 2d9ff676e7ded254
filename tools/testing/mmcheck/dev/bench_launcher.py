# SPDX-License-Identifier: GPL-2.0
"""Measures the time that the launcher takes, compared with the kernel's own kunit.py.

The command uses the packaged default kernel for arm64, in a scratch folder below O=. It prints four rows. Each row
compares two times:

cold    the first build of our kunit.py, and the build of the example suite by the kernel's kunit.py (without ccache)
again   our run without a change, and `kunit.py exec` by the kernel's kunit.py on the same kernel
spread  our run with one boot per CPU at the same time, and our run in one boot
edit    our run after an edit of arch/arm64/mm/contpte.c in KDIR, and `kunit.py run` by the kernel's kunit.py in a
        grafted tree after the same edit

REPEATS=3 measures all rows three times, each time with a new first build, and then prints the spread of each row. A
bound must hold each time. Run nothing else on the machine meanwhile, because other programs change the times.
"""

import dataclasses
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core import ours as owned
from ..core import progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import PROJECT, from_environment, whole
from ..kernel import graft, source, toolchain

ROUNDS = 3
EXAMPLE = "CONFIG_KUNIT=y\nCONFIG_KUNIT_EXAMPLE_TEST=y\n"


class Bench:
    """A scratch folder, and the times of commands in it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.settings = from_environment(environ, "arm64")
        toolchain.provide(toolchain.requirements("arm64", own_compiler=False))
        self.kernel = source.obtain(dataclasses.replace(self.settings, kdir=None))
        self.scratch = self.settings.out / "bench-launcher"
        owned.empty(self.scratch)
        self.log = (self.scratch / "log").open("w")

    def seconds(self, command: list[str | Path], **variables: str) -> float:
        """Run a command. Returns its time in seconds. Raises UserError if it fails."""
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "KDIR": "", **variables}
        start = time.monotonic()
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        took = time.monotonic() - start
        if done.returncode:
            raise UserError(f"{command[0]} failed with status {done.returncode}: see {self.log.name}")
        return took

    def theirs(self, tree: Path, verb: str, build: Path, *arguments: str, **variables: str) -> float:
        """Time the kernel's own kunit.py in `tree`."""
        command = [str(tree / "tools/testing/kunit/kunit.py"), verb, "--arch=arm64", f"--build_dir={build}"]
        prefix = toolchain.cross_prefix("arm64")
        return self.seconds([*command, f"--cross_compile={prefix}", *arguments], **variables)

    def ours(self, verb: str, **variables: str) -> float:
        """Time our kunit.py, with its results in the scratch folder."""
        command: list[str | Path] = [PROJECT / "tools/testing/kunit/kunit.py", verb, "--arch=arm64"]
        return self.seconds(command, **{"KERNEL": self.settings.kernel, "O": str(self.scratch / "out"), **variables})

    def cold(self) -> tuple[float, float]:
        """Seconds of a first build: by our kunit.py, and by the kernel's kunit.py."""
        example = self.scratch / "example.config"
        example.write_text(EXAMPLE)
        off = {"CCACHE_DISABLE": "1"}
        ours = self.ours("build", **off)
        theirs = self.theirs(self.kernel.path, "build", self.scratch / "plain", f"--kunitconfig={example}", **off)
        return ours, theirs

    def again(self) -> tuple[float, float]:
        """Seconds from command to verdict without a change: by our kunit.py, and by the kernel's kunit.py."""
        tree = self.scratch / "out/tree" / self.kernel.label
        build = tree / f"{self.kernel.label}-arm64-4K"
        return self.rounds(lambda: self.ours("run", JOBS="1"), lambda: self.theirs(tree, "exec", build))

    def spread(self) -> tuple[float, float]:
        """Seconds from command to verdict without a change: with one boot per CPU, and with one boot."""
        jobs = str(os.cpu_count() or 1)
        return self.rounds(lambda: self.ours("run", JOBS=jobs), lambda: self.ours("run", JOBS="1"))

    def edit(self) -> tuple[float, float]:
        """Seconds from an edit to the verdict: our kunit.py with KDIR, and the kernel's kunit.py in a grafted tree."""
        trees = [self.scratch / name for name in ("kdir", "by-hand")]
        for tree in trees:
            progress.say(f"copying {self.kernel.path} to {tree}")
            self.seconds(["cp", "-a", "--reflink=auto", self.kernel.path, tree])
            (tree / "arch/arm64/mm/contpte.c").chmod(0o644)
        kdir, by_hand = trees
        graft.graft(by_hand)
        arguments = [f"--kunitconfig={by_hand / 'mm/tests/.kunitconfig'}"]

        def ours() -> float:
            return self.ours("run", KDIR=str(kdir))

        def theirs() -> float:
            return self.theirs(by_hand, "run", self.scratch / "by-hand-build", *arguments)

        def edited(tree: Path, run: Callable[[], float]) -> float:
            with (tree / "arch/arm64/mm/contpte.c").open("a") as file:
                file.write(f"/* {time.time_ns()} */\n")
            return run()

        ours(), theirs()
        return self.rounds(lambda: edited(kdir, ours), lambda: edited(by_hand, theirs))

    @staticmethod
    def rounds(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
        """The median times of both commands. The commands run alternately, so that both have the same load."""
        pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
        return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


BOUNDS = {"cold": (0.75, 0), "again": (1, 2), "spread": (0.6, 0), "edit": (1.1, 0)}
"""The limit of each row: a factor, and a number of seconds. A row has two times. Its first time must be at most its
second time, multiplied by the factor, plus these seconds.
"""


def once(bench: Bench) -> dict[str, tuple[float, float]]:
    """Measure and print all rows."""
    print(f"{'':8}{'ours':>10}{'theirs':>10}{'ratio':>8}{'more':>9}  bound", flush=True)
    found = {}
    for name, (factor, more) in BOUNDS.items():
        found[name] = ours, theirs = getattr(bench, name)()
        ratio, difference = ours / theirs, ours - theirs
        bound = f"at most {more} s more" if more else f"at most {factor}x"
        missed = "" if holds(name, ours, theirs) else ", MISSED"
        print(f"{name:8}{ours:9.2f}s{theirs:9.2f}s{ratio:8.2f}{difference:+8.2f}s  {bound}{missed}", flush=True)
    return found


def holds(name: str, ours: float, theirs: float) -> bool:
    """Whether the bound of a row holds."""
    factor, more = BOUNDS[name]
    return ours <= factor * theirs + more


def run(environ: Mapping[str, str]) -> int:
    """Measure and print the tables. Returns 1 if a bound is missed, otherwise 0."""
    repeats, found = whole(environ, "REPEATS", 1), []
    for number in range(repeats):
        bench = Bench(environ)
        if not number:
            ccache = shutil.which("ccache") or "not installed"
            print(f"linux {bench.kernel.label}, arm64, {os.cpu_count()} CPUs, ccache {ccache}")
        found.append(once(bench))
        shutil.rmtree(bench.scratch)
    missed = [name for one in found for name, times in one.items() if not holds(name, *times)]
    for name, (_, more) in BOUNDS.items():
        values = sorted(ours - theirs if more else ours / theirs for ours, theirs in (one[name] for one in found))
        unit = " s more" if more else "x"
        print(f"{name:8}{values[0]:.2f} to {values[-1]:.2f}{unit} in {repeats} runs; too slow in {missed.count(name)}")
    return FAILED if missed else PASSED
