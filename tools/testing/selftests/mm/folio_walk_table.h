/* SPDX-License-Identifier: GPL-2.0 */
/*
 * folio_walk: one row for each call. The last column is the call in C. In this
 * column $a is the address, $l the length, $b and $m the address and length of
 * the destination, $p the permissions, $f a file, $o the offset in this file,
 * $v a value, $n a number of pages, $x a number, $q another process.
 */
#define ADVICE(text, weight, needs, flags, advice, model, ...)				\
	{ text, weight, needs, flags, advice, NULL, NULL, run_madvise, model,		\
	  { __VA_ARGS__ }, "madvise($a, $l, $k);" }
#define PEER(text, weight, needs, advice, ...)						\
	{ text, weight, needs, MAPPED, advice, draw_other, valid_peer, run_process_madvise, NULL, \
	  { __VA_ARGS__ }, "peer_madvise($q, $a, $l, $k);" }

/*
 * In the other process, each page of the range must be mapped, and the kernel
 * must be able to page it out.
 */
static bool valid_peer(const struct walk_step *s)
{
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		const struct walk_page *p = page_of(s->other, s->at + i);

		if (!p->kind || p->flags & (LOCKED | HUGETLB))
			return false;
	}
	return valid_other(s);
}

#define FREELY (MAPPED | NO_HUGETLB)
#define REACHED (FREELY | NO_UFFD | NO_GUARD | READABLE | INSIDE)

const struct walk_call walk_calls[] = {
	{ "map_anon", 12, 0, ANY, 0, draw_map, NULL, run_map_anon, model_map_anon, {},
	  "map($a, $l, $p, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, $x);" },
	{ "map_private", 5, 0, ANY, PRIVATE, draw_map_file, valid_object, run_map_file,
	  model_map_file, {}, "map($a, $l, $p, MAP_PRIVATE, $f, $o, $x);" },
	{ "map_shared", 5, 0, ANY, SHARED, draw_map_file, valid_object, run_map_file,
	  model_map_file, {}, "map($a, $l, $p, MAP_SHARED, $f, $o, $x);" },
	{ "map_hugetlb", 3, HAS_HUGETLB, ANY, 0, draw_map_hugetlb, hugetlb_fits, run_map_hugetlb,
	  model_map_hugetlb, { ENOMEM },
	  "map($a, $l, $p, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | $h, -1, 0, 0);" },
	{ "munmap", 6, 0, ANY, 0, NULL, NULL, run_munmap, model_munmap, {}, "munmap($a, $l);" },
	{ "mprotect", 12, 0, MAPPED, 0, draw_prot, NULL, run_mprotect, model_mprotect, {},
	  "mprotect($a, $l, $p);" },
	{ "mremap_move", 8, 0, MAPPED | ONE_VMA, MREMAP_MAYMOVE | MREMAP_FIXED, draw_mremap,
	  valid_mremap, run_mremap, model_mremap, {},
	  "mremap($a, $l, $m, MREMAP_MAYMOVE | MREMAP_FIXED, $b);" },
	{ "mremap_dontunmap", 3, 0, FREELY | ONE_VMA,
	  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, draw_mremap, valid_mremap, run_mremap,
	  model_mremap, {}, "mremap($a, $l, $m, MREMAP_MAYMOVE | MREMAP_FIXED | 4, $b);" },
	{ "mremap_shrink", 2, 0, FREELY | ONE_VMA, 0, draw_mremap, valid_mremap, run_mremap,
	  model_mremap, {}, "mremap($a, $l, $m, 0);" },
	{ "mremap_grow", 3, 0, FREELY | ONE_VMA, MREMAP_MAYMOVE, draw_mremap, valid_mremap,
	  run_mremap, model_mremap, {}, "mremap($a, $l, $m, MREMAP_MAYMOVE);" },
	{ "write", 40, 0, ANY | TOUCHES, 0, NULL, NULL, run_write, model_write, {},
	  "put($a, $n, $v, 1);" },
	{ "write_same", 6, 0, ANY | TOUCHES, 0, NULL, NULL, run_write_same, model_write_same, {},
	  "put($a, $n, $v, 0);" },
	{ "read", 16, 0, ANY | TOUCHES, 0, draw_read, NULL, run_read, NULL, {}, "get($a, $n);" },
	ADVICE("cold", 3, 0, FREELY | NO_LOCKED, MADV_COLD, NULL),
	ADVICE("pageout", 8, 0, FREELY | NO_LOCKED, MADV_PAGEOUT, NULL),
	ADVICE("dontneed", 6, 0, MAPPED | NO_LOCKED, MADV_DONTNEED, model_zap),
	ADVICE("dontneed_locked", 2, 0, MAPPED, MADV_DONTNEED_LOCKED, model_zap),
	{ "free", 4, 0, ONLY_ANON | MAPPED | NO_LOCKED | NO_UFFD, MADV_FREE, NULL, valid_free,
	  run_madvise, model_free, {}, "madvise($a, $l, $k);" },
	ADVICE("collapse", 6, HAS_THP, FREELY, MADV_COLLAPSE, NULL,
	       EINVAL, EAGAIN, EBUSY, ENOMEM),
	ADVICE("hugepage", 2, HAS_THP, FREELY, MADV_HUGEPAGE, NULL),
	ADVICE("nohugepage", 1, HAS_THP, FREELY, MADV_NOHUGEPAGE, NULL),
	{ "guard_install", 4, HAS_GUARD, FREELY | NO_LOCKED, MADV_GUARD_INSTALL, NULL, valid_guard,
	  run_madvise, model_guard, {}, "madvise($a, $l, 102);" },
	{ "guard_remove", 3, HAS_GUARD, FREELY | NO_LOCKED, MADV_GUARD_REMOVE, NULL, valid_guard,
	  run_madvise, model_guard, {}, "madvise($a, $l, 103);" },
	ADVICE("dontfork", 1, 0, MAPPED, MADV_DONTFORK, model_flag),
	/*
	 * Linux 7.3 refuses MADV_DOFORK for hugetlb pages, since they have
	 * VM_DONTEXPAND.
	 */
	ADVICE("dofork", 1, 0, FREELY, MADV_DOFORK, model_flag),
	{ "wipeonfork", 1, 0, MAPPED | ONLY_ANON, MADV_WIPEONFORK, NULL, valid_wipe, run_madvise,
	  model_flag, {}, "madvise($a, $l, $k);" },
	ADVICE("keeponfork", 1, 0, MAPPED | ONLY_ANON, MADV_KEEPONFORK, model_flag),
	{ "mergeable", 4, HAS_KSM, MAPPED | ONLY_ANON, MADV_MERGEABLE, NULL, valid_mergeable,
	  run_madvise, model_flag, {}, "madvise($a, $l, $k);" },
	ADVICE("unmergeable", 2, HAS_KSM, MAPPED | ONLY_ANON, MADV_UNMERGEABLE, model_flag),
	ADVICE("populate_read", 3, 0, REACHED, MADV_POPULATE_READ, NULL),
	ADVICE("populate_write", 3, 0, REACHED | WRITABLE, MADV_POPULATE_WRITE,
	       model_populate_write),
	ADVICE("remove", 2, 0, FREELY | ONLY_SHARED | WRITABLE | NO_LOCKED | INSIDE, MADV_REMOVE,
	       model_remove, EOPNOTSUPP),
	PEER("peer_cold", 1, 0, MADV_COLD, EINVAL),
	PEER("peer_pageout", 3, 0, MADV_PAGEOUT, EINVAL),
	PEER("peer_collapse", 2, HAS_THP, MADV_COLLAPSE, EINVAL, EAGAIN, EBUSY, ENOMEM),
	{ "mlock", 4, 0, REACHED, 0, NULL, NULL, run_mlock, model_mlock, {}, "mlock($a, $l);" },
	{ "mlock_onfault", 2, 0, REACHED, 1, NULL, NULL, run_mlock, model_mlock, {},
	  "mlock2($a, $l, 1);" },
	{ "munlock", 5, 0, FREELY, 0, NULL, NULL, run_munlock, model_munlock, {},
	  "munlock($a, $l);" },
	{ "msync", 2, 0, FREELY | ONLY_FILE, 0, NULL, NULL, run_msync, NULL, {},
	  "msync($a, $l, MS_SYNC);" },
	{ "fork", 10, 0, 0, 0, NULL, valid_fork, run_fork, model_fork, {}, "fork_to($q);" },
	{ "exit", 5, 0, 0, 0, NULL, valid_exit, run_exit, NULL, {},
	 "__sync_fetch_and_add(&all->turn, 1); _exit(0);" },
	{ "split", 6, HAS_SPLIT, FREELY, 0, draw_split, valid_split, run_split, NULL,
	  { EINVAL, EAGAIN, EBUSY, ENOMEM, EFAULT }, "split($a, $l, $x);" },
	{ "move_pages", 5, 0, MAPPED, 0, draw_two, NULL, run_move_pages, NULL,
	  { ENODEV, ENOENT, EACCES }, "move_to($a, $n, $x);" },
	{ "mbind", 3, HAS_NODES, MAPPED, 0, draw_two, NULL, run_mbind, NULL, { EIO },
	  "bind_to($a, $l, $x);" },
	{ "compact", 1, HAS_COMPACT, 0, 0, NULL, NULL, run_compact, NULL, {},
	  "text(\"/proc/sys/vm/compact_memory\", \"1\");" },
	{ "drop_caches", 1, HAS_MACHINE, 0, 0, NULL, NULL, run_drop_caches, NULL, {},
	  "text(\"/proc/sys/vm/drop_caches\", \"1\");" },
	{ "ksm", 3, HAS_KSM, 0, 0, draw_ksm, NULL, run_ksm, NULL, { EINTR },
	  "number(\"/sys/kernel/mm/ksm/run\", $x);" },
	{ "thp", 4, HAS_THP, 0, 0, draw_thp, valid_thp, run_thp, NULL, {}, "thp($w, $x);" },
	/*
	 * When a ring of io_uring ends after its file was closed, its process
	 * gets work to do, and this work interrupts swapoff() and reclaim.
	 */
	{ "swapoff", 1, HAS_SWAP, 0, 0, NULL, NULL, run_swapoff, NULL, { ENOMEM, EINTR },
	  "swapoff(\"/dev/ram0\"); swapon(\"/dev/ram0\", 0);" },
	{ "reclaim", 2, HAS_RECLAIM, 0, 0, draw_reclaim, NULL, run_reclaim, NULL, { EAGAIN, EINTR },
	  "number(GROUP \"/memory.reclaim\", $x * page);" },
	{ "memory_high", 2, HAS_RECLAIM, 0, 0, draw_high, NULL, run_high, NULL, {}, "high($x);" },
	{ "clear_refs", 2, 0, 0, 0, draw_refs, NULL, run_clear_refs, model_refs, {},
	  "number(\"/proc/self/clear_refs\", $x);" },
	{ "uffd_missing", 3, HAS_UFFD, MAPPED | ONLY_ANON | NO_UFFD | NO_LOCKED | NO_GUARD, MISS,
	  NULL, valid_register, run_uffd_register, model_register, {},
	  "madvise($a, $l, MADV_DONTNEED); watch(0, $a, $l, 1);" },
	{ "uffd_wp", 3, HAS_UFFD_WP, MAPPED | ONLY_ANON | NO_UFFD, WPREG, NULL, valid_register,
	  run_uffd_register, model_register, {}, "watch(0, $a, $l, 2);" },
	{ "uffd_both", 2, HAS_UFFD_WP, MAPPED | ONLY_ANON | NO_UFFD | NO_LOCKED | NO_GUARD,
	  MISS | WPREG, NULL, valid_register, run_uffd_register, model_register, {},
	  "madvise($a, $l, MADV_DONTNEED); watch(0, $a, $l, 3);" },
	{ "uffd_async", 4, HAS_UFFD_WP | HAS_SCAN | HAS_ASYNC, MAPPED | ONLY_ANON | NO_UFFD,
	 WPREG | ASYNC,
	  NULL, valid_register, run_uffd_register, model_register, {}, "watch(1, $a, $l, 2);" },
	{ "uffd_wp_file", 3, HAS_UFFD_WP, MAPPED | ONLY_FILE | NO_UFFD, WPREG, NULL,
	  valid_register_file, run_uffd_register, model_register, {}, "watch(0, $a, $l, 2);" },
	{ "uffd_async_file", 3, HAS_UFFD_WP | HAS_SCAN | HAS_ASYNC, MAPPED | ONLY_FILE | NO_UFFD,
	  WPREG | ASYNC, NULL, valid_register_file, run_uffd_register, model_register, {},
	  "watch(1, $a, $l, 2);" },
	{ "uffd_unregister", 3, HAS_UFFD, FREELY, 0, NULL, valid_unregister,
	  run_uffd_unregister, model_unregister, {}, "unwatch($a, $l);" },
	{ "uffd_copy", 8, HAS_UFFD, MAPPED | ONLY_ANON | NO_GUARD | ONE_VMA, 0, draw_copy,
	  valid_copy, run_uffd_copy, model_copy, {}, "uffd_copy($a, $n, $v, $x);" },
	{ "uffd_zero", 2, HAS_UFFD, MAPPED | ONLY_ANON | NO_GUARD | ONE_VMA, 0, draw_zero,
	  valid_zero, run_uffd_zero, model_zero, {}, "uffd_zero($a, $l);" },
	{ "uffd_move", 4, HAS_UFFD_MOVE, MAPPED | ONLY_ANON | NO_UFFD | NO_GUARD | NO_LOCKED |
	  ONE_VMA, 0, draw_move, valid_move, run_uffd_move, model_move, { EBUSY, EAGAIN, EINVAL },
	  "uffd_move($a, $b, $l);" },
	{ "uffd_protect", 8, HAS_UFFD_WP, FREELY | NO_GUARD, 1, NULL, valid_protect,
	  run_uffd_protect, model_protect, {}, "uffd_protect($a, $l, 1);" },
	{ "uffd_unprotect", 3, HAS_UFFD_WP, FREELY | NO_GUARD, 0, NULL, valid_protect,
	  run_uffd_protect, model_protect, {}, "uffd_protect($a, $l, 0);" },
	{ "scan_written", 8, HAS_SCAN | HAS_UFFD_WP | HAS_ASYNC, FREELY | NO_GUARD, 0,
	 NULL,
	  valid_scan, run_scan, model_scan, {}, "scan($a, $l);" },
	{ "pin", 4, HAS_URING, REACHED | WRITABLE | ONLY_ANON | SHORT, 0, draw_pin, valid_pin,
	  run_pin, model_pin, {}, "pin($a, $l);" },
	{ "unpin", 2, HAS_URING, 0, 0, NULL, NULL, run_unpin, model_unpin, {}, "unpin();" },
	{ "vmsplice", 3, 0, REACHED | SHORT, 0, NULL, NULL, run_vmsplice, NULL, { EAGAIN },
	  "splice($a, $l);" },
	{ "drain", 2, 0, 0, 0, NULL, NULL, run_drain, NULL, {}, "drain();" },
	{ "file_write", 6, 0, 0, 0, draw_file, valid_file, run_pwrite, model_pwrite, {},
	  "file_write($f, $o, $n, $v);" },
	{ "file_read", 3, 0, 0, 0, draw_file, valid_file, run_pread, NULL, {},
	  "file_read($f, $o, $n);" },
	{ "truncate", 3, 0, 0, 0, draw_truncate, valid_truncate, run_truncate, model_truncate, {},
	  "ftruncate($f, $o);" },
	{ "punch", 3, 0, 0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, draw_file, valid_file,
	  run_punch, model_punch, {}, "fallocate($f, 3, $o, $l);" },
	{ "zero_range", 2, 0, 0, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, draw_file, valid_file,
	  run_punch, model_punch, { EOPNOTSUPP }, "fallocate($f, 17, $o, $l);" },
	{ "fsync", 2, 0, 0, 0, draw_file, valid_file, run_fsync, NULL, {}, "fsync($f);" },
	{ "fadvise", 3, 0, 0, 0, draw_file, valid_file, run_fadvise, NULL, {},
	  "posix_fadvise($f, $o, $l, POSIX_FADV_DONTNEED);" },
	{ "direct_read", 6, 0, REACHED | WRITABLE, 0, draw_direct, valid_direct, run_direct_read,
	  model_direct_read, {}, "direct_read($f, $o, $a, $l);" },
	{ "direct_write", 6, 0, REACHED, 0, draw_direct, valid_direct, run_direct_write,
	  model_direct_write, {}, "direct_write($f, $o, $a, $l);" },
	{ "force_write", 4, HAS_FORCE, FREELY | NO_UFFD | NO_GUARD | INSIDE | SHORT, 0, NULL,
	  valid_force, run_force_write, model_force, {}, "force_write($a, $n, $v);" },
	{ "vm_write", 3, 0, ANY | NO_HUGETLB | SHORT, 1, draw_other, valid_vm_read, run_vm_write,
	  model_vm_write, {}, "vm_write($q, $a, $n, $v);" },
	{ "vm_read", 3, 0, ANY | SHORT, 0, draw_other, valid_vm_read, run_vm_read, NULL, {},
	  "vm_read($q, $a, $n);" },
};

const unsigned int walk_nr_calls = sizeof(walk_calls) / sizeof(*walk_calls);
