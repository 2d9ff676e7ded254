/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data about owners in a large folio and in an mm. The fields are private
 * to mm/. Only the suites on mapcounts and MM-IDs read or write them.
 */
#ifndef _PGTABLE_KUNIT_OWNERS_H
#define _PGTABLE_KUNIT_OWNERS_H

#include <linux/mm.h>
#include <linux/rmap.h>

/**
 * struct pgtable_kunit_owners - a large folio's data about the mms that map it
 * @mapcount: number of mappings
 * @id: the IDs of two owners, 0 for none
 * @count: how many mappings each owner has
 * @shared: there may be more than one owner
 * @locked: another CPU is changing this data
 */
struct pgtable_kunit_owners {
	int mapcount;
	unsigned int id[2];
	int count[2];
	bool shared;
	bool locked;
};

#ifdef CONFIG_MM_ID
#define PGTABLE_KUNIT_MM_ID_MAX			MM_ID_MAX

static inline struct pgtable_kunit_owners
pgtable_kunit_owners(const struct folio *folio)
{
	return (struct pgtable_kunit_owners){
		.mapcount = folio_large_mapcount(folio),
		.id = { folio_mm_id(folio, 0), folio_mm_id(folio, 1) },
		.count = {
			folio->_mm_id_mapcount[0] + 1,
			folio->_mm_id_mapcount[1] + 1,
		},
		.shared = folio->_mm_ids & FOLIO_MM_IDS_SHARED_BIT,
		.locked = folio->_mm_ids & FOLIO_MM_IDS_LOCK_BIT,
	};
}

static inline void
pgtable_kunit_restore_owners(struct folio *folio,
			     const struct pgtable_kunit_owners *owners)
{
	int i;

	atomic_set(&folio->_large_mapcount, owners->mapcount - 1);
	for (i = 0; i < 2; i++) {
		folio->_mm_id_mapcount[i] = owners->count[i] - 1;
		folio->_mm_id[i] = owners->id[i];
	}
	if (owners->shared)
		folio->_mm_ids |= FOLIO_MM_IDS_SHARED_BIT;
	if (owners->locked)
		folio->_mm_ids |= FOLIO_MM_IDS_LOCK_BIT;
}

static inline unsigned int pgtable_kunit_mm_id(const struct mm_struct *mm)
{
	return mm->mm_id;
}

static inline void pgtable_kunit_set_mm_id(struct mm_struct *mm, unsigned int id)
{
	mm->mm_id = id;
}

#define pgtable_kunit_set_mapcount		folio_set_large_mapcount
#define pgtable_kunit_add_mapcount		folio_add_return_large_mapcount
#define pgtable_kunit_sub_mapcount		folio_sub_return_large_mapcount
#define pgtable_kunit_lock_mapcount		folio_lock_large_mapcount
#define pgtable_kunit_unlock_mapcount		folio_unlock_large_mapcount
#else
#define PGTABLE_KUNIT_MM_ID_MAX			0

static inline struct pgtable_kunit_owners
pgtable_kunit_owners(const struct folio *folio)
{
	return (struct pgtable_kunit_owners){};
}

static inline void
pgtable_kunit_restore_owners(struct folio *folio,
			     const struct pgtable_kunit_owners *owners)
{
}

static inline unsigned int pgtable_kunit_mm_id(const struct mm_struct *mm)
{
	return 0;
}

static inline void pgtable_kunit_set_mm_id(struct mm_struct *mm, unsigned int id)
{
}

static inline void pgtable_kunit_set_mapcount(struct folio *folio, int nr,
					      struct vm_area_struct *vma)
{
}

static inline int pgtable_kunit_add_mapcount(struct folio *folio, int nr,
					     struct vm_area_struct *vma)
{
	return 0;
}

static inline int pgtable_kunit_sub_mapcount(struct folio *folio, int nr,
					     struct vm_area_struct *vma)
{
	return 0;
}

static inline void pgtable_kunit_lock_mapcount(struct folio *folio)
{
}

static inline void pgtable_kunit_unlock_mapcount(struct folio *folio)
{
}
#endif /* CONFIG_MM_ID */

#endif /* _PGTABLE_KUNIT_OWNERS_H */
