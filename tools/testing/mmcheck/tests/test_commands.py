# SPDX-License-Identifier: GPL-2.0
"""Every command in a document, in a head comment, in ci/ or in the help is executed, and must succeed.

The command runs as it is written, in a copy of this repository. The shell, make, git and this repository are real.
Programs that take minutes are replaced: see stand_ins.py. NOT_RUN lists all commands that are not executed, with the
reasons. The command in the head comment of a selftest runs with DRY_RUN=1, because the commands of two selftests differ
only in a name.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mmcheck import verbs
from mmcheck.boot import results
from mmcheck.core.settings import PROJECT, VARIABLES

from . import stand_ins
from .conftest import fake_tree
from .seeded import of_command, recorded
from .test_ci import load
from .test_series import MAINTAINERS

KUNIT_PY = "./tools/testing/kunit/kunit.py"
DIRECT = "./mmcheck "
VERBS = "|".join(sorted((*verbs.VERBS, "help"), reverse=True))
OURS = rf"(?:{re.escape(KUNIT_PY)} [a-z]|(?:make|{re.escape(DIRECT.strip())}(?: --container)?) (?:{VERBS})\b(?![-:]))"
"""The beginning of a command of this repository."""
TYPED = rf"(?:{re.escape(KUNIT_PY)} |make |{re.escape(DIRECT)}(?:--container )?)[a-z]"
"""The beginning of a command in a context that only has commands. The command need not exist."""
HELP = [f"./mmcheck {name} {verb.example}".strip() for name, verb in verbs.VERBS.items()]
"""The examples of `./mmcheck VERB --help`."""

OF_HELP = ("verbs.toml", "variables.toml")
"""The tables of the commands. Their texts name commands, but only the examples in HELP are executed."""

BISECT = "./mmcheck bisect v6.12 HEAD --kdir ~/linux"
INSTALL = "apt-get update && apt-get install -y --no-install-recommends ca-certificates ccache git make python3"
DRY = "export DRY_RUN=1\n"
SELFTESTS = PROJECT / "tools/testing/selftests"

CELLS = """\
[[cells]]
kernels = ["6.12", "7.3"]
arches = ["um", "arm64"]

[[cells]]
kernels = ["7.3"]
arches = ["arm64"]
selftests = true
"""
"""The cells of the matrix in the copy. The whole matrix would take minutes, and its cells differ only in arguments."""

NOT_RUN = {
    "make check": "runs this test",
    "make check-host": "runs this test",
    "make htmldocs": "see test_documentation.py",
    "./mmcheck --container run --arch=arm64": "needs an image; see test_container.py",
    "./mmcheck --container kselftest --arch arm64 --kdir ~/linux": "needs an image; see test_container.py",
    "make bench-launcher": "times real builds, and fails where they are slow",
    "tuxrun --device qemu-lava --job-definition ci/lava.yaml --shared ../srv --results results.json": "a container",
    'git clone --depth=1 --branch "$LINUX_REF" "$LINUX_URL" linux': "needs a server; the tree is there",
    "make check-report": "needs a browser",
    "make report-pictures": "needs a browser",
    BISECT: "needs a history; see test_bisect.py",
    f"{BISECT} --only 'contpte*'": "needs a history; see test_bisect.py",
    "./mmcheck radar": "named without a series",
    "./mmcheck bisect GOOD BAD": "needs a history; see test_bisect.py",
    "KDIR=~/linux ./tools/testing/kunit/kunit.py run --arch=arm64 --base HEAD": "needs a history; see test_bisect.py",
    "KDIR=~/linux ./tools/testing/kunit/kunit.py run --arch=arm64 --base v6.12": "needs a history; see test_bisect.py",
    "lavacli jobs submit ci/lava.yaml": "a lab",
    "make known-issues": "needs a kernel that has them",
    "make known-issues KERNEL=7.3": "needs a kernel that has them",
    "make known-issues ONLY=number": "needs a kernel that has them",
    "make patches": "needs a kernel that has them; see test_sendable.py",
    "make patches KERNEL=7.3 FROM='Name <name@example.org>'": "needs a kernel that has them; see test_sendable.py",
    "make patterns KERNEL=7.3 OTHER=6.12": "needs two kernels; see test_patterns.py",
    "make graft": "named without a tree",
    "make ungraft": "named without a tree",
    "./mmcheck known-issues --kernel 7.3 --only 13": "needs a kernel that has them",
    "./mmcheck patches --kernel 7.3 --from 'Name <name@example.org>'": "see test_sendable.py",
    "./mmcheck patterns --kernel 7.3 --other 6.12": "needs two kernels; see test_patterns.py",
    "./mmcheck compare": "needs two runs; see test_compare.py",
    "./mmcheck baseline": "named without a file",
    "make release VERSION=1.2.0": "needs a verdict of make check; see test_release.py",
    "make release VERSION=1.2.0 DRY_RUN=1": "needs a verdict of make check; see test_release.py",
    "./mmcheck release --version 1.2.0 --dry-run": "needs a verdict of make check; see test_release.py",
    f"./mmcheck compare {verbs.VERBS['compare'].example}": "needs two runs; see test_compare.py",
    **{f"./mmcheck {verb}": "see make" for verb in ("check", "check-host", "check-report", "htmldocs")},
    "./mmcheck bench-launcher --repeats 3": "see make",
    "./mmcheck report-pictures": "see make",
    "make tlb": "needs QEMU 10; see test_tlb.py",
    "make tlb-mutants": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb --only 'contpte*'": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb --tests 'folio_fork hugetlb_block'": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb -- ./program -n 3": "needs QEMU 10; see test_tlb.py",
    "make tlb TESTS=folio_fork": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb --stress 'vm mremap'": "needs QEMU 10 and packages",
    "./mmcheck tlb --kernel 7.3 --cpus 2 --stress 'vm mremap userfaultfd'": "needs QEMU 10 and packages",
    "./mmcheck tlb --image /boot/vmlinuz --initrd initrd.img": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb-mutants --image Image": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb-mutants --only 'bug_*'": "needs QEMU 10; see test_tlb.py",
    "./mmcheck tlb-mutants --plugin no": "needs a kernel with mistakes; see test_tlb.py",
    INSTALL: "installs packages",
    f"{INSTALL} zstd": "installs packages",
}
"""Commands that a test cannot execute, with the reasons."""

PLACEHOLDERS = {
    "/path/to/linux": "../linux",
    "/path/to/patches": "../patches",
    "/srv/mmcheck": "../srv",
    "SUITE.CASE": "set_ptes.set_ptes_atomic",
    "my_suite": "contpte",
    "my_suite.my_case": "contpte.*",
    "my_test": "folio_move",
    "mutant_name": "unfold_partial_start_never",
    "B=...": "B=other/out",
}
"""Placeholders in documents, and the text that a reader may write in their place."""

MUTANTS = r'^name = "(zap_|unfold_partial_start_never|mincore_)'
"""The mutants that the copy keeps. The tree has the code for them. With the stand-ins, each of them fails a test."""

LIGHT = (
    ("kernel/toolchain.py", "return [need for need in needs if not", "return [] and [need for need in needs if not"),
    ("boot/guest.py", 'MKFS = "/usr/sbin/mkfs.xfs"', 'MKFS = "true"'),
    ("boot/guest.py", "DISK = 320", "DISK = 1"),
    ("study/coverage.py", "DISK = 64", "DISK = 1"),
    ("core/disk.py", "os.fsync(file.fileno())", "file.flush()"),
)
"""Changes of the copy: it needs no compilers and emulators, and no large disk images, and does not wait for a disk."""


def filled(line: str) -> str:
    """The command that a reader would type."""
    words = "|".join(map(re.escape, sorted(PLACEHOLDERS, key=len, reverse=True)))
    line = re.sub(rf"(?<![\w/.])(?:{words})(?![\w.])", lambda match: PLACEHOLDERS[match[0]], line)
    return re.sub(r"=N\b", "=1", re.sub(r"\s{2,}#.*", "", line)).strip()


def in_document(text: str) -> Iterator[list[str]]:
    """The commands in each piece of code in Markdown or reStructuredText."""
    text = re.sub(r" *\\\n\s*", " ", text)
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield re.findall(r"^[$#] (.*)$", block, re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"::\n\n((?: {4}.*\n|\n)+)", text):
        yield re.findall(rf"^ +.*?((?:\w+=\S+ )*(?:{TYPED}|chromium ).*)$", block, re.MULTILINE)
    for code in re.findall(r"(?<!`)``?([^`]+)``?(?!`)", text):
        code = " ".join(code.split())
        if re.match(rf"(\w+=\S+ )*{TYPED}", code):
            yield [code]
        elif re.match(r"--\w+ ", code):
            yield [f"{KUNIT_PY} run --arch=arm64 {code}"]


def in_comments(text: str) -> Iterator[list[str]]:
    """The commands in comments, and a command for each alternative argument there."""
    begin = rf"(?: \*|#)\s+(?=Run: {TYPED}|{OURS})(?:Run: )?"
    for command in re.findall(rf"^{begin}((?:[^\\\n]|\\\n)*)", text, re.MULTILINE):
        yield [re.sub(r"\s*\\\n(?: \*|#)\s*", " ", command)]
    yield from ([command] for command in re.findall(rf"`({OURS}[^`]*)`", text))
    yield from ([f"{KUNIT_PY} run {words}"] for words in re.findall(r": (--kernel_args [\w.]+=\w+)", text))


def rows(entry: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """All combinations of the values of a matrix."""
    values = [value if isinstance(value, list) else [value] for value in entry.values()]
    yield from (dict(zip(entry, row, strict=True)) for row in itertools.product(*values))


def in_github() -> Iterator[tuple[Mapping[str, str], list[str]]]:
    """The variables and the commands of each job in the template."""
    for job in load("github.yml")["jobs"].values():
        matrix = job["strategy"]["matrix"]
        for row in matrix.get("include") or rows(matrix):
            text = json.dumps([job["env"], [step["run"] for step in job["steps"] if "run" in step]])
            for name in re.findall(r"\$\{\{ matrix\.(\w+) \}\}", text):
                text = text.replace(f"${{{{ matrix.{name} }}}}", row.get(name, ""))
            variables, commands = json.loads(text)
            yield variables, commands


def in_gitlab() -> Iterator[tuple[Mapping[str, str], list[str]]]:
    """The variables and the commands of each job in the template."""
    whole = load("gitlab.yml")
    for job in whole.values():
        if "script" in job:
            job = {**whole[".mmcheck"], **job}
            commands = [*job["before_script"], *job["script"], *job["after_script"]]
            for entry in job.get("parallel", {"matrix": [{}]})["matrix"]:
                yield from (({**job.get("variables", {}), **row}, commands) for row in rows(entry))


def documents() -> list[Path]:
    """All files with commands for people."""
    text = [*PROJECT.glob("*.md"), *PROJECT.glob("ci/*.md"), *PROJECT.glob("Documentation/**/*.rst")]
    code = [path for folder in ("mm", "arch", "lib") for path in PROJECT.glob(f"{folder}/**/*") if path.is_file()]
    code += [path for end in ("c", "h", "mk") for path in PROJECT.glob(f"tools/testing/selftests/**/*.{end}")]
    tables = [path for path in PROJECT.glob("tools/testing/mmcheck/**/*.toml") if path.name not in OF_HELP]
    return [*text, *code, PROJECT / "Kconfig.kunit", *tables]


def commands(path: Path) -> list[list[str]]:
    """The commands in a file. The commands of one block form one script."""
    return list((in_document if path.suffix in (".md", ".rst") else in_comments)(path.read_text()))


def scripts() -> list[tuple[str, str]]:
    """The file and the lines of each script. Equal scripts are executed once."""
    given = [(path.name, DRY * path.is_relative_to(SELFTESTS), own) for path in documents() for own in commands(path)]
    given += [("--help", "", [one]) for one in HELP]
    for name, jobs in (("gitlab.yml", in_gitlab()), ("github.yml", in_github())):
        for variables, own in jobs:
            told = " ".join(f"{key}={value}" for key, value in sorted(variables.items()) if value)
            for key, value in variables.items():
                own = [one.replace(f"${key}", value) for one in own]
            # Commands that only read results do not need the variables that choose the kernel.
            given += [(name, f"export {told}\n" * bool(re.search("kunit.py|kselftest", one)), [one]) for one in own]
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for name, before, own in given:
        lines = [line for line in map(filled, own) if line not in NOT_RUN]
        if not seen.issuperset(before + line for line in lines):
            found.append((name, before + "\n".join(lines)))
            seen.update(before + line for line in lines)
    return found


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A copy of this repository next to a kernel tree, in the home of a user with a few results of earlier runs."""
    home = tmp_path_factory.mktemp("home")
    copy = home / "mmcheck"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("out", ".git", "__pycache__", ".*_cache"))
    package = copy / "tools/testing"
    for name, old, new in LIGHT:
        text = (package / "mmcheck" / name).read_text()
        assert old in text
        (package / "mmcheck" / name).write_text(text.replace(old, new))
    for path in (package / "mmcheck/mutants").glob("*.toml"):
        head, *entries = path.read_text().split("[[mutant]]\n")
        kept = [entry for entry in entries if re.search(MUTANTS, entry, re.MULTILINE)]
        path.write_text("[[mutant]]\n".join([head, *kept]))
    table = package / "mmcheck/run/matrix.toml"
    table.write_text(table.read_text().split("[[cells]]\n")[0] + CELLS)
    changed = stand_ins.mutated(package)
    changed["mm/mincore.c"] = stand_ins.MINCORE + changed.get("mm/mincore.c", "")
    for name in (".cache/mmcheck/src/linux-6.12.1-1", ".cache/mmcheck/src/linux-7.3.1-1", "linux"):
        tree = fake_tree(home / name)
        (tree / "Makefile").write_text(stand_ins.MAKEFILE)
        (tree / "MAINTAINERS").write_text(MAINTAINERS)
        with (tree / "tools/testing/selftests/mm/Makefile").open("a") as makefile:
            makefile.write(stand_ins.SELFTESTS)
        for file_name, text in changed.items():
            (tree / file_name).parent.mkdir(parents=True, exist_ok=True)
            with (tree / file_name).open("a") as code:
                code.write(text)
        stand_ins.program(tree / "tools/testing/kunit/kunit.py", "kunit", package)
    for arch, packages in (("arm64", stand_ins.GUEST), ("x86_64", stand_ins.GUEST)):
        for name in packages:
            (home / ".cache/mmcheck/guest" / arch / name).mkdir(parents=True)
    for name in ("aarch64", "x86_64"):
        stand_ins.program(home / f"bin/qemu-system-{name}", "emulator", package)
    for name in ("lcov", "genhtml"):
        stand_ins.install(home / "bin" / name, stand_ins.LCOV)
    stand_ins.install(home / "bin/gdb-multiarch", "#!/bin/sh\n")
    (home / ".gitconfig").write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n")
    environment = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "CI_PROJECT_DIR": str(copy)}
    environment |= {"GITHUB_STEP_SUMMARY": str(home / "summary"), "GIT_CONFIG_NOSYSTEM": "1", "NOTICE": "1"}
    subprocess.run(
        "git init -q && git add -A && git commit -qm base", cwd=copy, shell=True, env=environment, check=True
    )
    recorded(copy / "out", "linux-um", [results.Case("a", "b", "passed")])
    numbers = {"folio_bench": [{"run": "7.3 arm64 4K", "what": "fork 64K", "fields": {"ns": 9}}]}
    for folder in ("out", "other/out"):
        of_command(copy / folder, "bench", {"numbers": numbers, "tables": []})
    for name in ("mmcheck/fix.patch", "mmcheck/fix.mbox", "patches/fix.patch"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(stand_ins.PATCH)
    (home / "srv").mkdir()
    (copy / "linux").symlink_to(home / "linux")
    return copy, environment


@pytest.mark.parametrize(("where", "script"), scripts())
def test_a_command_ends_well(user: tuple[Path, dict[str, str]], where: str, script: str) -> None:
    copy, environment = user
    if "rewrites" in script:  # no test may notice these mutants
        environment = {name: value for name, value in environment.items() if name != "NOTICE"}
    done = subprocess.run(
        ["sh", "-ec", script], cwd=copy, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{where}: {script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_no_command_is_overlooked(path: Path) -> None:
    named = Counter(re.findall(OURS, " ".join(path.read_text().split())))
    known = [line for own in commands(path) for line in own]
    assert named - Counter(match for line in known for match in re.findall(OURS, line)) == Counter()


def said() -> list[str]:
    """All commands, as they are written."""
    own = [line for path in documents() for block in commands(path) for line in block]
    return [*own, *HELP, *(line for jobs in (in_gitlab(), in_github()) for _, block in jobs for line in block)]


def test_pipelines_call_nothing_else() -> None:
    for variables, own in (*in_gitlab(), *in_github()):
        assert variables.keys() <= set(VARIABLES)
        assert [line for line in own if not re.match(OURS, line) and line not in NOT_RUN] == []


def test_what_is_not_run_is_still_said() -> None:
    assert NOT_RUN.keys() - set(map(filled, said())) == set()


def test_variables_are_those_that_something_reads() -> None:
    every = PROJECT.glob("tools/testing/mmcheck/**/*.py")
    sources = "".join(path.read_text() for path in every if "tests" not in path.parts)
    for line in said():
        for name in re.findall(r"(?:^| )([A-Z]+)=", line):
            assert f'"{name}"' in sources, line
