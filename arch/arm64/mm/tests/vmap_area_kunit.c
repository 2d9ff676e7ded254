// SPDX-License-Identifier: GPL-2.0
/*
 * Areas of vmalloc(), vmap() and vm_area_map_pages().
 *
 * vmalloc_huge() uses large entries if the area is large enough. Each page of
 * the area must still be the page that vmalloc_to_page() returns. vmap() and
 * vm_area_map_pages() map pages that callers choose, by single pages.
 * set_memory_*() changes only areas that single pages map. Each case compares
 * every entry of an area with a model, and the content of every page with the
 * linear map.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 'vmap_*' \
 *	--kconfig_add=CONFIG_HUGETLBFS=y
 *
 * Not covered: the blocks that vmap_page_range() chooses for odd addresses
 * (vmap_block), vmalloc() for other nodes, and a lack of memory.
 */

#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/set_memory.h>
#include <linux/uaccess.h>

#include "vmap_block.h"

/* Sizes of areas, in bytes: around each size of entries. */
static const struct huge_size {
	const char *desc;
	unsigned long size;
} huge_sizes[] = {
	{ "page", PAGE_SIZE },
	{ "contiguous pages but one", CONT_PTE_SIZE - PAGE_SIZE },
	{ "contiguous pages", CONT_PTE_SIZE },
	{ "contiguous pages and a page", CONT_PTE_SIZE + PAGE_SIZE },
	{ "three times contiguous pages", 3 * CONT_PTE_SIZE },
	{ "block but a page", PMD_SIZE - PAGE_SIZE },
	{ "block", PMD_SIZE },
	{ "block and a page", PMD_SIZE + PAGE_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(huge, huge_sizes, desc);

/* Larger areas are too large for the usual machine of the suites. */
#define HUGE_MOST	SZ_64M

/*
 * The unit in which an area of this size gets memory and addresses. One entry
 * or block maps a unit. Without hugetlb, the kernel uses single pages in place
 * of a contiguous block.
 */
static unsigned long huge_unit(unsigned long size)
{
	if (size >= PMD_SIZE && arch_vmap_pmd_supported(PAGE_KERNEL))
		return PMD_SIZE;
#ifdef arch_vmap_pte_supported_shift
	if (size >= CONT_PTE_SIZE)
		return CONT_PTE_SIZE;
#endif
	return PAGE_SIZE;
}

/*
 * Compare the entries of an area of vmalloc_huge() with the pages that the area
 * has. Returns the number of large entries and blocks.
 */
static unsigned long vmalloc_huge_check(struct kunit *test, struct vm_struct *vm,
					unsigned long unit)
{
	unsigned long units = 0, nr = unit / PAGE_SIZE;

	for (unsigned long i = 0; i < vm->nr_pages; i += nr) {
		struct vmap_block_area area = {
			.test = test, .size = unit, .nr = 1,
			.virt = (unsigned long)vm->addr + i * PAGE_SIZE,
		};

		area.range[0] = (struct vmap_block_range){
			.start = area.virt, .end = area.virt + unit,
			.phys = page_to_phys(vm->pages[i]), .max = unit,
		};
		if (!vmap_block_check(&area, "vmalloc_huge()"))
			break;
		units += area.blocks + area.large;
	}
	return units;
}

/*
 * vmalloc_huge() maps an area by entries that are as large as its size allows:
 * blocks of a PMD, contiguous pages, or pages. Each page has its own content,
 * and vmalloc_to_page() finds it. After vfree() the addresses map nothing.
 */
static void vmalloc_huge_size(struct kunit *test)
{
	unsigned long size = ((const struct huge_size *)test->param_value)->size;
	unsigned long unit = huge_unit(size), units, wrong = 0, addr, start, end;
	unsigned int most = 0;
	struct vm_struct *vm;
	void *mem;

	if (size > HUGE_MOST)
		kunit_skip(test, "a block is too large for this machine");
	mem = vmalloc_huge(size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	vm = find_vm_area(mem);
	KUNIT_ASSERT_NOT_NULL(test, vm);
	KUNIT_EXPECT_EQ(test, PAGE_SIZE << vm->page_order, unit);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)mem, unit));
	KUNIT_EXPECT_EQ(test, vm->nr_pages, ALIGN(size, unit) / PAGE_SIZE);

	start = (unsigned long)mem;
	end = start + (unsigned long)vm->nr_pages * PAGE_SIZE;
	units = vmalloc_huge_check(test, vm, unit);
	if (unit == PMD_SIZE || (unit == CONT_PTE_SIZE && VMAP_BLOCK_CONT))
		KUNIT_EXPECT_EQ(test, units, (end - start) / unit);
	else
		KUNIT_EXPECT_EQ(test, units, 0);
	for (addr = start; addr < start + size; addr += PAGE_SIZE)
		WRITE_ONCE(*(u64 *)addr, addr);
	for (addr = start; addr < start + size; addr += PAGE_SIZE) {
		struct page *page = vmalloc_to_page((void *)addr);

		if (page != vm->pages[(addr - start) / PAGE_SIZE] ||
		    READ_ONCE(*(u64 *)page_address(page)) != addr)
			wrong++;
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "pages that are another page");
	vfree(mem);
	for (addr = start; addr < end; addr += PAGE_SIZE)
		most += !!lmap_leaf(&init_mm, addr).val;
	KUNIT_EXPECT_EQ_MSG(test, most, 0, "entries after vfree()");
	PGTABLE_KUNIT_DID(test, (end - start) / unit, "units");
}

/* The number of pages that a case maps in its own order. */
#define CHOSEN		(2 * CONT_PTES)

static void free_chosen(void *page)
{
	__free_pages(page, ilog2(CHOSEN));
}

static struct page *chosen_memory(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL, ilog2(CHOSEN));

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_chosen,
							   page));
	for (unsigned int i = 0; i < CHOSEN; i++)
		*(u64 *)page_address(page + i) = i + 1;
	return page;
}

/* The array has room for one page more than there are. */
static struct page **chosen_array(struct kunit *test)
{
	struct page **pages = kunit_kcalloc(test, CHOSEN + 1, sizeof(*pages),
					    GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pages);
	return pages;
}

/*
 * Check that @addr and the next addresses map the @nr pages of @pages, by single
 * pages. NULL stands for an address that is not mapped and cannot be read.
 */
static void expect_pages(struct kunit *test, unsigned long addr,
			 struct page **pages, unsigned int nr, const char *when)
{
	for (unsigned int i = 0; i < nr; i++, addr += PAGE_SIZE) {
		u64 val = lmap_leaf(&init_mm, addr).val, got = 0;
		pte_t want = pages[i] ? mk_pte(pages[i], PAGE_KERNEL) : __pte(0);

		KUNIT_EXPECT_EQ_MSG(test, val, pte_val(want), "%s: page %u", when, i);
		if (copy_from_kernel_nofault(&got, (void *)addr, sizeof(got)))
			got = 0;
		KUNIT_EXPECT_EQ_MSG(test, got,
				    pages[i] ? *(u64 *)page_address(pages[i]) : 0,
				    "%s: content of page %u", when, i);
	}
}

/*
 * vmap() maps pages in the order of its array: consecutive pages, the same
 * pages backwards, and one page many times. It never makes a contiguous block
 * of them, because a caller may change the pages one by one. The page after the
 * area stays unmapped.
 */
static void vmap_orders(struct kunit *test)
{
	struct page *page = chosen_memory(test), **pages = chosen_array(test);

	for (int order = 0; order < 3; order++) {
		void *mem;

		for (unsigned int i = 0; i < CHOSEN; i++)
			pages[i] = page + (order == 0 ? i : order == 1 ?
					   CHOSEN - 1 - i : 0);
		mem = vmap(pages, CHOSEN, VM_MAP, PAGE_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, mem);
		expect_pages(test, (unsigned long)mem, pages, CHOSEN + 1, "vmap()");
		vunmap(mem);
		KUNIT_EXPECT_EQ(test, lmap_leaf(&init_mm, (unsigned long)mem).val, 0);
	}
	PGTABLE_KUNIT_DID(test, 3 * CHOSEN, "pages");
}

/*
 * vm_area_map_pages() maps pages in the middle of a sparse area, and
 * vm_area_unmap_pages() unmaps a part of them. All other pages of the area stay
 * as they were. A range that is not within the area is refused.
 */
static void vm_area_map_pages_part(struct kunit *test)
{
	struct page *page = chosen_memory(test), **pages = chosen_array(test);
	struct vm_struct *vm = get_vm_area(CHOSEN * PAGE_SIZE, VM_SPARSE);
	const unsigned int first = 3, end = CHOSEN - 2, cut = CONT_PTES;
	unsigned long addr;

	KUNIT_ASSERT_NOT_NULL(test, vm);
	addr = (unsigned long)vm->addr;
	for (unsigned int i = first; i < end; i++)
		pages[i] = page + i;
	KUNIT_EXPECT_EQ(test, 0, vm_area_map_pages(vm, addr + first * PAGE_SIZE,
						   addr + end * PAGE_SIZE,
						   pages + first));
	expect_pages(test, addr, pages, CHOSEN, "mapped");
	vm_area_unmap_pages(vm, addr + (first + 1) * PAGE_SIZE, addr + cut * PAGE_SIZE);
	for (unsigned int i = first + 1; i < cut; i++)
		pages[i] = NULL;
	expect_pages(test, addr, pages, CHOSEN, "a part unmapped");

	KUNIT_EXPECT_EQ(test, -ERANGE,
			vm_area_map_pages(vm, addr + (CHOSEN - 1) * PAGE_SIZE,
					  addr + (CHOSEN + 1) * PAGE_SIZE,
					  pages + first));
	KUNIT_EXPECT_EQ(test, -ERANGE,
			vm_area_map_pages(vm, addr - PAGE_SIZE, addr + PAGE_SIZE,
					  pages + cut));
	expect_pages(test, addr, pages, CHOSEN, "refused");
	free_vm_area(vm);
	KUNIT_EXPECT_EQ(test, lmap_leaf(&init_mm, addr + first * PAGE_SIZE).val, 0);
	PGTABLE_KUNIT_DID(test, end - first, "pages mapped");
}

/*
 * set_memory_ro() refuses areas that large entries may map, areas of vmap(),
 * and a range that ends after its area. Then nothing changes. It accepts an
 * empty range. Older kernels accept an area of vmalloc_huge() that pages map.
 */
static void set_memory_refuses(struct kunit *test)
{
	struct page *page = chosen_memory(test), **pages = chosen_array(test);
	unsigned long addr[3], val[3];

	for (unsigned int i = 0; i < CHOSEN; i++)
		pages[i] = page + i;
	addr[0] = (unsigned long)vmalloc_huge(2 * CONT_PTE_SIZE, GFP_KERNEL);
	addr[1] = (unsigned long)vmap(pages, CHOSEN, VM_MAP, PAGE_KERNEL);
	addr[2] = (unsigned long)vmalloc(CHOSEN * PAGE_SIZE);
	for (int i = 0; i < 3; i++) {
		KUNIT_ASSERT_NE(test, addr[i], 0);
		val[i] = lmap_leaf(&init_mm, addr[i]).val;
	}
#ifdef PGTABLE_KUNIT_HAS_REFUSES_HUGE_VMAP
	KUNIT_EXPECT_EQ(test, -EINVAL, set_memory_ro(addr[0], 1));
#endif
	KUNIT_EXPECT_EQ(test, -EINVAL, set_memory_ro(addr[1], 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_memory_ro(addr[2], CHOSEN + 2));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_memory_ro(addr[2] + PAGE_SIZE, CHOSEN + 1));
	KUNIT_EXPECT_EQ(test, 0, set_memory_ro(addr[2], 0));
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ_MSG(test, lmap_leaf(&init_mm, addr[i]).val, val[i],
				    "area %d", i);
	vfree((void *)addr[0]);
	vunmap((void *)addr[1]);
	vfree((void *)addr[2]);
}

/* Pages of the range that apply_to_page_range() walks. */
#define APPLIED		8

/**
 * struct applied - the calls for a range of pages
 * @next: the address of the next call
 * @step: the distance between the addresses of two calls
 * @calls: number of calls
 * @stop: the call that fails
 * @wrong: calls for a wrong address or a wrong entry
 * @set: the content of entries that the calls write, or NULL
 */
struct applied {
	unsigned long next, step;
	unsigned int calls, stop, wrong;
	struct page *set;
};

static int apply_note(pte_t *ptep, unsigned long addr, void *data)
{
	struct applied *a = data;

	a->wrong += addr != a->next ||
		    ptep != pte_offset_kernel(pmd_off_k(addr), addr);
	a->next += a->step;
	if (++a->calls == a->stop)
		return -EINTR;
	if (a->set && a->calls % 2)
		__set_pte(ptep, mk_pte(a->set, PAGE_KERNEL));
	return 0;
}

/*
 * apply_to_page_range() calls its function once for each page of a range over
 * two page tables, with the address and the entry of the page.
 * apply_to_existing_page_range() calls it only for entries that are not empty.
 * In this case every second entry is empty. If a call fails, both functions
 * end.
 */
static void apply_to_page_range_calls(struct kunit *test)
{
	struct vm_struct *vm = get_vm_area(3 * PMD_SIZE, VM_SPARSE);
	struct page *page = chosen_memory(test);
	struct applied a = { .step = PAGE_SIZE, .set = page };
	unsigned long start, size = APPLIED * PAGE_SIZE;

	KUNIT_ASSERT_NOT_NULL(test, vm);
	start = ALIGN((unsigned long)vm->addr, PMD_SIZE) + PMD_SIZE - 3 * PAGE_SIZE;
	a.next = start;
	KUNIT_EXPECT_EQ(test, 0, apply_to_page_range(&init_mm, start, size,
						     apply_note, &a));
	KUNIT_EXPECT_EQ(test, a.calls, APPLIED);
	KUNIT_EXPECT_EQ(test, a.wrong, 0);

	a = (struct applied){ .next = start, .step = 2 * PAGE_SIZE };
	KUNIT_EXPECT_EQ(test, 0, apply_to_existing_page_range(&init_mm, start, size,
							      apply_note, &a));
	KUNIT_EXPECT_EQ(test, a.calls, APPLIED / 2);
	KUNIT_EXPECT_EQ(test, a.wrong, 0);

	a = (struct applied){ .next = start, .step = PAGE_SIZE, .stop = 2 };
	KUNIT_EXPECT_EQ(test, -EINTR, apply_to_page_range(&init_mm, start, size,
							  apply_note, &a));
	KUNIT_EXPECT_EQ(test, a.calls, 2);
	a = (struct applied){ .next = start, .step = 2 * PAGE_SIZE, .stop = 3 };
	KUNIT_EXPECT_EQ(test, -EINTR,
			apply_to_existing_page_range(&init_mm, start, size,
						     apply_note, &a));
	KUNIT_EXPECT_EQ(test, a.calls, 3);
	KUNIT_EXPECT_EQ(test, a.wrong, 0);
	free_vm_area(vm);
	PGTABLE_KUNIT_DID(test, APPLIED, "calls for a page");
}

/* The number of pages that user space gets. */
#define SEEN		4

static int see_pages(unsigned long user, void *mem, unsigned long skip,
		     unsigned long nr)
{
	struct vm_area_struct *vma;
	int err = -EFAULT;

	mmap_write_lock(current->mm);
	vma = vma_lookup(current->mm, user);
	if (vma)
		err = remap_vmalloc_range_partial(vma, user, mem, skip, nr * PAGE_SIZE);
	mmap_write_unlock(current->mm);
	return err;
}

/*
 * A driver gives a part of its vmalloc() memory to user space: page i of the
 * mapping is page skip + i of the area. User space reads the content of these
 * pages, and the kernel reads what user space writes. The kernel refuses a
 * range that ends after the area, and memory that was not allocated for user
 * space.
 */
static void remap_vmalloc_range_part(struct kunit *test)
{
	u64 *mem = vmalloc_user(SEEN * PAGE_SIZE), *own = vmalloc(PAGE_SIZE), value;
	const unsigned long words = PAGE_SIZE / sizeof(u64);
	unsigned int seen = 0;

	KUNIT_ASSERT_TRUE(test, mem && own);
	for (unsigned long skip = 0; skip < SEEN; skip++) {
		for (unsigned long nr = 1; nr <= SEEN; nr++) {
			unsigned long user = kunit_vm_mmap(test, NULL, 0, SEEN * PAGE_SIZE,
							   PROT_READ | PROT_WRITE,
							   MAP_SHARED | MAP_ANONYMOUS, 0);
			bool fits = skip + nr <= SEEN;

			KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(user));
			KUNIT_EXPECT_EQ(test, -EINVAL, see_pages(user, own, 0, 1));
			for (unsigned long i = 0; i < SEEN; i++)
				mem[i * words] = i + 1;
			KUNIT_EXPECT_EQ_MSG(test, see_pages(user, mem, skip, nr),
					    fits ? 0 : -EINVAL, "skip %lu, %lu pages",
					    skip, nr);
			for (unsigned long i = 0; fits && i < nr; i++) {
				u64 __user *word = (u64 __user *)(user + i * PAGE_SIZE);

				KUNIT_ASSERT_EQ(test, 0, get_user(value, word));
				KUNIT_EXPECT_EQ_MSG(test, value, skip + i + 1,
						    "skip %lu, page %lu", skip, i);
				KUNIT_ASSERT_EQ(test, 0, put_user(value + 100, word));
				KUNIT_EXPECT_EQ(test, mem[(skip + i) * words],
						skip + i + 101);
				seen++;
			}
			KUNIT_EXPECT_EQ(test, 0, vm_munmap(user, SEEN * PAGE_SIZE));
		}
	}
	vfree(mem);
	vfree(own);
	PGTABLE_KUNIT_DID(test, seen, "pages seen by user space");
}

static struct kunit_case vmap_area_cases[] = {
	KUNIT_CASE_PARAM(vmalloc_huge_size, huge_gen_params),
	KUNIT_CASE(vmap_orders),
	KUNIT_CASE(vm_area_map_pages_part),
	KUNIT_CASE(set_memory_refuses),
	KUNIT_CASE(apply_to_page_range_calls),
	KUNIT_CASE(remap_vmalloc_range_part),
	{}
};

static struct kunit_suite vmap_area_suite = {
	.name = "vmap_area",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = vmap_area_cases,
};

kunit_test_suite(vmap_area_suite);

MODULE_DESCRIPTION("KUnit tests for areas of the vmalloc space");
MODULE_LICENSE("GPL");
