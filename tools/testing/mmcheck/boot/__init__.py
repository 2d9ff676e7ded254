# SPDX-License-Identifier: GPL-2.0
"""Machines and their consoles.

boot        boots a kernel with suites, and reads its console line by line
emulator    the emulator that kunit.py finds first: if KVM does not work, it emulates the machine
sandbox     options that keep an emulator away from the rest of this machine
spread      boots the suites of one run in several machines at a time
guest       the virtual machine for selftests: its files, and the command that boots it
debugger    counts instructions between two places of a kernel
linear_map  counts the operations with which a whole boot maps memory
console     reads a console line by line: KTAP, selftests, messages of the kernel
results     the cases of a console; results as JSON and JUnit XML
"""
