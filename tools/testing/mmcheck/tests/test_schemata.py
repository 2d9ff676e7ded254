# SPDX-License-Identifier: GPL-2.0
"""Several variants of a function in one file: compiled, and switched."""

import subprocess
from pathlib import Path

import pytest

from mmcheck import schemata

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
    """BEFORE with one mutant for each change, numbered from 1."""
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
