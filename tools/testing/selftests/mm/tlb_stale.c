// SPDX-License-Identifier: GPL-2.0
/*
 * Threads on other CPUs must see changes of memory at once.
 *
 * Proves: after a call that changes memory has returned, no CPU uses the old
 * translation of a page. Threads that are pinned to other CPUs read all pages in
 * a loop. So their TLBs hold translations of all pages when the call begins.
 * After the call has returned, the threads must see the new content, or get the
 * signal that the new permission causes. Each call changes one page of a folded
 * block. The test makes the call for each page of the block. Calls on hugetlb
 * pages and the collapse into a huge page change the whole block. If a folio is
 * too small for a block, a call changes the whole folio. KSM replaces single
 * pages.
 *
 *	this thread	seq 2n + 1, call, write to the page, seq 2n + 2
 *	other threads	read seq, access a page, read seq
 *
 * A thread reads seq before and after each access. If both values are the same
 * even number, no call was running during the access, and the access must have
 * the expected result.
 *
 * Does not prove: anything about a stale translation that a TLB has dropped by
 * chance, or that leads to the right page. After MADV_FREE and after the split
 * of a folio, each page still has its frame. After MADV_PAGEOUT a page may
 * return to its old frame. An emulated TLB ignores contiguous bits, and ignores
 * the page-table level that an invalidation names. `make tlb` checks both. An
 * emulated TLB drops all translations if the kernel invalidates a long range,
 * or if the TLB holds few translations. The kernel unfolds a block before it
 * changes one page. The TLB invalidation for the unfold hides a missing
 * invalidation of the page. The test notices if both invalidations are missing.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=tlb_stale
 */
#include "folio_ksm.h"
#include "folio_listen.h"
#include "folio_pmd.h"
#include "hugetlb_pool.h"
#include "tlb_threads.h"

/* For each entry of calls[], refused calls are repeated at most this many times: see each_call. */
#define REPEATS 4

FIXTURE(tlb_stale)
{
	struct run run;
	struct hugetlb_pool pool;
	bool pooled;
};

FIXTURE_VARIANT(tlb_stale)
{
	enum memory_kind kind;
	bool huge;	/* hugetlb pages of the size of a block */
	bool small;	/* folios of four pages; a call changes a whole folio */
};

FIXTURE_VARIANT_ADD(tlb_stale, anon)
{
	.kind = ANON,
};

FIXTURE_VARIANT_ADD(tlb_stale, shmem)
{
	.kind = SHMEM,
};

FIXTURE_VARIANT_ADD(tlb_stale, hugetlb)
{
	.kind = ANON,
	.huge = true,
};

FIXTURE_VARIANT_ADD(tlb_stale, anon_small)
{
	.kind = ANON,
	.small = true,
};

FIXTURE_VARIANT_ADD(tlb_stale, shmem_small)
{
	.kind = SHMEM,
	.small = true,
};

FIXTURE_SETUP(tlb_stale)
{
	int order = variant->small ? 2 : order_of(cont_ptes());
	struct sigaction action = { .sa_handler = stale_signal };
	const char *why = folio_settings(order);
	int here = sched_getcpu(), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	self->run.memory.fd = -1;
	self->run.uffd = -1;
	self->run.readers = 0;
	self->run.spare = NULL;
	self->run.reused = 0;
	self->run.kind = variant->kind;
	self->run.order = order;
	self->run.huge = variant->huge;
	if (!why && cpus < 2)
		why = "needs two CPUs";
	if (!why && variant->huge) {
		why = hugetlb_pool_have(&self->pool, bytes(cont_ptes()), 4);
		self->pooled = !why;
	}
	if (why)
		SKIP(return, "%s", why);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	ASSERT_TRUE(run_on(here));
	memset(&stale, 0, sizeof(stale));
	atomic_store(&stale.seq, 1);
	stale.fill = mmap(NULL, bytes(FILL), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, stale.fill);
	for (int cpu = 0; cpu < cpus && self->run.readers < READERS; cpu++) {
		struct reader *r = &self->run.reader[self->run.readers];

		if (cpu == here)
			continue;
		*r = (struct reader){ .cpu = cpu };
		ASSERT_EQ(0, pthread_create(&r->thread, NULL, stale_read, r));
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		ASSERT_EQ(0, pthread_setaffinity_np(r->thread, sizeof(set), &set));
		self->run.readers++;
	}
}

FIXTURE_TEARDOWN(tlb_stale)
{
	atomic_store(&stale.stop, true);
	for (int i = 0; i < self->run.readers; i++)
		pthread_join(self->run.reader[i].thread, NULL);
	if (self->run.uffd >= 0)
		close(self->run.uffd);
	if (self->run.readers)
		munmap(stale.fill, bytes(FILL));
	run_free(&self->run);
	if (self->pooled)
		hugetlb_pool_restore(&self->pool);
}

/* What the threads must see after a call. */
enum after {
	AFTER_ZERO,		/* a new page */
	AFTER_WRITE,		/* what this thread writes after the call */
	AFTER_NOTHING,		/* SIGSEGV */
	AFTER_READ_ONLY,	/* SIGSEGV for a write */
	AFTER_BUS,		/* SIGBUS for a write */
	AFTER_SAME,		/* what they saw before the call */
};

/**
 * struct call - a call that changes memory
 * @name: for messages
 * @call: changes @length bytes at @at; returns 0 unless the kernel refuses
 * @after: what the threads must see then
 * @writes: the threads also write
 * @anon_only: not for memory of a file
 * @no_huge: not for hugetlb pages
 * @one_page: not for the folios of four pages
 * @repeat: the kernel may refuse the call
 * @pmd: the memory is as large as a huge page
 * @single: the memory consists of single pages
 */
struct call {
	const char *name;
	int (*call)(struct run *run, char *at, size_t length);
	enum after after;
	bool writes;
	bool anon_only;
	bool no_huge;
	bool one_page;
	bool repeat;
	bool pmd;
	bool single;
};

/* Map as much memory as a huge page has, in smaller folios. */
static const char *stale_pmd(struct run *run)
{
	size_t length = bytes(pmd_pages());
	struct memory *m = &run->memory;

	*m = (struct memory){ .pages = pmd_pages(), .fd = -1, .room_bytes = 2 * length };
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->room == MAP_FAILED)
		return "out of memory";
	m->at = (char *)(((unsigned long)m->room + length - 1) & -length);
	if (mprotect(m->at, length, PROT_READ | PROT_WRITE))
		return "out of memory";
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	return NULL;
}

/* Map memory with a pattern, and let the threads use its translations. */
static const char *stale_begin(struct run *run, const struct call *call)
{
	unsigned int n = cont_ptes();
	const char *why;

	run_free(run);
	if (run->huge) {
		run->memory = (struct memory){ .pages = n, .fd = -1, .room_bytes = bytes(n) };
		run->memory.room = mmap(NULL, bytes(n), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
					order_of(bytes(n)) << MAP_HUGE_SHIFT, -1, 0);
		run->memory.at = run->memory.room;
		why = run->memory.room == MAP_FAILED ? "no hugetlb page" : NULL;
	} else if (call->pmd) {
		why = stale_pmd(run);
	} else if (call->single) {
		folio_settings(0);
		why = memory_map(&run->memory, run->kind, 0, n);
		folio_settings(run->order);
	} else {
		why = memory_map(&run->memory, run->kind, run->order, n >> run->order);
	}
	if (why)
		return why;
	for (unsigned int page = 0; page < n; page++) {
		write_word(run->memory.at + bytes(page), pattern(page));
		stale.page[page] = (struct expected){ .value = pattern(page) };
	}
	stale.at = run->memory.at;
	stale.pages = n;
	stale.writes = call->writes;
	run->folds += has_contpte() && !call->single && folded(&run->memory, 0);
	atomic_fetch_add(&stale.seq, 1);
	stale_wait(run);
	atomic_fetch_add(&stale.seq, 1);
	return NULL;
}

/*
 * The call has returned. The threads must now see the expected content.
 */
static void stale_end(struct run *run)
{
	atomic_fetch_add(&stale.seq, 1);
	stale_wait(run);
	atomic_fetch_add(&stale.seq, 1);
	/*
	 * An access that is still running must not reach the memory that is
	 * mapped for the next call.
	 */
	stale_wait(run);
}

static int stale_again(struct run *run, char *at, size_t length)
{
	int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;

	return munmap(at, length) ||
	       mmap(at, length, PROT_READ | PROT_WRITE, flags, -1, 0) != at;
}

static int stale_unmap(struct run *run, char *at, size_t length)
{
	return munmap(at, length);
}

static int stale_read_only(struct run *run, char *at, size_t length)
{
	return mprotect(at, length, PROT_READ);
}

static int stale_none(struct run *run, char *at, size_t length)
{
	return mprotect(at, length, PROT_NONE);
}

static int stale_dontneed(struct run *run, char *at, size_t length)
{
	return madvise(at, length, MADV_DONTNEED);
}

static int stale_free(struct run *run, char *at, size_t length)
{
	return madvise(at, length, MADV_FREE);
}

static int stale_pageout(struct run *run, char *at, size_t length)
{
	bool left = madvise(at, length, MADV_PAGEOUT);

	for (size_t i = 0; i < length && !left; i += psize())
		left = pagemap_has(at + i, PM_PRESENT);
	return left;
}

static int stale_move_away(struct run *run, char *at, size_t length)
{
	char *room = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = (char *)(((unsigned long)room + length - 1) & -length);
	bool moved = mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;

	return munmap(room, 2 * length) || !moved;
}

static int stale_migrate(struct run *run, char *at, size_t length)
{
	int node = move_page(at, NULL) ? 0 : 1;

	return move_page(at, &node) != node;
}

static int stale_split(struct run *run, char *at, size_t length)
{
	return !split_folios(&run->memory);
}

/* Write while a child maps the page too: the page is copied. */
static int stale_fork(struct run *run, char *at, size_t length)
{
	int go[2];
	pid_t pid;
	char c;

	if (pipe(go))
		return -1;
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	write_word(at, 0);
	close(go[1]);
	return pid < 0 || child_of(pid);
}

/* Use userfaultfd to protect pages against writes: a write raises SIGBUS. */
static int stale_uffd(struct run *run, char *at, size_t length)
{
	if (run->uffd >= 0)
		close(run->uffd);
	run->uffd = listener(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_SIGBUS |
			     UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	return run->uffd < 0 ||
	       listen_to(run->uffd, run->memory.at, bytes(run->memory.pages)) ||
	       protect(run->uffd, at, length / psize(), true);
}

/* Collapse the memory into a huge page. */
static int stale_collapse(struct run *run, char *at, size_t length)
{
	return madvise(run->memory.at, bytes(run->memory.pages), MADV_COLLAPSE) ||
	       smaps_pages(run->memory.at, "AnonHugePages") != run->memory.pages;
}

/*
 * KSM gives a page the frame of another page with the same content, and frees
 * its old frame. This thread then allocates the old frame, and writes to it.
 *
 * KSM visits the page at the higher address last. It keeps the frame of this
 * page, so this page is the copy. ksmd and this thread run on the same CPU. So
 * this thread gets the frame soon if it allocates single pages.
 */
static int stale_ksm(struct run *run, char *at, size_t length)
{
	char *copy = run->memory.room + run->memory.room_bytes - length;
	unsigned long before;
	cpu_set_t here;

	copy = mmap(copy, length, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -1;
	memcpy(copy, at, length);
	before = pfn_of(at);
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	ksm_pin(&here);
	if (madvise(at, length, MADV_MERGEABLE) || madvise(copy, length, MADV_MERGEABLE))
		return -1;
	ksm_merge_begin(false);
	for (int i = 0; i < 500 && pfn_of(at) != pfn_of(copy); i++)
		usleep(10000);
	ksm_merge_end();
	if (pfn_of(at) != pfn_of(copy) || pfn_of(at) == before)
		return -1;
	run->spare_bytes = bytes(FILL);
	run->spare = mmap(NULL, run->spare_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (run->spare == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	if (madvise(run->spare, run->spare_bytes, MADV_NOHUGEPAGE))
		ksft_exit_fail_perror("madvise");
	memset(run->spare, 0xff, run->spare_bytes);
	for (unsigned int page = 0; page < FILL; page++)
		run->reused += pfn_of(run->spare + bytes(page)) == before;
	return 0;
}

static const struct call calls[] = {
	{ "munmap() and mmap()", stale_again, AFTER_ZERO, .no_huge = true },
	{ "munmap()", stale_unmap, AFTER_NOTHING },
	{ "mprotect(PROT_READ)", stale_read_only, AFTER_READ_ONLY, .writes = true },
	{ "mprotect(PROT_NONE)", stale_none, AFTER_NOTHING },
	{ "MADV_DONTNEED", stale_dontneed, AFTER_ZERO, .anon_only = true },
	{ "MADV_FREE", stale_free, AFTER_WRITE, .anon_only = true, .no_huge = true },
	{ "MADV_PAGEOUT", stale_pageout, AFTER_WRITE, .no_huge = true, .repeat = true },
	{ "mremap()", stale_move_away, AFTER_NOTHING },
	{ "move_pages()", stale_migrate, AFTER_WRITE, .one_page = true, .repeat = true },
	{ "split of the folio", stale_split, AFTER_WRITE, .anon_only = true, .no_huge = true,
	  .one_page = true },
	{ "fork() and a write", stale_fork, AFTER_WRITE, .anon_only = true, .one_page = true },
	{ "UFFDIO_WRITEPROTECT", stale_uffd, AFTER_BUS, .writes = true },
	{ "MADV_COLLAPSE", stale_collapse, AFTER_WRITE, .anon_only = true, .no_huge = true,
	  .pmd = true },
	{ "KSM", stale_ksm, AFTER_SAME, .anon_only = true, .no_huge = true, .one_page = true,
	  .single = true },
	{ "KSM and a write", stale_ksm, AFTER_WRITE, .anon_only = true, .no_huge = true,
	  .one_page = true, .single = true },
};

static void stale_expect(char *at, unsigned int page, enum after after)
{
	struct expected *want = &stale.page[page];

	switch (after) {
	case AFTER_ZERO:
		want->value = 0;
		break;
	case AFTER_WRITE:
		want->value = 0x1000 + page;
		write_word(at, want->value);
		break;
	case AFTER_NOTHING:
		want->read = SIGSEGV;
		break;
	case AFTER_READ_ONLY:
		want->write = SIGSEGV;
		break;
	case AFTER_BUS:
		want->write = SIGBUS;
		break;
	case AFTER_SAME:
		break;
	}
}

/* Whether this machine has what a call needs. */
static bool stale_possible(const struct call *call)
{
	const char *missing = NULL;

	if (call->call == stale_migrate && access("/sys/devices/system/node/node1", F_OK))
		missing = "two NUMA nodes";
	if (call->call == stale_split && access("/sys/kernel/debug/split_huge_pages", W_OK))
		missing = "split_huge_pages in debugfs";
	if (call->call == stale_ksm && access(FOLIO_KSM "run", W_OK))
		missing = "CONFIG_KSM=y";
	if (call->pmd && !pmd_pages())
		missing = "smaller huge pages";
	if (missing)
		ksft_print_msg("%s: left out, because it needs %s\n", call->name, missing);
	return !missing;
}

/*
 * Make one call on @nr pages that begin at page @page, and check what the
 * threads see. Returns how many accesses were checked, or 0 if the kernel
 * refused the call.
 */
static unsigned long stale_try(struct __test_metadata *_metadata, struct run *run,
			       const struct call *call, unsigned int page, unsigned int nr)
{
	const char *why = stale_begin(run, call);
	unsigned long checked = 0;

	ASSERT_EQ(NULL, why) {
		TH_LOG("%s: no memory: %s", call->name, why);
	}
	if (call->call(run, run->memory.at + bytes(page), bytes(nr))) {
		stale_wait(run);
		return 0;
	}
	for (unsigned int i = page; i < page + nr; i++)
		stale_expect(run->memory.at + bytes(i), i, call->after);
	stale_end(run);
	for (int i = 0; i < run->readers; i++) {
		struct reader *r = &run->reader[i];

		EXPECT_EQ(0, r->wrong) {
			TH_LOG("%s of page %u: %lu wrong accesses", call->name, page, r->wrong);
			TH_LOG("CPU %d, page %u: value %x, signals %d, %d", r->cpu, r->page,
			       r->saw.value, r->saw.read, r->saw.write);
			TH_LOG("expected value %x, signals %d, %d", r->want.value, r->want.read,
			       r->want.write);
		}
		checked += r->checked;
		r->checked = 0;
		r->wrong = 0;
	}
	return checked;
}

/*
 * Make each call for each page of a block. If the block is a hugetlb page, a
 * call changes the whole hugetlb page. If the folios have four pages, a call
 * changes a whole folio. The kernel handles the four pages of a folio in one
 * batch, and must invalidate the translation of each page. MADV_COLLAPSE always
 * changes the whole block, and the test makes it once for each four pages.
 * After each call, the threads access all pages at least three times.
 *
 * An access may be running when the call begins, and may fault while an entry
 * is empty. The fault then holds a reference to a folio of a file and waits for
 * the lock of the folio, so the kernel refuses to move the folio. The test then
 * repeats the call with new memory and new translations. The test makes at most
 * REPEATS repeats for each entry of calls[], not for each page.
 */
TEST_F_TIMEOUT(tlb_stale, each_call, 250)
{
	unsigned long checked = 0, done = 0;
	unsigned int n = cont_ptes();
	struct run *run = &self->run;

	for (unsigned int c = 0; c < ARRAY_SIZE(calls); c++) {
		const struct call *call = &calls[c];
		unsigned int step = run->huge ? n : variant->small || call->pmd ? 4 : 1;
		unsigned int refused = 0;
		unsigned int left = call->repeat ? REPEATS : 0;

		if ((call->anon_only && run->kind != ANON) || (call->no_huge && run->huge) ||
		    (call->one_page && variant->small) || !stale_possible(call))
			continue;
		/* If the range is part of a folio of a file, MADV_PAGEOUT only splits the folio. */
		if (call->call == stale_pageout &&
		    (!have_swap() || (run->kind == SHMEM && !variant->small)))
			continue;
		for (unsigned int page = 0; page < n; page += step) {
			unsigned long saw = stale_try(_metadata, run, call, page, step);

			for (; !saw && left; left--) {
				TH_LOG("%s of page %u: refused, next try", call->name, page);
				saw = stale_try(_metadata, run, call, page, step);
			}
			refused += !saw;
			done += !!saw;
			checked += saw;
		}
		EXPECT_EQ(0, refused) {
			TH_LOG("%s: refused %u of %u times", call->name, refused, n / step);
		}
	}
	DID(done, "calls");
	DID(checked, "accesses after or before a call");
	if (run->kind == ANON && !run->huge && !variant->small && !access(FOLIO_KSM "run", W_OK))
		DID(run->reused, "frames that KSM freed and this thread got");
	if (has_contpte() && !run->huge && !variant->small && perf_tells())
		DID(run->folds, "folded blocks");
}

TEST_HARNESS_MAIN
