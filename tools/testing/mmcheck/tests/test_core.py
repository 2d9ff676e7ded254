# SPDX-License-Identifier: GPL-2.0
"""The short series of patches. It is for one kernel only, and has no watchdog and no list of known issues."""

import re
from pathlib import Path

import pytest

from mmcheck.dev.series import core, main, resolve
from mmcheck.dev.series.overlay import SUBJECTS
from mmcheck.dev.series.steps import plan

from .conftest import fake_tree
from .test_probes import tree
from .test_series import MAINTAINERS, commit, git


@pytest.fixture
def series(tmp_path: Path) -> core.Core:
    return core.Core(tree(tmp_path, "yes"))


def test_it_has_the_suites_and_what_they_include(series: core.Core) -> None:
    steps = plan(series)
    added = [name for step in steps for name in step.sources]
    assert sorted(added) == sorted(name for name in series.texts if name.endswith((".c", ".h")))
    assert {step.heads[0] for step in steps if step.name} == set(core.SUITES)
    assert {str(Path(name).parent) for name in added} <= SUBJECTS.keys()


def test_it_is_three_series_that_a_maintainer_can_review(series: core.Core) -> None:
    steps = plan(series)
    assert [step.part for step in steps] == sorted(step.part for step in steps)
    for number, (suites, letter) in enumerate(zip(core.PARTS, core.LETTERS, strict=True)):
        own = [step for step in steps if step.part == number]
        assert {step.heads[0] for step in own if step.name} == set(suites)
        assert sum(len(series.texts[name].splitlines()) for step in own for name in step.sources) < 4500
        assert len(letter.splitlines()[0]) <= 80


def test_each_series_gets_its_folder_and_its_cover_letter(
    tmp_path: Path, series: core.Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Jane Doe")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "jane@example.org")
    linux = fake_tree(tmp_path / "linux")
    (linux / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 3\n")
    (linux / "MAINTAINERS").write_text(MAINTAINERS)
    made = main.make(linux, tmp_path / "new", ("Jane", "jane@example.org"), "2026-01-01T00:00:00Z", tmp_path, series)
    assert [len(patches) - 1 for patches in made] == [
        sum(step.part == number for step in plan(series)) for number in range(len(core.PARTS))
    ]
    for patches, letter in zip(made, core.LETTERS, strict=True):
        said = " ".join(patches[0].read_text().split())
        assert letter.splitlines()[0] in said and f"PATCH 0/{len(patches) - 1}" in said
    repository = tmp_path / "linux"
    commit(repository)
    for patches in made:
        git(repository, "am", "-q", "--empty=drop", *map(str, patches))
    assert git(repository, "status", "--porcelain") == ""


def test_nothing_of_other_kernels_is_left(series: core.Core) -> None:
    gone = r"PGTABLE_KUNIT_HAS_|compat\.h|probe\.(mk|sh)|(known|stale|has).issue|pgtable_kunit_(suite_|case_)?init\b"
    for name in (name for name in series.texts if name.endswith((".c", ".h"))):
        assert not re.search(gone, series.texts[name]), name
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
