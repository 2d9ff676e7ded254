# SPDX-License-Identifier: GPL-2.0
"""What lcov says, read as a table of functions."""

from pathlib import Path

import pytest

from mmcheck import coverage
from mmcheck.errors import UserError
from mmcheck.settings import from_environment

INFO = """\
TN:
SF:/o/tree/linux/mm/a.c
FN:10,one
FN:20,two.constprop.0
FN:30,other
DA:11,5
DA:12,0
DA:21,3
DA:22,3
DA:31,0
BRDA:11,0,0,5
BRDA:11,0,1,0
BRDA:12,0,0,-
BRDA:21,0,0,1
BRDA:21,0,1,2
end_of_record
SF:/o/tree/linux/mm/b.c
FN:1,elsewhere
DA:1,1
end_of_record
"""
FILES = [coverage.Wanted("mm/a.c", ("one", "two"), {"one": "line 12 needs a fault"})]


def test_functions_have_their_lines_and_branches() -> None:
    one, two = coverage.read(INFO, FILES)
    assert (one.name, one.missed, one.one_way) == ("one", [12], [11])
    assert (two.name, two.missed, two.one_way) == ("two", [], [])
    assert coverage.share(one.lines.values()) == (1, 2)
    assert coverage.share(one.branches.values()) == (1, 2)


def test_the_table_says_what_did_not_run_and_why() -> None:
    text = coverage.table(coverage.read(INFO, FILES), FILES)
    assert "mm/a.c  lines  75.0% 3/4" in text
    assert "not run: 12; one way only: 11" in text
    assert "line 12 needs a fault" in text
    assert "other" not in text and "elsewhere" not in text


def test_the_code_under_test_of_the_project_is_readable() -> None:
    files = coverage.wanted()
    assert "arch/arm64/mm/contpte.c" in [file.file for file in files]
    assert all(file.functions for file in files)


def test_an_architecture_without_a_machine_is_one_line(tmp_path: Path) -> None:
    settings = from_environment({"ARCH": "um", "O": str(tmp_path), "HOME": str(tmp_path)})
    with pytest.raises(UserError, match="ARCH=um: coverage is measured on arm64, x86_64"):
        coverage.Session(settings)
