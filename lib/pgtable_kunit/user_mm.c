// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous memory of a real address space, and a model of it.
 */

#include <linux/completion.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>
#include <linux/userfaultfd.h>
#include <linux/vmstat.h>

#include "user_mm.h"

/**
 * user_mm_pte() - the entry for an address, as it is in the table
 * @u: the address space
 * @addr: the address
 *
 * Return: the entry, or an empty entry if there is no table.
 */
pte_t user_mm_pte(struct user_mm *u, unsigned long addr)
{
	pte_t *ptep, pte = pgtable_kunit_none();
	pmd_t *pmd;

	mmap_read_lock(u->mm);
	pmd = pmd_off(u->mm, addr);
	ptep = pmd_none(*pmd) ? NULL : pte_offset_map(pmd, addr);
	if (ptep) {
		pte = pgtable_kunit_raw_get(ptep);
		pte_unmap(ptep);
	}
	mmap_read_unlock(u->mm);
	return pte;
}

/**
 * user_mm_folio() - the folio of a mapped page
 * @u: the address space
 * @page: number of the page, which is present
 *
 * Return: the folio, without a reference for the caller.
 */
struct folio *user_mm_folio(struct user_mm *u, unsigned int page)
{
	pte_t pte = user_mm_pte(u, u->page[page].addr);

	return pte_present(pte) ? pfn_folio(pte_pfn(pte)) : NULL;
}

/**
 * user_mm_write() - write to a page as a program would
 * @u: the address space
 * @page: number of the page
 * @data: the word to write; on success the model gets it too
 *
 * Return: 0 or -EFAULT.
 */
int user_mm_write(struct user_mm *u, unsigned int page, unsigned int data)
{
	struct user_page *p = &u->page[page];

	if (put_user(data, (unsigned int __user *)p->addr))
		return -EFAULT;
	p->present = true;
	p->data = data;
	return 0;
}

/**
 * user_mm_faults() - the number of page faults so far
 *
 * Return: the faults of the whole machine, where only the thread of the test
 * has user memory. Without CONFIG_VM_EVENT_COUNTERS always 0.
 */
unsigned long user_mm_faults(void)
{
	unsigned long events[NR_VM_EVENT_ITEMS] = {};

	all_vm_events(events);
	return events[PGFAULT];
}

static void user_fail(struct user_mm *u, unsigned int page, const char *what,
		      u64 got, u64 want)
{
	if (u->failed++ < PGTABLE_KUNIT_ENOUGH)
		KUNIT_FAIL(u->test, "%s: page %u: %s %llx, expected %llx",
			   u->what, page, what, got, want);
}

/*
 * A contiguous block is complete, aligned, and of one kind, or does not exist:
 *
 *	| P P P P | P P P P |     all with the bit, pages one after the other,
 *	  C C C C               or none
 */
static void user_check_folded(struct user_mm *u, unsigned int page)
{
	unsigned long size = USER_BLOCK * PAGE_SIZE;
	unsigned long start = ALIGN_DOWN(u->page[page].addr, size);
	pte_t first = user_mm_pte(u, start);
	unsigned int i;

	for (i = 0; i < USER_BLOCK; i++) {
		pte_t pte = user_mm_pte(u, start + i * PAGE_SIZE);

		if (pgtable_kunit_folded(pte) != pgtable_kunit_folded(first))
			user_fail(u, page, "part of a contiguous block has entry",
				  pte_val(pte), pte_val(first));
		else if (pgtable_kunit_folded(pte) &&
			 pte_pfn(pte) != pte_pfn(first) + i)
			user_fail(u, page, "contiguous block has page",
				  pte_pfn(pte), pte_pfn(first) + i);
	}
}

/* Check the entry and the content of a page. */
static void user_check_page(struct user_mm *u, unsigned int page)
{
	struct user_page *p = &u->page[page];
	pte_t pte = user_mm_pte(u, p->addr);
	unsigned int data;

	if (!p->present || !p->mapped) {
		if (!pte_none(pte))
			user_fail(u, page, "entry of an empty page",
				  pte_val(pte), 0);
		return;
	}
	if (!pte_present(pte)) {
		user_fail(u, page, "entry is not present:", pte_val(pte), 1);
		return;
	}
	if (p->pfn && pte_pfn(pte) != p->pfn)
		user_fail(u, page, "page frame", pte_pfn(pte), p->pfn);
	p->pfn = pte_pfn(pte);
	if (pte_write(pte) && !p->writable)
		user_fail(u, page, "entry is writable:", pte_val(pte), 0);
	/* An entry may be writable only if the page is exclusive. */
	if (pte_write(pte) && !PageAnonExclusive(pte_page(pte)))
		user_fail(u, page, "entry is writable, but shared:", pte_val(pte),
			  0);
	/*
	 * A present page must be accessible without a fault that maps another
	 * page.
	 */
	if (get_user(data, (unsigned int __user *)p->addr))
		user_fail(u, page, "access", 1, 0);
	else if (data != p->data)
		user_fail(u, page, "contents", data, p->data);
}

/* Check that a folio has the mappings and references of the model. */
static void user_check_folio(struct user_mm *u, struct folio *folio,
			     unsigned int page)
{
	unsigned int i, nr = 0;

	for (i = 0; i < USER_PAGES; i++)
		nr += u->page[i].mapped && u->page[i].present &&
		      pfn_folio(u->page[i].pfn) == folio;
	if (folio_mapcount(folio) != nr)
		user_fail(u, page, "number of mappings of its folio:",
			  folio_mapcount(folio), nr);
	if (folio_ref_count(folio) != nr)
		user_fail(u, page, "number of references of its folio:",
			  folio_ref_count(folio), nr);
}

/**
 * user_mm_check() - compare all pages with the model
 * @u: the address space
 *
 * Compares entries, contents, contiguous blocks, the mappings and references of
 * folios, and the number of pages of the address space.
 */
void user_mm_check(struct user_mm *u)
{
	struct folio *folio = NULL;
	unsigned int i;
	unsigned long rss = u->rss;

	for (i = 0; i < USER_PAGES; i++) {
		user_check_page(u, i);
		/* After a move, a block may begin at any page. */
		if (u->page[i].mapped &&
		    (!i || IS_ALIGNED(u->page[i].addr, USER_BLOCK * PAGE_SIZE) ||
		     u->page[i].addr != u->page[i - 1].addr + PAGE_SIZE))
			user_check_folded(u, i);
		rss += u->page[i].mapped && u->page[i].present;
	}
	/* Drop references in the LRU batches of the CPU. */
	lru_add_drain_all();
	for (i = 0; i < USER_PAGES && !u->failed; i++) {
		if (!u->page[i].mapped || !u->page[i].present ||
		    pfn_folio(u->page[i].pfn) == folio)
			continue;
		folio = pfn_folio(u->page[i].pfn);
		user_check_folio(u, folio, i);
	}
	if (get_mm_counter_sum(u->mm, MM_ANONPAGES) != rss)
		user_fail(u, 0, "number of pages of the address space:",
			  get_mm_counter_sum(u->mm, MM_ANONPAGES), rss);
}

/**
 * user_mm_unmap() - unmap all memory
 * @u: the address space
 */
void user_mm_unmap(struct user_mm *u)
{
	u->moves = 0;
	KUNIT_ASSERT_EQ(u->test, 0,
			vm_munmap(USER_ADDR, USER_PLACES * USER_PLACE_SIZE));
	KUNIT_EXPECT_EQ_MSG(u->test, get_mm_counter_sum(u->mm, MM_ANONPAGES),
			    u->rss, "%s", u->what);
}

/**
 * user_mm_populate() - map new memory, each page with its number in it
 * @u: the address space
 * @order: the order of the folios; with the order of a block, each folio begins
 *   at a block, and is folded if the architecture can fold
 */
void user_mm_populate(struct user_mm *u, unsigned int order)
{
	unsigned long addr;
	unsigned int i;

	user_mm_unmap(u);
	addr = vm_mmap(NULL, USER_ADDR, USER_PAGES * PAGE_SIZE,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0);
	KUNIT_ASSERT_EQ(u->test, addr, USER_ADDR);
	for (i = 0; i < USER_PAGES; i++) {
		u->page[i] = (struct user_page){
			.addr = addr + i * PAGE_SIZE,
			.mapped = true, .writable = true,
		};
		KUNIT_ASSERT_EQ(u->test, 0, user_mm_write(u, i, 1000 + i));
		u->page[i].pfn = pte_pfn(user_mm_pte(u, u->page[i].addr));
		KUNIT_ASSERT_EQ(u->test, order,
				folio_order(user_mm_folio(u, i)));
		if (IS_ENABLED(CONFIG_ARM64_CONTPTE) && order >= USER_BLOCK_ORDER)
			KUNIT_ASSERT_TRUE(u->test,
					  pgtable_kunit_folded(user_mm_pte(u, u->page[i].addr)));
	}
}

/* The function that a child calls, and its result. */
struct user_child {
	struct user_mm u;
	struct completion start;
	int (*run)(struct user_mm *u);
	int result;
};

static int user_child(void *data)
{
	struct user_child *child = data;

	wait_for_completion(&child->start);
	child->u.mm = current->mm;
	child->result = child->run(&child->u);
	do_exit(0);
}

/**
 * user_mm_fork() - fork, and wait for the child to end
 * @u: the address space
 * @child: called in the child, with a copy of the model
 * @parent: called in the parent before that, or NULL
 *
 * Return: the result of @child, or -errno if there was no child.
 */
int user_mm_fork(struct user_mm *u, int (*child)(struct user_mm *u),
		 void (*parent)(struct user_mm *u))
{
	struct user_child *arg = kzalloc(sizeof(*arg), GFP_KERNEL);
	struct kernel_clone_args args = {
		.fn = user_child,
		.fn_arg = arg,
		.exit_signal = SIGCHLD,
	};
	int status, result;
	pid_t pid;

	KUNIT_ASSERT_NOT_NULL(u->test, arg);
	arg->u = *u;
	arg->u.parent = u;
	arg->run = child;
	init_completion(&arg->start);

	kernel_sigaction(SIGCHLD, SIG_DFL);
	pid = kernel_clone(&args);
	if (pid > 0) {
		if (parent)
			parent(u);
		complete(&arg->start);
		kernel_wait(pid, &status);
	}
	kernel_sigaction(SIGCHLD, SIG_IGN);
	u->failed += arg->u.failed;
	result = pid > 0 ? arg->result : pid;
	kfree(arg);
	return result;
}

/**
 * user_mm_alloc() - make an address space for the thread of the test
 * @test: the test
 *
 * No other code moves its memory while the test runs.
 */
struct user_mm *user_mm_alloc(struct kunit *test)
{
	struct user_mm *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);
	unsigned long addr;

	KUNIT_ASSERT_NOT_NULL(test, u);
	pgtable_kunit_compaction_off(test);
	/* The first mapping creates the address space. */
	addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	u->test = test;
	u->mm = current->mm;
	u->rss = get_mm_counter_sum(u->mm, MM_ANONPAGES);
	return u;
}

/**
 * user_mm_init() - the init of a suite: an address space in test->priv
 * @test: the test
 *
 * Return: 0, or an error number.
 */
int user_mm_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (!err)
		test->priv = user_mm_alloc(test);
	return err;
}

/**
 * user_mm_uffd() - open a userfaultfd
 * @test: the test
 *
 * Return: the file; the caller calls fput().
 */
struct file *user_mm_uffd(struct kunit *test)
{
	long fd = pgtable_kunit_syscall(userfaultfd, UFFD_USER_MODE_ONLY);
	struct file *file;

	KUNIT_ASSERT_GE(test, fd, 0);
	file = fget(fd);
	close_fd(fd);
	return file;
}

/**
 * user_mm_ioctl() - call ioctl()
 * @file: the file
 * @cmd: the command
 * @scratch: user memory; receives a copy of the argument
 * @arg: the argument
 * @size: the size of the argument, in bytes
 *
 * Return: what ioctl() returns.
 */
int user_mm_ioctl(struct file *file, unsigned int cmd, void __user *scratch,
		  const void *arg, size_t size)
{
	if (copy_to_user(scratch, arg, size))
		return -EFAULT;
	return file->f_op->unlocked_ioctl(file, cmd, (unsigned long)scratch);
}
