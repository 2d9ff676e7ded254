# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck walk`: makes random calls in a virtual machine, and compares all memory with a model after each call.

Builds the kernel and the selftest folio_walk, boots, and runs the program with the seed SEED= for SECONDS= seconds.
With JOBS= several machines run side by side, each with its own seeds. A failure is printed with its seed and the
shortest sequence of calls that still fails. Failures of one rule are printed once.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..boot import guest
from ..boot.console import lines as read_lines
from ..boot.console import plain
from ..boot.results import Case
from ..core import dry, progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import whole
from ..kernel import toolchain
from .kselftest import given, session_of
from .session import Boot, SelftestRun

PROGRAM = "folio_walk"
COMMAND = "./mmcheck walk"
APART = 1_000_000
"""Each random sequence of calls uses one seed. The first seeds of two successive machines differ by this number."""


@dataclass(frozen=True)
class Walk:
    """What one machine did.

    lines: what the program printed
    cases: its verdicts
    """

    seed: int
    lines: Sequence[str]
    cases: Sequence[Case]

    @property
    def passed(self) -> bool:
        """Whether the machine ended without a failure."""
        return all(case.state == "passed" for case in self.cases)

    @property
    def places(self) -> list[str]:
        """The rules that were broken."""
        text = "\n".join(self.lines)
        return re.findall(r"seed \d+ fails in step \d+: ([\w-]+:)", text)


def one(session: SelftestRun, files: Mapping[str, Path], seed: int, seconds: int, more: str) -> Walk:
    """Boot one machine, and walk in it. Raises UserError if the machine ends before the first call."""
    log = session.folder / f"walk-{seed}.log"
    session.consoles.append(log)
    line = f"{seconds + 240} {PROGRAM} --machine --seed {seed} --seconds {seconds} {more}".rstrip()
    for kvm in [True, False] if session.kvm else [False]:
        cases = list(Boot(session.launch, log, words=session.words, kvm=kvm).run([line], files))
        if cases or dry.on():
            break
        if kvm:
            progress.say(f"linux {session.launch.label} does not boot under KVM, so QEMU emulates the machine")
    else:
        raise UserError(f"linux {session.launch.label} ended before the first call: see {log}")
    lines = [line for line in map(plain, read_lines(log.read_bytes())) if line.startswith(("# ", "ok ", "not ok "))]
    return Walk(seed, lines, cases)


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    environ = {**environ, "ARCH": environ.get("ARCH") or toolchain.own_arch()}
    seconds, jobs = whole(environ, "SECONDS", 60), whole(environ, "JOBS", 1)
    seed = 0 if environ.get("SEED") == "0" else whole(environ, "SEED", secrets.randbelow(10**9) + 1)
    session = session_of(environ, " ".join([COMMAND, *given(environ)]))
    more = "--keep-going" if environ.get("ALL") == "1" else ""
    with session.recorded():
        files = session.build([PROGRAM])
        guest.disk(session.settings.out / "kselftest" / "xfs.img")
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(one, session, files, seed + i * APART, seconds, more) for i in range(jobs)]
            found: list[Walk] = []
            for future in waiting:
                found.append(future.result())
                session.save([case for walk in found for case in walk.cases])
    return report(found, session.folder, session.launch.repeat)


def report(found: Sequence[Walk], folder: Path, repeat: str) -> int:
    """Print what the machines found; returns the exit status."""
    seen: set[str] = set()
    for walk in found:
        new = [place for place in walk.places if place not in seen]
        seen |= set(new)
        for line in walk.lines:
            if new or not line.startswith("#  ") or walk.passed:
                print(line)
    failed = [walk for walk in found if not walk.passed]
    for walk in failed:
        progress.say(f"next: {repeat} SEED={walk.seed}")
    progress.say(f"{len(found) - len(failed)} machines passed, {len(failed)} failed; log: {folder} (walk-*.log)")
    return FAILED if failed else PASSED
