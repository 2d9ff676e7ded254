# SPDX-License-Identifier: GPL-2.0
"""What every other package uses; it knows nothing of kernels.

command    what all commands share: errors, interrupts, exit statuses
disk       writes files in one step
dry        DRY_RUN=1: says what a command would do, and does nothing
errors     exit statuses, and the error for causes that the user can change
git        temporary repositories, and questions to repositories of the user
lock       one run at a time in one folder
ours       folders that mmcheck has made; it empties no others
process    ends programs that mmcheck has started
progress   progress on standard error: one moving line, or plain lines
settings   what the user asked for: kernel, architecture, folders
variables  the variables that commands read
"""
