/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common helpers of the selftests for large folios. They map memory in folios
 * of a chosen order, and find out how the kernel maps this memory. They also
 * change settings, which are restored at the end.
 *
 * Lengths and positions are in pages, unless the name says bytes.
 */
#ifndef FOLIO_UTIL_H
#define FOLIO_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folio_did.h"
#include "folio_known.h"
#include "kselftest_harness.h"
#include "vm_util.h"
#if __has_include("hugepage_settings.h")
#include "hugepage_settings.h"
#else
#include "thp_settings.h"
#endif

#define FOLIO_THP "/sys/kernel/mm/transparent_hugepage"
#define FOLIO_KSM "/sys/kernel/mm/ksm/"
#define FOLIO_NUMA "/proc/sys/kernel/numa_balancing"
#define FOLIO_SCAN "/sys/kernel/debug/sched/numa_balancing/"
/* How much of a file one fault maps; the default is 64 KiB. */
#define FOLIO_AROUND "/sys/kernel/debug/fault_around_bytes"
/* The log level that decides which kernel messages appear on the console. */
#define FOLIO_PRINTK "/proc/sys/kernel/printk"
#define XFS_MAGIC 0x58465342

/* Where a file system with large folios is mounted in the virtual machine. */
#define FOLIO_FILES "/mnt"

/**
 * cont_ptes() - how many entries the contiguous bit covers
 *
 * Return: 16, 128 or 32 on arm64 with pages of 4K, 16K or 64K. Other
 * architectures have no contiguous bit. There the function returns the number
 * of pages in 64K, so that the tests can still check the content of pages.
 */
static inline unsigned int cont_ptes(void)
{
#ifdef __aarch64__
	return psize() == 4096 ? 16 : psize() == 16384 ? 128 : 32;
#else
	return 65536 / psize();
#endif
}

/* Log2 of a power of two. */
static inline int order_of(unsigned int pages)
{
	return __builtin_ctz(pages);
}

/**
 * kernel_has() - whether the kernel has a function or variable
 * @symbol: its name, or the first letters of the name
 *
 * lib/pgtable_kunit/probes lists the symbols that the tests look for. The
 * program fails if it cannot read the list of symbols.
 */
static inline bool kernel_has(const char *symbol)
{
	bool found = false, readable = false;
	char line[256], name[128];
	FILE *f = fopen("/proc/kallsyms", "r");

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %127s", name) != 1)
			continue;
		found = !strncmp(name, symbol, strlen(symbol));
		readable |= !strcmp(name, "handle_mm_fault");
	}
	if (f)
		fclose(f);
	if (!found && !readable)
		ksft_exit_fail_msg("/proc/kallsyms has no symbols: does the kernel have %s?\n",
				   symbol);
	return found;
}

/* Whether this kernel can fold blocks at all. */
static inline bool has_contpte(void)
{
	return kernel_has("contpte_");
}

/* Write the text to an existing file. Returns 0 or -1. */
static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int result = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;

	close(fd);
	return result;
}

/* Settings that tests change, except the settings of huge pages. */
static struct {
	const char *path;
	char value[64];
} folio_settings_saved[] = {
	{ FOLIO_KSM "run" },
	{ FOLIO_KSM "pages_to_scan" },
	{ FOLIO_KSM "sleep_millisecs" },
	{ FOLIO_KSM "use_zero_pages" },
	{ FOLIO_KSM "smart_scan" },
	{ FOLIO_NUMA },
	{ FOLIO_SCAN "scan_delay_ms" },
	{ FOLIO_SCAN "scan_period_min_ms" },
	{ FOLIO_SCAN "scan_period_max_ms" },
	{ FOLIO_SCAN "scan_size_mb" },
	{ FOLIO_AROUND },
	{ FOLIO_PRINTK },
};

static pid_t folio_settings_owner;

static void folio_settings_restore(void)
{
	unsigned int i;

	if (getpid() != folio_settings_owner)
		return;
	thp_restore_settings();
	for (i = 0; i < ARRAY_SIZE(folio_settings_saved); i++) {
		int fd = open(folio_settings_saved[i].path, O_WRONLY);

		if (fd >= 0 && write(fd, folio_settings_saved[i].value,
				     strlen(folio_settings_saved[i].value)) < 0)
			perror(folio_settings_saved[i].path);
		close(fd);
	}
}

static void folio_settings_interrupted(int number)
{
	folio_settings_restore();
	_exit(128 + number);
}

/* The kernel kills a forked process when the parent of the process ends. */
static void folio_end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/*
 * The first process of a test program saves all settings. This process restores
 * the settings when it ends, even if SIGINT, SIGTERM or SIGHUP ends it. The
 * cases run in child processes, which may change the settings.
 */
static __attribute__((constructor)) void folio_settings_save(void)
{
	struct sigaction action = { .sa_handler = folio_settings_interrupted };
	unsigned int i;

	pthread_atfork(NULL, NULL, folio_end_with_parent);
	if (geteuid() || access(FOLIO_THP, F_OK))
		return;
	folio_settings_owner = getpid();
	thp_save_settings();
	for (i = 0; i < ARRAY_SIZE(folio_settings_saved); i++)
		read_file(folio_settings_saved[i].path, folio_settings_saved[i].value,
			  sizeof(folio_settings_saved[i].value));
	atexit(folio_settings_restore);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/**
 * folio_settings() - allocate new memory in folios of one order
 * @order: the order, or 0 for single pages
 *
 * Return: NULL, or the reason why this machine cannot do that
 */
static inline const char *folio_settings(int order)
{
	struct thp_settings settings;
	char around[24];
	int i;

	if (geteuid())
		return "needs root";
	if (access(FOLIO_THP, F_OK))
		return "CONFIG_TRANSPARENT_HUGEPAGE=n";
	if (order && !(thp_supported_orders() & (1UL << order)))
		return "no huge pages of this size";

	thp_read_settings(&settings);
	settings.thp_enabled = THP_NEVER;
	settings.thp_defrag = THP_DEFRAG_ALWAYS;
	settings.shmem_enabled = SHMEM_NEVER;
	settings.khugepaged.defrag = 0;
	settings.khugepaged.max_ptes_none = 0;
	for (i = 0; i < NR_ORDERS; i++) {
		bool on = order && i == order;

		settings.hugepages[i].enabled = on ? THP_ALWAYS : THP_NEVER;
		settings.shmem_hugepages[i].enabled = on ? SHMEM_ALWAYS : SHMEM_NEVER;
	}
	thp_write_settings(&settings);
	/* Switch off NUMA balancing: it changes entries and causes faults. */
	write_text(FOLIO_NUMA, "0");
	/* Let a fault on a file map a whole block, which may exceed 64 KiB. */
	snprintf(around, sizeof(around), "%u", cont_ptes() * psize());
	write_text(FOLIO_AROUND, around);
	return NULL;
}

enum memory_kind { ANON, SHMEM, XFS };

/**
 * struct memory - a mapping that is aligned to its folios
 * @at: the address where it begins
 * @pages: its length
 * @order: the order of its folios
 * @fd: its file, or -1
 * @room: the reserved mapping around it, which memory_free() unmaps
 * @room_bytes: the length of @room
 *
 * The pages before and after the mapping cannot be accessed, so the kernel
 * merges no other mapping with it.
 */
struct memory {
	char *at;
	unsigned int pages;
	int order;
	int fd;
	char *room;
	size_t room_bytes;
};

static inline size_t bytes(unsigned int pages)
{
	return (size_t)pages * psize();
}

/* The value that tests write to each byte of a page. */
static inline unsigned char pattern(unsigned int page)
{
	return 1 + page % 251;
}

/* Read one byte. The compiler cannot remove this read. */
static inline char read_byte(const char *address)
{
	char value = *address;

	asm volatile("" : "+r" (value) : : "memory");
	return value;
}

static inline unsigned long pfn_of(const char *address)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	unsigned long pfn = pagemap_get_pfn(fd, (char *)address);

	close(fd);
	return pfn;
}

static inline bool pagemap_has(const char *address, uint64_t bit)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = pagemap_get_entry(fd, (char *)address);

	close(fd);
	return entry & bit;
}

/*
 * Flags in /proc/kpageflags: the first page of a large folio has FOLIO_HEAD,
 * and the other pages have FOLIO_TAIL.
 */
#define FOLIO_HEAD BIT_ULL(15)
#define FOLIO_TAIL BIT_ULL(16)

/*
 * Whether a folio of order m->order begins at @page. An aligned part of a
 * larger folio counts too if the part has this order.
 */
static inline bool is_folio(const struct memory *m, unsigned int page)
{
	unsigned long first = pfn_of(m->at + bytes(page));
	unsigned int i, nr = 1U << m->order;
	bool right = first != -1UL && !(first & (nr - 1));
	int fd = open("/proc/kpageflags", O_RDONLY);
	__u64 flags;

	for (i = 0; i < nr && right; i++)
		right = pfn_of(m->at + bytes(page + i)) == first + i;
	for (i = 0; i < nr && right && m->order; i++)
		right = pread(fd, &flags, sizeof(flags), (first + i) * sizeof(flags)) > 0 &&
			flags & (i ? FOLIO_TAIL : FOLIO_HEAD | FOLIO_TAIL);
	close(fd);
	return right;
}

static inline void memory_free(struct memory *m)
{
	if (m->room)
		munmap(m->room, m->room_bytes);
	if (m->fd >= 0)
		close(m->fd);
	m->room = NULL;
	m->fd = -1;
}

/*
 * Make a file of @pages pages. Returns -1 on failure. An XFS file already has
 * the pattern of each page.
 */
static inline int memory_file(enum memory_kind kind, unsigned int pages)
{
	char name[] = FOLIO_FILES "/folioXXXXXX";
	struct statfs fs;
	char *page;
	int fd;

	if (kind == SHMEM) {
		fd = syscall(__NR_memfd_create, "folio", 0);
	} else {
		if (statfs(FOLIO_FILES, &fs) || fs.f_type != XFS_MAGIC)
			return -1;
		fd = mkstemp(name);
		unlink(name);
	}
	/*
	 * XFS files get one page more than the folios need, so that the tests
	 * do not meet known issue 9.
	 */
	if (fd < 0 || ftruncate(fd, bytes(kind == XFS ? pages + 1 : pages)))
		return -1;
	if (kind == SHMEM)
		return fd;
	page = malloc(bytes(pages));
	for (unsigned int i = 0; i < pages; i++)
		memset(page + bytes(i), pattern(i), bytes(1));
	/*
	 * One pwrite() of all pages makes large folios. After fsync() these
	 * folios are clean, so writeback does not change them.
	 */
	if (pwrite(fd, page, bytes(pages), 0) != (ssize_t)bytes(pages) || fsync(fd)) {
		close(fd);
		fd = -1;
	}
	free(page);
	return fd;
}

/**
 * memory_map() - map memory in folios of one order, with a pattern in each page
 * @m: is filled in
 * @kind: anonymous, or a shared mapping of a file
 * @order: the order of the folios; see folio_settings()
 * @folios: how many folios
 *
 * If @kind is XFS, the function only reads the pages of the file. Otherwise the
 * function fills each page with the pattern of this page.
 *
 * Return: NULL, or the reason why there is no such memory
 */
static inline const char *memory_map(struct memory *m, enum memory_kind kind,
				     int order, unsigned int folios)
{
	unsigned int size = 1U << order, pages = folios * size;
	int flags = MAP_FIXED | (kind == ANON ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
	unsigned int i;

	*m = (struct memory){ .pages = pages, .order = order, .fd = -1 };
	if (kind != ANON) {
		m->fd = memory_file(kind, pages);
		if (m->fd < 0)
			return "no file system with large folios at " FOLIO_FILES;
	}
	m->room_bytes = bytes(pages + 3 * size);
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->room == MAP_FAILED)
		return "out of memory";
	m->at = (char *)(((unsigned long)m->room + 2 * bytes(size) - 1) & -bytes(size));
	m->at = mmap(m->at, bytes(pages), PROT_READ | PROT_WRITE, flags, m->fd, 0);
	if (m->at == MAP_FAILED)
		return "out of memory";

	for (i = 0; i < pages; i++) {
		if (kind == XFS)
			read_byte(m->at + bytes(i));
		else
			memset(m->at + bytes(i), pattern(i), bytes(1));
	}
	for (i = 0; i < pages; i += size) {
		if (!is_folio(m, i)) {
			memory_free(m);
			return kind == XFS ? "the page cache has no folios of this size" :
			       "the kernel allocated no folios of this size";
		}
	}
	return NULL;
}

static sigjmp_buf signal_caught;

static void signal_catch(int number)
{
	siglongjmp(signal_caught, number);
}

/**
 * try_access() - read or write one byte
 * @address: the address of the byte
 * @write: whether to write the byte back after the read
 *
 * Return: 0, or the signal that the access caused
 */
static inline int try_access(char *address, bool write)
{
	struct sigaction action = { .sa_handler = signal_catch }, old[2];
	int number;

	sigaction(SIGSEGV, &action, &old[0]);
	sigaction(SIGBUS, &action, &old[1]);
	number = sigsetjmp(signal_caught, 1);
	if (!number) {
		char value = read_byte(address);

		if (write)
			*address = value;
		asm volatile("" : : : "memory");
	}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	return number;
}

/* Whether each byte of a page has this value. */
static inline bool page_is(const char *page, unsigned char value)
{
	return (unsigned char)page[0] == value && !memcmp(page, page + 1, psize() - 1);
}

/* The number of minor page faults of this thread so far. */
static inline long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

/**
 * faults_begin() - start to count the minor faults of this thread
 * @before: is set to the number of faults so far
 *
 * After fork(), writes to memory outside the test's memory cause faults too.
 * getrusage() and this function write to the stack. When the thread runs again
 * after a wait, the kernel writes to the area of restartable sequences. This
 * function causes all such faults before the count begins.
 */
static inline void faults_begin(long *before)
{
	usleep(1);
	*before = faults();
	asm volatile("" : : "r" (before) : "memory");
	*before = faults();
}

/**
 * child_of() - wait for a child and return how it ended
 * @pid: as returned by fork()
 *
 * Return: its exit status, or 128 plus the signal that ended it, or -1
 */
static inline int child_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/**
 * smaps_pages() - one value of a mapping in /proc/self/smaps, in pages
 * @at: the start of the mapping
 * @name: the name of a line of smaps: "Rss", "Referenced"
 *
 * Return: pages, or -1 if there is no such mapping or line
 */
static inline long smaps_pages(const char *at, const char *name)
{
	char line[256], begin[32];
	bool found = false;
	long value = -1;
	FILE *f = fopen("/proc/self/smaps", "r");

	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)at);
	while (f && value < 0 && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, begin, strlen(begin)))
			found = true;
		else if (found && !strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %ld", &value);
	}
	if (f)
		fclose(f);
	return value < 0 ? -1 : value * 1024 / psize();
}

/*
 * Ask the kernel to split the folios of the memory. Returns whether it accepted
 * the request.
 */
static inline bool split_folios(const struct memory *m)
{
	FILE *f = fopen("/sys/kernel/debug/split_huge_pages", "w");

	if (!f)
		return false;
	fprintf(f, "%d,0x%lx,0x%lx", getpid(), (unsigned long)m->at,
		(unsigned long)m->at + bytes(m->pages));
	return !fclose(f);
}

/*
 * Move a page to @node; if @node is NULL, only ask for its node. Returns the
 * node of the page, or -errno.
 */
static inline int move_page(char *at, int *node)
{
	int status = -EINVAL;

	if (syscall(__NR_move_pages, 0, 1L, &at, node, &status, node ? MPOL_MF_MOVE : 0) < 0)
		return -errno;
	return status;
}

/*
 * Take a long-term pin of pages, as drivers do. Returns a descriptor that holds
 * the pin until it is closed, or -1.
 */
static inline int pin(char *at, unsigned int pages)
{
	struct io_uring_params params = {};
	struct iovec vector = { .iov_base = at, .iov_len = bytes(pages) };
	int fd = syscall(__NR_io_uring_setup, 1, &params);

	if (fd < 0 || !syscall(__NR_io_uring_register, fd, IORING_REGISTER_BUFFERS, &vector, 1))
		return fd;
	close(fd);
	return -1;
}

/* Enable /dev/ram0 as swap. Returns whether there is swap now. */
static inline bool have_swap(void)
{
	return !swapon("/dev/ram0", 0) || errno == EBUSY;
}

/*
 * swaps_large() - whether large folios go to swap without a split
 *
 * This needs CONFIG_THP_SWAP, which requires pages of 4K on arm64. Without
 * CONFIG_THP_SWAP the kernel splits a folio before it swaps the folio out.
 */
static inline bool swaps_large(void)
{
#ifdef __aarch64__
	return psize() == 4096;
#else
	return true;
#endif
}

#endif /* FOLIO_UTIL_H */
