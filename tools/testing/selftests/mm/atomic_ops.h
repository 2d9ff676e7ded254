/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations on one word, for programs that count the faults of each operation.
 * atomic_fault and atomic_file include this file.
 */
#ifndef ATOMIC_OPS_H
#define ATOMIC_OPS_H

#include <sys/auxv.h>

#include "folio_util.h"

static inline void do_load(unsigned long *at)
{
	read_byte((char *)at);
}

static inline void do_store(unsigned long *at)
{
	*at = 1;
	asm volatile("" : : : "memory");
}

static inline void do_atomic(unsigned long *at)
{
#ifdef __aarch64__
	unsigned long one = 1, old;

	asm volatile(".arch_extension lse\n\tldadd %1, %0, %2"
		     : "=r" (old), "+r" (one), "+Q" (*at));
#else
	__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

static inline void do_exclusive(unsigned long *at)
{
#ifdef __aarch64__
	unsigned long value;
	unsigned int failed;

	do {
		asm volatile("ldxr %0, %2\n\tadd %0, %0, #1\n\tstxr %w1, %0, %2"
			     : "=&r" (value), "=&r" (failed), "+Q" (*at) : : "memory");
	} while (failed);
#else
	__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

#ifndef __aarch64__
static inline bool emulated(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "QEMU TCG") || strstr(line, "QEMU Virtual");
	if (f)
		fclose(f);
	return found;
}
#endif

/* The reason why the faults of an atomic cannot be counted here, or NULL. */
static inline const char *atomics_inexact(void)
{
#ifdef __aarch64__
	if (!(getauxval(AT_HWCAP) & HWCAP_ATOMICS))
		return "the CPU has no LSE atomics";
	if (sysconf(_SC_NPROCESSORS_CONF) > 1 && !access("/tests/list", F_OK))
		return "with two emulated CPUs, QEMU reports an atomic's fault as a write";
#else
	if (emulated())
		return "QEMU emulates an atomic as a read and then a write";
#endif
	return NULL;
}

#endif /* ATOMIC_OPS_H */
