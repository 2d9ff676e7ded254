# SPDX-License-Identifier: GPL-2.0
"""The host side of mmcheck. These are its main modules:

settings   what the user asked for: variables and folders
machine    architectures, compilers, emulators and the packages that bring them
archive    kernel source packages, through apt
source     an unpacked kernel, from the archive or from the user
graft      copies the overlay into a tree, and removes it again
shadow     the private working copy: symbolic links into a source, grafted
make       the `make` that kunit.py finds first: shows progress, uses ccache, skips a build without changes
emulator   the emulator that kunit.py finds first: emulates the machine where KVM does not work
progress   progress on standard error: one moving line, or plain lines
launcher   what tools/testing/kunit/kunit.py runs
outcome    what a boot's console says: finished, missing, hung
check      the project's own tests
verbs      the commands: what each does, its module, its variables, --help
command    what all commands share: errors, interrupts, exit statuses
patch      PATCH=: a change of the kernel, applied to the private copy
ours       folders that mmcheck has made; it empties no others
"""
