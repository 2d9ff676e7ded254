// SPDX-License-Identifier: GPL-2.0
/*
 * The page tables of EFI's runtime services.
 *
 * Firmware needs some memory at run time. The kernel maps this memory in a
 * separate mm, efi_mm, with create_pgd_mapping(), before the first suite runs.
 * The suite needs a machine with firmware (package qemu-efi-aarch64 in Debian):
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 linear_map_efi \
 *	--kconfig_add=CONFIG_EFI=y \
 *	--qemu_args '-machine acpi=off \
 *	-bios /usr/share/qemu-efi-aarch64/QEMU_EFI.fd'
 *
 * Without acpi=off firmware hides the device tree, and the kernel finds no console.
 *
 * Not covered: what firmware does with its memory.
 */

#include <linux/efi.h>

#include "linear_map.h"

/* Returns the memory that firmware needs at an address, or NULL. */
static const efi_memory_desc_t *efi_needs(unsigned long addr)
{
	const efi_memory_desc_t *md;

	for_each_efi_memory_desc(md) {
		unsigned long start = ALIGN_DOWN(md->virt_addr, PAGE_SIZE);
		unsigned long end = md->virt_addr +
				    (md->num_pages << EFI_PAGE_SHIFT);

		if (md->attribute & EFI_MEMORY_RUNTIME &&
		    addr >= start && addr < end)
			return md;
	}
	return NULL;
}

/*
 * Whether only the kernel has access, and data and devices cannot be executed.
 */
static bool efi_permissions_ok(const struct lmap_leaf *leaf, u32 type)
{
	bool memory = (leaf->val & PTE_ATTRINDX_MASK) == PTE_ATTRINDX(MT_NORMAL);
	bool data = type != EFI_RUNTIME_SERVICES_CODE;

	return !(leaf->val & PTE_USER) && leaf->val & PTE_UXN &&
	       leaf->val & PTE_NG &&
	       memory == (type != EFI_MEMORY_MAPPED_IO) &&
	       (!data || (leaf->val & PTE_PXN && leaf->val & PTE_WRITE));
}

/*
 * Each page that firmware needs is mapped at its address, with permissions and
 * attributes for code, data or a device. If the kernel's pages are larger than
 * the firmware's pages, two memory ranges of firmware may share one page of the
 * kernel. The case does not check the permissions of such a page.
 */
static void runtime_services_mapped(struct kunit *test)
{
	unsigned long pages = 0, code = 0, devices = 0;
	const efi_memory_desc_t *md;
	unsigned int failed = 0;

	for_each_efi_memory_desc(md) {
		unsigned long size = md->num_pages << EFI_PAGE_SHIFT, off;

		if (!(md->attribute & EFI_MEMORY_RUNTIME))
			continue;
		for (off = 0; off < size; off += EFI_PAGE_SIZE) {
			unsigned long addr = md->virt_addr + off;
			struct lmap_leaf leaf = lmap_leaf(&efi_mm, addr);
			bool whole = PAGE_SIZE == EFI_PAGE_SIZE;

			KUNIT_ASSERT_TRUE_MSG(test, leaf.val & PTE_VALID,
					      "%lx of type %u: entry %016llx",
					      addr, md->type, leaf.val);
			pages++;
			code += md->type == EFI_RUNTIME_SERVICES_CODE;
			devices += md->type == EFI_MEMORY_MAPPED_IO;
			if (md->phys_addr + off ==
			    lmap_leaf_phys(&leaf) + addr - leaf.addr &&
			    (!whole || efi_permissions_ok(&leaf, md->type)))
				continue;
			KUNIT_FAIL(test, "%lx of type %u, physical %llx: entry %016llx",
				   addr, md->type, md->phys_addr + off, leaf.val);
			if (++failed == PGTABLE_KUNIT_ENOUGH)
				return;
		}
	}
	PGTABLE_KUNIT_DID(test, pages, "pages of firmware");
	PGTABLE_KUNIT_DID(test, code, "pages of firmware code");
	kunit_info(test, "%lu of devices\n", devices);
}

/*
 * Nothing else is mapped: each valid entry of the whole address space belongs
 * to memory that firmware needs.
 */
static void nothing_else_mapped_for_firmware(struct kunit *test)
{
	unsigned long addr = 0, entries = 0;

	while (addr < TASK_SIZE_64) {
		struct lmap_leaf leaf = lmap_leaf(&efi_mm, addr);

		if (leaf.val & PTE_VALID) {
			entries++;
			KUNIT_ASSERT_NOT_NULL_MSG(test, efi_needs(leaf.addr),
						  "%lx: entry %016llx", leaf.addr,
						  leaf.val);
		}
		addr = leaf.addr + leaf.size;
	}
	PGTABLE_KUNIT_DID(test, entries, "entries");
}

/*
 * The runtime service for the time works: the code of firmware runs, can access
 * its data and its device, and returns a plausible date.
 */
static void runtime_service_called(struct kunit *test)
{
	efi_time_t time = {};
	efi_time_cap_t cap = {};

	KUNIT_ASSERT_EQ(test, efi.get_time(&time, &cap), EFI_SUCCESS);
	kunit_info(test, "%u-%u-%u\n", time.year, time.month, time.day);
	KUNIT_EXPECT_GE(test, time.year, 2024);
	KUNIT_EXPECT_LE(test, time.month, 12);
}

static int linear_map_efi_init(struct kunit *test)
{
	if (!efi_enabled(EFI_RUNTIME_SERVICES))
		kunit_skip(test, "needs a machine with firmware");
	return pgtable_kunit_init(test);
}

static struct kunit_case linear_map_efi_cases[] = {
	KUNIT_CASE(runtime_services_mapped),
	KUNIT_CASE(nothing_else_mapped_for_firmware),
	KUNIT_CASE(runtime_service_called),
	{}
};

static struct kunit_suite linear_map_efi_suite = {
	.name = "linear_map_efi",
	.suite_init = pgtable_kunit_suite_init,
	.init = linear_map_efi_init,
	.test_cases = linear_map_efi_cases,
};

kunit_test_suite(linear_map_efi_suite);

MODULE_DESCRIPTION("KUnit tests for the page tables of EFI's runtime services");
MODULE_LICENSE("GPL");
