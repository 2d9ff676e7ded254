# SPDX-License-Identifier: GPL-2.0
"""Lists of names have the same form in all commands."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mmcheck.core import settings
from mmcheck.core.errors import UserError
from mmcheck.core.variables import name_list
from mmcheck.kernel import known_issues, shadow, source
from mmcheck.mutants import catalogue
from mmcheck.mutants import main as mutants
from mmcheck.run import selftests
from mmcheck.study import bench, bisect, patched, radar, selection
from mmcheck.tlb import judge
from mmcheck.tlb import main as tlb

FORMS = ("{} {}", "{},{}", "{}, {}", " {}  ,{}, ")
"""The ways to write a list of two names."""


@pytest.mark.parametrize("form", FORMS)
def test_commas_and_blanks_separate_names(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_list(form.format("a*", "b")) == ["a*", "b"]
    chosen = selftests.chosen(selftests.programs(), form.format("folio_fork", "contpte_fold.xfs.*"))
    assert {one.name: bool(one.cases) for one in chosen}.keys() == {"folio_fork", "contpte_fold"}
    both = form.format("zap_*", "unfold_partial_start_never")
    names = {one.name for one in catalogue.load(catalogue.FOLDER) if mutants.chosen(one, both)}
    assert "unfold_partial_start_never" in names and {name.partition("_")[0] for name in names} == {"unfold", "zap"}
    first, *_, last = sorted(one.name for one in judge.wanted("*"))
    assert {one.name for one in judge.wanted(form.format(first, last))} == {first, last}
    assert selection.touched({"FILES": form.format("mm/a.c", "mm/b.c")}) == ["mm/a.c", "mm/b.c"]
    issues = [SimpleNamespace(number=number, shown=lambda *_: True) for number in (1, 2, 21)]
    monkeypatch.setattr(known_issues, "load", lambda: issues)
    monkeypatch.setattr(known_issues, "version_of", lambda _: "")
    monkeypatch.setattr(shadow, "reader", lambda *_: None)
    tree = SimpleNamespace(path=Path(), label="")
    own = settings.from_environment({"HOME": "/"})
    assert patched.known(tree, own, {"ONLY": form.format("2", "1")}) == issues[:2]  # type: ignore[arg-type]


def test_a_list_of_benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[object] = []

    def measured(*words: object) -> dict[str, object]:
        asked.append(words[2])
        return {}

    monkeypatch.setattr(source, "obtain", lambda _: None)
    monkeypatch.setattr(bench, "measured", measured)
    environ = {"HOME": str(tmp_path), "O": str(tmp_path)}
    with pytest.raises(UserError, match="ONLY=other: use folio_bench, "):
        bench.run({**environ, "ONLY": "linear_map,other"})
    assert bench.run({**environ, "ONLY": "linear_map, folio_bench"}) == 0
    assert bench.run(environ) == 0
    assert asked[0] == ["linear_map", "folio_bench"] and len(asked) == 2 and len(str(asked[1]).split()) == 5


@pytest.mark.parametrize("only", ["contpte* folio*", "contpte*,folio*"])
def test_kunit_takes_one_glob(only: str, tmp_path: Path) -> None:
    (tmp_path / "fix.patch").touch()
    environ = {"HOME": str(tmp_path), "O": str(tmp_path / "out"), "ONLY": only}
    environ |= {"GOOD": "a", "BAD": "b", "SERIES": str(tmp_path / "fix.patch")}
    for command in (bisect.run, radar.run, tlb.run):
        with pytest.raises(UserError, match=r"give one glob of suites, such as 'contpte\*'; KUnit takes no list"):
            command(environ)
    assert not (tmp_path / "out").exists()
