# SPDX-License-Identifier: GPL-2.0
"""make coverage: measures which lines and branches of the code under test the suites run.

gcov counts in the objects that coverage.toml lists, and in the suites. Both also have inline functions of headers.
After the suites, the init program copies the counters to a disk. lcov merges the counts that several objects have for
one header, and genhtml makes HTML. A table has one line for each function under test.
"""

import fnmatch
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..boot import boot, guest
from ..core import dry, progress
from ..core.errors import UserError
from ..core.settings import Settings, from_environment
from ..kernel import shadow, source, toolchain
from ..mutants import schemata
from ..mutants.killmatrix import ranges
from ..run import record, workspace
from ..run.launch import Launch
from ..run.request import parse

WANTED = Path(__file__).parent / "coverage.toml"
FOLDERS = ("mm/tests", "arch/arm64/mm/tests")
"""Folders of the suites. The objects of the suites contain inline functions of headers, so gcov reads the counters of
these objects too.
"""

TIMEOUT = 1800
DISK = 64
"""The counters are copied to a disk of this size, in MiB."""

BOOTS: tuple[tuple[str, ...], ...] = ((), ("-smp", "2"))
"""Each item is a boot, with the additional options of its emulator. The boot with two CPUs runs only the suites about
races.
"""


@dataclass
class Function:
    """The counts of one function: how often each line ran (`lines`), and how often each branch ran (`branches`)."""

    file: str
    name: str
    start: int
    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def missed(self) -> list[int]:
        """Lines that did not run."""
        return sorted(line for line, count in self.lines.items() if not count)

    @property
    def one_way(self) -> list[int]:
        """Lines that ran, but have a branch that was never taken."""
        return sorted({line for (line, _), count in self.branches.items() if not count and self.lines.get(line)})


def share(counts: Iterable[int]) -> tuple[int, int]:
    """The number of counts that are not zero, and the number of all counts."""
    every = list(counts)
    return sum(count > 0 for count in every), len(every)


def percent(part: tuple[int, int]) -> str:
    """A share in per cent and as a fraction."""
    hit, every = part
    return f"{100 * hit / every:5.1f}% {hit}/{every}" if every else "    -"


@dataclass(frozen=True)
class Wanted:
    """A file under test, its functions under test (globs), and the reasons why some of their lines need not run."""

    file: str
    functions: tuple[str, ...]
    reasons: Mapping[str, str]


def wanted(path: Path = WANTED) -> list[Wanted]:
    """The code under test."""
    content = tomllib.loads(path.read_text())
    return [Wanted(f["path"], tuple(f.get("functions", ["*"])), f.get("reasons", {})) for f in content["file"]]


def read(info: str, files: Sequence[Wanted]) -> list[Function]:
    """The functions under test in a tracefile of lcov. The source files give the first and last lines of functions."""
    found: list[Function] = []
    for block in info.split("end_of_record"):
        name = re.search(r"^SF:(.*)$", block, re.MULTILINE)
        file = next((w for w in files if name and name[1].endswith(f"/{w.file}")), None)
        if name is None or file is None:
            continue
        text = Path(name[1]).read_text(errors="replace")
        whole = [
            (
                Function(file.file, function.name[0], text.count("\n", 0, function.start)),
                text.count("\n", 0, function.end),
            )
            for function in schemata.functions(text)
            if any(fnmatch.fnmatchcase(function.name[0], glob) for glob in file.functions)
        ]
        for line, count in re.findall(r"^DA:(\d+),(\d+)", block, re.MULTILINE):
            if own := _around(whole, int(line)):
                own.lines[int(line)] = int(count)
        for line, branch, count in re.findall(r"^BRDA:(\d+),(\d+,\d+),(\S+)", block, re.MULTILINE):
            # "-" means that the line did not run at all. The branch need not count, because the missed line counts.
            if count != "-" and (own := _around(whole, int(line))):
                own.branches[int(line), branch] = int(count)
        found += [function for function, _ in whole if function.lines]
    return sorted(found, key=lambda f: ([w.file for w in files].index(f.file), f.start))


def _around(functions: Sequence[tuple[Function, int]], line: int) -> Function | None:
    """The function whose body has the line. Line numbers begin at 1."""
    return next((function for function, end in functions if function.start < line <= end + 1), None)


class Session:
    """One run of the command on one kernel."""

    def __init__(self, settings: Settings) -> None:
        if settings.arch not in guest.DEBIAN:
            raise UserError(f"ARCH={settings.arch}: coverage is measured on {', '.join(guest.DEBIAN)}")
        source.judge(settings)
        needed = toolchain.requirements(settings.arch, own_compiler=False)
        toolchain.provide([*needed, "lcov", f"{toolchain.cross_prefix(settings.arch)}gcov"])
        self.settings = settings
        self.source = source.obtain(settings)
        self.label = f"{workspace.label_of(self.source, settings)}+coverage"
        self.folder = settings.out / "coverage" / "-".join([self.label, settings.arch, settings.pages])
        self.folder.mkdir(parents=True, exist_ok=True)
        self.files = wanted()

    def makefiles(self) -> dict[str, bytes]:
        """The Makefiles of the tree, with lines that enable gcov for the chosen objects."""
        text = shadow.reader(self.source.path, self.settings.features)
        objects: dict[str, list[str]] = {}
        for name in tomllib.loads(WANTED.read_text())["objects"]:
            path = Path(name)
            objects.setdefault(str(path.parent / "Makefile"), []).append(f"GCOV_PROFILE_{path.stem}.o := y\n")
        result = {}
        for name in [*objects, *(f"{folder}/Makefile" for folder in FOLDERS)]:
            lines = objects.get(name, ["GCOV_PROFILE := y\n"])
            result[name] = (text(name) + "\n" + "".join(lines)).encode()
        return result

    def space(self) -> workspace.Workspace:
        """The workspace of the kernel with gcov."""
        config = [line for line in (guest.HERE / "coverage.config").read_text().splitlines() if "=" in line]
        bus = {"arm64": ["CONFIG_VIRTIO_MMIO=y"], "x86_64": ["CONFIG_PCI=y", "CONFIG_VIRTIO_PCI=y"]}
        more = [f"--kconfig_add={line}" for line in [*config, *bus[self.settings.arch]] if not line.startswith("#")]
        request = parse(["build", f"--arch={self.settings.arch}", *more])
        spec = workspace.RunSpec(self.settings, request, "coverage", self.makefiles())
        return workspace.Workspace(spec, self.source)

    def run(self, build: Path, number: int, more: Sequence[str]) -> Path:
        """Boot once. Returns the tracefile with the counts of this boot."""
        disk, initrd = self.folder / "counters.img", self.folder / "init.cpio"
        with disk.open("wb") as file:
            file.truncate(DISK << 20)
        empty = self.folder / "none"
        empty.write_text("")
        init = guest.HERE / "coverage-init"
        guest.pack(guest.specification(self.settings.arch, self.settings.cache, {}, empty, init), build, initrd)
        words = ["kunit_shutdown=no", "panic=-1", "pgtable_kunit.timeout=600"]
        words += ["kunit.filter_glob=*_race*"] if more else []
        command = [*boot.command(self.settings.arch, build, words), "-initrd", str(initrd), *more]
        command += guest.drive(self.settings.arch, disk)
        console = self.folder / f"console-{number}.log"
        verdict = boot.follow(command, console, TIMEOUT)
        if verdict.state != "passed":
            raise UserError(f"linux {self.label}: {verdict.state} in {verdict.where}; see {console}")
        return self.trace(build, disk, self.folder / f"boot-{number}.info")

    def trace(self, build: Path, disk: Path, target: Path) -> Path:
        """Make a tracefile of the counters on a disk."""
        for old in build.rglob("*.gcda"):
            old.unlink()
        try:
            with tarfile.open(disk) as archive:
                for member in archive:
                    # Resolve links and "..". The code under test wrote the archive, so its names cannot be trusted.
                    path = Path("/" + member.name.lstrip("./")).resolve()
                    if member.isfile() and path.suffix == ".gcda" and path.is_relative_to(build.resolve()):
                        content = archive.extractfile(member)
                        assert content
                        path.write_bytes(content.read())
        except tarfile.TarError:
            raise UserError(f"the machine saved no coverage counters: see the consoles in {self.folder}") from None
        self.lcov("--capture", "--directory", str(build), "--output-file", str(target))
        return target

    def lcov(self, *arguments: str) -> None:
        """Run lcov. Raises UserError if it fails."""
        gcov = shutil.which(f"{toolchain.cross_prefix(self.settings.arch)}gcov") or "gcov"
        command = ["lcov", "-q", "--rc", "lcov_branch_coverage=1", "--gcov-tool", gcov, *arguments]
        self._tool(command)

    def _tool(self, command: Sequence[str]) -> None:
        log = self.folder / f"{command[0]}.log"
        with log.open("w") as file:
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT).returncode:
                raise UserError(f"{command[0]} failed: see {log}")

    def html(self, traces: Sequence[Path]) -> Path:
        """Merge the tracefiles, keep the files under test, and make HTML. Returns the merged tracefile."""
        merged, target = self.folder / "merged.info", self.folder / "coverage.info"
        self.lcov(*(word for trace in traces for word in ("-a", str(trace))), "-o", str(merged))
        self.lcov("--extract", str(merged), *(f"*/{file.file}" for file in self.files), "-o", str(target))
        page = ["genhtml", "-q", "--branch-coverage", "--ignore-errors", "source", "-o", str(self.folder / "html")]
        self._tool([*page, str(target)])
        return target

    def measure(self) -> list[Function]:
        """Build, boot, and read the counters. Returns the functions under test.

        Hold one lock during all steps: another run would rebuild the kernel, and write to the same disk.
        """
        space = self.space()
        launch = Launch(space)
        facts = launch.facts("coverage")
        with space.hold(), record.kept(self.settings.out, facts) as recorder:
            space.prepare()
            launch.run()
            with progress.Progress(f"coverage of linux {self.label}", len(BOOTS)) as shown:
                traces = []
                for number, more in enumerate(BOOTS):
                    with dry.part():
                        traces.append(self.run(space.build, number, more))
                    shown.advance(number + 1)
            found = read(self.html(traces).read_text(), self.files)
            recorder.put(self.summary(found))
            recorder.record.state = "passed"
            return found

    def summary(self, found: Sequence[Function]) -> dict[str, Any]:
        """The data of the record."""
        functions = [
            {"file": f.file, "name": f.name, "lines": share(f.lines.values()), "branches": share(f.branches.values())}
            | {"missed": f.missed, "one_way": f.one_way, "reason": reason(f, self.files)}
            for f in found
        ]
        return {"kernel": self.label, "arch": self.settings.arch, "pages": self.settings.pages, "functions": functions}


def reason(function: Function, files: Sequence[Wanted]) -> str:
    """The reason in coverage.toml why some lines or branches of a function do not run; "" if all run or without one."""
    if not function.missed and not function.one_way:
        return ""
    return next((w.reasons.get(function.name, "") for w in files if w.file == function.file), "")


def table(found: Sequence[Function], files: Sequence[Wanted]) -> str:
    """A line for each file and function: shares of lines and branches, the lines that did not run, and the reason."""
    lines = []
    width = max((len(function.name) for function in found), default=0) + 2
    for file in dict.fromkeys(function.file for function in found):
        own = [function for function in found if function.file == file]
        whole = (
            share(count for function in own for count in function.lines.values()),
            share(count for function in own for count in function.branches.values()),
        )
        lines.append(f"{file:{width}}  lines {percent(whole[0]):15}  branches {percent(whole[1])}")
        for function in own:
            line, branch = share(function.lines.values()), share(function.branches.values())
            text = f"  {function.name:{width - 2}}        {percent(line):15}           {percent(branch):15}"
            missed = [f"not run: {ranges(function.missed)}"] if function.missed else []
            missed += [f"one way only: {ranges(function.one_way)}"] if function.one_way else []
            lines.append(f"{text}  {'; '.join(missed)}".rstrip())
            if why := reason(function, files):
                lines.append(f"    {why}")
    return "\n".join(lines)


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    session = Session(from_environment({"ARCH": "arm64", **environ}))
    found = session.measure()
    print(table(found, session.files))
    progress.say(f"HTML and coverage.info in {session.folder}")
    return 0
