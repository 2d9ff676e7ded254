// SPDX-License-Identifier: GPL-2.0
/*
 * A swap device for a test. It has slots, but no storage.
 *
 * A test gives slots to folios and unmaps the folios, so that page tables have
 * real swap entries. The folios stay in the swap cache. A write to the device
 * fails, and the kernel then keeps the page in memory.
 */

#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/fcntl.h>
#include <linux/kdev_t.h>
#include <linux/mman.h>
#include <linux/mmu_context.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "pgtable_kunit.h"

/* The kernel gives slots to large folios in clusters of this many slots. */
#ifdef CONFIG_THP_SWAP
#define SWAP_DEVICE_CLUSTER	HPAGE_PMD_NR
#else
#define SWAP_DEVICE_CLUSTER	256
#endif
#define SWAP_DEVICE_PAGES	(4UL * SWAP_DEVICE_CLUSTER)

static const char swap_device_path[] = "/pgtable_kunit_swap";

/**
 * struct swap_device - the device
 * @disk: the block device
 * @header: its first page, which marks it as a swap device
 * @mm: the address space of the test, which contains @path
 * @path: the name of its file, in user memory
 * @on: the kernel uses it for swap
 */
struct swap_device {
	struct gendisk *disk;
	union swap_header *header;
	struct mm_struct *mm;
	unsigned long path;
	bool on;
};

static void swap_device_submit(struct bio *bio)
{
	struct swap_device *device = bio->bi_bdev->bd_disk->private_data;
	u64 at = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	struct bvec_iter iter;
	struct bio_vec bvec;

	if (bio_op(bio) != REQ_OP_READ) {
		bio_io_error(bio);
		return;
	}
	bio_for_each_segment(bvec, bio, iter) {
		void *to = bvec_kmap_local(&bvec);

		if (at + bvec.bv_len <= PAGE_SIZE)
			memcpy(to, (void *)device->header + at, bvec.bv_len);
		else
			memset(to, 0, bvec.bv_len);
		kunmap_local(to);
		at += bvec.bv_len;
	}
	bio_endio(bio);
}

static const struct block_device_operations swap_device_fops = {
	.submit_bio = swap_device_submit,
};

/* The cleanup of the test runs in a thread that has no address space. */
static void swap_device_free(void *data)
{
	struct swap_device *device = data;
	bool other = current->mm != device->mm;

	if (other)
		kthread_use_mm(device->mm);
	pgtable_kunit_with_files() {
		if (device->on)
			WARN_ON(pgtable_kunit_syscall(swapoff, device->path));
		pgtable_kunit_syscall(unlinkat, AT_FDCWD, device->path, 0);
	}
	if (other)
		kthread_unuse_mm(device->mm);
	mmput(device->mm);
	if (device->disk) {
		del_gendisk(device->disk);
		put_disk(device->disk);
	}
	free_page((unsigned long)device->header);
}

static int swap_device_disk(struct swap_device *device)
{
	struct queue_limits limits = {
		.logical_block_size = SECTOR_SIZE,
		.physical_block_size = PAGE_SIZE,
		.features = BLK_FEAT_SYNCHRONOUS,
	};
	struct gendisk *disk = blk_alloc_disk(&limits, NUMA_NO_NODE);
	int err;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	disk->fops = &swap_device_fops;
	disk->private_data = device;
	strscpy(disk->disk_name, "pgtable_kunit", DISK_NAME_LEN);
	set_capacity(disk, SWAP_DEVICE_PAGES << (PAGE_SHIFT - SECTOR_SHIFT));
	err = add_disk(disk);
	if (err)
		put_disk(disk);
	else
		device->disk = disk;
	return err;
}

/**
 * pgtable_kunit_swap_on() - use a device of the test for swap
 * @test: the test; at its end the device is removed
 *
 * The thread of the test must have an address space. When the test ends, memory
 * of this address space may still be in swap.
 */
void pgtable_kunit_swap_on(struct kunit *test)
{
	struct swap_device *device = kunit_kzalloc(test, sizeof(*device),
						   GFP_KERNEL);
	long err = -EIO;

	KUNIT_ASSERT_NOT_NULL(test, device);
	KUNIT_ASSERT_NOT_NULL(test, current->mm);
	device->path = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(device->path));
	KUNIT_ASSERT_EQ(test, 0, copy_to_user((void __user *)device->path,
					      swap_device_path,
					      sizeof(swap_device_path)));
	device->header = (void *)get_zeroed_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, device->header);
	device->header->info.version = 1;
	device->header->info.last_page = SWAP_DEVICE_PAGES - 1;
	memcpy(device->header->magic.magic, "SWAPSPACE2", 10);
	device->mm = current->mm;
	mmget(device->mm);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
							   swap_device_free,
							   device));
	KUNIT_ASSERT_EQ(test, 0, swap_device_disk(device));
	pgtable_kunit_with_files() {
		err = pgtable_kunit_syscall(mknodat, AT_FDCWD, device->path,
					    S_IFBLK | 0600,
					    new_encode_dev(disk_devt(device->disk)));
		if (!err)
			err = pgtable_kunit_syscall(swapon, device->path, 0);
	}
	KUNIT_ASSERT_EQ(test, 0, err);
	device->on = true;
}
