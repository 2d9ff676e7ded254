# SPDX-License-Identifier: GPL-2.0
"""./mmcheck bisect GOOD BAD: finds the first commit of the git tree KDIR= that makes a test fail.

The command first tests GOOD and BAD, and selects the tests that fail at BAD and pass at GOOD. It ignores other
failures. git bisect chooses the commits between GOOD and BAD. A commit is bad if one of the selected tests fails there,
and good if all of them pass. The command skips a commit that cannot be tested: it does not build or boot, or one of the
selected tests does not run there.

The command checks the commits out in a private folder below O=. It uses one build folder for all commits, so a build
compiles only changed files. It keeps the verdicts in out/bisect/. After an interrupt the same command continues, and
tests no commit twice. ONLY= chooses the tests: a glob of suites and cases, in the form that kunit.py accepts.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core import disk, dry, progress
from ..core.errors import PASSED, UserError
from ..core.settings import from_environment
from ..core.variables import one_glob
from ..kernel import checkout, identity, toolchain
from ..run import closing, compare
from ..run.prepare import prepare
from ..run.request import parse


@dataclass(frozen=True)
class Result:
    """The results of the tests at one commit.

    states:  the state of each case by its full name; empty without a verdict
    why:     why there is no verdict, or ""
    seconds: how long build and boot took
    """

    states: Mapping[str, str]
    why: str
    seconds: float


def term(tested: Result, wanted: Sequence[str]) -> str:
    """The word of git bisect for a commit with these results: bad, good or skip. `wanted` are the selected tests."""
    found = [tested.states.get(name, "absent") for name in wanted]
    if "failed" in found:
        return "bad"
    return "good" if all(state == "passed" for state in found) else "skip"


class Memory:
    """The results of commits. They are saved in a file after each commit."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.found: dict[str, Result] = {}
        if file.exists():
            try:
                self.found = {name: Result(**entry) for name, entry in json.loads(file.read_text()).items()}
            except (ValueError, TypeError):
                progress.say(f"{file} cannot be read, so all commits are tested anew")

    def keep(self, commit: str, tested: Result) -> None:
        """Add the result of a commit, and save the file."""
        self.found[commit] = tested
        self.file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({name: asdict(entry) for name, entry in self.found.items()}, indent=1)
        disk.replace(self.file, f"{text}\n".encode())


class Bisection:
    """The search for the first bad commit.

    tree:    the work tree in which the commits are checked out
    judge:   tests the commit that is checked out
    memory:  the results of this and earlier processes
    tried:   the commits that this process has tried to test
    without: the number of these commits that git bisect skips
    """

    def __init__(self, tree: checkout.Checkout, judge: Callable[[], Result], memory: Memory) -> None:
        self.tree, self.judge, self.memory = tree, judge, memory
        self.tried: set[str] = set()
        self.without = 0

    def test(self, commit: str) -> Result:
        """The result of a commit. Tests the commit if `memory` has no result."""
        if commit not in self.memory.found:
            if self.tree.git("rev-parse", "HEAD", accept=(0, 128)).strip() != commit:
                self.tree.go(commit)
            self.memory.keep(commit, self.judge())
            self.tried.add(commit)
        return self.memory.found[commit]

    def subject(self, commit: str) -> str:
        """A commit in one line."""
        return self.tree.git("log", "-1", "--format=%h %s", commit).strip()

    def say(self, commit: str, word: str, tested: Result) -> None:
        """Print one line about a commit."""
        why = tested.why or ("one of these tests did not run" if word == "skip" else "")
        why = f": {why}" if why else ""
        print(f"{word:5} {tested.seconds:5.0f} s  {self.subject(commit)}{why}", flush=True)

    def ends(self, good: str, bad: str) -> list[str]:
        """Test GOOD and BAD. Returns the tests that pass at GOOD and fail at BAD. Raises UserError if there is none."""
        found = {}
        for name, commit in (("GOOD", good), ("BAD", bad)):
            found[name] = tested = self.test(commit)
            self.say(commit, name, tested)
            if tested.why:
                raise UserError(f"{name}={commit[:12]} has no verdict: {tested.why}; choose another commit")
        before, after = found["GOOD"].states, found["BAD"].states
        wanted = [name for name, state in after.items() if state == "failed" and before.get(name) == "passed"]
        if wanted:
            return wanted
        both = [name for name, state in after.items() if state == "failed"]
        also = f"; {closing.named('these tests fail at BAD, but do not pass at GOOD', both)}" if both else ""
        raise UserError(f"no test passes at GOOD={good[:12]} and fails at BAD={bad[:12]}{also}")

    def search(self, good: str, bad: str, wanted: Sequence[str]) -> list[str]:
        """The first bad commit. If untestable commits hide it, all commits that may be the first bad one."""
        self.tree.git("bisect", "reset", accept=(0, 1))
        self.tree.go(bad)
        said = self.tree.git("bisect", "start", bad, good)
        while True:
            if match := re.search(r"^([0-9a-f]{40,}) is the first bad commit", said, re.MULTILINE):
                return [match[1]]
            if "only 'skip'ped commits left" in said:
                return re.findall(r"^([0-9a-f]{40,})$", said, re.MULTILINE)
            commit = self.tree.git("rev-parse", "HEAD").strip()
            tested = self.test(commit)
            word = term(tested, wanted)
            self.without += word == "skip" and commit in self.tried
            self.say(commit, word, tested)
            # git bisect ends with status 2 if all commits that remain cannot be tested.
            said = self.tree.git("bisect", word, accept=(0, 2))


def judged(words: Sequence[str], environ: Mapping[str, str]) -> Result:
    """Build and boot the kernel tree that KDIR= in `environ` names, with the arguments `words` of kunit.py."""
    since = time.monotonic()
    states: dict[str, str] = {}
    why = ""
    if dry.instead("run", closing.again(words, environ)):
        return Result({}, "", 0.0)
    try:
        launch = prepare(parse(words), environ)
        launch.aside = True
        launch.run()
        states = compare.states(launch.cases)
    except UserError as error:
        why = str(error)
    return Result(states, why, round(time.monotonic() - since, 1))


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    environ = {"ARCH": "arm64", **environ}
    only = filter(None, [one_glob(environ)])
    settings = from_environment(environ)
    names = [environ.get("GOOD", ""), environ.get("BAD", "")]
    if not all(names):
        raise UserError("give two commits: ./mmcheck bisect GOOD BAD --kdir TREE")
    if not settings.kdir:
        raise UserError("set KDIR= to a git tree of Linux, because a packaged kernel has no commits")
    good, bad = (checkout.commit(settings.kdir, name) for name in names)
    if good == bad:
        raise UserError(f"GOOD={names[0]} and BAD={names[1]} are the same commit {good[:12]}")
    words = ["run", f"--arch={settings.arch}", *only]
    tree = checkout.Checkout(settings.kdir, settings.out, "bisect")
    own = {**environ, "KDIR": str(tree.folder)}
    what = [*words, settings.pages, *settings.unusual, identity.revision()]
    memory = Memory(settings.out / "bisect" / f"{tree.folder.name}-{disk.digest(repr(what).encode())[:8]}.json")
    search = Bisection(tree, lambda: judged(words, own), memory)
    toolchain.advise()
    since = time.monotonic()
    with tree.hold():
        wanted = search.ends(good, bad)
        print(closing.named("looking for the first commit that fails", wanted), flush=True)
        found = search.search(good, bad, wanted)
    minutes, seconds = divmod(round(time.monotonic() - since), 60)
    cost = f"{len(search.tried)} commits tried in {minutes}m{seconds:02}s, {search.without} of them without a verdict"
    cost += f"; {len(memory.found)} results kept"
    if len(found) > 1:
        for commit in found:
            print(f"      {search.subject(commit)}")
        raise UserError(f"one of these {len(found)} commits is the first bad one, but not all can be tested; {cost}")
    for line in closing.lines(
        f"the first bad commit is {search.subject(found[0])}",
        [cost],
        memory.file,
        f"git -C {settings.kdir} show {found[0][:12]}",
    ):
        print(line)
    return PASSED
