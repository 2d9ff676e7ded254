# SPDX-License-Identifier: GPL-2.0
"""`python3 tools/testing/mmcheck VERB [NAME=VALUE ...]`: what `make VERB` runs, with its own exit status.

make turns every exit status but 0 into 2, so that nobody can tell a failed test from a kernel that does not build.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:
    sys.dont_write_bytecode = True
    sys.path[0] = str(Path(__file__).resolve().parents[1])

MODULES = {
    "check": "check",
    "check-host": "check",
    "kselftest": "kselftest",
    "results": "collect",
    "report": "report",
    "check-report": "look",
    "report-pictures": "look",
    "kcidb": "kcidb",
    "bundle": "bundle",
    "matrix": "matrix",
    "mutants": "mutants",
    "known-issues": "patched",
    "patches": "sendable",
    "patterns": "patterns",
    "coverage": "coverage",
    "htmldocs": "htmldocs",
    "bench": "bench",
    "bench-compare": "bench",
    "bench-launcher": "bench_launcher",
    "graft": "graft",
    "ungraft": "graft",
    "series": "series",
}
"""By verb the module that has it."""


def main(arguments: Sequence[str]) -> int:
    """The command; returns the exit status."""
    from mmcheck import command
    from mmcheck.errors import NO_VERDICT

    usage = f"usage: python3 tools/testing/mmcheck {'|'.join(MODULES)} [{command.NO_INSTALL}] [NAME=VALUE ...]\n"
    verb, *rest = arguments or [""]
    if verb in ("-h", "--help"):
        print(f"{usage}\n{(__doc__ or '').strip()}\n\n{command.STATUSES}", end="")
        return 0
    if verb not in MODULES:
        print(f"{f'{verb}: no such command; ' if verb else ''}{usage}", end="", file=sys.stderr)
        return NO_VERDICT
    module = importlib.import_module(f"mmcheck.{MODULES[verb]}")
    several = sum(name == MODULES[verb] for name in MODULES.values()) > 1
    status: int = module.start([*([verb] if several else []), *rest])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
