/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The threads of tlb_stale. They are pinned to other CPUs, and access memory in
 * a loop.
 */
#ifndef TLB_THREADS_H
#define TLB_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "folio_state.h"

#define READERS 3
/* Each thread reads all pages ROUNDS times before each call, and ROUNDS times after it. */
#define ROUNDS 3
/* At each invalidation, QEMU drops all translations if its TLB has fewer than 256 entries. */
#define FILL 256

static __thread sigjmp_buf stale_caught;

static inline void stale_signal(int number)
{
	siglongjmp(stale_caught, number);
}

/**
 * struct expected - what an access to a page must give
 * @value: the first word of the page
 * @read: the signal of a read, or 0
 * @write: the signal of a write, or 0
 */
struct expected {
	unsigned int value;
	int read;
	int write;
};

static struct {
	char *at;
	unsigned int pages;
	bool writes;		/* the threads also write what they read */
	struct expected page[1024];
	atomic_uint seq;
	atomic_bool stop;
	char *fill;		/* other pages, which keep the TLBs full */
} stale;

/**
 * struct reader - a thread that accesses all pages in a loop
 * @rounds: how often it has accessed all pages
 * @checked: the number of accesses while no call was running
 * @wrong: the number of these accesses with an unexpected result
 * @page: the page of the first access with an unexpected result
 * @saw: the result of this access
 */
struct reader {
	pthread_t thread;
	int cpu;
	atomic_ulong rounds;
	unsigned long checked, wrong;
	unsigned int page;
	struct expected saw, want;
};

/* Read a page. If @write is set, write the same value back. @saw gets the result. */
static inline void stale_access(unsigned int *at, bool write, struct expected *saw)
{
	int number;

	*saw = (struct expected){};
	number = sigsetjmp(stale_caught, 1);
	if (number) {
		saw->read = number;
		return;
	}
	saw->value = __atomic_load_n(at, __ATOMIC_RELAXED);
	if (!write)
		return;
	number = sigsetjmp(stale_caught, 1);
	if (number)
		saw->write = number;
	else
		__atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
}

static inline void write_word(char *at, unsigned int value)
{
	__atomic_store_n((unsigned int *)at, value, __ATOMIC_RELAXED);
}

static inline bool stale_agrees(const struct expected *saw, const struct expected *want, bool write)
{
	if (saw->read || want->read)
		return saw->read == want->read;
	return saw->value == want->value && (!write || saw->write == want->write);
}

/*
 * Access other pages. In some TLBs all pages whose numbers end in the same bits
 * share an entry. Skip pages that share an entry with the tested memory: a read
 * would drop a translation of the tested memory.
 */
static inline void stale_fill(void)
{
	for (unsigned int page = 0; page < FILL; page++) {
		char *at = stale.fill + bytes(page);

		if (((unsigned long)at - (unsigned long)stale.at) / psize() % FILL >= stale.pages)
			read_byte(at);
	}
}

static inline void *stale_read(void *argument)
{
	struct reader *r = argument;

	while (!atomic_load(&stale.stop)) {
		stale_fill();
		for (unsigned int page = 0; page < stale.pages; page++) {
			unsigned int seq = atomic_load(&stale.seq);
			bool write = stale.writes;
			struct expected saw, want = stale.page[page];

			if (seq & 1)
				break;
			stale_access((unsigned int *)(stale.at + bytes(page)), write, &saw);
			if (atomic_load(&stale.seq) != seq)
				continue;
			r->checked++;
			if (stale_agrees(&saw, &want, write))
				continue;
			if (!r->wrong++) {
				r->page = page;
				r->saw = saw;
				r->want = want;
			}
		}
		atomic_fetch_add(&r->rounds, 1);
	}
	return NULL;
}

/**
 * struct run - the threads of a case, and its memory
 * @reader: the threads
 * @readers: the number of threads
 * @memory: as many pages as a block has
 * @kind: the kind of the memory
 * @order: the order of the memory's folios
 * @huge: whether the memory is a hugetlb page
 * @folds: how often the block was folded before a call
 * @uffd: the descriptor of userfaultfd, or -1
 * @spare: other memory, whose pages have the frames that a call has freed
 * @spare_bytes: the length of @spare
 * @reused: the number of such frames in all calls
 */
struct run {
	struct reader reader[READERS];
	int readers;
	struct memory memory;
	enum memory_kind kind;
	int order;
	bool huge;
	unsigned long folds;
	int uffd;
	char *spare;
	size_t spare_bytes;
	unsigned long reused;
};

/* Wait until each thread has accessed all pages a few times. */
static inline void stale_wait(struct run *run)
{
	for (int i = 0; i < run->readers; i++) {
		unsigned long until = atomic_load(&run->reader[i].rounds) + ROUNDS;

		while (atomic_load(&run->reader[i].rounds) < until)
			sched_yield();
	}
}

static inline void run_free(struct run *run)
{
	memory_free(&run->memory);
	if (run->spare)
		munmap(run->spare, run->spare_bytes);
	run->spare = NULL;
}

#endif /* TLB_THREADS_H */
