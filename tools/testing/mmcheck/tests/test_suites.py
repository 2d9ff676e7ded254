# SPDX-License-Identifier: GPL-2.0
"""The sources of suites and their library: names that each suite must have, and names that the library may not have."""

import re
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT

SUITES = [path for path in sorted(PROJECT.glob("**/mm/tests/*_kunit.c")) if "out" not in path.parts]
SUITES += sorted(PROJECT.glob("lib/*/tests/*_kunit.c"))
LIBRARY = PROJECT / "lib/pgtable_kunit"


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_the_watchdog_knows_the_suite(path: Path) -> None:
    text = path.read_text()
    named = re.search(r"^\t\.suite_init = (\w+),$", text, re.MULTILINE)
    assert "pgtable_kunit_case_init(" in text or (named and f"{named[1]}(" in f"{text}pgtable_kunit_suite_init(")
    assert named is None or "pgtable_kunit_suite_init" in text


def test_the_library_names_no_suite() -> None:
    assert not re.search(r"CONFIG_\w+_KUNIT_TEST\b", (LIBRARY / "Makefile").read_text())


def test_each_header_has_one_job() -> None:
    for path in [*LIBRARY.glob("*.h"), *PROJECT.glob("arch/*/mm/tests/*.h")]:
        assert len(path.read_text().splitlines()) < 600, path
    assert "CONFIG_ARM64_CONTPTE" not in (LIBRARY / "compat.h").read_text()
