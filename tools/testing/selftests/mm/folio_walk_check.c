// SPDX-License-Identifier: GPL-2.0
/*
 * The driver of folio_walk makes these checks from outside a worker. It checks
 * pagemap and the kernel's log. Reading pagemap changes nothing, so swapped
 * pages stay in swap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio_issues.h"
#include "folio_walk_see.h"
#if __has_include("folio_known_issues.h")
#include "folio_known_issues.h"
#else
#define FOLIO_KNOWN_ISSUES NULL
#endif

static int pagemap[WALK_PROCS] = { -1, -1, -1, -1 };
static int kmsg = -1;

/*
 * Only the first failure counts, because the model may be wrong after a
 * failure.
 */
void walk_fail(const char *rule, const char *format, ...)
{
	struct walk_verdict *v = &walk->verdict;
	va_list arguments;

	if (v->failed)
		return;
	v->failed = true;
	v->step = walk->now;
	snprintf(v->rule, sizeof(v->rule), "%s", rule);
	va_start(arguments, format);
	vsnprintf(v->text, sizeof(v->text), format, arguments);
	va_end(arguments);
}

/**
 * walk_has() - whether the walk has to accept or avoid a known issue
 * @issue: its number in KNOWN_ISSUES.md
 *
 * Return: whether this kernel has the issue, and STRICT=1 is not set
 */
bool walk_has(int issue)
{
	const char *list = getenv("ISSUES") ?: FOLIO_KNOWN_ISSUES;

	return (!list || issue_listed(list, issue)) && !getenv("STRICT");
}

/**
 * walk_known() - the walk has met exactly what a known issue predicts
 * @issue: its number in KNOWN_ISSUES.md
 *
 * Return: true if this kernel has the issue, and STRICT=1 is not set. The
 * caller must then not report a failure. A program that was built outside a
 * kernel tree has no list of issues, and assumes that the kernel has @issue.
 */
bool walk_known(int issue)
{
	if (!walk_has(issue))
		return false;
	walk->known[issue] = true;
	return true;
}

/*
 * Known issue 10: if a private hugetlb page of a parent is not PMD-sized, the
 * child has no entry for it and reads zeros. This life (sequence of steps)
 * ends, since the model no longer agrees with the kernel.
 */
void walk_lost_hugetlb(const struct walk_page *p, bool lost)
{
	if (lost && p->flags & HUGETLB && p->flags & INHERITED && walk->unit != walk->table &&
	    !walk->verdict.failed && walk_known(10))
		walk->verdict.known = 10;
}

void walk_check_forget(int proc)
{
	if (pagemap[proc] >= 0)
		close(pagemap[proc]);
	pagemap[proc] = -1;
}

void walk_check_begin(void)
{
	char path[96];

	/*
	 * Without this write, a warning that the kernel prints only once would
	 * not appear again when the walk repeats a sequence of steps.
	 */
	snprintf(path, sizeof(path), "%s/clear_warn_once", walk_debugfs);
	walk_write_text(path, "1");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	lseek(kmsg, 0, SEEK_END);
}

int walk_pagemap(int proc)
{
	char path[64];

	if (pagemap[proc] < 0) {
		snprintf(path, sizeof(path), "/proc/%d/pagemap", walk->box[proc].pid);
		pagemap[proc] = open(path, O_RDONLY);
	}
	return pagemap[proc];
}

/* Read entries of pagemap. Returns whether all entries were read. */
bool walk_entries(int proc, uint32_t at, uint32_t len, uint64_t *entries)
{
	return pread(walk_pagemap(proc), entries, len * 8, (WALK_ARENA / walk_psize + at) * 8) ==
	       (ssize_t)len * 8;
}

/*
 * Check one entry of pagemap. Documentation/admin-guide/mm/pagemap.rst
 * describes the bits. The comments name the man pages from which the rules
 * come. Returns the broken rule.
 */
static const char *broken(struct walk_page *p, uint64_t e)
{
	bool there = e & (PM_PRESENT | PM_SWAP);

	if (p->kind == NOTHING)
		return there ? "unmapped-present" : NULL;
	/* A page with content is in memory or in swap, until a call drops it. */
	if (p->flags & OWN && p->val && !(p->flags & LAZY) && !there)
		return "page-lost";
	/*
	 * userfaultfd(2), ioctl_userfaultfd(2): the protection stays until a
	 * call or a write clears it.
	 */
	if (!(p->flags & WP) != !(e & PM_UFFD_WP))
		return p->flags & WP ? "uffd-wp-lost" : "uffd-wp-unasked";
	if (has(HAS_SOFT_DIRTY) && m_soft_dirty(p) && there && !(e & PM_SOFT_DIRTY))
		return "soft-dirty-lost";
	if (p->flags & GUARD && e & PM_PRESENT)
		return "guard-present";
	if (has(HAS_GUARD_BIT) && !(p->flags & GUARD) != !(e & PM_GUARD))
		return p->flags & GUARD ? "guard-lost" : "guard-unasked";
	/* mlock(2): the pages stay in memory. */
	if (p->flags & LOCKED && !(p->flags & (ONFAULT | LAZY)) && p->flags & OWN && p->val &&
	    !(e & PM_PRESENT))
		return "locked-absent";
	/* mmap(2), MAP_PRIVATE: a process that wrote to a page has its own anonymous page. */
	if (e & PM_PRESENT && !(p->flags & HUGETLB)) {
		if (p->kind == SHARED && !(e & PM_FILE))
			return "shared-not-file";
		/* On some kernels the entry of the huge zero page has PM_FILE. */
		if (p->kind == ANON && p->flags & OWN && p->val && e & PM_FILE)
			return "anon-is-file";
		if (p->kind == PRIVATE && p->flags & OWN && e & PM_FILE)
			return "private-is-file";
	}
	/* Documentation/core-api/pin_user_pages.rst: a pinned page stays where it is. */
	if (p->flags & PINNED) {
		if (!(e & PM_PRESENT))
			return "pinned-absent";
		if (p->pfn && p->pfn != (e & PM_PFN))
			return "pinned-moved";
		p->pfn = e & PM_PFN;
	}
	return NULL;
}

static void check_entries(int proc, uint32_t at, uint32_t len)
{
	static uint64_t entries[WALK_PAGES];
	const char *rule;
	uint32_t i;

	if (!walk->box[proc].alive || !walk_entries(proc, at, len, entries))
		return;
	for (i = 0; i < len; i++) {
		struct walk_page *p = page_of(proc, at + i);

		rule = broken(p, entries[i]);
		if (rule) {
			walk_lost_hugetlb(p, !strcmp(rule, "page-lost") && !entries[i]);
			walk_fail(rule,
				  "process %d page %u: pagemap %#llx, kind %d prot %d flags %x value %llu",
				  proc, at + i, (unsigned long long)entries[i], p->kind, p->prot,
				  p->flags, (unsigned long long)p->val);
			return;
		}
	}
	walk->verdict.checks += len;
}

/* mincore(2): a page that is mapped is resident. */
static void check_mincore(int proc, uint32_t at, uint32_t len)
{
	static uint64_t entries[WALK_PAGES];
	uint32_t i;

	for (i = 0; i < len; i++)
		if (page_of(proc, at + i)->kind == NOTHING)
			break;
	len = i;
	if (!len || !walk_entries(proc, at, len, entries))
		return;
	if (walk_command(proc, MINCORE, at, len)) {
		walk_fail("mincore", "process %d pages %u-%u: %s", proc, at, at + len - 1,
			  strerror(walk->box[proc].error));
		return;
	}
	for (i = 0; i < len; i++)
		if (entries[i] & PM_PRESENT && !(walk->box[proc].vec[i] & 1))
			walk_fail("mincore", "process %d page %u is mapped, but not resident",
				  proc, at + i);
}

/*
 * The name of the rule contains the code location of the warning, so warnings
 * at different locations count as different failures.
 */
static void log_failure(char *text)
{
	char *place = strstr(text, "+0x"), rule[40];

	while (place && place > text && place[-1] != ' ')
		place--;
	snprintf(rule, sizeof(rule), "kernel-log-%.*s", (int)strcspn(place ?: "", "+."),
		 place ?: "");
	walk_fail(rule, "%s", text);
}

/*
 * Known issue 85: swap-in takes an empty entry for a swap entry. With
 * CONFIG_DEBUG_VM=y, two functions warn about such an entry.
 */
static bool log_known(const char *text)
{
	return (strstr(text, " swap_pte_batch+") || strstr(text, " __swap_cache_add_check+")) &&
	       walk_known(85);
}

/* A sequence of steps that causes another kernel warning never passes. */
static void check_log(void)
{
	static const char * const bad[] = {
		"BUG:", "WARNING:", "BUG ", "Bad page", "Bad rss", "Oops", "UBSAN", "corruption",
		"refcount_t:", "KASAN", "KCSAN", "possible circular", "blocked for more than",
	};
	char record[1024], *text;
	unsigned int i;
	ssize_t n;

	while ((n = read(kmsg, record, sizeof(record) - 1)) != -1 || errno == EPIPE) {
		if (n <= 0)
			continue;
		record[n] = 0;
		/* Facility 0 is the kernel. */
		if (atoi(record) >> 3)
			continue;
		text = strchr(record, ';');
		for (i = 0; text && i < sizeof(bad) / sizeof(*bad); i++)
			if (strstr(text, bad[i]) && !log_known(text)) {
				text[strcspn(text, "\n")] = 0;
				log_failure(text + 1);
			}
	}
}

/*
 * Check the range in each process, since a wrong entry often harms another
 * process.
 */
static void check_everywhere(uint32_t at, uint32_t len)
{
	int proc;

	for (proc = 0; proc < WALK_PROCS; proc++)
		check_entries(proc, at, len);
}

/*
 * Check the pages that the step touched, and a random range of pages. A read of
 * a page changes the state of the page, so after most steps the pages are
 * checked only by means of pagemap.
 */
void walk_check_step(const struct walk_step *s)
{
	uint64_t draw = s->check;
	int proc = draw % WALK_PROCS;
	uint32_t at = (draw >> 8) % WALK_PAGES, len = 1 + (draw >> 24) % 64;

	if (at + len > WALK_PAGES)
		len = WALK_PAGES - at;
	check_log();
	if (s->len && s->at + s->len <= WALK_PAGES)
		check_everywhere(s->at, s->len);
	if (s->tolen)
		check_entries(s->proc, s->to, s->tolen);
	check_everywhere(at, len);
	if (walk->verdict.failed)
		return;
	switch (draw >> 40 & 7) {
	case 0:
		if (walk->box[proc].alive)
			walk_command(proc, CHECK, at, len);
		break;
	case 1:
		if (walk->box[s->proc].alive && s->len &&
		    walk_calls[s->call].flags & (MAPPED | ANY))
			walk_command(s->proc, CHECK, s->at, s->len);
		break;
	case 2:
		if (walk->box[proc].alive && s->len && walk_calls[s->call].flags & (MAPPED | ANY))
			walk_command(proc, CHECK, s->at, s->len);
		break;
	case 3:
		if (walk->box[proc].alive)
			check_mincore(proc, at, len);
		break;
	}
	if (walk->verdict.failed)
		return;
	if (!(draw >> 44 & 15))
		walk_check_frames();
	if (!(draw >> 48 & 31))
		walk_check_smaps(proc);
	if (!(draw >> 54 & 63))
		walk_audit(false);
}

/* Check all pages of each process. */
void walk_check_all(bool slow)
{
	int proc;

	check_everywhere(0, WALK_PAGES);
	walk_check_frames();
	for (proc = 0; proc < WALK_PROCS && !walk->verdict.failed; proc++) {
		if (!walk->box[proc].alive)
			continue;
		if (slow)
			walk_check_smaps(proc);
		walk_command(proc, CHECK, 0, WALK_PAGES);
	}
	if (!walk->verdict.failed)
		check_everywhere(0, WALK_PAGES);
	if (!walk->verdict.failed)
		walk_audit(false);
	check_log();
}
