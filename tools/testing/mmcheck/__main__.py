# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck VERB` does the same as `make VERB`, and keeps the exit status.

make turns every exit status except 0 into 2. This hides whether a test failed or the kernel did not build.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:
    sys.dont_write_bytecode = True
    sys.path[0] = str(Path(__file__).resolve().parents[1])


def main(arguments: Sequence[str]) -> int:
    """The command; returns the exit status."""
    from mmcheck import verbs
    from mmcheck.core.errors import NO_VERDICT, UserError

    try:
        return verbs.main(arguments)
    except UserError as error:
        from mmcheck.core import progress

        progress.say(str(error))
        return NO_VERDICT
    except OSError as error:  # the help could not be printed; commands handle their own errors
        from mmcheck.core import command

        return command.unwritten(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
