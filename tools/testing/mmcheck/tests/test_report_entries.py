# SPDX-License-Identifier: GPL-2.0
"""Page-table entries in the output of tests, the names of their bits, and random walks that failed."""

import re

import pytest

from mmcheck.boot import results
from mmcheck.report import entries

from . import seeded

SAID = ["modify_prot of [0, 31): entry 31 is 00e8000040f9fc43, expected 0068000040f9fcc3 (2 differ)"]


def named(fields: tuple[entries.Field, ...]) -> dict[str, tuple[str, str]]:
    return {field.name: (field.got, field.want) for field in fields}


def test_the_first_entry_that_differs_is_drawn_with_names() -> None:
    entry = entries.find(["noise", *SAID, "entry 32 is 0000000000000000, expected 0000000000000001"], "arm64")
    assert entry and entry.index == 31 and entry.differ == 2 and entry.what == "modify_prot of [0, 31)"
    assert entry.title == "Entry 31 of the table (the first of 2 entries that differ)"
    assert entry.sentence == "dirty is 1, expected 0; read-only is 0, expected 1"
    assert named(entry.fields)["page frame"] == ("0x40f9f", "0x40f9f")


def test_an_entry_of_the_table_goes_before_a_value_that_a_function_returned() -> None:
    returned = "get_and_clear idx 54 full 0 returns 00e8000041546c43, expected 0068000041546cc3"
    found = entries.find([returned, "step: entry 48 is 0000000000000001, expected 0000000000000000"], "um")
    assert found and found.index == 48 and found.sentence == "present is 1, expected 0"
    alone = entries.find([returned], "arm64")
    assert alone and alone.index is None and alone.what == "get_and_clear idx 54 full 0"
    assert alone.title == "The value that the function returns"
    assert entries.find(["it is 3, expected 4"], "arm64") is None


@pytest.mark.parametrize("arch", sorted(entries.LAYOUTS))
def test_each_bit_is_drawn_once_from_the_highest_down(arch: str) -> None:
    names = entries.LAYOUTS[arch]
    ends = [int(bits.split(":")[at]) for bits in names for at in (0, -1)]
    assert ends == sorted(ends, reverse=True) and all(0 <= end < 64 for end in ends)
    assert len(set(names.values())) == len(names) == len({bits.split(":")[-1] for bits in names})
    drawn = entries.fields((1 << 64) - 1, 0, arch)
    bits: list[int] = []
    for field in drawn:
        high, _, low = field.bits.partition(":")
        bits += range(int(high), int(low or high) - 1, -1)
    assert bits == list(range(63, -1, -1))
    assert all(field.differs for field in drawn)


def test_bits_without_a_name_are_drawn_only_where_one_is_set() -> None:
    assert "bit 63" in named(entries.fields(1 << 63 | 1, 1, "arm64"))
    assert "bit 63" not in named(entries.fields(1, 1, "arm64"))
    assert named(entries.fields(5, 1, "unknown")) == {"bit 2": ("1", "0"), "bit 0": ("1", "1")}


def test_an_entry_of_arm64_that_is_not_present_has_other_names() -> None:
    swap = named(entries.fields(0x3 << 6 | 1 << 3, 0x3 << 6, "arm64"))
    assert swap["uffd"] == ("1", "0") and swap["swap type"] == ("0x3", "0x3") and "young" not in swap
    # A PROT_NONE entry is present, and its bits are at the same places as in a valid entry.
    assert "young" in named(entries.fields(1 << 11 | 1 << 10, 1 << 11, "arm64"))


def test_a_walk_has_its_seed_and_the_shortest_sequence() -> None:
    cases = results.kunit(seeded.CONSOLE.read_text().splitlines())
    case = next(case for case in cases if case.suite == "pte_range_walk" and case.state == "failed")
    walk = entries.walk(case.text)
    assert walk and walk.arguments == ("pte_range_walk.seed=1567952498", "pte_range_walk.steps=1000")
    assert walk.steps == ("set_ptes idx 32 nr 32 page 48 rw young", "get_and_clear_full_ptes idx 54 full 0")
    alone = entries.walk(["folio_race.seed=7", "something else"])
    assert alone == entries.Walk(("folio_race.seed=7",), ())
    assert entries.walk(["no seeds here"]) is None


def test_what_the_recorded_failures_say_is_understood() -> None:
    failed = [c for c in results.kunit(seeded.CONSOLE.read_text().splitlines()) if c.state == "failed"]
    assert len(failed) == 17
    for case in failed:
        entry = entries.find(case.text, "arm64")
        assert entry and re.search(r"dirty is 1, expected 0", entry.sentence), case
