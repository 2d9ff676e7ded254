# SPDX-License-Identifier: GPL-2.0
"""The short series: for one kernel alone, without the watchdog and the list of known issues."""

import re
from pathlib import Path

import pytest

from mmcheck.dev.series import core, resolve
from mmcheck.dev.series.overlay import SUBJECTS
from mmcheck.dev.series.steps import plan

from .test_probes import tree


@pytest.fixture
def series(tmp_path: Path) -> core.Core:
    return core.Core(tree(tmp_path, "yes"))


def test_it_has_the_suites_and_what_they_include(series: core.Core) -> None:
    steps = plan(series)
    added = [name for step in steps for name in step.sources]
    assert sorted(added) == sorted(name for name in series.texts if name.endswith((".c", ".h")))
    assert {step.heads[0] for step in steps if step.name} == set(core.SUITES)
    assert {str(Path(name).parent) for name in added} <= SUBJECTS.keys()


def test_nothing_of_other_kernels_is_left(series: core.Core) -> None:
    gone = r"PGTABLE_KUNIT_HAS_|compat\.h|probe\.(mk|sh)|known.issue|stale_issue|pgtable_kunit_(suite_|case_)?init\b"
    cited = r"\s\[[a-z]+ \d+[\d, -]*\]"
    for name in (name for name in series.texts if name.endswith((".c", ".h"))):
        assert not re.search(f"{gone}|{cited}", series.texts[name]), name
    objects = {Path(name).with_suffix(".o").name for name in series.texts}
    for name in (name for name in series.texts if name.endswith("Makefile")):
        for word in re.findall(r"\b\w+\.o\b", re.sub(r"CFLAGS_\S+|\(obj\)/\S+", "", series.texts[name])):
            assert word in objects or f"{word[:-2]}-y" in series.texts[name], (name, word)


def test_conditions_of_probes_are_decided() -> None:
    answers = {"A": True, "B": False, "defined(B)": False, "defined(C)": True}
    text = "#ifdef A\n1\n#else\n2\n#endif\n#ifndef B\n3\n#endif\n#ifdef X\n4\n#ifdef B\n5\n#endif\n#else\n6\n#endif\n"
    assert resolve.chosen(text, answers.get) == "1\n3\n#ifdef X\n4\n#else\n6\n#endif\n"
    text = "#if defined(B)\n1\n#elif defined(C)\n2\n#else\n3\n#endif\n"
    assert resolve.chosen(text, answers.get) == "2\n"


def test_lines_stay_aligned_when_a_name_is_shorter() -> None:
    assert resolve.renamed("run_pgtable_kunit_get", {"pgtable_kunit_get": "get"}) == "run_get"
    text = "\tx = pgtable_kunit_get(a,\n\t\t\t      other(b,\n\t\t\t\t    c));\n\treturn x;"
    assert resolve.renamed(text, {"pgtable_kunit_get": "get"}) == (
        "\tx = get(a,\n\t\tother(b,\n\t\t      c));\n\treturn x;"
    )
