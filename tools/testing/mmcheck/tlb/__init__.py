# SPDX-License-Identifier: GPL-2.0
"""A model of a TLB that forgets nothing. It shows missing, short, late or misdirected invalidations of an arm64 kernel.

qemu      provides QEMU 10: the system's QEMU, or a package that is unpacked below the cache
build     builds the plugin of QEMU (plugin/)
symbols   finds the names of kernel addresses, and the kernel functions that the plugin observes
reports   reads the reports of the plugin: text, JSON, suppressions
boots     boots a kernel or a program with the plugin
programs  runs the selftests with the plugin
stress    runs stressors of stress-ng, on a kernel that Debian has built
cost      measures the cost of the plugin
main      runs the command
binary    puts mistakes into a kernel that is already built: other instructions
judge     puts mistakes into a kernel, and checks whether the plugin reports them
"""
