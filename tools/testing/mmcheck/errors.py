# SPDX-License-Identifier: GPL-2.0
"""What goes wrong for reasons that the user can change."""


class UserError(Exception):
    """One clear line that says what to do. The command prints it and exits with status 2."""
