# SPDX-License-Identifier: GPL-2.0
"""Exit statuses, and the error for causes that the user can change."""

PASSED = 0
FAILED = 1
SKIPPED = 4
"""All tests were skipped. Only the selftests use this status, which comes from kselftest."""
NO_VERDICT = 125
"""Nothing is known about the kernel. `git bisect run` skips a commit with status 125; 1 to 124 mean a bad commit."""
INTERRUPTED = 130


class UserError(Exception):
    """An error with one line that says what to do. The command prints this line and exits with NO_VERDICT."""
