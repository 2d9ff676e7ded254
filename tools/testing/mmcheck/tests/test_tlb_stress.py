# SPDX-License-Identifier: GPL-2.0
"""make tlb STRESS= fetches a kernel and stress-ng, packs them into an initramfs, and reads what the stressors did."""

import base64
import gzip
import lzma
import re
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mmcheck.core.errors import UserError
from mmcheck.kernel import archive, packaged
from mmcheck.kernel.archive import Archive, Package
from mmcheck.tlb import stress
from mmcheck.tlb.boots import Machine
from mmcheck.tlb.main import judge_variables

MAP = "ffff800080000000 T _text\nffff800080000100 t exit_mmap\n"


def printed(symbols: str) -> str:
    """The console of a boot that prints symbols."""
    coded = base64.encodebytes(gzip.compress(symbols.encode())).decode()
    return f"[    1.0] Run /init\n{stress.BEGIN}\n{coded}{stress.END}\n".replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"STRESS": "vm", "INITRD": __file__}, "INITRD= has no effect with STRESS="),
        ({"STRESS": "vm", "KDIR": "/linux"}, "KDIR= has no effect with STRESS="),
        ({"STRESS": "vm", "ONLY": "contpte*"}, "ONLY= has no effect with STRESS="),
        ({"STRESS": "vm --all"}, "give names of stressors"),
        ({"STRESS": ","}, "give names of stressors"),
        ({"STRESS": "vm", "SECONDS": "0"}, "use a number of seconds"),
    ],
)
def test_wrong_variables(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        judge_variables(given)
    judge_variables({"STRESS": "vm, vm-rw", "SECONDS": "2"})


def entries(data: bytes) -> dict[str, tuple[int, bytes]]:
    """The mode and the content of each file in an initramfs."""
    found, at = {}, 0
    while at < len(data):
        assert data[at : at + 6] == b"070701" and at % 4 == 0
        numbers = [int(data[at + 6 + 8 * place : at + 14 + 8 * place], 16) for place in range(13)]
        name = data[at + 110 : at + 109 + numbers[11]].decode()
        at += -(-(110 + numbers[11]) // 4) * 4
        found[name] = numbers[1], data[at : at + numbers[6]]
        at += -(-numbers[6] // 4) * 4
    return found


def test_the_initramfs_has_the_files(tmp_path: Path) -> None:
    for name in ("a", "bc", "def"):
        (tmp_path / name).write_text(name)
    found = entries(stress.packed({f"lib/{name}": tmp_path / name for name in ("a", "bc", "def")}))
    assert [found[f"lib/{name}"] for name in ("a", "bc", "def")] == [
        (stat.S_IFREG | 0o755, name.encode()) for name in ("a", "bc", "def")
    ]
    assert stat.S_ISCHR(found["dev/console"][0]) and stat.S_ISDIR(found["proc"][0])
    assert [*found][-1] == "TRAILER!!!"


def test_the_symbols_of_modules_are_left_out() -> None:
    assert stress.table(printed(MAP + "ffff800079000000 t brd_init\t[brd]\n")) == MAP


@pytest.mark.parametrize("said", ["", "Kernel panic", printed(""), printed("0000000000000000 T _text\n")])
def test_a_kernel_without_symbols(said: str) -> None:
    with pytest.raises(UserError, match="printed no symbols"):
        stress.table(said)


CONSOLE = """\
mmcheck: run vm
stress-ng: info:  [31] dispatching hogs: 1 vm
stress-ng: metrc: [31] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [31] vm                   44      4.01      0.38      3.22        10.97          12.22
mmcheck: end vm 0
mmcheck: run swap
mmcheck: end swap 3
mmcheck: run madvise
[  109.1] Memory failure: 0x57300
mmcheck: end madvise 2
mmcheck: run fork
"""


def test_the_outcome_of_each_stressor(tmp_path: Path) -> None:
    (tmp_path / "console").write_text(CONSOLE)
    cases, operations = stress.outcome(tmp_path / "console")
    assert operations == {"vm": 44}
    assert [(case.name, case.state, case.text[:1]) for case in cases] == [
        ("vm", "passed", []),
        ("swap", "skipped", ["not enough resources"]),
        ("madvise", "failed", ["exit status 2"]),
        ("fork", "failed", ["it did not end"]),
    ]
    assert cases[2].text[1].endswith("Memory failure: 0x57300")
    said = stress.text(cases, operations, {})
    assert said.splitlines()[0] == "swap skipped: not enough resources"
    assert said.endswith("operations of 1 stressors: vm 44")
    assert stress.text(cases, operations, {"vm": 90}).endswith(
        "operations (without the plugin) of 1 stressors: vm 44 (90)"
    )
    assert stress.outcome(tmp_path / "missing") == ([], {})


class FakeArchive:
    """An archive with two kernels, and with a program that needs libraries of other packages."""

    files: ClassVar[dict[str, dict[str, bytes]]] = {
        "linux-image-6.12.117+deb12-cloud-arm64": {"boot/vmlinuz-6.12": b"old", "lib/brd.ko.xz": lzma.compress(b"ram")},
        "linux-image-7.3.4+deb13-cloud-arm64": {"usr/share/doc/README": b""},
        "linux-binary-7.3.4": {"usr/lib/modules/vmlinuz": b"new"},
        "linux-modules-7.3.4": {"usr/lib/modules/brd.ko": b"ram"},
        "stress-ng": {"usr/bin/stress-ng": b"liba.so.1 libc.so.6"},
        "liba1": {"usr/lib/liba.so.1": b"libb.so.2 libc.so.6"},
        "libb2t64": {"usr/lib/libb.so.2": b""},
        "libc6": {"lib/libc.so.6": b""},
        "unused": {"usr/lib/libunused.so": b""},
    }
    needs: ClassVar[dict[str, list[str]]] = {
        "linux-image-7.3.4+deb13-cloud-arm64": ["dracut", "linux-binary-7.3.4", "linux-modules-7.3.4"],
        "stress-ng": ["liba1", "libc6"],
        "liba1": ["libb2t64", "libc6"],
        "libb2t64": ["unused"],
    }
    fetched: ClassVar[list[str]] = []

    def __init__(self, *_: Any) -> None:
        self.fetched.clear()

    def find(self, wanted: str, names: re.Pattern[str]) -> Package:
        found = {"6.12": "linux-image-6.12.117+deb12-cloud-arm64", "7.3": "linux-image-7.3.4+deb13-cloud-arm64"}
        assert names.match(found[wanted])
        return Package(found[wanted], {"6.12": "6.12.117-1", "7.3": "7.3.4-1"}[wanted])

    def depends(self, name: str) -> list[str]:
        return self.needs.get(name, [])

    def fetch(self, names: Sequence[str], target: Path) -> None:
        self.fetched.extend(names)
        for name in names:
            for file, content in self.files[name].items():
                (target / name / file).parent.mkdir(parents=True, exist_ok=True)
                (target / name / file).write_bytes(content)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> type[FakeArchive]:
    monkeypatch.setattr(packaged, "Archive", FakeArchive)
    monkeypatch.setattr(packaged, "_needed", lambda file: file.read_text().split())
    return FakeArchive


@pytest.mark.parametrize(("wanted", "image"), [("6.12", b"old"), ("7.3", b"new")])
def test_a_packaged_kernel(asked: type[FakeArchive], tmp_path: Path, wanted: str, image: bytes) -> None:
    found = packaged.kernel(wanted, tmp_path)
    assert found.name.startswith(f"linux-{wanted}.")
    assert {file.name: file.read_bytes() for file in found.iterdir()} == {"vmlinuz": image, "brd.ko": b"ram"}
    asked.fetched.clear()
    assert packaged.kernel(wanted, tmp_path) == found and not asked.fetched
    assert [path.name for path in found.parent.iterdir()] == [found.name]


def test_a_program_gets_exactly_its_libraries(asked: type[FakeArchive], tmp_path: Path) -> None:
    found = packaged.program("stress-ng", "usr/bin/stress-ng", tmp_path)
    assert {file.name for file in found.iterdir()} == {"stress-ng", "liba.so.1", "libb.so.2", "libc.so.6"}
    assert "unused" not in asked.fetched and len(asked.fetched) == len(set(asked.fetched))
    asked.files["liba1"]["usr/lib/liba.so.1"] = b"libmissing.so"
    with pytest.raises(UserError, match=r"no package that liba1 depends on has libmissing\.so"):
        packaged.program("stress-ng", "usr/bin/stress-ng", tmp_path / "other")
    asked.files["liba1"]["usr/lib/liba.so.1"] = b"libb.so.2 libc.so.6"


def test_the_names_of_packaged_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "linux-image-6.12.117+deb12-cloud-arm64"
    for other in (
        f"{name}-dbg",
        f"{name}-unsigned",
        "linux-image-6.12-cloud-arm64",
        "linux-image-6.12.117+deb12-arm64",
    ):
        assert not archive.IMAGE.match(other)
    assert Package(name, "6.12.117-1~deb12u1").series == "6.12"
    answers = {
        "pkgnames": f"{name}\n{name}-dbg\n",
        "madison": f"{name} | 6.12.117-1 | https://example.org Packages\n",
        "show": "Depends: libc6 (>= 2.36), libssl3 | libssl3t64, python3:any\nPre-Depends: linux-base (>= 4.12~)\n",
    }
    wanted = Archive(tmp_path, "arm64")
    said = lambda *command, **_: subprocess.CompletedProcess(command, 0, answers.get(command[1], ""), "")  # noqa: E731
    monkeypatch.setattr(wanted, "_apt", said)
    assert wanted.find("6.12", archive.IMAGE) == Package(name, "6.12.117-1")
    assert wanted.depends(name) == ["libc6", "libssl3", "python3", "linux-base"]


def test_the_symbols_are_learned_once(
    asked: type[FakeArchive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots: list[str] = []

    class Plain(Machine):
        def run(self, image: Path, append: str, *_: Any, **more: Any) -> Any:
            boots.append(append)
            (self.out / "console").write_text(printed(MAP))
            return [], {}, 1.0

    busybox = tmp_path / "cache/guest/arm64/busybox-static/bin/busybox"
    busybox.parent.mkdir(parents=True)
    busybox.write_text("busybox")
    machine = Plain(Path("qemu"), None, tmp_path / "out")
    given = {"STRESS": "vm, fork", "SECONDS": "3"}
    for _ in range(2):
        found = stress.prepared(given, machine, tmp_path / "cache", "6.12")
        assert Path(found["IMAGE"]).with_name("System.map").read_text() == MAP
    assert len(boots) == 1 and "SYMBOLS=1" in boots[0]
    files = entries(gzip.decompress(Path(found["INITRD"]).read_bytes()))
    assert files["list"][1] == b"3 vm\n3 fork\n"
    assert {"init", "bin/busybox", "bin/stress-ng", "lib/libc.so.6", "brd.ko"} <= files.keys()
