# SPDX-License-Identifier: GPL-2.0
"""The overlay as patches: they apply, each state is consistent, and the last state is the graft without features."""

import difflib
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.core import ours
from mmcheck.core.errors import UserError
from mmcheck.dev.series import main, maintainers, message
from mmcheck.dev.series.makefile import Makefile
from mmcheck.dev.series.overlay import Overlay
from mmcheck.dev.series.steps import Step, plan
from mmcheck.kernel import graft

from .conftest import fake_tree, state

MAINTAINERS = """\
List of maintainers
===================

Maintainers List
----------------

3C59X NETWORK DRIVER
M:\tSomebody <somebody@example.org>
F:\tdrivers/net/3c59x.c

MEMORY MANAGEMENT - OOM KILLER
M:\tSomebody <somebody@example.org>
F:\tmm/oom_kill.c

MEMORY MANAGEMENT - RECLAIM
M:\tSomebody <somebody@example.org>
F:\tmm/vmscan.c

THE REST
M:\tSomebody <somebody@example.org>
F:\t*
"""
PERSON = "Jane Doe <jane@example.org>"
FEATURE = re.compile(r"atomic_rmw|ATOMIC_RMW|user_run|atomic_(?:fault|file|ops)")
"""Names that belong to the feature, or that only the suites of the feature use."""

Command = Callable[..., int]


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    tree = fake_tree(tmp_path / "linux")
    (tree / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION = -rc1\n")
    (tree / "MAINTAINERS").write_text(MAINTAINERS)
    (tree / "mm/tests").mkdir()
    (tree / "mm/tests/lazy_mmu_mode_kunit.c").write_text("int theirs;\n")
    return tree


@pytest.fixture
def command(tmp_path: Path, linux: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs `make series` for the fake tree, with output in tmp_path/out. git only knows a name and an address."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n[format]\n\tsignature = mine\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)

    def run(**variables: str) -> int:
        return verbs.run("series", {"KDIR": str(linux), "O": str(tmp_path / "out"), "HOME": str(tmp_path), **variables})

    yield run


def patches(tmp_path: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((tmp_path / "out/series").glob("*.patch"))}


def commit(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "base")


def states(linux: Path) -> Iterator[tuple[dict[str, str], Step, Overlay]]:
    """For each patch, all files of the tree after the patch that we added or changed."""
    overlay = Overlay()
    steps = plan(overlay)
    base = main.base_files(linux, overlay)
    for step, files in zip(steps, main.states(linux, base, overlay, steps, PERSON), strict=True):
        yield files, step, overlay


def test_git_am_gives_the_graft_without_features(tmp_path: Path, linux: Path, command: Command) -> None:
    commit(linux)
    grafted = tmp_path / "grafted"
    shutil.copytree(linux, grafted)
    graft.graft(grafted)
    before = state(linux)
    assert command() == 0
    assert {name: s for name, s in state(linux).items() if ".git" not in name} == {
        name: s for name, s in before.items() if ".git" not in name
    }
    done = subprocess.run(
        ["git", "am", "-q", "--empty=drop", *sorted((tmp_path / "out/series").glob("*.patch"))],
        cwd=linux, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")

    names = set(git(linux, "ls-files").split())
    wanted = {str(p.relative_to(grafted)) for p in grafted.rglob("*") if p.is_file() and ".git/" not in str(p)}
    wanted.remove(graft.JOURNAL)
    assert names <= wanted
    assert wanted - names
    assert all(FEATURE.search(name) for name in wanted - names)
    assert not any(FEATURE.search(name) for name in names)
    cut = []
    for name in sorted(names - {"MAINTAINERS"}):
        ours, theirs = (linux / name).read_text(), (grafted / name).read_text()
        if ours != theirs:
            cut.append(name)
            changes = [line for line in difflib.ndiff(theirs.splitlines(), ours.splitlines()) if line[0] in "+-"]
            assert not any(line.startswith("+") for line in changes), name
            if name.startswith("Kconfig"):
                gone = set(re.findall(r"^- config (\w+)", "\n".join(changes), re.MULTILINE))
                assert gone == {
                    symbol for symbol in re.findall(r"^config (\w+)", theirs, re.M) if FEATURE.search(symbol)
                }
            else:
                # Join the continuation lines of a list with its first line.
                pieces = re.split(r"(?=obj-|CFLAGS_|TEST_)", " ".join(line[1:].strip("\t \\") for line in changes))
                assert all(FEATURE.search(piece) for piece in pieces if piece.strip())
    assert all(Path(name).name in ("Makefile", "Kconfig.kunit", "folio_tests.mk") for name in cut)
    assert not FEATURE.search(git(linux, "grep", "-h", "CONFIG_"))


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, command: Command) -> None:
    assert command() == 0
    first = patches(tmp_path)
    assert command() == 0
    assert patches(tmp_path) == first
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["series"]


def test_each_step_has_what_it_names(linux: Path) -> None:
    for files, step, overlay in states(linux):
        for name, text in files.items():
            for path in re.findall(r'#include "(.*)"', text):
                known = [other for other in overlay.texts if other.endswith(f"/{path}")]
                assert not known or set(known) & files.keys(), f"{step.subject}: {name} includes {path}"
            if Path(name).name == "Makefile" and name in overlay.texts:
                for word in re.findall(r"\b(\w+)\.o\b", text.replace("CFLAGS_", "")):
                    own = f"{Path(name).parent}/{word}.c"
                    assert own in files or f"{word}-" in text, f"{step.subject}: {name} names {word}.o"
                    assert own not in overlay.texts or own in files
                assert text.count("\nifdef") == text.count("\nendif")
                assert "\n\n\n" not in text and not text.endswith("\n\n")
            for path in re.findall(r'^source "(\S*(?:kunit|rmap_id).*)"', text, re.MULTILINE):
                assert path in files
        listed = {s for name, text in files.items() if name.endswith("Makefile")
                  for s in re.findall(r"^obj-\$\(CONFIG_(\w+)\)", text, re.MULTILINE)}  # fmt: skip
        entries = set(re.findall(r"^config (\w+_KUNIT_TEST)$", files["Kconfig.kunit"], re.MULTILINE))
        assert entries <= listed, step.subject
        assert {s for s in listed if s.endswith("KUNIT_TEST") and s in overlay.symbols} <= {
            s for text in files.values() for s in re.findall(r"^config (\w+)", text, re.MULTILINE)
        }


def test_each_step_links(linux: Path) -> None:
    """The functions that a source calls come with the same patch or with an earlier patch."""
    overlay = Overlay()
    defined: dict[str, str] = {}
    for name, text in overlay.texts.items():
        if name.endswith(".c") and not name.startswith(graft.SELFTESTS):
            pattern = r"^(?!static|typedef|#)\w[\w *]*?[ *](\w+)\([^;{]*\)\n\{"
            defined |= dict.fromkeys(re.findall(pattern, text, re.MULTILINE), name)
    assert len(defined) > 50
    for files, step, _ in states(linux):
        for name in (source for source in step.sources if source.endswith(".c")):
            for word in set(re.findall(r"\b(\w+)\(", files[name])) & defined.keys():
                assert defined[word] in files, f"{step.subject}: {name} calls {word}()"


def test_messages_have_the_form_of_the_kernel(tmp_path: Path, command: Command) -> None:
    assert command() == 0
    made = patches(tmp_path)
    assert len(made) > 50
    suites = set()
    for number, (name, text) in enumerate(made.items()):
        assert name.startswith(f"{number:04}-")
        assert f"\nFrom: {PERSON}\n" in text
        head, _, rest = text.partition("\n\n")
        subject = " ".join(line.strip() for line in head.partition("Subject: ")[2].splitlines()).partition("] ")[2]
        assert len(subject) <= 75
        assert "***" not in text.partition("\ndiff --git")[0]
        if number:
            message = rest.partition("\n---\n")[0]
            assert re.match(r"(mm/tests|arm64: mm|riscv: mm|lib/\w+|selftests/mm): ", subject)
            assert number > 1 or subject.startswith("lib/pgtable_kunit: "), subject
            assert message.endswith(f"\n\nSigned-off-by: {PERSON}")
            assert all(len(line) <= 75 for line in message.splitlines())
            assert re.search(r"^ MAINTAINERS +\|", rest, re.MULTILINE)
            suites.update(re.findall(r"add KUnit suite (\w+)", subject))
            assert len(re.findall(r"^ create mode \d+ \S+_kunit\.c$", rest, re.MULTILINE)) == ("suite " in subject)
    assert {"contpte_fold", "folio_pte_batch", "rmap_id"} <= suites
    assert "atomic_rmw_insn" not in suites


def test_maintainers_has_the_entry_at_its_place_and_all_files_in_it(linux: Path) -> None:
    *_, (files, _, _) = states(linux)
    text = files["MAINTAINERS"]
    titles = re.findall(r"\n\n(.*)\nM:", text)
    assert titles == sorted(titles, key=lambda title: (title == "THE REST", title.upper()))
    entry = text.partition(f"{maintainers.TITLE}\n")[2].partition("\n\n")[0].splitlines()
    assert entry[0] == f"M:\t{PERSON}"
    paths = [line[3:] for line in entry if line.startswith("F:")]
    assert paths == sorted(paths)
    for name in files.keys() - {"MAINTAINERS"} - {edit.path for edit in graft.EDITS}:
        assert any(Path(name).match(path) for path in paths), name
    assert not any(Path("mm/tests/lazy_mmu_mode_kunit.c").match(path) for path in paths)
    assert text.replace("\n".join([maintainers.TITLE, *entry, "", ""]), "") == MAINTAINERS


def test_the_cover_letter_says_what_there_is(tmp_path: Path, linux: Path, command: Command) -> None:
    commit(linux)
    assert command() == 0
    letter = patches(tmp_path)["0000-cover-letter.patch"]
    head = git(linux, "rev-parse", "HEAD").strip()
    assert f"\nMade for Linux 7.3.4-rc1.\n\nbase-commit: {head}\n" in letter
    assert re.search(r"^- contpte_read: Contiguous PTEs: readers\.$", letter, re.MULTILINE)
    assert re.search(r"^- folio_file: ", letter, re.MULTILINE)
    assert "These suites are left out" in letter and "atomic_fault" in letter
    assert "Cases by their verdicts" not in letter
    assert re.search(r"^ \d+ files changed, \d+ insertions", letter, re.MULTILINE)

    cases = [("kunit 7.3-arm64 set_ptes", "passed"), ("kunit 7.3-arm64 set_ptes", "skipped"),
             ("kunit 7.3-arm64 atomic_rmw_insn", "passed"), ("kselftest 7.3 folio_file", "failed")]  # fmt: skip
    (tmp_path / "out/results").mkdir()
    found = {"cases": [{"suite": suite, "name": "a", "state": verdict} for suite, verdict in cases]}
    (tmp_path / "out/results/results.json").write_text(json.dumps(found))
    assert command() == 0
    letter = patches(tmp_path)["0000-cover-letter.patch"]
    assert re.search(
        r"^ +passed +failed +skipped\n  kunit 7\.3-arm64 +1 +0 +1\n  kselftest 7\.3 +0 +1 +0\n", letter, re.M
    )


def old(tree: Path) -> None:
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")


def edited(tree: Path) -> None:
    commit(tree)
    (tree / "mm/Makefile").write_text((tree / "mm/Makefile").read_text() + "obj-y += mine.o\n")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (shutil.rmtree, "no such folder"),
        (lambda tree: (tree / "Kconfig").unlink(), "not a kernel tree"),
        (graft.graft, "make ungraft"),
        (lambda tree: shutil.copy(tree / "Makefile", tree / "Kconfig.kunit"), "Kconfig.kunit exists already"),
        (old, "Linux 6.1 is too old"),
        (edited, "mm/Makefile has uncommitted changes"),
        (lambda tree: (tree / "MAINTAINERS").unlink(), "MAINTAINERS"),
        (lambda tree: (tree / "MAINTAINERS").write_text(""), "MAINTAINERS"),
        (lambda tree: (tree / "mm/Makefile").write_text(""), "mm/Makefile: no line matches"),
        (lambda tree: (tree.parent / "gitconfig").write_text(""), "user.name and user.email"),
        (lambda tree: (tree.parent / "out/results/results.json").write_text("{"), "results.json is damaged"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path,
    linux: Path,
    command: Command,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
    said: str,
) -> None:
    folder = tmp_path / "out/series"
    folder.mkdir(parents=True)
    for name in ("0001-mine.patch", ours.MARKER):
        (folder / name).write_text("kept\n")
    (tmp_path / "out/results").mkdir()
    spoil(linux)
    assert command() == 125
    error = capsys.readouterr().err
    assert error.startswith("series: ") and said in error and error.count("\n") == 1
    assert [path.name for path in (tmp_path / "out/series").glob("*") if path.name[0] != "."] == ["0001-mine.patch"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["results", "series"]


MAKEFILE = """\
# SPDX-License-Identifier: GPL-2.0-only

include $(srctree)/probe

# Two suites.
obj-$(CONFIG_A) += a_kunit.o help.o \\
	b_kunit.o
CFLAGS_b_kunit.o := $(flags) -I$(obj)

flags := $(call has,x)

# One of two files.
ifdef CONFIG_X
obj-$(CONFIG_C) += c.o
c-y := c_kunit.o c_part.o

quiet_cmd_gen = GEN     $@
      cmd_gen = \\
	sed p $< > $@

$(obj)/gen.h: $(src)/x.c FORCE
	$(call if_changed,gen)

targets += gen.h
$(obj)/c_part.o: $(obj)/gen.h
endif

ccflags-y += -DALWAYS
"""


def cut(*stems: str) -> str:
    files = {f"d/{stem}.c" for stem in ("a_kunit", "help", "b_kunit", "c_kunit", "c_part")}
    return Makefile("d/Makefile", MAKEFILE, files).cut({f"d/{stem}.c" for stem in stems})


def test_a_makefile_holds_what_is_about_the_sources_there() -> None:
    assert cut("a_kunit", "help", "b_kunit", "c_kunit", "c_part") == MAKEFILE
    begin = "# SPDX-License-Identifier: GPL-2.0-only\n\ninclude $(srctree)/probe\n\n"
    assert cut() == f"{begin}ccflags-y += -DALWAYS\n"
    assert cut("a_kunit") == f"{begin}# Two suites.\nobj-$(CONFIG_A) += a_kunit.o\n\nccflags-y += -DALWAYS\n"
    assert "obj-$(CONFIG_A) += b_kunit.o\nCFLAGS_b_kunit.o := $(flags) -I$(obj)\n\nflags := " in cut("b_kunit")
    middle = MAKEFILE.partition("# One")[2].partition("ccflags")[0]
    assert cut("c_kunit", "c_part") == f"{begin}# One{middle}ccflags-y += -DALWAYS\n"
    alone = "ifdef CONFIG_X\nobj-$(CONFIG_C) += c.o\nc-y := c_kunit.o\n\nendif\n"
    assert cut("c_kunit") == f"{begin}# One of two files.\n{alone}\nccflags-y += -DALWAYS\n"


def test_a_head_comment_becomes_a_message() -> None:
    comment = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * What it is about.
 *
 * A sentence that is broken
 * into lines, and:
 *
 *  - one item, which is
 *    broken too;
 *  - another.
 *
 *	|..|11|	a drawing
 *	|22|..|
 *
 *   ./tools/testing/kunit/kunit.py run \\
 *	name
 */
int x;
/*
 * Another.
 */
"""
    assert message.prose(comment) == (
        "What it is about.\n\nA sentence that is broken into lines, and:\n\n- one item, which is broken too;\n"
        "- another.\n\n  |..|11| a drawing\n  |22|..|\n\nTo run it:\n\n"
        "  ./tools/testing/kunit/kunit.py run \\\n     name"
    )


def test_a_source_that_nothing_builds_is_named(project: Path) -> None:
    (project / "mm/tests/lost_kunit.c").write_text("int lost;\n")
    with pytest.raises(UserError, match=r"lost_kunit\.c: the Makefile"):
        plan(Overlay(project))
