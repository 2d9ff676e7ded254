# SPDX-License-Identifier: GPL-2.0
"""Counts the fixmap changes of a boot."""

from pathlib import Path

import pytest

from mmcheck.boot import linear_map
from mmcheck.core.errors import UserError

QEMU = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in -m) memory=${2%G} ;; -D) log=$2 ;; -dfilter) filter=$2 ;; -append) words=$2 ;; esac
    shift
done
[ "$filter" = 0xffff800080027bd8+0x4 ] || exit 1
case "$words" in *rodata=off) memory=1 ;; esac
{
    echo noise
    for i in $(seq $((60 + 100 * memory))); do
        printf 'Trace 0: 1\\n PC=1 X00=3d3 X01=%x\\nX02=00e8000000000403 X03=0\\n' "$i"
        printf 'Trace 0: 2\\n PC=1 X00=3d3 X01=%x\\nX02=0000000000000000 X03=0\\n' "$i"
    done
    # broken off and begun again, twice
    printf 'Trace 0: 3\\n PC=1 X00=3d3 X01=%x\\nX02=0000000000000000 X03=0\\n' "$i"
    echo 'Stopped execution of TB chain before 0x7fcbdc9bcd80 [ffff800080027bd8]'
    printf 'Trace 0: 4\\n PC=1 X00=3d3 X01=%x\\nX02=0000000000000000 X03=0\\n' "$i"
    # another slot
    printf 'Trace 0: 5\\n PC=1 X00=7 X01=0\\nX02=0000000000000000 X03=0\\n'
} > "$log"
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    emulator = tmp_path / "bin" / linear_map.EMULATOR
    emulator.write_text(QEMU)
    emulator.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "System.map").write_text("ffff800080027bd0 t x\nffff800080027bd8 T __set_fixmap\n")
    return tmp_path


def test_only_what_more_memory_costs_is_counted(build: Path) -> None:
    assert linear_map.changes(build, 2) == (260, 260)
    assert linear_map.changes_per_gib(build) == (100, 100)


def test_a_boot_may_have_words_of_its_own(build: Path) -> None:
    assert linear_map.changes_per_gib(build, linear_map.CPU, "rodata=off") == (0, 0)
    assert str(linear_map.Way(cpu="max", words="rodata=off")) == "-cpu max rodata=off"


def test_a_kernel_without_the_function_is_named(build: Path) -> None:
    (build / "System.map").write_text("")
    with pytest.raises(UserError, match="has no __set_fixmap"):
        linear_map.changes(build, 1)


def test_an_emulator_that_fails_is_named(build: Path) -> None:
    (build / "System.map").write_text("ffff T __set_fixmap\n")
    with pytest.raises(UserError, match="qemu-system-aarch64 with 1 GiB"):
        linear_map.changes(build, 1)
