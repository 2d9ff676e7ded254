# SPDX-License-Identifier: GPL-2.0
"""A TLB that forgets nothing: shows missing, short, late or misdirected invalidations of an arm64 kernel.

qemu      provides QEMU 10: the system's, or one that is unpacked below the cache
build     builds the plugin of QEMU (plugin/)
symbols   names of kernel addresses; the functions of a kernel that the plugin observes
reports   what the plugin found: text, JSON, suppressions
boots     boots a kernel or a program with the plugin
programs  runs the selftests with the plugin
cost      what the plugin costs
main      the command
binary    mistakes in a kernel that is built already: other instructions
judge     mistakes that are put into a kernel, and whether the plugin reports them
"""
