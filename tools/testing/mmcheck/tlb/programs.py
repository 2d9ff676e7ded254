# SPDX-License-Identifier: GPL-2.0
"""Runs the selftests, or a program of the user, in the virtual machine of the selftests with the plugin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..boot import results
from ..boot.boot import IMAGES
from ..core.errors import UserError
from ..run import audit, selftests
from ..run.launch import Launch
from ..run.selftests import Machine, Program
from ..run.session import Boot, SelftestRun
from . import boots, reports, symbols

Outcome = tuple[list[reports.Report], dict[str, int], list[results.Case]]
"""The reports of all boots, the sums of their counts, and the cases."""

SILENCE = 300
"""A boot ends after this many seconds without output. The limit is larger than usual, because the plugin is slow."""


class WatchedBoot(Boot):
    """A boot with the plugin. After the boot, `found` has the reports, and `counts` has the counts of the plugin."""

    emulator: Path
    plugin: Path
    found: Sequence[reports.Report] = ()
    counts: Mapping[str, int]

    def emulated(self, command: Sequence[str], memory: int) -> list[str]:
        """The command that boots with the plugin."""
        out = self.console.parent
        (out / "raw.json").unlink(missing_ok=True)
        self.symbols = symbols.of_kernel(self.launch.build / IMAGES["arm64"])
        more = boots.watched(self.plugin, out, self.symbols, memory)
        return [str(self.emulator), *command[1:], *more]

    def run(self, lines: Sequence[str], files: Mapping[str, Path], silence: float = SILENCE) -> Iterator[results.Case]:
        """Run programs. Yields each case with its verdict."""
        yield from super().run(lines, files, silence)
        self.found, self.counts = reports.read(self.console.parent / "raw.json", self.symbols, reports.suppressions())


class WatchedRun(SelftestRun):
    """Runs selftests in machines with the plugin."""

    def __init__(self, launch: Launch, emulator: Path, plugin: Path, words: Sequence[str] = ()) -> None:
        """`launch` builds the kernel. `words` are added to its command line."""
        super().__init__(launch, words)
        self.emulator, self.plugin, self.kvm = emulator, plugin, False
        self.folder = launch.settings.out / "tlb" / launch.build.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.boots: list[WatchedBoot] = []

    def boot(self, console: Path, needs: Machine) -> WatchedBoot:
        """A boot with the plugin, without memory tags. QEMU does not keep tags if a plugin observes stores."""
        one = WatchedBoot(self.launch, console, replace(needs, tags=False), self.words)
        one.emulator, one.plugin = self.emulator, self.plugin
        self.boots.append(one)
        return one

    def watch(self, wanted: Sequence[Program]) -> Outcome:
        """Build and run programs. Returns the reports of all boots, the sums of their counts, and the cases."""
        every = selftests.programs()
        return self._watch(wanted, every, self.build([program.name for program in every]))

    def watch_line(self, line: str) -> Outcome:
        """Run a static program of this machine, or a line for the shell."""
        name, text, files = audit.script(line, "arm64")
        self.kernel()
        wrapper = self.folder / "watched"
        wrapper.write_text(text)
        program = Program(name)
        return self._watch([program], [program], {name: wrapper, **files})

    def _watch(self, wanted: Sequence[Program], every: Sequence[Program], files: Mapping[str, Path]) -> Outcome:
        cases = self.run(wanted, every, files, SILENCE)
        if all(case.state == "skipped" for case in cases):
            raise UserError(f"no case ran; see {self.folder}")
        counts: dict[str, int] = {}
        for one in self.boots:
            for name, count in one.counts.items():
                counts[name] = counts.get(name, 0) + count
        return [report for one in self.boots for report in one.found], counts, cases
