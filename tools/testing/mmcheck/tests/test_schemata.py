# SPDX-License-Identifier: GPL-2.0
"""A file with several variants of a function: it compiles, and a number chooses the variant."""

import re
import subprocess
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.mutants import schemata

BEFORE = """\
#include <stdio.h>

struct pair {
	int x;
};

static const int table[] = {
	1, 2,
};

/* Twice as much, or (nothing) */
static inline int twice(int x)
{
	int y = x;

	if (y < 0)
		goto out;
	return y + x;
out:
	return 0;
}

static void show(struct pair *pair,
	int plus)
{
	switch (plus) {
	case 0:
		break;
	default:
		pair->x += plus;
	}
	pair->x = twice(pair->x) + table[0];
}

int main(int argc, char **argv)
{
	struct pair pair = { argc };

	mmcheck_mutant = argc - 1;
	pair.x = 5;
	show(&pair, 0);
	printf("%d", pair.x);
	return 0;
}
"""


def mutate(*changes: tuple[str, str]) -> str:
    """BEFORE with one mutant for each change. The numbers of the mutants begin at 1."""
    variants: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for number, (old, new) in enumerate(changes, 1):
        assert old in BEFORE
        found = schemata.changed(BEFORE, BEFORE.replace(old, new))
        assert found is not None
        for name, body in found.items():
            variants.setdefault(name, []).append((number, body))
    return schemata.merge(BEFORE, variants)


def test_each_number_runs_its_variant(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    text = mutate(
        ("y + x", "y - x"), ("+ table[0]", "+ table[1]"), ("goto out", "return 1"), ("pair->x = twice", "twice")
    )
    source.write_text("int mmcheck_mutant;\n" + text)
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-Wno-unused-label", "-Wno-unused-value", "-o", program, source], check=True
    )
    results = [subprocess.check_output([program, *("x" * n)], text=True) for n in range(5)]
    assert results == ["11", "1", "12", "11", "5"]


def test_functions_are_found_with_their_kind() -> None:
    found = schemata.functions(BEFORE)
    assert [(f.name[0], f.returns) for f in found] == [("twice", True), ("show", False), ("main", True)]


OUTSIDE = [("1, 2", "1, 3"), ("static void show", "void show"), ("twice(int x)", "two(int x)")]


@pytest.mark.parametrize("change", OUTSIDE)
def test_changes_outside_of_bodies_are_not_merged(change: tuple[str, str]) -> None:
    assert schemata.changed(BEFORE, BEFORE.replace(*change)) is None


def test_functions_of_one_name_are_told_apart() -> None:
    text = "#ifdef A\nint f(int x)\n{\n\treturn 1;\n}\n#else\nint f(int x)\n{\n\treturn 2;\n}\n#endif\n"
    assert schemata.changed(text, text.replace("return 2", "return 3")) == {("f", 1): "{\n\treturn 3;\n}"}


def test_a_line_is_traced_to_its_mutant() -> None:
    text = mutate(("y + x", "y - x"), ("+ table[0]", "+ table[1]"))
    lines = text.splitlines()
    assert schemata.at_line(text, lines.index("\treturn y - x;") + 1) == 1
    assert schemata.at_line(text, lines.index("\treturn y + x;") + 1) is None


ODD = """\
#ifdef A
int a(void) {
	return '{';
}
#else
static
void b(int x) __acquires(x)
{
#ifdef B
	if (x) {
#else
	{
#endif
		call("}");
}
	}
#endif
SYSCALL_DEFINE2(c, int, x, int, y)
{ /* } */
	return x;
}
struct s { int x; };
static const struct s s = { .x = 1 };
"""


def test_functions_are_found_by_their_braces() -> None:
    found = schemata.functions(ODD)
    assert [(f.name[0], f.returns) for f in found] == [("a", True), ("b", False), ("c", True)]
    assert ODD[found[1].end :].startswith("\n#endif\nSYSCALL")


def test_functions_of_merged_text_are_found() -> None:
    text = mutate(("y + x", "y - x"), ("+ table[0]", "+ table[1]"))
    assert [f.name for f in schemata.functions(text)] == [f.name for f in schemata.functions(BEFORE)]


def test_functions_with_variants_note_that_they_run() -> None:
    body = schemata.bodies(BEFORE)[0][("show", 0)]
    text = schemata.merge(BEFORE, {("show", 0): [(1, body)]}, {("show", 0): 3})
    assert "mmcheck_reached[3] = 1;" in text


CUT = PROJECT / "lib/pgtable_kunit/cut.awk"


def cut(tmp_path: Path, text: str, *variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "a.c").write_text(text)
    given = [word for variable in variables for word in ("-v", variable)]
    return subprocess.run(["awk", *given, "-f", CUT, tmp_path / "a.c"], capture_output=True, text=True)


def test_a_function_is_cut_out_of_merged_text(tmp_path: Path) -> None:
    text = mutate(("y + x", "y - x"), ("goto out", "return 1")).replace("static inline int twice", "int twice")
    done = cut(tmp_path, text, "function_name=twice[a-z_]*")
    assert done.returncode == 0
    assert schemata.functions(done.stdout)[0].name == ("twice", 0)
    assert done.stdout.endswith("\n}\n") and done.stdout.count("mutant 2 ends") == 1 and "show" not in done.stdout
    done = cut(tmp_path, "int gone(int x);\n", "function_name=gone")
    assert done.returncode == 1 and "no function gone to cut out" in done.stderr


DEFINED = """\
/* The head.
gone(1) { */
#define other(x) \\
other2(x) {
int declared(int x);
static int hidden(int x)
{
	return declared(x);
}
__printf(1, 2) void
said(const char *fmt, ...) { /* } */ }
pte_t *huge_pte(struct mm *mm, int (*call)(int), char c)
{
	return c == '{' ? NULL : mm;
}
EXPORT_SYMBOL_GPL(huge_pte);
struct table rows[] = { { declared(1) } };
unsigned long __init size_of(void) {
}
"""


def test_global_functions_get_other_names(tmp_path: Path) -> None:
    done = cut(tmp_path, DEFINED, "names=.*", "required=said huge_.*")
    renamed = re.findall(r"#undef (\w+)\n#define \1 recorded_\1\n", done.stdout)
    assert (done.returncode, renamed) == (0, ["said", "huge_pte", "size_of"])
    assert cut(tmp_path, DEFINED, "names=size.*").stdout == "#undef size_of\n#define size_of recorded_size_of\n"


@pytest.mark.parametrize("missing", ["hidden", "declared", "gone", "other2", "huge_pt", "rows"])
def test_a_global_function_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    done = cut(tmp_path, DEFINED, "names=.*", f"required=said {missing} size_of")
    assert done.returncode == 1 and done.stderr.endswith(f"a.c: no global function {missing}\n")
    assert "no global function said" not in done.stderr


@pytest.mark.parametrize("header", ["contpte_recorded_names.h", "hugetlb_recorded_names.h"])
def test_functions_that_the_makefile_requires_are_in_the_kernel(header: str) -> None:
    """The Makefile names the files and the required functions: run its command on each unpacked kernel."""
    folder = PROJECT / "arch/arm64/mm/tests"
    text = (folder / "Makefile").read_text().replace("\\\n", " ")
    said = {kind: re.search(rf"^{kind}-{header} := (.*)$", text, re.MULTILINE) for kind in ("names", "required")}
    assert said["names"] and said["required"]
    trees = [tree for tree in (Path.home() / ".cache/mmcheck/src").glob("linux-*") if tree.is_dir()]
    for tree in trees:
        files = said["names"][1].replace("$(src)/..", str(tree / "arch/arm64/mm"))
        command = f"awk -v required='{' '.join(said['required'][1].split())}' -f {CUT} {files}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("#define ") >= len(said["required"][1].split())


def test_what_is_guarded_is_cut_out(tmp_path: Path) -> None:
    text = "#ifndef f\nint f(void)\n{\n#if 1\n\treturn f_x + f(1);\n#endif\n}\n#endif\nint g;\n"
    done = cut(tmp_path, text, "guards=f", "optional=new")
    assert done.stdout == "int generic_f(void)\n{\n#if 1\n\treturn f_x + generic_f(1);\n#endif\n}\n"
    done = cut(tmp_path, text, "guards=f h")
    assert done.returncode == 1 and "no #ifndef h" in done.stderr
