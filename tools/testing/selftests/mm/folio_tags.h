/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tags of memory (MTE, arm64). On machines without MTE, have_tags() returns
 * false.
 */
#ifndef FOLIO_TAGS_H
#define FOLIO_TAGS_H

#include <sys/auxv.h>

#include "folio_util.h"

/* The number of bytes of memory that share one tag. */
#define GRANULE 16

#ifdef __aarch64__
#ifndef PROT_MTE
#define PROT_MTE 0x20
#endif

static inline bool have_tags(void)
{
	return getauxval(AT_HWCAP2) & 1UL << 18;
}

static inline void set_tag(char *at, unsigned int tag)
{
	unsigned long tagged = (unsigned long)at | (unsigned long)tag << 56;

	asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" : : "r" (tagged) : "memory");
}

static inline unsigned int tag_of(const char *at)
{
	unsigned long tagged = 0;

	asm volatile(".arch armv8.5-a+memtag\n\tldg %0, [%1]"
		     : "+r" (tagged) : "r" (at) : "memory");
	return tagged >> 56 & 15;
}
#else
#define PROT_MTE 0

static inline bool have_tags(void)
{
	return false;
}

static inline void set_tag(char *at, unsigned int tag)
{
}

static inline unsigned int tag_of(const char *at)
{
	return 0;
}
#endif

/* Give all granules of some memory the same tag. */
static inline void set_tags(char *at, size_t size, unsigned int tag)
{
	for (size_t i = 0; i < size; i += GRANULE)
		set_tag(at + i, tag);
}

/*
 * quiet_begin() - keep warnings of a known issue away from the console
 * @known: whether the kernel has the issue
 *
 * A warning on the console fails the test. A kernel with the known issue warns
 * once per boot, and the test also sees another effect of the issue. After
 * quiet_begin() this warning goes only to the kernel's log, and not to the
 * console. A kernel without the issue must not warn. quiet_end() and the end of
 * the program let all messages appear on the console again.
 */
static inline void quiet_begin(bool known)
{
	if (known)
		write_text(FOLIO_PRINTK, "1");
}

static inline void quiet_end(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(folio_settings_saved); i++)
		if (!strcmp(folio_settings_saved[i].path, FOLIO_PRINTK))
			write_text(FOLIO_PRINTK, folio_settings_saved[i].value);
}

#endif /* FOLIO_TAGS_H */
