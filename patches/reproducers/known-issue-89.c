// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 89: a store to a huge page of a file is lost, although fdatasync() succeeds.
 *
 * A thread on CPU 0 calls MADV_DONTNEED for a huge page that it has written to, and for many pages
 * that it has only read. A second thread on CPU 0 interrupts it, at random moments, or if there is
 * a CPU 2, when a thread there sees that the huge page is not mapped. Then one of these threads
 * writes the huge page to the disk, and lets a thread on CPU 1 store a new value. If this store did
 * not fault, the new value never reaches the disk.
 * Uses a file in /mnt if this is XFS, and otherwise in the current folder. The file system must
 * have huge pages and O_DIRECT (XFS, new ext4). Needs two CPUs. As root, the second thread gets
 * priority.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define BYTES (HUGE + 12288 * 4096UL)
#define SECONDS 30
#define ENOUGH 3
#define XFS 0x58465342

enum { WAIT, STORE_OLD, STORE_NEW, STORED };

static char *area;
static long size;
static int file, pagemap;
static atomic_uint *word, old_value;
static atomic_ulong zap_ns = 200000;
static atomic_int order;
static atomic_bool zapping, begun, stop, held;
static sem_t go;

static unsigned long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000UL + now.tv_nsec;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(4);
}

static bool first_is_mapped(void)
{
	unsigned long long entry;

	if (pread(pagemap, &entry, 8, (uintptr_t)area / size * 8) != 8)
		exit(4);
	return entry >> 63;
}

static void *storer(void *unused)
{
	run_on(1);
	while (!stop) {
		if (order == STORE_OLD) {
			*word = old_value;
			begun = true;
		} else if (order == STORE_NEW) {
			*word = old_value + 1;
			order = STORED;
		}
	}
	return NULL;
}

static void *cleaner(void *unused)
{
	struct sched_param first = { .sched_priority = 1 };

	run_on(0);
	/* Without privileges: the thread in madvise() gets little time. */
	if (sched_setscheduler(0, SCHED_FIFO, &first)) {
		first.sched_priority = 0;
		sched_setscheduler(getpid(), SCHED_IDLE, &first);
	}
	while (!stop) {
		struct timespec pause = { .tv_nsec = 1 + random() % (2 * zap_ns + 1) };
		unsigned long end;

		nanosleep(&pause, NULL);
		if (!zapping || order != STORE_OLD || first_is_mapped())
			continue;
		/* Starts to write the huge page. It takes less than 20 ms. */
		if (sync_file_range(file, 0, size, SYNC_FILE_RANGE_WRITE))
			exit(4);
		end = now_ns() + 20000000;
		while (now_ns() < end)
			;
		order = STORE_NEW;
		while (order == STORE_NEW && now_ns() < end + 100000000)
			;
	}
	return NULL;
}

/* With three CPUs: stops the call on CPU 0. */
static void *holder(void *unused)
{
	struct sched_param first = { .sched_priority = 1 };

	run_on(0);
	sched_setscheduler(0, SCHED_FIFO, &first);
	while (!sem_wait(&go) && !stop) {
		unsigned long end = now_ns() + 500000000;

		while (held && now_ns() < end)
			;
	}
	return NULL;
}

/* With three CPUs: writes the huge page while the holder stops the call. */
static void *other_cleaner(void *unused)
{
	const unsigned int wait = SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	run_on(2);
	while (!stop) {
		if (!zapping || order != STORE_OLD || first_is_mapped())
			continue;
		held = true;
		if (!zapping) {
			held = false;
			continue;
		}
		sem_post(&go);
		if (sync_file_range(file, 0, size, wait))
			exit(4);
		order = STORE_NEW;
		while (order == STORE_NEW)
			;
		held = false;
	}
	return NULL;
}

static bool make_file(void)
{
	struct statfs fs;
	bool xfs = !statfs("/mnt", &fs) && fs.f_type == XFS;
	char name[] = "/mnt/known-issue-89.XXXXXX", *path = name + (xfs ? 0 : 5);
	char *page = calloc(1, BYTES);
	bool right;

	file = mkstemp(path);
	unlink(path);
	right = file >= 0 && write(file, page, BYTES) == BYTES && !fsync(file);
	/* The rest comes back in small folios, because of MADV_RANDOM. */
	posix_fadvise(file, HUGE, 0, POSIX_FADV_DONTNEED);
	free(page);
	return right;
}

static unsigned int on_disk(void)
{
	char path[32];
	void *page;
	int direct;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	direct = open(path, O_RDONLY | O_DIRECT);
	if (posix_memalign(&page, size, size) || pread(direct, page, size, 0) != size)
		exit(4);
	close(direct);
	return *(unsigned int *)page;
}

/* Store, and unmap the pages. Returns whether the new value was stored meanwhile. */
static bool stored_during_zap(void)
{
	unsigned long begin;
	bool stored;

	old_value += 2;
	for (unsigned long at = HUGE; at < BYTES; at += size)
		atomic_load((atomic_uint *)(area + at));
	begun = false;
	order = STORE_OLD;
	while (!begun)
		sched_yield();
	begin = now_ns();
	zapping = true;
	if (madvise(area, BYTES, MADV_DONTNEED))
		exit(4);
	zapping = false;
	if (now_ns() - begin < 20000000)
		zap_ns = now_ns() - begin;
	while (order == STORE_NEW || held)
		sched_yield();
	stored = order == STORED;
	order = WAIT;
	return stored;
}

int main(void)
{
	unsigned long end = now_ns() + SECONDS * 1000000000UL, lost = 0, stores = 0;
	bool three = sysconf(_SC_NPROCESSORS_ONLN) > 2;
	pthread_t threads[3];

	setvbuf(stdout, NULL, _IOLBF, 0);
	size = sysconf(_SC_PAGESIZE);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || pagemap < 0 || !make_file())
		return 4;
	area = mmap(NULL, BYTES + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area = (char *)(((uintptr_t)area + HUGE - 1) & -HUGE);
	area = mmap(area, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
	if (area == MAP_FAILED)
		return 4;
	madvise(area, BYTES, MADV_RANDOM);
	word = (void *)area;
	run_on(0);
	sem_init(&go, 0, 0);
	pthread_create(&threads[0], NULL, storer, NULL);
	pthread_create(&threads[1], NULL, three ? other_cleaner : cleaner, NULL);
	pthread_create(&threads[2], NULL, holder, NULL);
	while (now_ns() < end && lost < ENOUGH) {
		unsigned int disk;

		if (!stored_during_zap())
			continue;
		stores++;
		if (fdatasync(file))
			return 4;
		disk = on_disk();
		if (disk == old_value + 1)
			continue;
		lost++;
		printf("stored %u; on the disk after fdatasync(): %u; in memory: %u\n",
		       old_value + 1, disk, *word);
	}
	stop = true;
	sem_post(&go);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%s: %lu of %lu stores are lost\n", lost ? "BUG" : "OK", lost, stores);
	return !!lost;
}
