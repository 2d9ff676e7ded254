# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck audit` and AUDIT=1: the programs in the machine, and the results of the audit after a program."""

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.boot import guest, results
from mmcheck.core.errors import UserError
from mmcheck.run import audit, kselftest


def program(path: Path, machine: int, kinds: list[int], mode: int = 0o755) -> Path:
    """Write an ELF file with these types of program headers."""
    head = (
        b"\x7fELF" + bytes(12) + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, len(kinds), 0, 0, 0)
    )
    path.write_bytes(head + b"".join(struct.pack("<I", kind) + bytes(52) for kind in kinds))
    path.chmod(mode)
    return path


def test_a_static_program_runs_with_its_arguments(tmp_path: Path) -> None:
    path = program(tmp_path / "my prog", audit.MACHINE["arm64"], [1, 1])
    name, text, files = audit.script(f"'{path}' -n 'a b'", "arm64")
    assert (name, files) == ("my_prog", {"my_prog.program": path})
    assert text == "#!/bin/sh\nexec ./my_prog.program -n 'a b'\n"


def test_a_line_that_names_no_file_is_for_the_shell() -> None:
    name, text, files = audit.script("cat /proc/meminfo | wc -l", "arm64")
    assert (name, text, files) == ("cat", "#!/bin/sh\ncat /proc/meminfo | wc -l\n", {})


def test_a_script_is_not_judged_as_a_program(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert audit.script(str(path), "arm64")[2] == {"run_sh.program": path}


@pytest.mark.parametrize(
    ("machine", "kinds", "mode", "complaint"),
    [
        (audit.MACHINE["arm64"], [1, audit.INTERPRETER], 0o755, "not static: link it with -static"),
        (audit.MACHINE["x86_64"], [1], 0o755, "is not a program for arm64"),
        (audit.MACHINE["arm64"], [1], 0o644, "not executable: chmod"),
    ],
)
def test_a_program_that_cannot_run_is_refused(
    tmp_path: Path, machine: int, kinds: list[int], mode: int, complaint: str
) -> None:
    path = program(tmp_path / "prog", machine, kinds, mode)
    with pytest.raises(UserError, match=complaint):
        audit.script(str(path), "arm64")


@pytest.mark.parametrize(("line", "complaint"), [("", "no program: "), ("'x", "No closing quotation")])
def test_bad_lines_are_refused(line: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        audit.script(line, "arm64")


def test_words_after_two_dashes_are_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run(_: str, environ: Mapping[str, str]) -> int:
        seen.append(environ["COMMAND"])
        return 0

    monkeypatch.setattr(verbs, "run", run)
    monkeypatch.setenv("COMMAND", "")
    for given, wanted in ((["./a", "-n", "x y"], "./a -n 'x y'"), (["cat /a | wc"], "cat /a | wc")):
        verbs.main(["audit", "--arch", "arm64", "--", *given])
        assert seen.pop() == wanted


CONSOLE = """\
# selftests: mm: one
ok 1 one.first
#  RUN           one.audit ...
# rss: anonymous pages: 2, expected 1, process sh (1)
# mm_audit: 1 mms, 9 entries, 7 folios, 1 violations
not ok 0 one.audit
not ok 1 selftests: mm: one # AUDIT
# selftests: mm: two
#  RUN           two.audit ...
# mm_audit: 1 mms, 9 entries, 7 folios, 0 violations
ok 0 two.audit
ok 2 selftests: mm: two
"""


def test_the_audit_is_a_case_of_its_program() -> None:
    reader = results.Reader()
    for number, line in enumerate(CONSOLE.splitlines()):
        for _ in reader.feed(f"[    {number}.000000] {line}"):
            pass
    found = [(case.suite, case.name, case.state) for case in reader.cases]
    assert found == [("one", "first", "passed"), ("one", "audit", "failed"), ("two", "audit", "passed")]
    assert reader.cases[1].text[0].startswith("rss: ")
    assert kselftest.audits(reader.cases).startswith("2 audits took ")
    assert kselftest.audits(reader.cases).endswith("1 audits found violations")
    assert kselftest.audits(reader.cases[:1]) == ""


def test_audits_need_the_auditor_in_the_kernel() -> None:
    assert kselftest.configuration({"AUDIT": "1", "KCONFIG_ADD": "CONFIG_A=y"}) == ["CONFIG_A=y", "CONFIG_MM_AUDIT=y"]
    assert kselftest.configuration({}) == []


def test_init_is_a_script_that_the_shell_can_read() -> None:
    assert subprocess.run(["sh", "-n", guest.HERE / "init"]).returncode == 0
