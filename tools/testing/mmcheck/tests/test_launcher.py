# SPDX-License-Identifier: GPL-2.0
"""kunit.py, started as users start it."""

import fcntl
import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmcheck.boot import guest
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.dev import look
from mmcheck.kernel import toolchain
from mmcheck.run import record
from mmcheck.run.request import absolute, split

from .conftest import User, state
from .waiting import until

CRASH = """\
KTAP version 1
1..3
    KTAP version 1
    # Subtest: one
    1..1
    ok 1 a
ok 1 one
    KTAP version 1
    # Subtest: two
    1..2
    ok 1 a
[    1.234567] Kernel panic - not syncing: two: b: hang: no end after 60 s
"""


@pytest.mark.parametrize(
    ("words", "found", "rest"),
    [
        ("run --kernel 7.3 --arch=arm64 contpte*", {"KERNEL": "7.3"}, "run --arch=arm64 contpte*"),
        ("run KDIR=/linux --pages=64K", {"KDIR": "/linux", "PAGES": "64K"}, "run"),
        ("run FEATURES= --no-install", {"FEATURES": "", "INSTALL": "no"}, "run"),
        ("run ARCH=arm64 --dry-run pte_bits", {"DRY_RUN": "1"}, "run --arch=arm64 pte_bits"),
        ("run --kconfig_add KERNEL=1 --jobs 3", {}, "run --kconfig_add KERNEL=1 --jobs 3"),
        ("run --kernel_args=a=b --make_options CC=clang", {}, "run --kernel_args=a=b --make_options CC=clang"),
    ],
)
def test_variables_may_stand_after_the_command(words: str, found: dict[str, str], rest: str) -> None:
    assert split(words.split()) == (found, rest.split())


@pytest.mark.parametrize(
    ("words", "why"), [("run TESTS=a", "does not read TESTS"), ("run --kernel", "--kernel: give a value")]
)
def test_a_word_that_could_select_another_kernel_is_an_error(words: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        split(words.split())


def test_arguments_reach_the_kernels_own_kunit_py_unchanged(user: User) -> None:
    given = ["--kernel_args=a=b", "--filter", "speed>slow", "--qemu_args", "-smp 2", "--timeout=7", "suite.case*"]
    assert user.kunit("run", "--arch=arm64", *given).returncode == 0
    call = user.calls()[0]
    arguments = call["arguments"]
    assert isinstance(arguments, list)
    assert call["verb"] == "run"
    assert arguments[-len(given) :] == given
    assert any(a.startswith("--qemu_args=-cpu ") for a in arguments[: -len(given)])
    assert "--kernel_args=printk.time=1" in arguments[: -len(given)], "the user's --kernel_args win"
    assert "--arch=arm64" in arguments
    assert "--cross_compile=aarch64-linux-gnu-" in arguments
    fragments = [a.partition("/out/tree/")[2].split("/", 1)[1] for a in arguments if a.startswith("--kunitconfig=")]
    assert fragments == ["mm/tests/.kunitconfig", "arch/arm64/mm/tests/.kunitconfig"]


def test_x86_64_has_the_configuration_of_its_source_folder(user: User) -> None:
    user.kunit("run", "--arch=x86_64")
    arguments = user.calls()[0]["arguments"]
    assert isinstance(arguments, list)
    assert [a.endswith("arch/x86/mm/tests/.kunitconfig") for a in arguments if a.startswith("--kunitconfig=")] == [0, 1]


def test_the_kernel_runs_from_its_working_copy(user: User, tree: Path) -> None:
    user.kunit("run", "--arch=arm64")
    root = Path(str(user.calls()[0]["root"]))
    assert root.is_relative_to(user.environment["O"])
    assert (root / "mm/memory.c").samefile(tree / "mm/memory.c")
    assert (root / "Kconfig.kunit").samefile(PROJECT / "Kconfig.kunit")
    assert 'source "Kconfig.kunit"' in (root / "Kconfig").read_text()


@pytest.mark.parametrize("status", ["0", "1"])
def test_exit_status_is_returned(user: User, status: str) -> None:
    assert user.kunit("run", "--arch=arm64", FAKE_STATUS=status).returncode == int(status)


def test_own_options_replace_the_defaults(user: User) -> None:
    mine = user.home / "my.config"
    mine.write_text("")
    user.kunit("run", "--arch", "arm64", "--cross_compile=x-", "--kunitconfig=my.config", "--build_dir=here")
    arguments = user.calls()[0]["arguments"]
    assert isinstance(arguments, list)
    assert [a for a in arguments if a.startswith("--kunitconfig")] == [f"--kunitconfig={mine}"]
    assert [a for a in arguments if a.startswith("--cross_compile")] == ["--cross_compile=x-"]
    assert arguments[-1] == f"--build_dir={user.home / 'here'}"


def test_the_build_folder_is_not_in_the_tree_of_the_user(user: User, tree: Path) -> None:
    done = user.kunit("run", "--arch=arm64", f"--build_dir={tree}/build")
    assert done.returncode == 125 and not user.calls()
    assert f"--build_dir={tree}/build is inside KDIR={tree}, and mmcheck never writes there" in done.stderr


def test_paths_are_meant_from_here() -> None:
    here = str(Path.cwd())
    asked = ["--json=x.json", "--qemu_config", "q.py", "--json", "glob", "--kunitconfig=lib/kunit", "--json=stdout"]
    assert absolute(asked) == [
        f"--json={here}/x.json",
        "--qemu_config",
        f"{here}/q.py",
        "--json",
        "glob",
        "--kunitconfig=lib/kunit",
        "--json=stdout",
    ]


def test_each_page_size_has_its_build_folder(user: User) -> None:
    user.kunit("run", "--arch=arm64")
    user.kunit("run", "--arch=arm64", PAGES="64K")
    folders = [next(a for a in map(str, c["arguments"]) if "--build_dir" in a) for c in user.calls()]  # type: ignore[call-overload]
    assert folders[0].endswith("-arm64-4K")
    assert folders[1].endswith("-arm64-64K")
    assert "--kconfig_add=CONFIG_ARM64_64K_PAGES=y" in user.calls()[1]["arguments"]  # type: ignore[operator]


def test_each_configuration_has_its_build_folder(user: User) -> None:
    option = "--kconfig_add=CONFIG_ARM64_CONTPTE=n"
    for more in ([], [option], [f"--kunitconfig={PROJECT}/mm/tests"], [option]):
        user.kunit("run", "--arch=arm64", *more)
    folders = [next(a for a in map(str, call["arguments"]) if "--build_dir" in a) for call in user.calls()]  # type: ignore[call-overload]
    assert folders[1] == folders[3]
    assert len(set(folders)) == 3


def test_a_second_run_builds_nothing_and_an_edit_does(user: User, tree: Path) -> None:
    user.kunit("run", "--arch=arm64")
    user.kunit("run", "--arch=arm64")
    assert user.makes() == 1
    (tree / "mm/memory.c").write_text("int other;\n")
    user.kunit("run", "--arch=arm64")
    assert user.makes() == 2
    (tree / "mm/new.c").write_text("")
    user.kunit("run", "--arch=arm64")
    assert user.makes() == 3


def test_the_users_tree_is_never_written_to(user: User, tree: Path) -> None:
    before = state(tree)
    user.kunit("run", "--arch=arm64")
    user.kunit("run", "--arch=arm64", FAKE_MAKE_FAILS="1")
    assert state(tree) == before


def test_variables_of_ours_do_not_reach_the_kernels_build(user: User) -> None:
    user.kunit("run", "--arch=arm64", KERNEL="6.12")
    assert user.calls()[0]["kernel"] is None


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"KDIR": "/no/such/place"}, "KDIR=/no/such/place: no such folder"),
        ({"KDIR": "/usr"}, "not a kernel tree with KUnit (it has no Makefile)"),
        ({"KDIR": "", "KERNEL": "bogus"}, "KERNEL=bogus: give a version such as 6.12"),
        ({"PAGES": "8K"}, "PAGES=8K: use one of 4K, 16K, 64K"),
        ({"O": "/tmp/a b"}, "no space or colon"),
    ],
)
def test_bad_input_is_one_line_and_status_125(user: User, variables: dict[str, str], said: str) -> None:
    done = user.kunit("run", "--arch=arm64", **variables)
    assert done.returncode == 125
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert user.calls() == []


def test_missing_tools_without_root_name_the_command(user: User) -> None:
    # PATH has no cross compiler, and the user is not root.
    script = (
        "import os, sys; os.geteuid = lambda: 1000; "
        "from mmcheck.run import launcher; sys.exit(launcher.main(['run', '--arch=riscv']))"
    )
    done = user_python(user, script)
    assert done[0] == 125
    assert "sudo apt-get install -y --no-install-recommends" in done[1]
    assert "gcc-riscv64-linux-gnu" in done[1]


def user_python(user: User, script: str) -> tuple[int, str]:
    """Run a line of Python with only the fake tools in PATH."""
    bin_only = user.environment["PATH"].split(":")[0]
    env = {**user.environment, "PATH": bin_only, "PYTHONPATH": str(PROJECT / "tools/testing")}
    for name in ("tar", "xz", "gzip", "apt-get"):
        link = Path(bin_only) / name
        link.write_text("#!/bin/sh\n")
        link.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_a_kernel_that_does_not_build(user: User) -> None:
    done = user.kunit("run", "--arch=arm64", FAKE_MAKE_FAILS="1")
    assert done.returncode == 125
    assert "mm/memory.c:1:1: error: oh dear" in done.stderr
    assert "does not build for arm64: see" in done.stderr.splitlines()[-1]
    assert user.kunit("run", "--arch=arm64").returncode == 0


def test_a_kernel_that_does_not_reach_the_tests(user: User) -> None:
    consoles = json.dumps({"all": "Booting Linux\nKernel panic - not syncing: no memory\n"})
    done = user.kunit("run", "--arch=arm64", FAKE_STATUS="1", FAKE_CONSOLES=consoles)
    assert done.returncode == 125
    assert "ended before the first test (no memory)" in done.stderr.splitlines()[-1]


def test_after_a_hang_the_other_suites_still_report(user: User) -> None:
    results = user.home / "results.json"
    arguments = ["run", "--arch=arm64", "--jobs", "2", "--json=results.json"]
    done = user.kunit(*arguments, FAKE_STATUS="1", FAKE_CONSOLES=json.dumps({"all": CRASH}))
    assert done.returncode == 1
    assert "the kernel ended early in suite two, after case a: two: b: hang: no end after 60 s" in done.stderr
    assert "booting again for three" in done.stderr
    again = user.calls()[-1]
    assert again["verb"] == "exec"
    assert isinstance(again["arguments"], list)
    assert again["arguments"][-1] == "three"
    assert "--jobs" not in again["arguments"]
    assert [g["name"] for g in json.loads(results.read_text())["sub_groups"]] == ["all", "three"]
    (run,) = record.latest(Path(user.environment["O"]))
    assert [(case.suite, case.state) for case in run.cases] == [
        ("one", "passed"), ("two", "passed"), ("two", "failed"), ("one", "passed")
    ], "the record has the cases of all boots"  # fmt: skip
    assert "two: b: hang: no end after 60 s" in " ".join(run.cases[2].text)


def test_after_a_hang_junit_has_the_other_suites_too(user: User) -> None:
    done = user.kunit("run", "--arch=arm64", "--junit=x.xml", FAKE_STATUS="1", FAKE_CONSOLES=json.dumps({"all": CRASH}))
    assert done.returncode == 1, done.stderr
    root = ElementTree.parse(user.home / "x.xml").getroot()
    assert [suite.get("name") for suite in root.findall("testsuite")] == ["all", "three"]
    assert root.get("tests") == "2"


def test_another_clang_is_another_build(user: User, tmp_path: Path) -> None:
    clang = tmp_path / "bin/clang"
    for text in ("one", "two, longer"):
        clang.write_text(f"#!/bin/sh\n# {text}\n")
        clang.chmod(0o755)
        assert user.kunit("run", "--arch=arm64").returncode == 0
    assert user.makes() == 2


def test_each_program_that_a_command_needs_has_a_package() -> None:
    needs = [
        toolchain.ENSUREPIP,
        *toolchain.BUILD,
        *toolchain.LLVM,
        "patch",
        "git",
        "shellcheck",
        "lcov",
        guest.MKFS,
        look.CHROMIUM,
    ]
    assert all(toolchain.package(need) for need in needs)


def test_llvm_needs_clang() -> None:
    assert [toolchain.package(need) for need in toolchain.LLVM] == ["clang", "lld", "llvm"]


def test_firmware_that_is_named_is_needed() -> None:
    file = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"
    assert toolchain.named(["-smp 2", f"--qemu_args=-bios {file}"]) == [file]
    assert toolchain.package(file) == "qemu-efi-aarch64" and toolchain.named(["-m 1G"]) == []


def test_help_needs_no_kernel(user: User) -> None:
    done = user.kunit("--help", KDIR="/no/such/place")
    assert done.returncode == 0
    assert "  KDIR      your own kernel tree" in done.stdout
    assert user.kunit().returncode == 125


def test_parse_takes_a_file_from_here(user: User) -> None:
    (user.home / "log").write_text("")
    done = user.kunit("parse", "log")
    assert done.stdout == "the kernel's own output\n"
    assert user.calls()[0]["arguments"] == [str(user.home / "log")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_build_and_the_next_run_goes_on(user: User, number: signal.Signals) -> None:
    pid = Path(user.environment["FAKE_CALLS"] + ".pid")
    command = [str(PROJECT / "tools/testing/kunit/kunit.py"), "run", "--arch=arm64"]
    environment = {**user.environment, "FAKE_MAKE_HANGS": "1"}

    def heed() -> None:
        signal.signal(number, signal.SIG_DFL)  # a script that runs in the background may ignore the signal

    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as run:
        try:
            until(lambda: pid.exists() and pid.read_text().strip(), run)
            make = int(pid.read_text())
            run.send_signal(number)
            _, said = run.communicate(timeout=30)
        finally:
            run.kill()
    assert run.returncode == 130
    assert "interrupted; run it again to continue from here" in said
    assert not Path(f"/proc/{make}/cmdline").exists() or b"sleep" not in Path(f"/proc/{make}/cmdline").read_bytes()
    assert user.kunit("run", "--arch=arm64").returncode == 0


def test_two_runs_at_once_wait_for_each_other(user: User, tmp_path: Path) -> None:
    user.kunit("run", "--arch=arm64")
    lock = next((Path(user.environment["O"]) / "lock").glob("*.build"))
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [PROJECT / "tools/testing/kunit/kunit.py", "run", "--arch=arm64"],
            env=user.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr
        assert any("waiting for another run" in line for line in iter(second.stderr.readline, ""))
        assert len(user.calls()) == 1
    assert second.wait(timeout=30) == 0
    assert len(user.calls()) == 2
    second.stderr.close()


def test_other_features_have_a_working_copy_of_their_own(user: User) -> None:
    roots = set()
    for features in ("", "atomic_rmw"):
        assert user.kunit("run", "--arch=arm64", FEATURES=features).returncode == 0
        roots.add(str(user.calls()[-1]["root"]))
    assert len(roots) == 2
    assert user.kunit("run", "--arch=arm64", FEATURES="nothing").returncode == 125


def test_ccache_may_take_objects_of_another_checkout(user: User) -> None:
    user.kunit("run", "--arch=arm64")
    assert user.calls()[0]["shares"] == "1"
