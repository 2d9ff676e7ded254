// SPDX-License-Identifier: GPL-2.0
/*
 * The locked memory of io_uring: large folios with registered buffers that two rings share.
 *
 * Proves: a large folio counts as locked memory once, as long as any ring has a buffer in it. After
 * all buffers are unregistered, nothing counts any more, and the limit RLIMIT_MEMLOCK holds.
 *
 * How: a process without privileges registers two buffers in one folio, and clones one or both to a
 * second ring. It unregisters the buffers of the rings one after the other, and reads VmPin. Then
 * it registers as much memory as the limit allows, and one folio more. Each case has a user of its
 * own, so a wrong count ends with the case.
 *
 * Does not prove: how buffers of single pages, of hugetlb pages, or of the kernel are counted.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uring_locked
 */
#include <grp.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_util.h"

/* The limit is LIMIT folios and a half. The rings themselves need less than half a folio. */
#define ORDER 6
#define LIMIT 4
#define FIRST_USER 100000	/* more than any user ID that exists in the machine */

/* Headers of some systems lack these. */
#define CLONE_BUFFERS 30
struct clone_buffers {
	__u32 src_fd;
	__u32 flags;
	__u32 src_off;
	__u32 dst_off;
	__u32 nr;
	__u32 pad[3];
};

/* What the process saw; VmPin is in pages. */
struct seen {
	int error;	/* of a call that should have succeeded */
	const char *call;	/* this call */
	long registered;
	long cloned;
	long one_left;	/* after the buffers of one ring are unregistered */
	long none_left;
	int within;	/* 0, or the error if all memory within the limit is registered */
	int beyond;	/* the same for one folio more */
};

FIXTURE(uring_locked)
{
	struct seen *seen;
};

/* @cloned: how many of the two buffers; @clone_first: unregister the clones first */
FIXTURE_VARIANT(uring_locked)
{
	int cloned;
	bool clone_first;
};

FIXTURE_VARIANT_ADD(uring_locked, no_clone)
{
};

FIXTURE_VARIANT_ADD(uring_locked, both)
{
	.cloned = 2,
};

FIXTURE_VARIANT_ADD(uring_locked, one_clone_first)
{
	.cloned = 1,
	.clone_first = true,
};

FIXTURE_VARIANT_ADD(uring_locked, one_clone_last)
{
	.cloned = 1,
};

FIXTURE_SETUP(uring_locked)
{
	const char *why = folio_settings(ORDER);

	self->seen = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);
	ASSERT_NE(MAP_FAILED, self->seen);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(uring_locked)
{
	munmap(self->seen, bytes(1));
}

/* VmPin of this process, in pages. A wrong value can be negative. */
static long vm_pin(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %llu kB", &kib);
	if (f)
		fclose(f);
	return (long)kib / (long)(psize() / 1024);
}

static int new_ring(void)
{
	struct io_uring_params params = {};

	return syscall(__NR_io_uring_setup, 4, &params);
}

static int change(int ring, unsigned int what, void *argument, unsigned int nr)
{
	return syscall(__NR_io_uring_register, ring, what, argument, nr);
}

/* Register this many folios as one buffer, and unregister it. Returns 0 or an error. */
static int try_folios(int ring, char *at, unsigned int folios)
{
	struct iovec vector = { at, bytes(folios << ORDER) };

	if (change(ring, IORING_REGISTER_BUFFERS, &vector, 1))
		return errno;
	change(ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
	return 0;
}

/* Returns whether the call succeeded. */
static bool done(struct seen *seen, const char *call, bool succeeded)
{
	if (!succeeded) {
		seen->error = errno ?: EIO;
		seen->call = call;
	}
	return succeeded;
}

/* Become a user that has no other process, with a limit of locked memory. */
static bool drop_privileges(struct seen *seen)
{
	const rlim_t limit = bytes(LIMIT << ORDER) + bytes(1 << ORDER) / 2;
	const struct rlimit both = { limit, limit };
	const unsigned int user = FIRST_USER + getpid();

	return done(seen, "setrlimit", !setrlimit(RLIMIT_MEMLOCK, &both)) &&
	       done(seen, "setgroups", !setgroups(0, NULL)) &&
	       done(seen, "setgid", !setgid(user)) && done(seen, "setuid", !setuid(user));
}

/* The child process: register, clone, unregister, and then try the limit. */
static void use_rings(struct seen *seen, int cloned, bool clone_first)
{
	struct memory m;
	const char *why = memory_map(&m, ANON, ORDER, LIMIT + 1);
	int ring, other, third;

	if (!done(seen, why, !why) || !drop_privileges(seen))
		return;
	ring = new_ring();
	other = new_ring();
	third = new_ring();
	if (!done(seen, "io_uring_setup", ring >= 0 && other >= 0 && third >= 0))
		return;

	struct iovec vectors[2] = { { m.at, bytes(1) }, { m.at + bytes(2), bytes(1) } };
	struct clone_buffers clone = { .src_fd = ring };

	if (!done(seen, "register", !change(ring, IORING_REGISTER_BUFFERS, vectors, 2)))
		return;
	seen->registered = vm_pin();
	if (cloned == 1) {
		clone.src_off = 1;
		clone.nr = 1;
	}
	if (cloned && !done(seen, "clone", !change(other, CLONE_BUFFERS, &clone, 1)))
		return;
	seen->cloned = vm_pin();
	seen->one_left = seen->cloned;
	if (cloned) {
		change(clone_first ? other : ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
		seen->one_left = vm_pin();
	}
	change(cloned && !clone_first ? other : ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
	seen->none_left = vm_pin();
	seen->within = try_folios(third, m.at, LIMIT);
	seen->beyond = try_folios(third, m.at, LIMIT + 1);
}

/*
 * One folio is locked until the last buffer in it is unregistered, and then none. The process can
 * register as much memory as the limit allows, and no more.
 *
 * Known issue 100: ring A has two buffers, and ring B a clone of one of them. When A unregisters
 * its buffers, the folio no longer counts, although B still has it. When B unregisters, the folio
 * is subtracted once more. So VmPin is negative, and the user can lock one folio more.
 */
TEST_F(uring_locked, counts_once)
{
	const long folio = 1L << ORDER;
	struct seen *seen = self->seen;
	pid_t child = fork();

	if (!child) {
		use_rings(seen, variant->cloned, variant->clone_first);
		_exit(0);
	}
	ASSERT_EQ(0, child_of(child));
	if (seen->error && !strcmp(seen->call, "io_uring_setup"))
		SKIP(return, "no io_uring");
	if (seen->error == EINVAL && variant->cloned == 1 && !strcmp(seen->call, "clone"))
		SKIP(return, "this kernel clones all buffers of a ring or none");
	ASSERT_EQ(0, seen->error) {
		TH_LOG("%s failed", seen->call);
	}
	DID(seen->registered, "locked pages");
	TH_LOG("a folio has %ld pages; locked: %ld, cloned %ld, one ring %ld, no ring %ld", folio,
	       seen->registered, seen->cloned, seen->one_left, seen->none_left);
	TH_LOG("registered within the limit: %s, beyond: %s", strerror(seen->within),
	       strerror(seen->beyond));
	EXPECT_EQ(folio, seen->registered);
	EXPECT_EQ(folio, seen->cloned);
	EXPECT_EQ(0, seen->within);
	if (variant->cloned == 1 && !variant->clone_first && !seen->one_left &&
	    seen->none_left == -folio && !seen->beyond) {
		KNOWN_ISSUE(100, "io_uring gives back the locked memory of a folio twice");
		return;
	}
	EXPECT_EQ(folio, seen->one_left);
	EXPECT_EQ(0, seen->none_left);
	EXPECT_EQ(ENOMEM, seen->beyond);
	if (variant->cloned == 1 && !variant->clone_first)
		STALE_ISSUE(100);
}

TEST_HARNESS_MAIN
