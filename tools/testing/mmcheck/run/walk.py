# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck walk`: makes random calls in a virtual machine, and compares all memory with a model after each call.

Builds the kernel and the selftest folio_walk, boots, and runs the program with the seed SEED= for SECONDS= seconds.
With JOBS= several machines run side by side, each with its own seeds. A failure is printed with its seed and the
shortest sequence of calls that still fails. Failures of one rule are printed once. The kernel has the auditor of page
tables and folios, and the program uses it; AUDIT=no leaves it out. The console has each step before it runs. If the
kernel dies, the command prints the steps of the last life, and another boot continues with the next seed.
"""

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ..boot import guest
from ..boot.console import lines as read_lines
from ..boot.console import plain
from ..boot.console import read as read_console
from ..boot.results import Case
from ..core import dry, progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import whole
from ..kernel import toolchain
from .kselftest import configuration, given, session_of
from .session import Boot, SelftestRun

PROGRAM = "folio_walk"
COMMAND = "./mmcheck walk"
FORCE = "proc_mem.force_override=always"
"""This word lets a process write to its own read-only memory through /proc/self/mem, as the walk does."""

CHECKED = 60
"""`make check` walks this many seconds from seed 1, and then for one life from a random seed."""

APART = 1_000_000
"""Each random sequence of calls uses one seed. The first seeds of two successive machines differ by this number."""


_LIFE = re.compile(r"# seed (\d+)(?:, \d+ steps again)?$")
"""The program prints such a line before each life, which is one random sequence of calls."""

_STEP = re.compile(r"# (\d+): process \d+: ")
"""The program prints such a line before each step."""

STAYS = re.compile("# the violation stays")
"""The program prints such a line and ends if the auditor finds the same violation again in a life without steps."""

KEEP = "--keep-going"

_VERDICT = re.compile(r"(?:not )?ok \d+ seed_\d+")
"""The program prints such a line at its end."""


Clock = Callable[[], float]


@dataclass(frozen=True)
class Walk:
    """What one boot did.

    lines: what the program printed, without the seeds of lives and without steps
    cases: its verdicts
    last:  the seed of the last life
    steps: the steps of the last life, if the boot ended before the program did
    died:  how the boot ended before the program did, or ""
    once:  whether the boot failed, and another boot from the same seed passed
    """

    seed: int
    lines: Sequence[str]
    cases: Sequence[Case]
    last: int = 0
    steps: Sequence[str] = ()
    died: str = ""
    once: bool = False

    @property
    def passed(self) -> bool:
        """Whether the machine ended without a failure."""
        return all(case.state == "passed" for case in self.cases)

    @property
    def places(self) -> list[str]:
        """The rules that were broken."""
        text = "\n".join(self.lines)
        return re.findall(r"seed \d+ fails in step \d+: ([\w-]+:)", text)

    @property
    def again(self) -> int:
        """The seed from which to repeat a failure."""
        return self.last if self.died else self.seed

    def goes_on(self, keep: bool) -> bool:
        """Whether another boot should continue the walk. `keep`: continue after failures."""
        return bool(self.died) or (keep and any(map(STAYS.match, self.lines)))

    def report(self, words: bool = True) -> list[str]:
        """The lines to print; without `words` the steps of failures are left out."""
        lines = [line for line in self.lines if words or not line.startswith("#  ")]
        if self.died:
            lines += [f"# seed {self.last} ended the kernel in step {max(0, len(self.steps) - 1)}: {self.died}"]
        return [*lines, *self.steps]


def read(seed: int, log: Path, cases: Sequence[Case]) -> Walk:
    """What the boot with the console `log` did."""
    console = read_console(log)
    lines = [line for line in map(plain, read_lines(log.read_bytes())) if line.startswith(("# ", "ok ", "not ok "))]
    lives = [place for place, line in enumerate(lines) if _LIFE.match(line)]
    tail = lines[lives[-1] :] if lives else []
    died = "" if any(map(_VERDICT.match, lines)) else console.reason or "the machine ended or hung"
    return Walk(
        seed,
        [line for line in lines if not _LIFE.match(line) and not _STEP.match(line)],
        [brief(case) for case in cases],
        int(next(iter(_LIFE.findall(tail[0])), seed)) if tail else seed,
        [line for line in tail if _STEP.match(line)] if died else [],
        died,
    )


def brief(case: Case) -> Case:
    """A verdict without the steps of lives that ended: a walk prints hundreds of steps in a second."""
    lives = [place for place, line in enumerate(case.text) if _LIFE.match(f"# {line}")]
    last = lives[-1] if lives else 0
    kept = [
        line
        for place, line in enumerate(case.text)
        if place >= last or not (_LIFE.match(f"# {line}") or _STEP.match(f"# {line}"))
    ]
    return replace(case, text=kept)


def one(session: SelftestRun, files: Mapping[str, Path], seed: int, seconds: int, more: str) -> Walk:
    """Boot one machine, and walk in it. Raises UserError if the machine ends before the first call."""
    log = session.folder / f"walk-{seed}.log"
    session.consoles.append(log)
    words = f"--machine --verbose --seed {seed} --seconds {seconds} {more}".rstrip()
    line = f"{seconds + 240} {PROGRAM} {words}"
    for kvm in [True, False] if session.kvm else [False]:
        cases = list(Boot(session.launch, log, words=session.words, kvm=kvm).run([line], files))
        if cases or dry.on():
            break
        if kvm:
            progress.say(f"linux {session.launch.label} does not boot under KVM, so QEMU emulates the machine")
    else:
        raise UserError(f"linux {session.launch.label} ended before the first call: see {log}")
    return Walk(seed, [], cases) if dry.on() else read(seed, log, cases)


def whole_walk(
    session: SelftestRun, files: Mapping[str, Path], seed: int, seconds: int, more: str, now: Clock = time.monotonic
) -> list[Walk]:
    """Walk for `seconds`. If the kernel dies, the next boot continues with the seed of the next life.

    If the failure of an audit stays until the end of the boot, the next boot continues too, with --keep-going.
    """
    found: list[Walk] = []
    end = now() + seconds
    while not found or (found[-1].goes_on(KEEP in more) and now() < end):
        rest = seconds if not found else max(1, int(end - now()))
        try:
            found.append(one(session, files, found[-1].last + 1 if found else seed, rest, more))
        except UserError as error:
            if not found:
                raise
            progress.say(str(error))
            break
        if dry.on():
            break
    return found


def session_for(environ: Mapping[str, str]) -> SelftestRun:
    """The session of a walk; without AUDIT=no its kernel has the auditor.

    The variable AUDIT itself is left out: init would audit again after the program, and know no known issues.
    """
    audit = "" if environ.get("AUDIT") in ("no", "0") else "1"
    lines = " ".join(configuration({**environ, "AUDIT": audit}))
    session = session_of({**environ, "AUDIT": "", "KCONFIG_ADD": lines}, " ".join([COMMAND, *given(environ)]))
    session.words = [*session.words, FORCE]
    return session


def checked(environ: Mapping[str, str], seed: int) -> tuple[list[Walk], str]:
    """Walk a minute from seed 1, then one life from `seed`; returns the walks, and a command that repeats them.

    A life that fails gets a second boot, because a random life of any seed may meet a rare race.
    """
    session = session_for(environ)
    with session.recorded():
        files = session.build([PROGRAM])
        guest.disk(session.settings.out / "kselftest" / "xfs.img")
        found = [*whole_walk(session, files, 1, CHECKED, ""), one(session, files, seed, 0, "")]
        session.save([case for walk in found for case in walk.cases])
        again = [walk.passed or not one(session, files, walk.again, 0, "").passed for walk in found]
    return [replace(walk, once=not same) for walk, same in zip(found, again, strict=True)], session.launch.repeat


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    environ = {**environ, "ARCH": environ.get("ARCH") or toolchain.own_arch()}
    seconds, jobs = whole(environ, "SECONDS", 60), whole(environ, "JOBS", 1)
    seed = 0 if environ.get("SEED") == "0" else whole(environ, "SEED", secrets.randbelow(10**9) + 1)
    session = session_for(environ)
    more = KEEP if environ.get("ALL") == "1" else ""
    with session.recorded():
        files = session.build([PROGRAM])
        guest.disk(session.settings.out / "kselftest" / "xfs.img")
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(whole_walk, session, files, seed + i * APART, seconds, more) for i in range(jobs)]
            found: list[Walk] = []
            for future in waiting:
                found += future.result()
                session.save([case for walk in found for case in walk.cases])
    return report(found, session.folder, session.launch.repeat)


def report(found: Sequence[Walk], folder: Path, repeat: str) -> int:
    """Print what the machines found; returns the exit status."""
    seen: set[str] = set()
    for walk in found:
        new = [place for place in walk.places if place not in seen]
        seen |= set(new)
        for line in walk.report(words=bool(new) or walk.passed):
            print(line)
    failed = [walk for walk in found if not walk.passed]
    for walk in failed:
        progress.say(f"next: {repeat} SEED={walk.again}")
    progress.say(f"{len(found) - len(failed)} machines passed, {len(failed)} failed; log: {folder} (walk-*.log)")
    return FAILED if failed else PASSED
