# SPDX-License-Identifier: GPL-2.0
"""KTAP on standard output."""

from ..boot import results


class Printer:
    """Prints KTAP on standard output: a list of suites, each with its cases."""

    def __init__(self) -> None:
        self._suites = 0
        self._number = 0
        self._bad = False
        self._suite = ""

    def case(self, case: results.Case) -> None:
        """Print the verdict on a case."""
        if case.suite != self._suite:
            self.end()
            self._suite, self._number, self._bad = case.suite, 0, False
            print(f"    KTAP version 1\n    # Subtest: {case.suite}")
        self._number += 1
        self._bad |= case.state == "failed"
        if case.state == "failed":
            for text in case.text:
                print(f"    # {text}")
        good = "not ok" if case.state == "failed" else "ok"
        skip = f" # SKIP {' '.join(case.text)}" if case.state == "skipped" else ""
        print(f"    {good} {self._number} {case.name or case.suite}{skip}", flush=True)

    def end(self) -> None:
        """Print the verdict on the current suite."""
        if self._suite:
            self._suites += 1
            print(f"    1..{self._number}")
            print(f"{'not ok' if self._bad else 'ok'} {self._suites} {self._suite}", flush=True)
            self._suite = ""

    def plan(self) -> None:
        """Print how many suites there were. This is known only at the end."""
        self.end()
        print(f"1..{self._suites}")
