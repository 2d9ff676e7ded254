// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: the calls that use a file descriptor of the process (userfaultfd,
 * pins, pipes), and the calls on the whole process or machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "folio_walk_run.h"
#include "folio_walk_abi.h"

static int uffd[2] = { -1, -1 };	/* synchronous, asynchronous */
static int ring[WALK_PINS] = { -1, -1, -1, -1 };
static int splice_pipe[2] = { -1, -1 };
static alignas(65536) char source[64 << 16];

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Close the descriptors that a child inherits. These descriptors refer to the
 * parent's memory. If the child kept them open, they would keep the parent's
 * pins.
 */
static void forget_descriptors(void)
{
	int i;

	drop(&uffd[0]);
	drop(&uffd[1]);
	drop(&splice_pipe[0]);
	drop(&splice_pipe[1]);
	for (i = 0; i < WALK_PINS; i++)
		drop(&ring[i]);
}

long run_fork(const struct walk_step *s)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		walk_me = s->other;
		forget_descriptors();
	}
	return pid;
}

long run_exit(const struct walk_step *s)
{
	(void)s;
	_exit(0);
}

static long text_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	long done = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	close(fd);
	return done;
}

long run_split(const struct walk_step *s)
{
	char text[96], path[96];

	snprintf(path, sizeof(path), "%s/split_huge_pages", walk_debugfs);
	snprintf(text, sizeof(text), "%d,0x%lx,0x%lx,%u", getpid(), (unsigned long)at_page(s->at),
		 (unsigned long)at_page(s->at + s->len), s->x);
	return text_to(path, text);
}

long run_compact(const struct walk_step *s)
{
	(void)s;
	return text_to("/proc/sys/vm/compact_memory", "1");
}

long run_drop_caches(const struct walk_step *s)
{
	(void)s;
	return text_to("/proc/sys/vm/drop_caches", "1");
}

long run_ksm(const struct walk_step *s)
{
	char text[2] = { '0' + s->x };
	long done = text_to("/sys/kernel/mm/ksm/run", text);

	/* Give the thread of KSM some time to merge. */
	if (s->x == 1)
		usleep(2000);
	return done;
}

long run_thp(const struct walk_step *s)
{
	static const char * const choice[] = { "never", "always", "madvise", "inherit" };
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/%s",
		 (walk_psize << s->off) / 1024, "enabled");
	return text_to(path, choice[s->x]);
}

long run_swapoff(const struct walk_step *s)
{
	(void)s;
	if (swapoff("/dev/ram0"))
		return -errno;
	return swapon("/dev/ram0", 0) ? -errno : 0;
}

long run_reclaim(const struct walk_step *s)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", in_bytes(s->x));
	return text_to("/sys/fs/cgroup/folio_walk/memory.reclaim", text);
}

/*
 * Above this limit, the processes reclaim memory before they return from system
 * calls and faults.
 */
long run_high(const struct walk_step *s)
{
	char text[32] = "max";

	if (s->x)
		snprintf(text, sizeof(text), "%lu", in_bytes(s->x));
	return text_to("/sys/fs/cgroup/folio_walk/memory.high", text);
}

long run_clear_refs(const struct walk_step *s)
{
	char text[2] = { '0' + s->x };

	return text_to("/proc/self/clear_refs", text);
}

static int open_uffd(bool async)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = async ? UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED :
			    UFFD_FEATURE_SIGBUS |
			    (has(HAS_UFFD_WP) ? UFFD_FEATURE_WP_UNPOPULATED : 0),
	};

	if (uffd[async] >= 0)
		return uffd[async];
	if (has(HAS_UFFD_MOVE) && !async)
		api.features |= UFFD_FEATURE_MOVE;
	uffd[async] = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd[async] >= 0 && ioctl(uffd[async], UFFDIO_API, &api))
		drop(&uffd[async]);
	return uffd[async];
}

static struct uffdio_range range_of(const struct walk_step *s)
{
	return (struct uffdio_range){ (unsigned long)at_page(s->at), in_bytes(s->len) };
}

long run_uffd_register(const struct walk_step *s)
{
	long flags = walk_calls[s->call].arg;
	struct uffdio_register r = {
		.range = range_of(s),
		.mode = (flags & MISS ? UFFDIO_REGISTER_MODE_MISSING : 0) |
			(flags & WPREG ? UFFDIO_REGISTER_MODE_WP : 0),
	};

	/* Empty the range, so that the model knows which pages are missing. */
	if (flags & MISS && madvise(at_page(s->at), in_bytes(s->len), MADV_DONTNEED))
		return -errno;
	return ioctl(open_uffd(flags & ASYNC), UFFDIO_REGISTER, &r) ? -errno : 0;
}

long run_uffd_unregister(const struct walk_step *s)
{
	struct uffdio_range r = range_of(s);

	return ioctl(open_uffd(page_of(walk_me, s->at)->flags & ASYNC), UFFDIO_UNREGISTER, &r) ?
		-errno : 0;
}

long run_uffd_copy(const struct walk_step *s)
{
	struct uffdio_copy c = {
		.dst = (unsigned long)at_page(s->at),
		.src = (unsigned long)source,
		.len = in_bytes(s->len),
		.mode = s->x ? UFFDIO_COPY_MODE_WP : 0,
	};
	unsigned int word;
	uint32_t i;

	if (!run_one_mapping(s->at, s->len))
		return NOT_NOW;
	for (i = 0; i < s->len; i++)
		for (word = 0; word < WALK_WORDS; word++)
			memcpy(source + in_bytes(i) + walk_word_at(word),
			       &(uint64_t){ walk_word(s->val + i, word) }, 8);
	return ioctl(open_uffd(false), UFFDIO_COPY, &c) ? -errno : 0;
}

long run_uffd_zero(const struct walk_step *s)
{
	struct uffdio_zeropage z = { .range = range_of(s) };

	if (!run_one_mapping(s->at, s->len))
		return NOT_NOW;
	return ioctl(open_uffd(false), UFFDIO_ZEROPAGE, &z) ? -errno : 0;
}

long run_uffd_protect(const struct walk_step *s)
{
	struct uffdio_writeprotect w = {
		.range = range_of(s),
		.mode = walk_calls[s->call].arg ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(open_uffd(page_of(walk_me, s->at)->flags & ASYNC), UFFDIO_WRITEPROTECT, &w) ?
		-errno : 0;
}

/* Move pages to addresses where pages are missing. Returns how many pages moved. */
long run_uffd_move(const struct walk_step *s)
{
	struct uffdio_move m = {
		.dst = (unsigned long)at_page(s->to),
		.src = (unsigned long)at_page(s->at),
		.len = in_bytes(s->len),
	};

	if (!run_one_mapping(s->at, s->len) || !run_one_mapping(s->to, s->len))
		return NOT_NOW;
	if (!ioctl(open_uffd(false), UFFDIO_MOVE, &m))
		return s->len;
	if (m.move > 0)
		return m.move / walk_psize;
	return -errno;
}

/*
 * Scan for pages that were written to, and write-protect them again. For each
 * reported page, the function sets the page's element of vec[] to 1, in the
 * mailbox of the process that scans.
 */
long run_scan(const struct walk_step *s)
{
	struct page_region regions[512];
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)at_page(s->at),
		.end = (unsigned long)at_page(s->at + s->len),
		.vec = (unsigned long)regions,
		.vec_len = 512,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};
	struct walk_box *box = &walk->box[walk_me];
	int fd = open("/proc/self/pagemap", O_RDONLY);
	long nr = ioctl(fd, PAGEMAP_SCAN, &arg), error = -errno;
	uint32_t i, from, to;
	long r;

	close(fd);
	if (nr < 0)
		return error;
	memset(box->vec, 0, sizeof(box->vec));
	for (r = 0; r < nr; r++) {
		from = (regions[r].start - WALK_ARENA) / walk_psize;
		to = (regions[r].end - WALK_ARENA) / walk_psize;
		memset(box->vec + from, 1, to - from);
	}
	for (i = s->at; i < s->at + s->len; i++) {
		const struct walk_page *p = page_of(walk_me, i);

		if (box->vec[i] ? p->flags & WP : !(p->flags & WP) && p->flags & OWN && p->val) {
			walk_fail("scan-written",
				  "PAGEMAP_SCAN says that page %u was %swritten to; flags %x",
				  i, box->vec[i] ? "" : "not ", p->flags);
			break;
		}
	}
	return 0;
}

/* Take a long-term pin, as drivers do. */
long run_pin(const struct walk_step *s)
{
	struct io_uring_params params = {};
	struct iovec vector = { at_page(s->at), in_bytes(s->len) };
	int fd = syscall(__NR_io_uring_setup, 1, &params);

	if (fd < 0)
		return -errno;
	if (syscall(__NR_io_uring_register, fd, IORING_REGISTER_BUFFERS, &vector, 1)) {
		long error = -errno;

		close(fd);
		return error;
	}
	drop(&ring[s->x]);
	ring[s->x] = fd;
	return 0;
}

long run_unpin(const struct walk_step *s)
{
	int i;

	(void)s;
	for (i = 0; i < WALK_PINS; i++) {
		if (ring[i] >= 0)
			syscall(__NR_io_uring_register, ring[i], IORING_UNREGISTER_BUFFERS, NULL,
				0);
		drop(&ring[i]);
	}
	return 0;
}

long run_vmsplice(const struct walk_step *s)
{
	struct iovec vector = { at_page(s->at), in_bytes(s->len) };

	if (splice_pipe[0] < 0 && pipe2(splice_pipe, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	return vmsplice(splice_pipe[1], &vector, 1, SPLICE_F_NONBLOCK) < 0 ? -errno : 0;
}

long run_drain(const struct walk_step *s)
{
	(void)s;
	drop(&splice_pipe[0]);
	drop(&splice_pipe[1]);
	return 0;
}
