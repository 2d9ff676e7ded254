// SPDX-License-Identifier: GPL-2.0
/*
 * The messages of userfaultfd for an atomic read-modify-write instruction.
 *
 * A process that handles the faults of another process (live migration, garbage
 * collectors) learns from userfaultfd whether a fault is a write. Here a
 * program runs atomics on memory that is registered with userfaultfd. The
 * thread of the test reads the messages and resolves the faults one by one. Not
 * covered: minor faults, and faults in the kernel's own accesses.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	atomic_rmw_uffd
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd.h>

#include "atomic_rmw_run.h"

#define UFFD_PAGES	18

/*
 * The messages of a run: their number, the flags that all of them have, and the
 * flags that at least one has.
 */
struct uffd_log {
	struct file *file;
	unsigned long mode;
	unsigned int nr;
	unsigned int wrong;
	u64 all;
	u64 any;
};

/* An ioctl() with an argument in the memory of the program. */
static int uffd_ioctl(struct file *file, unsigned int cmd, void *arg,
		      size_t size)
{
	if (copy_to_user((void __user *)USER_SCRATCH, arg, size))
		return -EFAULT;
	return file->f_op->unlocked_ioctl(file, cmd, USER_SCRATCH);
}

static int uffd_protect(struct file *file, unsigned long addr,
			unsigned long size, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range = { addr, size },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return uffd_ioctl(file, UFFDIO_WRITEPROTECT, &arg, sizeof(arg));
}

static int uffd_prepare(struct user_run *run)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register memory = {};
	struct rmw_fixture *f = run->data;
	struct uffd_log *log = f->data;
	int err = rmw_prepare(run);
	long fd;

	if (err)
		return err;
	fd = pgtable_kunit_syscall(userfaultfd, UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return fd;
	log->file = fget(fd);
	memory.range.start = run->addr;
	memory.range.len = run->size;
	memory.mode = log->mode;
	err = uffd_ioctl(log->file, UFFDIO_API, &api, sizeof(api)) ?:
	      uffd_ioctl(log->file, UFFDIO_REGISTER, &memory, sizeof(memory));
	if (!err && log->mode == UFFDIO_REGISTER_MODE_WP)
		err = uffd_protect(log->file, run->addr, run->size, true);
	if (err) {
		fput(log->file);
		log->file = NULL;
	}
	return err;
}

/* Let the program continue after its fault at @addr. */
static int uffd_resolve(struct uffd_log *log, unsigned long addr)
{
	struct uffdio_zeropage zero = { .range = { addr, PAGE_SIZE } };

	if (log->mode == UFFDIO_REGISTER_MODE_WP)
		return uffd_protect(log->file, addr, PAGE_SIZE, false);
	return uffd_ioctl(log->file, UFFDIO_ZEROPAGE, &zero, sizeof(zero));
}

/* Expect one message for each page, in order. */
static void uffd_attend(struct user_run *run)
{
	struct rmw_fixture *f = run->data;
	struct uffd_log *log = f->data;
	struct uffd_msg msg;
	loff_t pos = 0;

	log->all = ~0;
	kthread_use_mm(run->mm);
	while (log->nr < UFFD_PAGES) {
		unsigned long addr = run->addr + log->nr * PAGE_SIZE;

		if (kernel_read(log->file, &msg, sizeof(msg), &pos) !=
		    sizeof(msg))
			break;
		log->nr++;
		log->wrong += msg.event != UFFD_EVENT_PAGEFAULT ||
			      msg.arg.pagefault.address != addr;
		log->all &= msg.arg.pagefault.flags;
		log->any |= msg.arg.pagefault.flags;
		if (uffd_resolve(log, addr))
			break;
	}
	kthread_unuse_mm(run->mm);
	/*
	 * If this is the last reference, threads that still wait continue.
	 */
	fput(log->file);
}

static void uffd_run(struct kunit *test, unsigned long mode, u64 flags)
{
	struct rmw_fixture *f = test->priv;
	struct uffd_log log = { .mode = mode };

	if (mode == UFFDIO_REGISTER_MODE_WP)
		f->flags |= MAP_POPULATE;
	f->data = &log;
	f->run->prepare = uffd_prepare;
	f->run->attend = uffd_attend;
	pgtable_kunit_thp_set(test, 0, true);
	rmw_run(test, RMW_LDADD, UFFD_PAGES * PAGE_SIZE, PAGE_SIZE);

	KUNIT_EXPECT_EQ(test, f->run->status, 0);
	KUNIT_EXPECT_EQ(test, log.nr, UFFD_PAGES);
	KUNIT_EXPECT_EQ(test, log.wrong, 0);
	KUNIT_EXPECT_EQ(test, log.all, flags);
	KUNIT_EXPECT_EQ(test, log.any, flags);
}

/*
 * userfaultfd reports a missing page as a read, like the CPU. With the option
 * it reports the write that the instruction makes next. The test resolves the
 * fault with the zero page. The kernel handles the write fault that follows
 * without a message.
 */
static void missing_message_access(struct kunit *test)
{
	uffd_run(test, UFFDIO_REGISTER_MODE_MISSING,
		 RMW_FORCED ? UFFD_PAGEFAULT_FLAG_WRITE : 0);
}

/*
 * Each write-protected page causes one message, which is a write on any kernel.
 */
static void write_protect_message_access(struct kunit *test)
{
	uffd_run(test, UFFDIO_REGISTER_MODE_WP,
		 UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP);
}

static struct kunit_case atomic_rmw_uffd_cases[] = {
	KUNIT_CASE(missing_message_access),
	KUNIT_CASE(write_protect_message_access),
	{}
};

static struct kunit_suite atomic_rmw_uffd_suite = {
	.name = "atomic_rmw_uffd",
	.suite_init = pgtable_kunit_suite_init,
	.init = rmw_init,
	.test_cases = atomic_rmw_uffd_cases,
};

kunit_test_suite(atomic_rmw_uffd_suite);

MODULE_DESCRIPTION("KUnit tests for userfaultfd messages of atomic instructions");
MODULE_LICENSE("GPL");
