# SPDX-License-Identifier: GPL-2.0
"""DRY_RUN=1: every command prints what it would do. It runs nothing, and changes no file."""

import os
import posix
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.boot.results import Case
from mmcheck.core import command, dry
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import known_issues, toolchain

from . import stand_ins
from .conftest import fake_tree
from .seeded import of_command, recorded
from .test_series import MAINTAINERS

PROGRAMS = (
    *(
        "make",
        "gcc",
        "aarch64-linux-gnu-gcc",
        "x86_64-linux-gnu-gcc",
        "qemu-system-aarch64",
        "clang",
        "ccache",
        "patch",
    ),
    *("lcov", "genhtml", "apt-get", "apt-cache", "perl", "tar", "xz", "shellcheck", "chromium", "setpriv"),
    "gdb-multiarch",
)
CALLED = '#!/bin/sh\necho "$0 $@" >>"$CALLS"\nexit 1\n'

BUILDS = r"^tree .*/tree/{kernel}.*^run .*/tree/{kernel}\S*/kunit\.py build --arch=arm64 "
KUNIT = BUILDS.format(kernel=r"6\.12\.1-1")
SELFTESTS = KUNIT + ".*^run +make .* headers .*^boot +qemu-system-aarch64 .* -initrd "
FOLDER = r"^write .*/out/{}"
SAYS = {
    "run --arch=arm64 'contpte*'": r"^tree .*^run .*/kunit\.py run --arch=arm64 .*'contpte\*'\n.*^write .*/out/runs/",
    "kselftest --arch arm64": SELFTESTS + r".*(^boot.*){4}",
    "audit --arch arm64 -- /bin/true": r"/bin/true is not static|is not a program for",
    "audit --arch arm64 -- echo": SELFTESTS,
    "walk --arch arm64 --jobs 2": SELFTESTS + r".*(^boot.*){1}",
    "matrix --only '6.12 arm64 4K*'": r"^run +KERNEL=6\.12 .*kunit\.py run --arch=arm64\n",
    "bisect HEAD~1 HEAD": r"^run +git .* init .*^run .*/checkout/bisect-\S+ .*kunit\.py run --arch=arm64\n",
    "radar {home}/fix.patch": r"^tree .*/out/tree/6\.12\.1-1\+patch-.*^tree .*(^run .*kunit\.py run .*){2}",
    "bundle --arch arm64": KUNIT + ".*" + FOLDER.format("bundle/"),
    "tlb": r"^fetch +QEMU 10 .*^run +gcc .*^tree .*^run .*^boot +qemu-system-aarch64 .* -plugin ",
    "tlb-mutants": r"^run +gcc .*/out/tree/6\.12\.1-1\+tlb, .*^boot .* -plugin ",
    "doctor": "only reads",
    "baseline --baseline {home}/known.toml": r"^write +{home}/known\.toml$",
    "debug contpte.set_ptes_to_table_end --arch arm64": KUNIT
    + r".*^boot +qemu-system-aarch64 .*^run +gdb-multiarch .*",
    "release --version 1.2.0": r"^release: ",
    "completion": "only reads",
    "results": FOLDER.format("results/results.json"),
    "compare --a 'kunit linux-um' --b 'kunit linux-um'": "only reads",
    "report": FOLDER.format("report"),
    "kcidb": FOLDER.format("kcidb.json"),
    "mutants --kernel 7.3 --only 'zap_*'": r"^judge +[1-9]\d* mutants .*"
    + BUILDS.format(kernel=r"7\.3\.1-1\+mutants")
    + ".*^boot ",
    "known-issues --only 13": r"^patch +known issues 13 .*" + KUNIT + r".*/out/tree/6\.12\.1-1\+fixed",
    "patches --only 13 --from 'A <a@example.org>'": r"^mail +1 patches .*^patch .*" + KUNIT,
    "patterns": "only reads",
    "functions": r"^write +.*/out/functions-6\.12\.tsv",
    "coverage --arch arm64": r"/out/tree/6\.12\.1-1\+coverage, .*(^boot +qemu-system-aarch64 .*){2}^run +lcov ",
    "bench --only folio_bench": KUNIT + r".*^boot +qemu-system-aarch64 .*folio_bench",
    "bench-compare --a {home}/out --b {home}/out": "only reads",
    "bench-launcher": r"^run .*kunit\.py build --arch=arm64\n.*^run +cp -a ",
    "graft --kdir {home}/linux": r"^write +{home}/linux: [1-9]\d* files",
    "ungraft --kdir {home}/linux": "only reads",
    "series --kdir {home}/linux": r"^run +git init .*^run +git format-patch ",
    "check": r"^run .*/pytest .*^run .*/mypy .*^tree .*(^run .*kunit\.py run --arch=\w+ .*){5}",
    "check-host": r"^install +the checkers of requirements\.txt .*^run .*/pytest .*^run +shellcheck ",
    "check-report": r"^install +the checkers of browser\.txt .*^run .*/pytest .*test_browser\.py",
    "report-pictures": r"^run .* -m mmcheck\.tests\.browser\n",
    "htmldocs": r"^run .* -m sphinx ",
}
"""For each command, a pattern for the output of its dry run. {home} is the user's folder."""

ISSUE = known_issues.load()[12]
"""The known issue that the kernels in these tests have."""

OF_OTHERS = ("out", ".git", "__pycache__")
"""Folders of this repository into which other tests and tools write at the same time."""

ERRORS = ("audit --arch arm64 -- /bin/true", "release --version 1.2.0")
"""Commands that fail with DRY_RUN=1 and without it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a user with kernels, a git tree, results, and programs that record each call."""
    home = tmp_path_factory.mktemp("home")
    changed = stand_ins.mutated(PROJECT / "tools/testing")
    for name in (".cache/mmcheck/src/linux-6.12.1-1", ".cache/mmcheck/src/linux-7.3.1-1", "linux"):
        tree = fake_tree(home / name)
        (tree / "MAINTAINERS").write_text(MAINTAINERS)
        (tree / "Makefile").write_text(stand_ins.MAKEFILE)
        (tree / ISSUE.file).parent.mkdir(parents=True)
        (tree / ISSUE.file).write_text(f"{ISSUE.name} {ISSUE.faulty[0]}")
        for file, text in changed.items() if name != "linux" else ():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            with (tree / file).open("a") as code:
                code.write(text)
        (tree / "mm/mincore.c").write_text(stand_ins.MINCORE)
        stand_ins.install(tree / "tools/testing/kunit/kunit.py", CALLED)
    for name in stand_ins.GUEST:
        (home / ".cache/mmcheck/guest/arm64" / name).mkdir(parents=True)
    for name in PROGRAMS:
        stand_ins.install(home / "bin" / name, CALLED)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "1"], ["commit", "-q", "--allow-empty", "-m", "2"]):
        subprocess.run([*git, *words], cwd=home / "linux", check=True)
    (home / "fix.patch").write_text(stand_ins.PATCH.replace("-2,4 +2,4", "-1,5 +1,5").replace("@@\n", "@@\n \n"))
    of_command(
        home / "out", "bench", {"numbers": {"a": [{"run": "b", "what": "c", "fields": {"ns": 1}}]}, "tables": []}
    )
    (home / ".gitconfig").write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n")
    (home / "tmp").mkdir()
    recorded(home / "out", "linux-um", [Case("a", "b", "passed")])
    return home


def snapshot(*folders: Path) -> dict[str, tuple[int, int, int]]:
    """Size, mode and time stamp of all files and folders.

    For folders of this repository only the mode counts, because another test may write to a __pycache__ meanwhile.
    """
    found = {}
    for folder in folders:
        for place, folders_in, files in os.walk(folder):
            if folder == PROJECT:
                folders_in[:] = [name for name in folders_in if name not in OF_OTHERS and not name.endswith("_cache")]
            for path in (Path(place), *(Path(place) / name for name in files)):
                state = path.lstat()
                whole = folder != PROJECT or path != Path(place)
                found[str(path)] = (state.st_size, state.st_mode, state.st_mtime_ns) if whole else (0, state.st_mode, 0)
    return found


def dry_run(home: Path, words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command with DRY_RUN=1 in the root of this repository."""
    environment = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "O": str(home / "out")}
    environment |= {"CALLS": str(home / "calls"), "TMPDIR": str(home / "tmp"), "PYTHONDONTWRITEBYTECODE": "1", **more}
    environment |= {"KDIR": str(home / "linux")} if "bisect" in words else {}
    return subprocess.run(
        words, cwd=PROJECT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
    )


@pytest.mark.parametrize("line", SAYS)
def test_a_dry_run_says_what_happens_and_does_nothing(home: Path, line: str) -> None:
    words = shlex.split(line.replace("{home}", str(home)))
    before = snapshot(home, PROJECT)
    done = dry_run(home, [sys.executable, "tools/testing/mmcheck", words[0], "--dry-run", *words[1:]])
    assert snapshot(home, PROJECT) == before
    want = SAYS[line].replace("{home}", re.escape(str(home)))
    assert re.search(want, done.stdout + done.stderr, re.MULTILINE | re.DOTALL), done.stdout + done.stderr
    assert done.returncode == (125 if line in ERRORS else 0), done.stderr
    assert line in ERRORS or (done.stdout.startswith("dry run: nothing is ") and not done.stderr), done.stderr


def test_every_verb_is_in_the_table() -> None:
    assert {line.split()[0] for line in SAYS} == set(verbs.VERBS)


@pytest.mark.parametrize(
    "words",
    [
        ["tools/testing/kunit/kunit.py", "run", "--arch=arm64", "--dry-run"],
        ["make", "kselftest", "TARGETS=mm", "DRY_RUN=1", "ARCH=arm64"],
    ],
    ids=["kunit.py", "make"],
)
def test_kunit_py_and_make_know_it_too(home: Path, words: list[str]) -> None:
    before = snapshot(home, PROJECT)
    done = dry_run(home, [("/usr/bin/make" if words[0] == "make" else words[0]), *words[1:]])
    assert done.returncode == 0 and re.search(r"^run .*kunit\.py ", done.stdout, re.MULTILINE), done.stderr
    assert snapshot(home, PROJECT) == before


def test_a_kernel_that_is_not_here_is_not_fetched(home: Path) -> None:
    before = snapshot(home, PROJECT)
    done = dry_run(home, ["tools/testing/kunit/kunit.py", "run", "--arch=um", "--dry-run"], KERNEL="6.18")
    assert re.search(r"^fetch +linux 6\.18 into .*^tree .*^run ", done.stdout, re.MULTILINE | re.DOTALL), done.stderr
    assert snapshot(home, PROJECT) == before


@pytest.mark.parametrize(
    "words",
    [
        ["tools/testing/kunit/kunit.py", "run", "--arch=arm64", "--apply", "HEAD^..HEAD", "--dry-run"],
        [sys.executable, "tools/testing/mmcheck", "radar", "HEAD^..HEAD", "--dry-run"],
    ],
    ids=["kunit.py", "radar"],
)
def test_a_range_of_commits_is_no_missing_file(home: Path, words: list[str]) -> None:
    (home / "linux/new").touch()
    for git in (["add", "new"], ["commit", "-qm", "3"]):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *git], cwd=home / "linux", check=False)
    before = snapshot(home, PROJECT)
    done = dry_run(home, words, KDIR=str(home / "linux"))
    assert done.returncode == 0 and re.search(r"^write +.*out/applied/", done.stdout, re.MULTILINE), done.stderr
    assert snapshot(home, PROJECT) == before


def test_what_may_not_be_installed_is_named_as_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body() -> int:
        toolchain.provide(["bison"])
        return 0

    monkeypatch.setattr(shutil, "which", {"apt-get": "/usr/bin/apt-get"}.get)
    for forbidden, said in (("no", "missing bison: the command ends here"), ("", "install bison")):
        monkeypatch.setenv("INSTALL", forbidden)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert dry.listed(body, Path("/nonexistent")) == 0
        assert said in capsys.readouterr().out


def test_bad_input_is_refused_as_ever(home: Path) -> None:
    for words, said in (
        (["mutants", "--only", "nothing", "--dry-run"], "ONLY=nothing: no mutant in "),
        (["kselftest", "--tests", "nothing", "--dry-run"], "TESTS=nothing: no such test"),
        (["report", "DRY_RUN=yes"], "DRY_RUN=yes: use DRY_RUN=1, or leave it out"),
    ):
        done = dry_run(home, [sys.executable, "tools/testing/mmcheck", *words])
        assert (done.returncode, done.stdout) == (125, "") and said in done.stderr


def test_what_is_not_foreseen_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def body(_: object) -> int:
        posix.mkdir(tmp_path / "new")
        return 0

    assert command.run("x", body, {"DRY_RUN": "1", "O": str(tmp_path)}) == 125
    assert "a dry run refuses os.mkdir" in capsys.readouterr().err
    assert not (tmp_path / "new").exists() and not dry.on()
    assert command.run("x", body, {"O": str(tmp_path)}) == 0
    assert (tmp_path / "new").exists()


def test_an_error_after_a_step_ends_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def body(_: object) -> int:
        subprocess.run(["/no/such/program"], check=True)
        (tmp_path / "file").write_text("x")
        (tmp_path / "file").read_text()
        raise AssertionError("not reached")

    assert command.run("x", body, {"DRY_RUN": "1", "O": str(tmp_path)}) == 0
    said = capsys.readouterr().out
    assert f"run     /no/such/program\nwrite   {tmp_path}/file\n...     the next steps depend" in said
