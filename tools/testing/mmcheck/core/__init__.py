# SPDX-License-Identifier: GPL-2.0
"""Code that every other package uses, independent of any kernel.

command    what all commands share: errors, interrupts, exit statuses
disk       writes files in one step
dry        DRY_RUN=1: lists what a command would do, but does nothing
errors     exit statuses, and the error for causes that the user can change
git        temporary repositories, and queries of the user's repositories
lock       one run at a time in one folder
ours       folders that mmcheck has made; mmcheck empties only these
process    ends programs that mmcheck has started
output     JSON=1: standard output has only JSON
progress   progress on standard error: one moving line, or plain lines
settings   the user's choices: kernel, architecture, folders
variables  the variables that commands read
"""
