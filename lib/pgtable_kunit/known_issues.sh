#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Which known issues of the page-table tests a kernel tree has: prints a number
# with bit N for issue N. An issue is there if its faulty code is, in a version
# older than the fix. Says on standard error if it cannot tell.
#
# usage: known_issues.sh TREE [HEADER]
#
# With HEADER the number goes there, as FOLIO_KNOWN_ISSUES, if it has changed.
#
# Written by known_issues.py from known_issues.toml: change these.

LC_ALL=C
export LC_ALL
tree=$1
mask=0
version=$(sed -n 's/^VERSION = //p' "$tree/Makefile")
level=$(sed -n 's/^PATCHLEVEL = //p' "$tree/Makefile")

# older MAJOR.MINOR: whether the tree is
older()
{
	[ "$version" -lt "${1%.*}" ] ||
	{ [ "$version" -eq "${1%.*}" ] && [ "$level" -lt "${1#*.}" ]; }
}

# issue NUMBER FIXED_IN FILE NAME FAULTY...
issue()
{
	number=$1 fixed_in=$2 file=$3 name=$4
	shift 4
	if [ -n "$fixed_in" ] && ! older "$fixed_in"; then
		return
	fi
	text=$(cat "$tree/$file" 2>/dev/null | tr -s '[:space:]' ' ')
	case $text in
	*"$name"*) ;;
	*)
		echo "known issue $number: unknown, no $name in $file" >&2
		return
		;;
	esac
	for faulty; do
		case $text in
		*"$faulty"*)
			mask=$((mask | 1 << number))
			;;
		esac
	done
}

issue 1 '' arch/arm64/include/asm/pgtable.h 'set_ptes(' \
	'{ pte = pte_mknoncont(pte); if (likely(nr == 1))'
issue 2 '' arch/um/include/asm/pgtable.h 'set_ptes(' \
	'pte = __pte(pte_val(pte) + (nr << PFN_PTE_SHIFT));'
issue 3 7.3 arch/arm64/include/asm/pgtable.h 'pte_present(' \
	'#define pte_present(pte) (pte_valid(pte) || pte_present_invalid(pte))'
issue 4 '' mm/rmap.c 'folio_referenced_one(' \
	'pra->referenced = -1; page_vma_mapped_walk_done(&pvmw); return false; } if (pvmw.pte && folio_test_large(folio)) {' \
	'pra->referenced = -1; page_vma_mapped_walk_done(&pvmw); return false; } if (lru_gen_enabled() && pvmw.pte) {'
issue 5 '' arch/arm64/include/asm/pgtable-hwdef.h PTE_ADDR_LOW \
	'#define PTE_ADDR_LOW (((_AT(pteval_t, 1) << (50 - PAGE_SHIFT)) - 1) << PAGE_SHIFT) #ifdef CONFIG_ARM64_PA_BITS_52'
issue 6 '' include/linux/rmap.h 'folio_dup_file_rmap_pmd(' \
	'__folio_dup_file_rmap(folio, page, HPAGE_PMD_NR, dst_vma, PGTABLE_LEVEL_PTE);' \
	'__folio_dup_file_rmap(folio, page, HPAGE_PMD_NR, RMAP_LEVEL_PTE);'
issue 7 6.16 mm/rmap.c 'try_to_unmap_one(' \
	'* never get swap backed on failure to drop. */ if (!(vma->vm_flags & VM_DROPPABLE)) folio_set_swapbacked(folio); goto walk_abort;'
issue 8 '' mm/rmap.c 'try_to_migrate_one(' \
	'hugetlb_remove_rmap(folio); else folio_remove_rmap_pte(folio, subpage, vma); if (vma->vm_flags & VM_LOCKED) mlock_drain_local(); folio_put(folio); }'
issue 9 '' mm/filemap.c 'filemap_map_pages(' \
	'if ((file_end >= folio_next_index(folio) || shmem_mapping(mapping)) && filemap_map_pmd(' \
	'can_map_large = shmem_mapping(mapping) || file_end >= folio_next_index(folio);'
issue 10 '' mm/hugetlb.c 'copy_hugetlb_page_range(' \
	'if (ptdesc_pmd_is_shared(virt_to_ptdesc(dst_pte))) {'
issue 11 '' fs/proc/task_mmu.c PM_MMAP_EXCLUSIVE \
	'__folio_page_mapped_exclusively(folio, page)) cur_flags |= PM_MMAP_EXCLUSIVE;'
issue 12 '' arch/arm64/mm/hugetlbpage.c 'hugetlb_mask_last_page(' \
	'return PGDIR_SIZE - PUD_SIZE;'
issue 13 '' fs/proc/task_mmu.c 'pagemap_scan_hugetlb_entry(' \
	'pagemap_scan_backout_range(p, start, end); p->arg.walk_end = start; ret = 0; goto out_unlock; }'
issue 14 '' mm/memory.c 'numa_rebuild_large_mapping(' \
	'unsigned long addr_start = addr - (nr << PAGE_SHIFT); unsigned long pt_start = ALIGN_DOWN(addr, PMD_SIZE); pte_t *start_ptep; /* Stay within the VMA and within the page table. */ start = max3(addr_start, pt_start, vma->vm_start);'
issue 15 '' arch/riscv/mm/hugetlbpage.c 'huge_ptep_get_and_clear(' \
	'if (!pte_napot(orig_pte)) return ptep_get_and_clear(mm, addr, ptep); pte_num = num_contig_ptes_from_size(sz, &pgsize);' \
	'if (!pte_napot(pte)) { pte_clear(mm, addr, ptep); return; } pte_num = num_contig_ptes_from_size(sz, &pgsize);'
issue 16 '' arch/riscv/include/asm/pgtable.h 'ptep_set_wrprotect(' \
	'atomic_long_set((atomic_long_t *)ptep, ((pte_val(read_pte) & ~(unsigned long)_PAGE_WRITE) | _PAGE_READ));'
issue 17 '' arch/riscv/mm/pgtable.c 'ptep_set_access_flags(' \
	'if (!pte_same(ptep_get(ptep), entry)) __set_pte_at(vma->vm_mm, ptep, entry); /*'
issue 18 '' fs/proc/task_mmu.c 'pagemap_scan_pmd_entry(' \
	'if ((p->arg.flags & PM_SCAN_WP_MATCHING) && !p->vec_out) {'
issue 19 '' mm/migrate_device.c 'migrate_vma_collect_pmd(' \
	'int ret = migrate_vma_collect_huge_pmd(pmdp, start, end, walk, fault_folio);'
issue 20 '' mm/hmm.c 'hmm_vma_walk_pmd(' \
	'unsigned long pfn = softleaf_to_pfn(entry); unsigned long i; if (softleaf_is_device_private_write(entry))'
issue 21 '' arch/arm64/mm/pageattr.c 'change_memory_common(' \
	'for (i = 0; i < area->nr_pages; i++) { __change_memory_common((u64)page_address(area->pages[i]),'
issue 22 7.4 arch/arm64/mm/contpte.c 'contpte_set_ptes(' \
	'if (!mm_is_user(mm)) return __set_ptes(mm, addr, ptep, pte, nr);'

if [ -z "$2" ]; then
	printf '0x%x\n' "$mask"
	exit
fi
line=$(printf '#define FOLIO_KNOWN_ISSUES 0x%x' "$mask")
if [ "$line" != "$(cat "$2" 2>/dev/null)" ]; then
	mkdir -p "$(dirname "$2")" && echo "$line" >"$2"
fi
