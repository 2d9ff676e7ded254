# SPDX-License-Identifier: GPL-2.0
"""Generated mutants: the code that they change, their stable names, and the list of survivors."""

import re
import tomllib
from pathlib import Path

from mmcheck.mutants import judge, rules, sample, schemata
from mmcheck.mutants.catalogue import Mutant, Read

TEXT = """\
/* if (x < 1) in a comment */
static int f(unsigned long addr, unsigned long end, int nr)
{
	VM_WARN_ON(nr < 7);
	if (addr < end)
		drop(nr);
	flags |= young(1);
	call(addr, end);
	for (; addr < PMD_SIZE; addr++)
		;
	return nr - 1;
}

static int other(int x)
{
	return x;
}
"""


def read(name: str) -> str:
    if name == "a.c":
        return TEXT
    raise FileNotFoundError(name)


def every(own: Read) -> list[Mutant]:
    return rules.every(own, {"a.c": "f", "gone.c": "f"})


def test_each_operator_finds_its_places() -> None:
    function = schemata.functions(TEXT)[0]
    found = {(c.operator, TEXT[c.start : c.end], c.new) for c in rules.changes(TEXT, function)}
    assert ("boundary", "<", "<=") in found
    assert ("negate", "(addr < end)", "(!(addr < end))") in found
    assert ("drop_call", "drop(nr)", "do { } while (0)") in found
    assert ("drop_merge", "flags |= young(1)", "do { } while (0)") in found
    assert ("swap", "addr, end", "end, addr") in found
    assert ("constant", "1", "2") in found and ("constant", "1", "0") in found
    assert ("level", "PMD_SIZE", "PAGE_SIZE") in found
    assert not any("7" in old for _, old, _ in found)  # rules do not change assertions and comments
    assert all(function.start <= c.start < c.end <= function.end for c in rules.changes(TEXT, function))


def test_mutants_change_one_body_and_keep_their_names() -> None:
    found = every(read)
    assert found and len({mutant.name for mutant in found}) == len(found)
    for mutant in found:
        changed = schemata.changed(TEXT, dict(mutant.files(read) or {})["a.c"])
        assert changed is not None and list(changed) == [("f", 0)]
    moved = every(lambda name: "/* new */\n\n" + read(name))
    assert [mutant.name for mutant in moved] == [mutant.name for mutant in found]


def test_more_functions_change_the_sample_by_their_share_only() -> None:
    found = every(read)
    chosen = sample.draw(found, 5)
    assert len(chosen) == 5 and sample.draw(found[::-1], 5) == chosen
    without = [mutant for mutant in found if mutant != chosen[2]]
    assert len({m.name for m in chosen} & {m.name for m in sample.draw(without, 5)}) == 4
    assert {m.name for m in sample.draw(found, 5, seed=1)} != {m.name for m in chosen}


def test_answers_to_survivors_stay(tmp_path: Path) -> None:
    one, two, three = every(read)[:3]
    path = tmp_path / "7.3-arm64.toml"
    sample.list_survivors(path, [one, two], read, [])
    path.write_text(path.read_text().replace('answer = ""', 'answer = "no \\"caller\\""', 1))
    sample.list_survivors(path, [one, three], read, [two.name])
    assert sample.answers(path)[one.name] == 'no "caller"'
    entries = tomllib.loads(path.read_text())["survivor"]
    assert {entry["name"] for entry in entries} == {one.name, three.name}
    assert all("--- a/a.c" in entry["diff"] for entry in entries)


def test_names_of_functions_are_expressions() -> None:
    for names in rules.UNDER_TEST.values():
        re.compile(names)


def test_code_that_runs_elsewhere_is_judged_there() -> None:
    text = "".join(
        f"int {name}(int nr)\n{{\n\treturn nr < 1;\n}}\n\n" for name in ("split_pud", "map_mem", "pmd_split")
    )
    file = "arch/arm64/mm/mmu.c"
    for mutant in rules.every({file: text}.__getitem__, {file: ".*"}):
        live, boot = "_split_pud_" in mutant.name, "_map_mem_" in mutant.name
        suite = {"_split_pud_": "linear_map_split", "_map_mem_": "linear_map_booted"}
        assert mutant.suite == next((suite[name] for name in suite if name in mutant.name), "")
        assert ("midr=" in mutant.machine, mutant.early) == (live or boot, boot)
        assert bool(mutant.kernel_args) == boot


def test_names_say_what_noticed_mutants_of_a_function(tmp_path: Path) -> None:
    verdicts = {
        "drop_call_copy_present_ptes_0a1b2c": ("failed", "fork_batch.whole_folio"),
        "negate_copy_present_ptes_012345": ("survived", ""),
        "by_hand": ("failed", "contpte.fold"),
    }
    sample.record(tmp_path / "7.3-arm64.toml", verdicts, verdicts)
    assert list(sample.noticed(tmp_path)) == [("copy_present_ptes", "fork_batch")]


def test_verdicts_on_a_sample_add_up(tmp_path: Path) -> None:
    path = tmp_path / "7.3-arm64.toml"
    drawn = ["a", "b", "c", "d"]
    sample.record(path, {"a": ("failed", "s.c"), "b": ("survived", ""), "c": ("survived", "")}, drawn)
    whole = sample.record(path, {"b": ("splat", "s.d"), "d": ("survived", ""), "gone": ("failed", "s.e")}, drawn)
    assert whole == {"a": ("failed", "s.c"), "b": ("splat", "s.d"), "c": ("survived", ""), "d": ("survived", "")}
    assert sample.record(path, {}, drawn) == whole
    answered = {"c": "Equivalent: the same.", "d": "No test yet."}
    assert sample.score(whole, answered, judge.KILLED) == sample.Score(2, 1, 1, 1)
