# SPDX-License-Identifier: GPL-2.0
"""The exit statuses of commands, and the checks of their arguments."""

import contextlib
import errno
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.core import command, disk, variables
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import toolchain
from mmcheck.run import record, usage
from mmcheck.verb import KERNEL

from .conftest import User

FAILS = "KTAP version 1\n1..1\n    # Subtest: one\n    not ok 1 a\nnot ok 1 one\n"
WARNS = "KTAP version 1\n1..1\n    # Subtest: one\nWARNING: CPU: 0 PID: 9 at mm/a.c:3 a+0x1/0x2\n    ok 1 a\nok 1 one\n"
COMMANDS = PROJECT / "tools/testing/mmcheck"
FIXED = {"bisect", "check", "check-host", "bench-launcher", "doctor", "kcidb", "matrix", "patches", "radar", "series"}
"""Verbs that choose their kernels themselves, or need no kernel."""

JUDGES = {"run", "kselftest", "matrix", "results", "mutants", "known-issues", "patches", "bench-launcher", "compare"}
JUDGES |= {"audit", "walk", "radar", "tlb", "tlb-mutants", "check", "check-host", "check-report", "report-pictures"}
"""Verbs that return 1 if a test fails. All other verbs return 0, or 125 with a reason."""

KUNIT_PY = '''#!/usr/bin/env python3
"""Stands for the kernel's kunit.py: mm/memory.c says what becomes of the kernel."""
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[3]
build = Path(next(word.split("=")[1] for word in sys.argv if word.startswith("--build_dir=")))
build.mkdir(parents=True, exist_ok=True)
text = (root / "mm/memory.c").read_text()
if "no semicolon" in text:
    sys.exit(1)
good = "not " if "mistake" in text else ""
(build / "test.log").write_text(f"KTAP version 1\\n1..1\\n    # Subtest: one\\n    {good}ok 1 a\\n{good}ok 1 one\\n")
sys.exit(1 if good else 0)
'''


def python(arguments: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python in this repository with only these variables."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "tools/testing", **environ}
    return subprocess.run(
        [sys.executable, *arguments], cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60
    )


def test_git_bisect_run_finds_the_commit_and_skips_what_does_not_build(user: User, tmp_path: Path, tree: Path) -> None:
    def git(*arguments: str) -> str:
        person = ["-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org"]
        done = subprocess.run(["git", *person, *arguments], cwd=tree, capture_output=True, text=True, check=True)
        return done.stdout

    (tree / "tools/testing/kunit/kunit.py").write_text(KUNIT_PY)
    git("init", "-q", "-b", "main")
    for text in ("fine 1", "fine 2", "fine, no semicolon", "fine 4", "mistake 5", "mistake 6, no semicolon", "mistake"):
        (tree / "mm/memory.c").write_text(f"/* {text} */\n")
        git("add", "-A")
        git("commit", "-q", "-m", text)
    git("bisect", "start", "main", "main~6")
    done = subprocess.run(
        ["git", "bisect", "run", PROJECT / "tools/testing/kunit/kunit.py", "run", "--arch=arm64"],
        cwd=tree,
        env=user.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert git("log", "-1", "--format=%s", "refs/bisect/bad") == "mistake 5\n"
    assert "is the first bad commit" in done.stdout


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({}, 0),
        ({"FAKE_STATUS": "1", "FAKE_CONSOLES": json.dumps({"all": FAILS})}, 1),
        ({"FAKE_STATUS": "1", "FAKE_CONSOLES": json.dumps({"all": "KTAP version 1\n1..0\n"})}, 125),
        ({"FAKE_STATUS": "1", "FAKE_CONSOLES": json.dumps({"all": "KTAP version 1\n1..7\n"})}, 125),
        ({"FAKE_STATUS": "2"}, 125),
        ({"FAKE_MAKE_FAILS": "1"}, 125),
        ({"KDIR": "/no/such/place"}, 125),
        ({"O": "/proc/x"}, 125),
    ],
)
def test_statuses_of_kunit_py(user: User, variables: dict[str, str], status: int) -> None:
    done = user.kunit("run", "--arch=arm64", **variables)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "\n  125 no verdict: " in user.kunit("--help").stdout


@pytest.mark.parametrize(
    ("words", "status", "console", "failed"),
    [
        ([], "0", WARNS, "one.a"),  # kunit.py does not look at warnings of the kernel
        (["--run_isolated=suite"], "1", WARNS.replace("WARNING", "note"), "kunit_py"),  # another boot failed
    ],
)
def test_status_verdict_and_record_agree(user: User, words: list[str], status: str, console: str, failed: str) -> None:
    done = user.kunit("run", "--arch=arm64", *words, FAKE_STATUS=status, FAKE_CONSOLES=json.dumps({"all": console}))
    assert done.returncode == 1, done.stderr
    assert "mmcheck: FAILED: 1 failed, " in done.stderr and f"(not known issues): {failed}\n" in done.stderr
    assert [one.state for one in record.latest(Path(user.environment["O"]))] == ["failed"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "--arch=arm64", "2>/dev/full"], 0),
        (["run", "--arch=arm64", "2>&-"], 0),
        (["run", "--arch=x", "2>/dev/full"], 125),
        (["--help", ">/dev/full"], 125),
        (["--help", "| true; exit ${PIPESTATUS[0]}"], 125),
    ],
)
def test_what_cannot_be_written_makes_no_test_fail(user: User, words: list[str], status: int) -> None:
    line = " ".join([str(PROJECT / "tools/testing/kunit/kunit.py"), *words])
    done = subprocess.run(["bash", "-c", line], env=user.environment, cwd=user.home, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", [">/dev/full", "| true; exit ${PIPESTATUS[0]}"])
def test_help_that_cannot_be_written(user: User, words: str) -> None:
    line = f"{PROJECT / 'mmcheck'} --help {words}"
    done = subprocess.run(["bash", "-c", line], env=user.environment, cwd=user.home, capture_output=True, text=True)
    assert done.returncode == 125 and "Traceback" not in done.stderr, done.stderr


def test_a_reader_that_ends_makes_no_test_fail(user: User, tree: Path) -> None:
    program = (tree / "tools/testing/kunit/kunit.py").read_text()
    cut = '(build / "test.log").write_text("KTAP version 1\\n1..2\\n    # Subtest: one\\n")\n    print(flush=True)\n'
    (tree / "tools/testing/kunit/kunit.py").write_text(
        program.replace('if verb in ("run", "exec"):\n', f'if verb in ("run", "exec"):\n    {cut}')
    )
    line = f"{PROJECT / 'tools/testing/kunit/kunit.py'} run --arch=arm64 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], env=user.environment, cwd=user.home, capture_output=True, text=True)
    assert done.returncode == 125 and "exited before the tests ended" in done.stderr, done.stderr
    assert [call["verb"] for call in user.calls()] == ["run"], "it does not boot again"
    assert [one.state for one in record.latest(Path(user.environment["O"]))] == ["none"]


def full(*_: object, **__: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_error_on_a_full_disk_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    assert command.run("x", lambda _: 1 // 0, {"O": "/proc/x"}) == 125


def test_a_full_disk_is_named_and_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.fsync", full)

    def body(_: object) -> int:
        disk.replace(tmp_path / "a", b"new")
        return 0

    assert command.run("x", body, {"O": str(tmp_path)}) == 125
    said = f"x: {tmp_path}: No space left on device; free some space or allow access there, or choose another O=\n"
    assert capsys.readouterr().err == said
    assert list(tmp_path.iterdir()) == []


def test_an_error_that_nobody_expected_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def body(_: object) -> int:
        raise ZeroDivisionError("a\nb")

    assert command.run("x", body, {"O": str(tmp_path)}) == 125
    said = capsys.readouterr().err
    log = tmp_path / command.LOG
    assert said == f"x: no verdict, an unexpected error: ZeroDivisionError: a b; see {log}\n"
    assert "raise ZeroDivisionError" in log.read_text()
    assert command.run("x", body, {"O": "/proc/x"}) == 125
    assert Path(capsys.readouterr().err.rpartition("see ")[2].strip()).exists()


@pytest.mark.parametrize("verb", sorted(set(verbs.VERBS) - {"run"}))
def test_no_verb_starts_with_an_argument_that_it_does_not_know(verb: str, tmp_path: Path) -> None:
    # If the verb started anything, it would write to O=, or run into the time limit.
    for wrong in ("--hepl", "extra", "NOSUCH=1"):
        done = python(["tools/testing/mmcheck", verb, wrong], O=str(tmp_path / "out"))
        assert (done.returncode, done.stdout) == (125, "")
        assert wrong in done.stderr and f"see ./mmcheck {verb} --help" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", sorted(set(verbs.VERBS) - {"run"}))
def test_help_names_every_variable_that_the_verb_reads(verb: str) -> None:
    done = python(["tools/testing/mmcheck", verb, "--help"])
    assert done.returncode == 0 and done.stdout.startswith(f"usage: ./mmcheck {verb} ")
    module = verbs.VERBS[verb].module.partition(":")[0]
    place = module.replace(".", "/")
    path = next(path for path in (COMMANDS / f"{place}.py", COMMANDS / place / "__init__.py") if path.exists())
    read = set(re.findall(r'(?:environ(?:\.get\(|\[)|whole\(environ, )"([A-Z_]+)"', path.read_text()))
    if re.search(r"from_environment|\bprepare\(", path.read_text()) and verb not in FIXED:
        read |= set(KERNEL)
    if module == "study.bench":
        read = {"A", "B"} if verb == "bench-compare" else read - {"A", "B"} | {"MIB", "REPEATS"}
    assert read <= set(verbs.VERBS[verb].variables)
    assert all(f"{variables.option(name)} " in done.stdout for name in verbs.VERBS[verb].variables)


@pytest.mark.parametrize("verb", sorted(verbs.VERBS))
def test_help_has_the_exit_statuses_that_the_verb_returns(verb: str) -> None:
    said = verbs.parser(verb).format_help()
    assert ("\n  1   " in said) == ("\n  125 no verdict: " in said) == (verb in JUDGES)
    assert ("\n  4   all tests were skipped" in said) == (verb in ("kselftest", "results"))
    assert "\n  130 interrupted" in said


QUICK = 3
"""The help of a command may take at most this many times as long as the imports of LIBRARIES. On an idle machine it
takes about 1.5 times as long. With the import of one command it would take 5 times as long."""
LIBRARIES = "argparse, dataclasses, difflib, pathlib"


def cpu_time(words: list[str], environment: dict[str, str], starts_with: str) -> float:
    """The seconds of CPU time of a command. The machine may be busy, so real time would say little."""
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(starts_with), done.stderr
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before


@pytest.mark.parametrize("verb", ["", *sorted(verbs.VERBS)])
def test_help_is_quick(user: User, verb: str) -> None:
    environment = user.environment | {"PYTHONPATH": str(COMMANDS.parent)}
    words = [sys.executable, str(COMMANDS), *([verb] if verb else []), "--help"]
    # Other programs slow a CPU down, so measure both commands side by side, and try several times.
    for _ in range(10):
        imports = cpu_time([sys.executable, "-c", f"import {LIBRARIES}"], environment, "")
        took = cpu_time(words, environment, "usage: ")
        if took < QUICK * imports:
            break
    else:
        pytest.fail(f"help took {took:.3f} s, and the imports alone {imports:.3f} s")
    assert not Path(user.environment["O"]).exists(), "help writes nothing"


@pytest.mark.parametrize("verb", ["", *sorted(verbs.VERBS)])
def test_help_imports_no_command(verb: str) -> None:
    """The import of a command takes only 0.08 s on an idle machine, so a time limit would not notice it."""
    done = python(["-X", "importtime", "tools/testing/mmcheck", *filter(None, [verb]), "--help"])
    imported = set(re.findall(r"\| +mmcheck\.([\w.]+)$", done.stderr, re.MULTILINE))
    own = {"run", "run.usage"} if verb == "run" else set()
    assert imported == {"verb", "verbs", "core", "core.errors", "core.variables", *own}
    assert (usage.LONGER in done.stdout) == (verb == "run")


@pytest.mark.parametrize("verb", sorted(verbs.VERBS))
def test_help_has_an_example(verb: str) -> None:
    done = python(["tools/testing/mmcheck", verb, "--help"])
    (line,) = re.findall(r"^example: (.*)", done.stdout, re.MULTILINE)
    expected = f"./mmcheck {verb} {verbs.VERBS[verb].example}".strip()
    assert line == (expected.replace("./mmcheck", "./tools/testing/kunit/kunit.py") if verb == "run" else expected)


def test_options_variables_and_the_environment_mean_the_same() -> None:
    assert verbs.chosen("kselftest", ["--kernel-args", "a b", "TESTS=folio fork", "--strict"]) == {
        "KERNEL_ARGS": "a b", "TESTS": "folio fork", "STRICT": "1"
    }  # fmt: skip
    assert verbs.chosen("mutants", ["--generated", "--no-install"]) == {"GENERATED": "1", "INSTALL": "no"}
    with pytest.raises(UserError, match=r"unrecognized arguments: --tests; see ./mmcheck graft --help"):
        verbs.chosen("graft", ["--tests", "folio_fork"])


def test_the_command_beside_make_keeps_its_status(tmp_path: Path) -> None:
    directly, by_make = ["tools/testing/mmcheck", "results", f"O={tmp_path}"], ["make", "results", f"O={tmp_path}"]
    done = python(directly)
    assert (done.returncode, "no results in" in done.stderr) == (125, True), done.stderr
    assert subprocess.run(by_make, cwd=PROJECT, capture_output=True).returncode == 2
    assert python(["tools/testing/mmcheck", "reslts"]).returncode == 125
    assert python(["tools/testing/mmcheck", "--help"]).returncode == 0
    assert subprocess.run(["./mmcheck", "reslts"], cwd=PROJECT, capture_output=True).returncode == 125
    text = (PROJECT / "Makefile").read_text().replace("\\\n", "")
    assert {*re.findall(r"^VERBS := (.*)$", text, re.M)[0].split(), "run"} == set(verbs.VERBS)


@pytest.mark.parametrize("words", [["rum", "--arch=arm64"], ["run", "--help"], ["config", "-h"]])
def test_a_mistyped_verb_and_help_fetch_no_kernel(user: User, words: list[str]) -> None:
    variables = {"KDIR": "", "KERNEL": "9.9", "PATH": str(Path(user.environment["PATH"].split(":")[0]))}
    variables["PATH"] += f":{Path(sys.executable).parent}:/usr/bin:/bin"
    done = user.kunit(*words, **variables)
    helps = words[0] != "rum"
    assert done.returncode == (0 if helps else 125)
    assert ("usage: kunit.py" in done.stdout) == helps
    assert helps or "rum: no such verb; use run, config, build, exec, parse" in done.stderr
    assert "asking the package archive" not in done.stderr
    assert not (user.home / ".cache").exists()


def test_help_of_a_verb_is_the_kernels_own_where_there_is_one(user: User) -> None:
    said = user.kunit("run", "--help").stdout
    assert said.index("  KDIR ") < said.index("the kernel's own output")
    assert {*usage.READS, "ARCH"} == verbs.VERBS["run"].variables.keys()


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["kunit"], {"KDIR": "/no/such/place"}),
        (["kunit"], {"KDIR": "", "KERNEL": "bogus"}),
        (["kunit"], {"PATCH": "/no/such/patch"}),
        (["kselftest"], {"KDIR": "/no/such/place"}),
        (["kselftest"], {"TESTS": "no_such_test"}),
        (["bundle"], {"KDIR": "/no/such/place"}),
        (["coverage"], {"KDIR": "/no/such/place"}),
        (["mutants"], {"KDIR": "/no/such/place"}),
        (["matrix"], {"KDIR": "/no/such/place"}),
    ],
)
def test_nothing_is_installed_before_the_input_is_judged(
    user: User, tmp_path: Path, words: list[str], variables: dict[str, str]
) -> None:
    script = (
        "import os, sys; from mmcheck import __main__; from mmcheck.kernel import toolchain\n"
        "from mmcheck.run import launcher\n"
        "toolchain.missing = lambda needs: list(needs)[:1]\n"
        f"toolchain.subprocess.run = lambda *_, **__: open({str(tmp_path / 'installed')!r}, 'w')\n"
        f"words = {words!r}\n"
        "if words == ['kunit']: sys.exit(launcher.main(['run', '--arch=arm64']))\n"
        "sys.exit(__main__.main(words))\n"
    )
    environment = {**user.environment, "PYTHONPATH": str(PROJECT / "tools/testing"), "ARCH": "arm64", **variables}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 125, done.stderr
    assert not (tmp_path / "installed").exists(), done.stderr
    assert "Traceback" not in done.stderr


def test_install_no_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "missing", lambda needs: list(needs))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("something was run"))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("INSTALL", "no")
    with pytest.raises(UserError) as error:
        toolchain.provide(["flex", "qemu-system-aarch64"])
    assert str(error.value) == (
        "missing flex, qemu-system-aarch64 (INSTALL=no); install with: "
        "apt-get install -y --no-install-recommends flex qemu-system-arm"
    )


@pytest.mark.parametrize(
    ("manager", "said"),
    [
        ("dnf", "install with: sudo dnf install elfutils-libelf-devel flex gcc-aarch64-linux-gnu qemu-system-aarch64"),
        ("pacman", "install with: sudo pacman -S aarch64-linux-gnu-gcc flex libelf qemu-system-aarch64"),
        ("", "install these with the package manager of this system, or use ./mmcheck --container"),
    ],
)
def test_other_systems_are_not_told_of_apt(monkeypatch: pytest.MonkeyPatch, manager: str, said: str) -> None:
    needs = ["flex", "/usr/include/gelf.h", "qemu-system-aarch64", "aarch64-linux-gnu-gcc"]
    monkeypatch.setattr(toolchain, "missing", lambda needs: list(needs))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if name == manager else None)
    with pytest.raises(UserError) as error:
        toolchain.provide(needs)
    assert str(error.value) == f"missing {', '.join(needs)}; {said}"


def test_a_package_that_is_not_known_elsewhere_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name == "pacman" else None)
    said = toolchain.elsewhere(["s390x-linux-gnu-gcc"])
    what = "mmcheck does not know the package of s390x-linux-gnu-gcc"
    assert said == f"{what}; ./mmcheck --container works without that package"


def test_variables_of_the_shell_do_not_change_what_is_run(user: User, tmp_path: Path) -> None:
    assert user.kunit("run", ARCH="arm64").returncode == 0
    assert "--arch=um" in user.calls()[-1]["arguments"]  # type: ignore[operator]
    build = tmp_path / "out/tree/linux/linux-um"
    build.mkdir(parents=True, exist_ok=True)
    (build / "test.log").write_text(FAILS.replace("not ok", "ok"))
    for verb in ("report", "results", "kcidb"):
        variables = {"PAGES": "16K", "O": str(tmp_path / "out"), "HOME": str(tmp_path)}
        done = python(["tools/testing/mmcheck", verb], **variables)
        assert done.returncode == 0, done.stderr


def test_a_misspelt_variable_starts_nothing() -> None:
    done = subprocess.run(
        ["make", "kselftest", "TARGETS=mm", "TEST=folio fork ARC=x"], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "kselftest: TEST=: there is no such variable; did you mean TESTS=?\n" in done.stderr
    done = subprocess.run(["make", "report", "KDRI=x"], cwd=PROJECT, capture_output=True, text=True)
    assert "report: KDRI=: there is no such variable; did you mean KDIR=?\n" in done.stderr


USUAL = """
    ARCHFLAGS BASE BROWSER CC CFLAGS COLORTERM COLUMNS CODE CPUSET DIR DISPLAY EDITOR FILENAME GROUPS HOME HOSTNAME
    HOSTTYPE INVOCATION_ID JOBS_MAX JOB_ID LANG LC_ALL LESS LINES LOGNAME LS_COLORS MACHTYPE MAIL MAKEFLAGS MAKELEVEL
    MANPATH MORE MORPH OLDPWD OSTYPE PAGER PATHS PS1 PWD PYTHONPATH ROOT SHELL SHLVL SSH_AUTH_SOCK TERM TESTING
    TESTSUITE TMPDIR TZ USER VISUAL XDG_CACHE_HOME _ a b
"""
"""Variables that are often in an environment, and some that look a little like ours."""


def test_a_misspelt_variable_of_the_environment_starts_nothing(user: User) -> None:
    python = [sys.executable, str(PROJECT / "tools/testing/mmcheck")]
    for words, word, right in (
        ([*python, "kselftest"], "TEST", "TESTS"),
        ([*python, "--container", "kselftest"], "STRCIT", "STRICT"),
        ([str(PROJECT / "tools/testing/kunit/kunit.py"), "run"], "KERNAL", "KERNEL"),
    ):
        done = subprocess.run(words, env={**user.environment, word: "x"}, capture_output=True, text=True)
        line = f"{word} is in the environment, but there is no such variable; use {right}=, or unset {word}"
        assert done.returncode == 125 and done.stderr.endswith(f": {line}\n") and done.stderr.count("\n") == 1
    assert not user.calls()


def test_variables_of_other_programs_are_accepted() -> None:
    for name in [*USUAL.split(), *variables.FOREIGN]:
        variables.check_environment({name: "x"}, variables.NAMES)
    for name in variables.FOREIGN:
        assert any(variables.misspelt(name, right) for right in variables.NAMES), f"{name} needs no exception"
    variables.check_environment({"TEST": "", "TESTS": ""}, variables.NAMES)
    variables.check_environment({"TEST": "x", "TESTS": "y"}, variables.NAMES)
    variables.check_environment({"TEST": "x"}, verbs.VERBS["report"].variables)
    for name in variables.NAMES:
        with pytest.raises(UserError) if len(name) >= variables.SHORT else contextlib.nullcontext():
            variables.check_environment({f"{name}_": "x"}, variables.NAMES)


def test_a_switch_is_1_or_left_out() -> None:
    done = subprocess.run(["make", "kselftest", "STRICT=yes"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "kselftest: STRICT=yes: use STRICT=1, or leave it out\n" in done.stderr
    for words in ("doctor --json=yes", "doctor JSON=yes"):
        done = python(["tools/testing/mmcheck", *words.split()])
        assert done.returncode == 125 and "JSON=yes: use JSON=1, or leave it out\n" in done.stderr


def test_a_variable_of_the_shell_is_no_switch(tmp_path: Path) -> None:
    done = python(["tools/testing/mmcheck", "doctor"], JSON="laptop", O=str(tmp_path / "out"), HOME=str(tmp_path))
    assert done.returncode == 0 and not done.stdout.startswith("{"), done.stderr


def test_the_home_of_the_user_is_found(tmp_path: Path) -> None:
    done = python(["tools/testing/mmcheck", "results", "O=~/out"], HOME=str(tmp_path))
    assert done.returncode == 125 and f"no results in {tmp_path}/out" in done.stderr


@pytest.mark.parametrize(
    ("flags", "names"),
    [("", []), ("s -j2", []), (r" -- A= ONLY=7.3\ um\ TEST=b O=x", ["A", "ONLY", "O"]), ("k -- V=1", ["V"])],
)
def test_names_that_make_was_given(flags: str, names: list[str]) -> None:
    assert command.given_to_make(flags) == names
    command.check_names(names)


def test_all_variables_that_are_read_are_known() -> None:
    sources = "".join(
        path.read_text() for path in PROJECT.glob("tools/testing/mmcheck/**/*.py") if "tests" not in path.parts
    )
    read = set(re.findall(r'(?:environ(?:\.get\(|\[)|whole\(environ, )"([A-Z_]+)"', sources)) | {"MIB", "REPEATS"}
    foreign = {"MAKEFLAGS", "NO_COLOR", "TERM", "XDG_CACHE_HOME", "HOME", "PATH"}
    assert {name for name in read if not name.startswith("MMCHECK_")} - foreign == set(variables.NAMES)


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("./mmcheck kself", ["kselftest"]),
        ("./mmcheck matrix --fi", ["--files"]),
        ("./mmcheck bundle --te", ["--tests"]),
        ("./mmcheck run --ker", ["--kernel", "--kernel_args"]),
        ("./mmcheck run --ba", ["--baseline", "--base"]),
        ("./mmcheck --cont", ["--container"]),
        ("./mmcheck --container kself", ["kselftest"]),
        ("./mmcheck --container bundle --te", ["--tests"]),
    ],
)
def test_bash_completes_verbs_and_options(words: str, want: list[str]) -> None:
    *before, last = words.split()
    script = (
        f'eval "$(./mmcheck completion)"; COMP_WORDS=({words}) COMP_CWORD={len(before)}\n'
        f'_mmcheck ./mmcheck "{last}" {before[-1]}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (want, "")
