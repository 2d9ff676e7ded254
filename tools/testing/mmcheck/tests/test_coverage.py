# SPDX-License-Identifier: GPL-2.0
"""The table of functions that make coverage makes from the tracefiles of lcov."""

from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.core.settings import from_environment
from mmcheck.study import coverage

SOURCE = """\
int one(int x)
{
\tif (x)
\t\treturn 1;
\treturn 2;
}

static inline void two(void)
{
\tthree();
}

void other(void)
{
}
"""
INFO = """\
TN:
SF:{folder}/mm/a.c
FN:1,one
FN:8,two.constprop.0
DA:1,5
DA:3,5
DA:4,0
DA:10,3
DA:14,0
BRDA:3,0,0,5
BRDA:3,0,1,0
BRDA:4,0,0,-
BRDA:10,0,0,1
BRDA:10,0,1,2
end_of_record
SF:{folder}/mm/b.c
FN:1,elsewhere
DA:1,1
end_of_record
"""
FILES = [coverage.Wanted("mm/a.c", ("one", "two"), {"one": "line 4 needs a fault"})]


@pytest.fixture
def info(tmp_path: Path) -> str:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/a.c").write_text(SOURCE)
    return INFO.format(folder=tmp_path)


def test_functions_have_their_lines_and_branches(info: str) -> None:
    one, two = coverage.read(info, FILES)
    assert (one.name, one.missed, one.one_way) == ("one", [4], [3])
    assert (two.name, two.missed, two.one_way) == ("two", [], [])
    assert coverage.share(one.lines.values()) == (1, 2)
    assert coverage.share(one.branches.values()) == (1, 2)


def test_the_table_says_what_did_not_run_and_why(info: str) -> None:
    text = coverage.table(coverage.read(info, FILES), FILES)
    assert "mm/a.c  lines  66.7% 2/3" in text
    assert "not run: 4; one way only: 3" in text
    assert "line 4 needs a fault" in text
    assert "other" not in text and "elsewhere" not in text


def test_the_code_under_test_of_the_project_is_readable() -> None:
    files = coverage.wanted()
    assert "arch/arm64/mm/contpte.c" in [file.file for file in files]
    assert all(file.functions for file in files)


def test_an_architecture_without_a_machine_is_one_line(tmp_path: Path) -> None:
    settings = from_environment({"ARCH": "um", "O": str(tmp_path), "HOME": str(tmp_path)})
    with pytest.raises(UserError, match="ARCH=um: coverage is measured on arm64, x86_64"):
        coverage.Session(settings)
