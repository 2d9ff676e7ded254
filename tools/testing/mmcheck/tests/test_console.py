# SPDX-License-Identifier: GPL-2.0
"""The verdicts from the console of a boot, and the progress of a build that the user sees."""

import json
from pathlib import Path

from mmcheck.boot import console
from mmcheck.core.progress import Progress, duration
from mmcheck.dev import check
from mmcheck.kernel import make

CONSOLE = """\
[    0.000000] Booting Linux on physical CPU 0x0
[    0.912345] KTAP version 1
[    0.912346] 1..2
    KTAP version 1
    # Subtest: folio_pte_batch
    1..2
        KTAP version 1
        # Subtest: folio_pte_batch_whole_folio
        ok 1 order 2
        ok 2 order 9 # SKIP needs THP
    ok 1 folio_pte_batch_whole_folio
    not ok 2 folio_pte_batch_gap
not ok 1 folio_pte_batch
    KTAP version 1
    # Subtest: contpte
    1..2
    ok 1 set_ptes_aligned # SKIP known issue 1: young is lost
"""


def test_a_boot_that_ended_in_a_suite() -> None:
    said = console.read(CONSOLE.splitlines())
    assert said.planned == 2
    assert said.finished == ["folio_pte_batch"]
    assert (said.suite, said.last) == ("contpte", "set_ptes_aligned")
    assert not said.complete


def test_a_boot_that_finished() -> None:
    said = console.read([*CONSOLE.splitlines(), "    ok 2 x", "ok 2 contpte"])
    assert said.complete
    assert said.suite == ""
    assert console.read([]).planned is None


def test_the_reason_of_the_end() -> None:
    lines = [*CONSOLE.splitlines(), "[  61.0] # contpte: x: hang: no end after 60 s", "Kernel panic - not syncing: y"]
    assert console.read(lines).reason == "# contpte: x: hang: no end after 60 s"


def test_a_page_dump_without_its_warning_is_expected_by_the_test() -> None:
    dump = ["page: refcount:1 mapcount:0", "page dumped because: VM_WARN_ON_FOLIO(!folio_test_large(folio))"]
    assert console.read(dump).splats == 0
    assert console.read([*dump, "WARNING: CPU: 0 PID: 9 at mm/util.c:1 f+0x1/0x2"]).splats == 1
    assert console.read([*dump, "WARNING: mm/util.c:1 at f+0x1/0x2, CPU#0: kunit/9"]).splats == 1
    assert console.read(["page dumped because: nonzero mapcount"]).splats == 1


def test_progress_line() -> None:
    shown = Progress("building", 2480)
    shown.done = 1234
    assert shown.line(100.0, "CC mm/memory.o") == "building [1234/2480] 1m40s, 1m41s left CC mm/memory.o"
    guessed = Progress("building", 1000, exact=False)
    guessed.done = 10
    assert guessed.line(3.0, "") == "building [10/~1000] 3s"
    assert Progress("building").line(3.0, "") == "building [0] 3s"
    assert duration(59.4) == "59s"


def test_nothing_is_built_twice(tmp_path: Path) -> None:
    build = tmp_path
    (build / ".config").write_text("CONFIG_A=y\n")
    arguments = ["all", "ARCH=arm64", f"O={build}", "--jobs=2"]
    assert not make.up_to_date(make.identity("s", arguments, build), build)
    (build / "vmlinux").write_text("image")
    (build / make.RECORD).write_text(json.dumps(make.identity("s", arguments, build)))
    same = [f"O={build}", "olddefconfig", "ARCH=arm64", "--jobs=9"]
    assert make.up_to_date(make.identity("s", same, build), build)
    assert not make.up_to_date(make.identity("other", same, build), build)
    assert not make.up_to_date(make.identity("s", [*same, "W=1"], build), build)
    (build / ".config").write_text("CONFIG_B=y\n")
    assert not make.up_to_date(make.identity("s", same, build), build)
    (build / ".config").write_text("CONFIG_A=y\n")
    assert make.up_to_date(make.identity("s", same, build), build)
    (build / "vmlinux").unlink()
    assert not make.up_to_date(make.identity("s", same, build), build)


def test_verdicts_are_counted_by_case() -> None:
    inner = {"name": "p", "sub_groups": [], "test_cases": [{"name": "1", "status": "SKIP"}]}
    suite = {"name": "s", "sub_groups": [inner], "test_cases": [{"name": "c", "status": "FAIL"}]}
    assert list(check.cases({"sub_groups": [suite], "test_cases": []})) == [("s.c", "FAIL"), ("s.p.1", "SKIP")]
