# SPDX-License-Identifier: GPL-2.0
"""./mmcheck debug stops at the function of a case, in a debugger for the architecture, or says how to do this."""

import re
import subprocess
from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import suites
from mmcheck.run import debug

from .conftest import User

CASE = "contpte.set_ptes_to_table_end"
GDB = """#!/bin/sh
# A gdb that knows only some architectures, and notes its arguments.
case "$*" in
*"set architecture"*) case "$*" in *{knows}*) exit 0;; *) echo 'Undefined item: "x".' >&2; exit 0;; esac;;
esac
until grep -q -e "-S -gdb" "$FAKE_CALLS.qemu"; do sleep 0.1; done  # the end of gdb ends the machine
echo "$0 $*" >> "$FAKE_CALLS.gdb"
exit {status}
"""
QEMU = '#!/bin/sh\ncase "$*" in *-version*) exit 0;; esac\necho console\necho "$*" >> "$FAKE_CALLS.qemu"\n'


def install(user: User, name: str, text: str) -> None:
    path = Path(user.environment["PATH"].partition(":")[0]) / name
    path.write_text(text)
    path.chmod(0o755)


def called(user: User, what: str) -> str:
    path = Path(f"{user.environment['FAKE_CALLS']}.{what}")
    return path.read_text() if path.exists() else ""


def run(user: User, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    install(user, "qemu-system-aarch64", QEMU)
    environment = {**user.environment, **more}
    command = [str(PROJECT / "mmcheck"), "debug", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=user.home, timeout=60)


@pytest.mark.parametrize("arch", sorted(debug.ARCHES))
def test_each_case_is_a_function_of_its_file(arch: str) -> None:
    number = 0
    for one in suites.suites(arch):
        for case in one.cases:
            number += 1
            assert re.search(rf"^static void (?:\w+ )?{case}\(struct kunit", one.text, re.MULTILINE), case
    assert number > 100
    assert debug.place("arm64", CASE) == "contpte_kunit.c:set_ptes_to_table_end"


@pytest.mark.parametrize(
    ("arch", "case", "why"),
    [
        ("arm64", "", "CASE=: give one case as SUITE.CASE, without a parameter"),
        ("arm64", "contpte", "contpte: give one case as SUITE.CASE, without a parameter"),
        ("arm64", "contpte.a: 16", "contpte.a: 16: give one case as SUITE.CASE, without a parameter"),
        ("arm64", "nosuch.a", "nosuch.a: arm64 has no suite nosuch; choose from "),
        ("x86_64", CASE, f"{CASE}: x86_64 has no suite contpte; choose from "),
        ("arm64", "contpte.nosuch", "contpte.nosuch: the suite contpte has no such case; choose from "),
    ],
)
def test_a_case_that_is_missing_is_one_line(arch: str, case: str, why: str) -> None:
    with pytest.raises(UserError) as error:
        debug.place(arch, case)
    assert str(error.value).startswith(why)


def test_a_bad_case_or_debugger_starts_nothing(user: User) -> None:
    for words in (["contpte", "--arch", "arm64"], [CASE, "--arch", "um"], [CASE, "--arch", "arm64", "--gdb", "no-gdb"]):
        done = run(user, *words)
        assert done.returncode == 125 and done.stderr.count("\n") == 1 and user.calls() == [], done.stderr


def test_gdb_attaches_and_runs_to_the_case(user: User) -> None:
    install(user, "gdb-multiarch", GDB.format(knows="mips", status=0))
    install(user, "gdb", GDB.format(knows="aarch64", status=0))
    done = run(user, CASE, "--arch", "arm64", "--gdb-args", "--batch -ex bt")
    assert done.returncode == 0, done.stderr
    (command,) = called(user, "gdb").splitlines()
    assert "bin/gdb -q -iex add-auto-load-safe-path" in command
    port = re.search(r"-ex target remote 127.0.0.1:(\d+) -ex break contpte_kunit.c:set_ptes_to_table_end ", command)
    assert port and re.search(r"-ex continue --batch -ex bt \S+/vmlinux$", command)
    qemu = called(user, "qemu").splitlines()[-1]
    assert f"-S -gdb tcp:127.0.0.1:{port[1]}" in qemu
    assert f"kunit.filter_glob={CASE} nokaslr arm64.nopauth " in qemu
    (build,) = [call for call in user.calls() if call["verb"] == "build"]
    assert "--kconfig_add=CONFIG_GDB_SCRIPTS=y" in str(build["arguments"])
    assert build["shares"] is None, "objects of another checkout name the sources of that checkout"
    (log,) = Path(user.environment["O"]).glob("tree/*/*/debug.log")
    assert log.read_text() == "console\n"


def test_a_debugger_that_fails_is_no_success(user: User) -> None:
    install(user, "gdb-multiarch", GDB.format(knows="aarch64", status=1))
    done = run(user, CASE, "--arch", "arm64")
    assert done.returncode == 125 and "gdb-multiarch ended with status 1" in done.stderr


def test_without_gdb_it_prints_how_to_attach(user: User) -> None:
    for name in debug.DEBUGGERS:
        install(user, name, GDB.format(knows="mips", status=0))
    done = run(user, CASE, "--arch", "arm64")
    assert done.returncode == 0 and called(user, "gdb") == "", done.stderr
    assert "attach with: gdb-multiarch -q " in done.stderr
    assert "then break contpte_kunit.c:set_ptes_to_table_end; ^C ends the machine" in done.stderr
