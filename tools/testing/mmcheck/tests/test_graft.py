# SPDX-License-Identifier: GPL-2.0
"""The graft of the overlay into a tree in place, and its removal."""

from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.core.errors import UserError
from mmcheck.kernel import graft

from .conftest import state


def test_graft_twice_changes_nothing(tree: Path, project: Path) -> None:
    assert "files were added" in graft.graft(tree, project)
    once = state(tree)
    assert "nothing to do" in graft.graft(tree, project)
    assert state(tree) == once
    for edit in graft.EDITS:
        assert (tree / edit.path).read_text().count(edit.line) == 1


def test_ungraft_restores_byte_for_byte(tree: Path, project: Path) -> None:
    before = state(tree, links=False)
    graft.graft(tree, project)
    assert state(tree, links=False) != before
    graft.ungraft(tree)
    assert state(tree, links=False) == before
    assert "nothing to do" in graft.ungraft(tree)


def test_a_feature_is_hooked_in_and_out(tree: Path, project: Path) -> None:
    before = state(tree, links=False)
    fault = tree / graft.FAULT
    untouched = fault.read_text()
    graft.graft(tree, project, ["atomic_rmw"])
    assert fault.read_text().count("atomic_rmw_fault_flags(vma, mm_flags, regs)") == 2
    assert 'source "arch/arm64/Kconfig.atomic_rmw"' in (tree / "arch/arm64/Kconfig").read_text()
    once = state(tree)
    assert "nothing to do" in graft.graft(tree, project, ["atomic_rmw"])
    assert state(tree) == once
    graft.graft(tree, project)
    assert fault.read_text() == untouched
    graft.graft(tree, project, ["atomic_rmw"])
    graft.ungraft(tree)
    assert state(tree, links=False) == before


def test_a_fault_path_that_differs_is_named_with_the_way_around(tree: Path, project: Path) -> None:
    fault = tree / graft.FAULT
    fault.write_text(fault.read_text().replace("mm_flags", "flags"))
    before = state(tree)
    with pytest.raises(UserError, match=r"fault\.c.*FEATURES="):
        graft.graft(tree, project, ["atomic_rmw"])
    assert state(tree) == before


@pytest.mark.parametrize("step", range(10))
def test_ungraft_after_an_interrupted_graft(
    tree: Path, project: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power fails at the n-th file that the graft writes: after the write of the new file, before it is renamed."""
    before = state(tree, links=False)
    steps = iter(range(100))
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if next(steps) == step:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        try:
            graft.graft(tree, project)
            completed = True
        except KeyboardInterrupt:
            completed = False
    assert not completed or step == 9, "the graft has fewer writes than `step`, so it was not interrupted"
    if step % 2 and (tree / graft.JOURNAL).exists():
        graft.graft(tree, project)  # a second graft must complete the first graft
    graft.ungraft(tree)
    left = {name: value for name, value in state(tree, links=False).items() if not name.startswith(graft.JOURNAL)}
    assert left == before


def test_a_newer_overlay_over_an_older_one(tree: Path, project: Path) -> None:
    before = state(tree, links=False)
    graft.graft(tree, project)
    (project / "mm/tests/Makefile").write_text("# newer\n")
    (project / "mm/tests/b_kunit.c").write_text("")
    (project / "Kconfig.kunit").unlink()
    graft.graft(tree, project)
    assert (tree / "mm/tests/Makefile").read_text() == "# newer\n"
    assert (tree / "mm/tests/b_kunit.c").exists()
    assert not (tree / "Kconfig.kunit").exists()
    graft.ungraft(tree)
    assert state(tree, links=False) == before


@pytest.mark.parametrize("name", [e.path for e in graft.EDITS])
def test_a_tree_that_differs_is_named_and_left_alone(tree: Path, project: Path, name: str) -> None:
    (tree / name).write_text("# nothing that we know\n")
    before = state(tree)
    with pytest.raises(UserError, match=name):
        graft.graft(tree, project)
    assert state(tree) == before


def test_a_file_of_the_trees_own_is_not_overwritten(tree: Path, project: Path) -> None:
    (tree / "mm/tests").mkdir()
    (tree / "mm/tests/Makefile").write_text("# theirs\n")
    before = state(tree)
    with pytest.raises(UserError, match="mm/tests/Makefile exists and is not from mmcheck"):
        graft.graft(tree, project)
    assert state(tree) == before


@pytest.mark.parametrize("command", [graft.graft, graft.ungraft])
def test_work_done_in_a_grafted_file_is_not_lost(tree: Path, project: Path, command: object) -> None:
    graft.graft(tree, project)
    path = tree / "arch/arm64/mm/tests/a_kunit.c"
    path.write_text("an hour's work\n")
    before = state(tree)
    with pytest.raises(UserError, match=r"a_kunit\.c was changed since the graft"):
        command(tree) if command is graft.ungraft else graft.graft(tree, project)  # type: ignore[operator]
    assert state(tree) == before


def test_work_done_in_a_makefile_stays(tree: Path, project: Path) -> None:
    before = (tree / "mm/Makefile").read_text()
    graft.graft(tree, project)
    path = tree / "mm/Makefile"
    path.write_text(path.read_text() + "obj-y += mine.o\n")
    graft.ungraft(tree)
    assert path.read_text() == before + "obj-y += mine.o\n"


def test_a_line_that_is_there_already_stays(tree: Path, project: Path) -> None:
    path = tree / "mm/Makefile"
    path.write_text(path.read_text() + "obj-$(CONFIG_PGTABLE_KUNIT) += tests/\n")
    before = state(tree, links=False)
    graft.graft(tree, project)
    graft.ungraft(tree)
    assert state(tree, links=False) == before


def test_main_says_what_to_do(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("graft", {}) == 125
    assert "make graft KDIR=/path/to/linux" in capsys.readouterr().err
    (tree / graft.JOURNAL).write_text("{")
    assert verbs.run("ungraft", {"KDIR": str(tree)}) == 125
    assert "is damaged" in capsys.readouterr().err
