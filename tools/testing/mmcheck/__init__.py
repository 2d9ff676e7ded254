# SPDX-License-Identifier: GPL-2.0
"""The host side of mmcheck: one noun per module.

settings   what the user asked for: variables and folders
machine    architectures, compilers, emulators and the packages that bring them
archive    kernel source packages, through apt
source     an unpacked kernel, from the archive or from the user
graft      the overlay laid over a tree, and taken off again
shadow     the private working copy: symbolic links into a source, grafted
make       the `make` that kunit.py finds first: progress, ccache, nothing twice
emulator   the emulator that kunit.py finds first: no KVM where it does not work
progress   progress on standard error: one moving line, or plain lines
launcher   kunit.py itself
outcome    what a boot's console says: finished, missing, hung
check      the project's own tests
verbs      the commands: what each does, its module, its variables, --help
command    what all commands share: errors, interrupts, exit statuses
patch      PATCH=: a change of the kernel for the private copy
ours       folders that mmcheck has made, the only ones that it empties
"""
