// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: functions that find out which features this kernel has, and that
 * change and restore settings.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "folio_walk_see.h"
#include "folio_walk_abi.h"

#define THP "/sys/kernel/mm/transparent_hugepage"
#define GROUP "/sys/fs/cgroup/folio_walk"

char walk_debugfs[64] = "/sys/kernel/debug";

bool walk_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return done;
}

/*
 * The number at the start of a file, or -1 if the file does not begin with a
 * number.
 */
long walk_read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	long value = -1;

	if (f) {
		if (fscanf(f, "%ld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

/* The saved settings: the path and the text of each file. */
static struct setting {
	char path[128];
	char value[48];
} settings[96];
static unsigned int nr_settings;
static pid_t owner;

static void save_as(const char *path, const char *value)
{
	struct setting *s = &settings[nr_settings];

	if (nr_settings == sizeof(settings) / sizeof(*settings))
		return;
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->value, sizeof(s->value), "%s", value);
	nr_settings++;
}

static void save(const char *path)
{
	char text[256] = "", *open_, *close_;
	int fd = open(path, O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	open_ = strchr(text, '[');
	close_ = open_ ? strchr(open_, ']') : NULL;
	if (close_) {
		*close_ = 0;
		memmove(text, open_ + 1, strlen(open_ + 1) + 1);
	}
	text[strcspn(text, "\n")] = 0;
	save_as(path, text);
}

void walk_save_settings(void)
{
	char path[128];
	int order;

	for (order = 1; order < 16; order++) {
		snprintf(path, sizeof(path), THP "/hugepages-%lukB/enabled",
			 (walk_psize << order) / 1024);
		save(path);
		snprintf(path, sizeof(path), THP "/hugepages-%lukB/shmem_enabled",
			 (walk_psize << order) / 1024);
		save(path);
	}
	save(THP "/enabled");
	save("/sys/kernel/mm/ksm/run");
	save("/sys/kernel/mm/ksm/pages_to_scan");
	save("/sys/kernel/mm/ksm/sleep_millisecs");
}

void walk_restore_settings(void)
{
	unsigned int i;

	if (getpid() != owner)
		return;
	rmdir(GROUP);
	for (i = 0; i < nr_settings; i++)
		walk_write_text(settings[i].path, settings[i].value);
}

/*
 * Write the settings for the start of a life (one random sequence of steps).
 * These settings depend only on the seed of the life.
 */
void walk_first_settings(void)
{
	uint32_t anon = walk_random(), shmem = walk_random();
	char path[128];
	int order;

	for (order = 1; order < 16; order++) {
		if (!(walk->orders >> order & 1))
			continue;
		snprintf(path, sizeof(path), THP "/hugepages-%lukB/enabled",
			 (walk_psize << order) / 1024);
		walk_write_text(path, anon >> order & 1 ? "always" : "never");
		snprintf(path, sizeof(path), THP "/hugepages-%lukB/shmem_enabled",
			 (walk_psize << order) / 1024);
		walk_write_text(path, shmem >> order & 1 ? "always" : "never");
	}
	if (has(HAS_KSM)) {
		walk_write_text("/sys/kernel/mm/ksm/run", "0");
		walk_write_text("/sys/kernel/mm/ksm/pages_to_scan", "1000");
		walk_write_text("/sys/kernel/mm/ksm/sleep_millisecs", "5");
	}
	/* The workers of the life will be in the same cgroup as this process. */
	if (has(HAS_RECLAIM)) {
		walk_write_text(GROUP "/memory.high", "max");
		if (!walk_write_text(GROUP "/cgroup.procs", "0"))
			walk_fail("setup", "cannot enter " GROUP ": %s", strerror(errno));
	}
}

/*
 * Open a new file that no other program uses. Each life (random sequence of
 * steps) has new files.
 */
static int open_file(const char *folder, struct walk_object *o)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/folio_walkXXXXXX", folder);
	fd = mkstemp(path);
	o->direct = -1;
	if (fd < 0)
		return -1;
	o->direct = open(path, O_RDWR | O_DIRECT);
	unlink(path);
	snprintf(o->name, sizeof(o->name), "file in %s", folder);
	return fd;
}

/*
 * Open the files of a life. Returns whether at least one file could be opened.
 */
bool walk_open_objects(const char *const *folders)
{
	struct stat known[WALK_OBJECTS];
	int i = 1, j;

	for (j = 0; j < WALK_OBJECTS; j++)
		walk->object[j] = (struct walk_object){ .fd = -1, .direct = -1 };
	walk->object[0].fd = memfd_create("folio_walk", MFD_CLOEXEC);
	snprintf(walk->object[0].name, sizeof(walk->object[0].name), "memfd");
	for (; *folders && i < WALK_OBJECTS; folders++) {
		if (stat(*folders, &known[i]) || !S_ISDIR(known[i].st_mode))
			continue;
		for (j = 1; j < i && known[j].st_dev != known[i].st_dev; j++)
			;
		if (j < i)
			continue;
		walk->object[i].fd = open_file(*folders, &walk->object[i]);
		if (walk->object[i].fd >= 0)
			i++;
	}
	for (j = 0; j < i; j++) {
		struct statfs fs;

		if (ftruncate(walk->object[j].fd, in_bytes(WALK_OBJ_PAGES)))
			return false;
		walk->object[j].size = WALK_OBJ_PAGES;
		walk->object[j].shmem = !fstatfs(walk->object[j].fd,
						 &fs) && fs.f_type == TMPFS_MAGIC;
	}
	return i > 0;
}

static void set(uint32_t feature, bool there)
{
	if (there)
		walk->features |= feature;
}

static void probe_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	const uint64_t wp = UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_WP_ASYNC |
			    UFFD_FEATURE_PAGEFAULT_FLAG_WP;

	if (fd < 0)
		return;
	if (!ioctl(fd, UFFDIO_API, &api) && api.features & UFFD_FEATURE_SIGBUS) {
		set(HAS_UFFD, true);
		set(HAS_UFFD_WP, (api.features & wp) == wp);
		set(HAS_UFFD_MOVE, api.features & UFFD_FEATURE_MOVE);
	}
	close(fd);
}

static void probe_memory(void)
{
	char *p = mmap(NULL, 2 * walk_psize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	char *f = mmap(NULL, walk_psize, PROT_READ, MAP_SHARED, walk->object[0].fd, 0);
	int mem = open("/proc/self/mem", O_RDWR), map = open("/proc/self/pagemap", O_RDONLY);
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = (unsigned long)p,
		.end = (unsigned long)p + walk_psize,
		.category_mask = PAGE_IS_PRESENT,
		.return_mask = PAGE_IS_PRESENT,
	};
	uint64_t entry = 0;

	memset(p, 1, 2 * walk_psize);
	/* New memory is soft-dirty, if the kernel has a soft-dirty bit. */
	if (pread(map, &entry, 8, (uintptr_t)p / walk_psize * 8) == 8)
		set(HAS_SOFT_DIRTY, entry & PM_SOFT_DIRTY);
	set(HAS_SCAN, ioctl(map, PAGEMAP_SCAN, &arg) >= 0);
	set(HAS_GUARD, !madvise(p, walk_psize, MADV_GUARD_INSTALL));
	if (pread(map, &entry, 8, (uintptr_t)p / walk_psize * 8) == 8)
		set(HAS_GUARD_BIT, entry & PM_GUARD);
	set(HAS_FILE_GUARD, f != MAP_FAILED && !madvise(f, walk_psize, MADV_GUARD_INSTALL));
	mprotect(p + walk_psize, walk_psize, PROT_READ);
	set(HAS_FORCE, pwrite(mem, "x", 1, (off_t)(p + walk_psize)) == 1);
	if (f != MAP_FAILED)
		munmap(f, walk_psize);
	munmap(p, 2 * walk_psize);
	close(mem);
	close(map);
}

/*
 * Set up hugetlb pages of the smallest size, if at least four fit into the
 * arena. A write to a page that a child shares raises SIGBUS if the pool is
 * empty. So the pool has enough pages to fill the arena of each process, and
 * some for migration.
 */
static void probe_hugetlb(void)
{
	unsigned long wanted;
	char path[128], text[32];
	DIR *d = opendir("/sys/kernel/mm/hugepages");
	struct dirent *e;
	unsigned long kb, best = 0;

	while (d && (e = readdir(d)))
		if (sscanf(e->d_name, "hugepages-%lukB", &kb) == 1 && (!best || kb < best))
			best = kb;
	if (d)
		closedir(d);
	if (!best || best * 1024 / walk_psize > WALK_PAGES / 4)
		return;
	walk->unit = best * 1024 / walk_psize;
	if (!has(HAS_MACHINE))
		return;
	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%lukB/nr_hugepages", best);
	wanted = WALK_PROCS * WALK_PAGES / walk->unit + 4;
	snprintf(text, sizeof(text), "%lu", wanted);
	save(path);
	walk_write_text(path, text);
	set(HAS_HUGETLB, walk_read_number(path) >= (long)wanted);
}

/*
 * Make a memory cgroup for the processes of the walk. Without --machine, use it
 * only if the machine already counts the memory of cgroups.
 */
static void probe_cgroup(void)
{
	if (mkdir(GROUP, 0755) && errno != EEXIST)
		return;
	if (has(HAS_MACHINE) && access(GROUP "/memory.reclaim", F_OK)) {
		save_as("/sys/fs/cgroup/cgroup.subtree_control", "-memory");
		walk_write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	}
	set(HAS_RECLAIM, !access(GROUP "/memory.reclaim", W_OK));
}

/* If debugfs is not mounted, mount it where only this process sees it. */
static void find_debugfs(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/split_huge_pages", walk_debugfs);
	if (!access(path, F_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL))
		printf("# no debugfs: %s\n", strerror(errno));
}

void walk_probe(void)
{
	struct io_uring_params params = {};
	char path[128];
	int order, fd;

	owner = getpid();
	find_debugfs();
	probe_cgroup();
	snprintf(path, sizeof(path), "%s/split_huge_pages", walk_debugfs);
	/* A locked-down kernel refuses to open files of debugfs. */
	fd = open(path, O_WRONLY);
	set(HAS_SPLIT, fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/mm_audit", walk_debugfs);
	set(HAS_AUDIT, !access(path, W_OK));
	set(HAS_THP, !access(THP "/enabled", W_OK));
	set(HAS_KSM, !access("/sys/kernel/mm/ksm/run", W_OK));
	set(HAS_NODES, !access("/sys/devices/system/node/node1", F_OK));
	set(HAS_COMPACT, has(HAS_MACHINE) && !access("/proc/sys/vm/compact_memory", W_OK));
	set(HAS_SWAP, has(HAS_MACHINE) && (!swapon("/dev/ram0", 0) || errno == EBUSY));
	fd = syscall(__NR_io_uring_setup, 1, &params);
	set(HAS_URING, fd >= 0);
	close(fd);
	for (order = 1; order < 16; order++) {
		snprintf(path, sizeof(path), THP "/hugepages-%lukB/enabled",
			 (walk_psize << order) / 1024);
		if (!access(path, W_OK))
			walk->orders |= 1U << order;
	}
	walk->table = walk_psize / 8;
#ifdef __aarch64__
	walk->cont = walk_psize == 4096 ? 16 : walk_psize == 16384 ? 128 : 32;
#else
	walk->cont = walk_psize >= 65536 ? 4 : 65536 / walk_psize;
#endif
	probe_uffd();
	/*
	 * On a write to a page with asynchronous protection, do_wp_page() calls
	 * set_pte_at() to remove the protection from a valid entry. On arm64
	 * this may lose the access flag if the hardware sets it at the same
	 * time. With CONFIG_DEBUG_VM=y the kernel warns if the entry is old:
	 * known issue 29.
	 */
#ifdef __aarch64__
	set(HAS_ASYNC, !walk_has(29));
#else
	set(HAS_ASYNC, true);
#endif
	probe_memory();
	probe_hugetlb();
}

/*
 * Returns the name of the first missing feature that a call needs, or NULL.
 * --list prints this name.
 */
const char *walk_missing(uint32_t needs)
{
	static const char * const names[] = {
		"guard regions", "userfaultfd", "userfaultfd write protection",
		"UFFDIO_MOVE", "KSM",
		"split_huge_pages in debugfs", "two NUMA nodes", "swap on /dev/ram0 and --machine",
		"PAGEMAP_SCAN", "hugetlb pages and --machine", "io_uring", "a memory cgroup",
		"transparent huge pages", "compaction and --machine",
		"forced writes to /proc/self/mem",
		"", "", "", "", "--machine", "soft-dirty",
		"a do_wp_page() that is safe on arm64, or STRICT=1",
	};
	uint32_t lacks = needs & ~walk->features;

	return lacks ? names[__builtin_ctz(lacks)] : NULL;
}
