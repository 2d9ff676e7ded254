// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: the worker processes, and how the driver gives them orders
 * through shared memory. One worker runs at a time, so the same steps happen
 * in the same order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "folio_walk.h"

int walk_me = -1;
unsigned int walk_limit = 20;
static int pidfd[WALK_PROCS] = { -1, -1, -1, -1 };

/* Wait until *word is not @old. Returns false after @ms milliseconds. */
static bool wait_change(uint32_t *word, uint32_t old, unsigned int ms)
{
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000L };

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old) {
		if (syscall(SYS_futex, word, FUTEX_WAIT, old, &limit, NULL, 0) &&
		    errno == ETIMEDOUT)
			return __atomic_load_n(word, __ATOMIC_ACQUIRE) != old;
	}
	return true;
}

static void change(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void mincore_order(struct walk_box *box)
{
	box->result = mincore(at_page(box->at), in_bytes(box->len), box->vec);
	box->error = errno;
}

/*
 * The main loop of a worker. After a fork, the child continues in this loop as
 * another worker.
 */
void walk_worker(int me)
{
	pid_t driver = getpgrp();

	walk_me = me;
	for (;;) {
		/*
		 * If the step forks, run() changes walk_me in the child.
		 */
		struct walk_box *box = &walk->box[walk_me];
		int before = walk_me;
		long result;

		while (!wait_change(&box->go, box->done, 2000)) {
			if (kill(driver, 0))
				_exit(1);
		}
		switch (box->order) {
		case RUN:
			box->error = 0;
			result = walk_calls[walk->steps[walk->now].call]
				.run(&walk->steps[walk->now]);
			/*
			 * A child must not write into its parent's mailbox
			 * after the fork.
			 */
			if (walk_me == before)
				box->result = result;
			break;
		case CHECK:
			walk_check_content(box->at, box->len);
			break;
		case MINCORE:
			mincore_order(box);
			break;
		}
		if (walk_me != before) {
			box = &walk->box[walk_me];
			box->pid = getpid();
			__atomic_store_n(&box->alive, 1, __ATOMIC_RELEASE);
			syscall(SYS_futex, &box->alive, FUTEX_WAKE, 1, NULL, NULL, 0);
			continue;
		}
		change(&box->done);
	}
}

bool walk_alive(int proc)
{
	struct pollfd p = { .fd = pidfd[proc], .events = POLLIN };

	return walk->box[proc].alive && pidfd[proc] >= 0 && !poll(&p, 1, 0);
}

/*
 * The driver calls this function to wait for a new worker. Returns whether the
 * worker has started.
 */
static bool arrived(int proc)
{
	struct walk_box *box = &walk->box[proc];

	if (!wait_change((uint32_t *)&box->alive, 0, walk_limit * 1000)) {
		walk_fail("fork", "process %d does not start", proc);
		return false;
	}
	pidfd[proc] = syscall(SYS_pidfd_open, box->pid, 0);
	return true;
}

/*
 * Wait until a worker has ended and its address space is gone. Then forget the
 * worker.
 */
void walk_gone(int proc)
{
	struct pollfd p = { .fd = pidfd[proc], .events = POLLIN };

	if (poll(&p, 1, walk_limit * 1000) != 1)
		walk_fail("hang", "process %d does not end", proc);
	close(pidfd[proc]);
	pidfd[proc] = -1;
	walk->box[proc].alive = 0;
	walk->box[proc].go = 0;
	walk->box[proc].done = 0;
	walk_check_forget(proc);
	memset(walk->page[proc], 0, sizeof(walk->page[proc]));
}

/**
 * walk_command() - let a worker do something, and wait until it is done
 * @proc: the worker
 * @order: what to do
 * @at: the first page, for checks
 * @len: the number of pages
 *
 * Return: what a call returned; -ETIME after a failure
 */
long walk_command(int proc, enum walk_order order, uint32_t at, uint32_t len)
{
	const struct walk_step *s = &walk->steps[walk->now];
	struct walk_box *box = &walk->box[proc];
	const struct walk_call *c = &walk_calls[s->call];
	unsigned int waited;
	char words[200];

	box->order = order;
	box->at = at;
	box->len = len;
	change(&box->go);
	if (order == RUN && !strcmp(c->name, "exit")) {
		walk_gone(proc);
		return 0;
	}
	for (waited = 0; !wait_change(&box->done, box->go - 1, 200); waited += 200) {
		if (!walk_alive(proc)) {
			walk_fail("worker-died", "process %d died in: %s", proc,
				  walk_words(s, words, sizeof(words)));
			return -ETIME;
		}
		if (waited > walk_limit * 1000) {
			walk_fail("hang", "process %d did not end within %u seconds: %s", proc,
				  walk_limit, walk_words(s, words, sizeof(words)));
			return -ETIME;
		}
	}
	if (order == RUN && !strcmp(c->name, "fork") && box->result > 0 && !arrived(s->other))
		return -ETIME;
	return box->result;
}

/* Fork the first worker. */
int walk_start(void)
{
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		walk_catch_signals();
		walk->box[0].pid = getpid();
		__atomic_store_n(&walk->box[0].alive, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &walk->box[0].alive, FUTEX_WAKE, 1, NULL, NULL, 0);
		walk_worker(0);
		_exit(0);
	}
	return arrived(0) ? 0 : -ETIME;
}
