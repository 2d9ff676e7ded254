# SPDX-License-Identifier: GPL-2.0
"""Options that keep an emulator away from the rest of this machine.

The kernel under test is not trusted: it may be broken in any way. So the emulator has no network. It also filters
system calls, if its build supports this.
"""

import functools
import subprocess
from collections.abc import Sequence

FILTER = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny")
NO_NETWORK = ("-nic", "none")


@functools.cache
def filters(emulator: str) -> bool:
    """Whether an emulator has the option that filters system calls. Some builds lack this option."""
    try:
        done = subprocess.run([emulator, *FILTER, "-version"], capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def options(emulator: str, arguments: Sequence[str] = ()) -> list[str]:
    """The options to add to a command of `emulator` with `arguments`. Options that the user gives are not replaced."""
    network = [] if {"-nic", "-netdev", "-net"} & set(arguments) else [*NO_NETWORK]
    return network + ([] if "-sandbox" in arguments or not filters(emulator) else [*FILTER])
