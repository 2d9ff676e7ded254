# SPDX-License-Identifier: GPL-2.0
"""Exit statuses, and what goes wrong for reasons that the user can change."""

PASSED = 0
FAILED = 1
SKIPPED = 4
"""All were skipped. Only the selftests have this status, as kselftest does."""
NO_VERDICT = 125
"""Nothing is known about the kernel. `git bisect run` skips such a commit; 1 to 124 mean a bad one."""
INTERRUPTED = 130


class UserError(Exception):
    """One clear line that says what to do. The command prints it and exits with NO_VERDICT."""
