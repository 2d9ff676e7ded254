// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: let the kernel's auditor (mm_audit in debugfs) compare all page
 * tables with all folios and counters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "folio_walk_see.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Run one audit, and read its result. Returns false after walk_fail(). */
static bool run_audit(const char *mode, char *text, size_t size)
{
	char path[96];
	size_t have = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/mm_audit", walk_debugfs);
	if (!walk_write_text(path, mode)) {
		walk_fail("audit-error", "cannot audit: %s", strerror(errno));
		return false;
	}
	fd = open(path, O_RDONLY);
	while (have + 1 < size && (n = read(fd, text + have, size - have - 1)) > 0)
		have += n;
	close(fd);
	text[have] = 0;
	return true;
}

/*
 * Known issue 27: each migration of a private hugetlb folio adds 1 to the
 * number of transparent huge pages of its size.
 */
static bool counts_hugetlb(const char *line)
{
	unsigned long pages;
	long got, want;
	char path[64];

	if (sscanf(line, "mthp_nr_anon: %*[^:]: %ld, expected %ld, pfn %lx", &got, &want,
		   &pages) != 3 || got <= want)
		return false;
	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%lukB",
		 pages * walk_psize / 1024);
	return (pages == walk->unit || !access(path, F_OK)) && walk_known(27);
}

static void judge(char *text, bool quiet)
{
	char *line = strtok(text, "\n"), rule[40];
	int mms, proc, alive = 0;

	for (proc = 0; proc < WALK_PROCS && !quiet; proc++)
		alive += walk->box[proc].alive;
	if (!line || sscanf(line, "mm_audit: %d mms,", &mms) != 1 || mms < alive) {
		walk_fail("audit-error", "%d processes, but the auditor says: %s", alive,
			  line ?: "nothing");
		return;
	}
	while ((line = strtok(NULL, "\n"))) {
		if (counts_hugetlb(line))
			continue;
		snprintf(rule, sizeof(rule), "audit-%.*s", (int)strcspn(line, ":"), line);
		walk_fail(rule, "%s", line);
		return;
	}
}

/**
 * walk_audit() - let the auditor check all address spaces and all folios
 * @quiet: whether no process of the walk is left, so that each folio must have
 *	exactly the references that the auditor can explain
 *
 * A violation is a failure.
 */
void walk_audit(bool quiet)
{
	static char text[32768];
	unsigned long long begin = now_ns();
	bool done;

	if (!has(HAS_AUDIT))
		return;
	done = run_audit(quiet ? "2" : "1", text, sizeof(text));
	walk->audits += done;
	walk->audit_ns += now_ns() - begin;
	if (done)
		judge(text, quiet);
}

/**
 * walk_first_audit() - audit before the first life
 *
 * If other programs ran since the boot, the kernel's counters may be wrong already.
 * The walk then does not audit, and says so.
 */
void walk_first_audit(void)
{
	walk_audit(false);
	if (walk->verdict.failed && !has(HAS_MACHINE)) {
		printf("# no audits, because the first one finds: %s\n", walk->verdict.text);
		walk->features &= ~HAS_AUDIT;
	}
	walk->audits = 0;
	walk->audit_ns = 0;
}
