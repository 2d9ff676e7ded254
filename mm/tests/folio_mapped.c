// SPDX-License-Identifier: GPL-2.0
/*
 * Mms that map a folio, and a model of the data that the folio has about these
 * mms.
 *
 * The model has no slots, locks or flags in unions: it only notes whether it
 * tracks an mm. In addition to its predictions, it checks rules that hold for
 * any state of the slots. The kernel never misses an owner. No slot counts more
 * mappings than its mm has. The answer is exact as long as each mm has had a
 * slot.
 */

#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "folio_mapped.h"

/* Addresses of the VMAs: room for the largest folio. */
#define VMA_START	0x40000000UL
#define VMA_SIZE	0x40000000UL

static void *mapped_alloc(struct kunit *test, size_t size)
{
	void *memory = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, memory);
	return memory;
}

/* All fields of a VMA that rmap functions read or check. */
static struct vm_area_struct *mapped_vma(struct kunit *test, struct mm_struct *mm,
					 struct anon_vma *anon_vma)
{
	struct vm_area_struct *vma = mapped_alloc(test, sizeof(*vma));

	vma->vm_mm = mm;
	vma->vm_start = VMA_START;
	vma->vm_end = VMA_START + VMA_SIZE;
	vma->anon_vma = anon_vma;
	vm_flags_init(vma, VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE);
	return vma;
}

static struct mapped_mms *mapped_mms(struct kunit *test,
				     struct mm_struct *(*get)(struct kunit *test))
{
	struct mapped_mms *mms = mapped_alloc(test, sizeof(*mms));
	struct anon_vma *anon_vma = mapped_alloc(test, sizeof(*anon_vma));
	int i;

	anon_vma->root = anon_vma;
	atomic_set(&anon_vma->refcount, 1);
	for (i = 0; i < MAPPED_MMS; i++)
		mms->vma[i] = mapped_vma(test, get(test), anon_vma);
	return mms;
}

static struct mm_struct *mapped_mm_fake(struct kunit *test)
{
	return mapped_alloc(test, sizeof(struct mm_struct));
}

static void mapped_mm_put(void *mm)
{
	mmput(mm);
}

static struct mm_struct *mapped_mm_real(struct kunit *test)
{
	struct mm_struct *mm = mm_alloc();

	KUNIT_ASSERT_NOT_NULL(test, mm);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, mapped_mm_put, mm));
	return mm;
}

/**
 * mapped_mms_fake() - mms that have an ID and nothing else
 * @test: the test that owns them
 */
struct mapped_mms *mapped_mms_fake(struct kunit *test)
{
	static const unsigned int ids[MAPPED_MMS] = { 1, 2, 3, 4, 5, 6 };
	struct mapped_mms *mms = mapped_mms(test, mapped_mm_fake);

	mapped_mms_ids(mms, ids);
	return mms;
}

/**
 * mapped_fake_init() - the init of a suite: puts such mms into test->priv
 * @test: the test
 *
 * Return: 0, or an error number.
 */
int mapped_fake_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (err)
		return err;
	mapped_needs_ids(test);
	test->priv = mapped_mms_fake(test);
	return 0;
}

/**
 * mapped_mms_real() - real mms, with IDs from the kernel
 * @test: the test that owns them
 */
struct mapped_mms *mapped_mms_real(struct kunit *test)
{
	return mapped_mms(test, mapped_mm_real);
}

/**
 * mapped_mms_ids() - give IDs to fake mms
 * @mms: the mms
 * @ids: as many IDs
 */
void mapped_mms_ids(struct mapped_mms *mms, const unsigned int *ids)
{
	int i;

	for (i = 0; i < MAPPED_MMS; i++)
		pgtable_kunit_set_mm_id(mms->vma[i]->vm_mm, ids[i]);
}

/**
 * mapped_new_anon() - the first mm maps a new anonymous folio, a huge page by its PMD
 * @mms: the mms
 * @folio: the folio, which no mm maps
 * @flags: as of folio_add_new_anon_rmap()
 *
 * If other tasks can find the folio before it is mapped, the folio is locked
 * meanwhile.
 */
void mapped_new_anon(struct mapped_mms *mms, struct folio *folio, rmap_t flags)
{
	folio_lock(folio);
	mapped_lock();
	folio_add_new_anon_rmap(folio, mms->vma[0], mms->vma[0]->vm_start, flags);
	mapped_unlock();
	folio_unlock(folio);
}

/**
 * mapped_total() - how many mappings there are
 * @model: the model
 */
int mapped_total(const struct mapped_model *model)
{
	int i, total = 0;

	for (i = 0; i < MAPPED_MMS; i++)
		total += model->mapped[i];
	return total;
}

/**
 * mapped_owners() - how many mms have mappings
 * @model: the model
 */
int mapped_owners(const struct mapped_model *model)
{
	int i, owners = 0;

	for (i = 0; i < MAPPED_MMS; i++)
		owners += !!model->mapped[i];
	return owners;
}

/* Is the state of the slots right? */
static bool mapped_exact(const struct mapped_model *model)
{
	return !memcmp(model->mapped, model->tracked, sizeof(model->mapped)) &&
	       model->sticky == (mapped_owners(model) > 1);
}

/**
 * mapped_model_change() - an mm maps or unmaps pages
 * @model: the model
 * @mm: which mm
 * @nr: how many more mappings it has; negative if fewer
 */
void mapped_model_change(struct mapped_model *model, int mm, int nr)
{
	int i, total, slots = 0;

	model->mapped[mm] += nr;
	total = mapped_total(model);
	for (i = 0; i < MAPPED_MMS; i++)
		slots += !!model->tracked[i];

	if (nr > 0 && (model->tracked[mm] || slots < 2)) {
		if (!model->tracked[mm] && total != nr)
			model->sticky = true;
		model->tracked[mm] += nr;
	} else if (nr > 0) {
		model->crowded = true;
	} else {
		model->tracked[mm] = max(0, model->tracked[mm] + nr);
		for (i = 0; i < MAPPED_MMS && !model->tracked[mm]; i++) {
			if (!total || model->tracked[i] == total)
				model->sticky = false;
		}
	}
	if (mapped_exact(model))
		model->crowded = false;
}

/**
 * mapped_wrong() - compare a folio's data about its owners with the model
 * @model: the model
 * @mms: the mms
 * @folio: the folio
 *
 * Return: a description of the mistake, or NULL.
 */
const char *mapped_wrong(const struct mapped_model *model,
			 const struct mapped_mms *mms, struct folio *folio)
{
	struct pgtable_kunit_owners owners = pgtable_kunit_owners(folio);
	int i, slot, total = mapped_total(model);
	bool shared = pgtable_kunit_mapped_shared(folio);

	if (folio_mapcount(folio) != total || owners.mapcount != total)
		return "wrong mapcount";
	if (owners.locked)
		return "still locked";
	if (!shared && mapped_owners(model) > 1)
		return "several mms map the folio, but it is not shared";
	if (!model->crowded && total > 1 && shared != (mapped_owners(model) > 1))
		return "one mm maps the folio, but it is shared";
	if (total <= 1 && shared)
		return "the folio has at most one mapping, but it is shared";
	if (owners.id[0] && owners.id[0] == owners.id[1])
		return "the same mm in both slots";
	for (slot = 0; slot < 2; slot++) {
		if (!owners.id[slot] != !owners.count[slot] || owners.count[slot] < 0)
			return "a slot has an owner without mappings, or the reverse";
	}
	if (owners.shared != model->sticky)
		return "wrong flag for several owners";
	for (i = 0; i < MAPPED_MMS; i++) {
		unsigned int id = pgtable_kunit_mm_id(mms->vma[i]->vm_mm);
		int count = 0;

		for (slot = 0; slot < 2; slot++)
			count += owners.id[slot] == id ? owners.count[slot] : 0;
		if (count > model->mapped[i])
			return "a slot counts more mappings than there are";
		if (count != model->tracked[i])
			return "wrong number of mappings in a slot";
	}
	return NULL;
}

/**
 * mapped_check() - expect a folio to agree with the model about its owners
 * @test: the test, with the mms as its private data
 * @model: the model
 * @folio: the folio
 * @fmt: what has been done to the folio, as for printf()
 *
 * Return: whether the folio agrees with the model.
 */
bool mapped_check(struct kunit *test, const struct mapped_model *model,
		  struct folio *folio, const char *fmt, ...)
{
	struct pgtable_kunit_owners owners = pgtable_kunit_owners(folio);
	const char *wrong = mapped_wrong(model, test->priv, folio);
	char who[MAPPED_MMS * 16];
	struct va_format vaf;
	int i, length = 0;
	va_list args;

	if (!wrong)
		return true;
	for (i = 0; i < MAPPED_MMS; i++)
		length += scnprintf(who + length, sizeof(who) - length, " %d/%d",
				    model->tracked[i], model->mapped[i]);
	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	KUNIT_FAIL(test,
		   "order %u, %pV: %s: mapcount %d, expected %d; slots %x:%d %x:%d; flag %d, expected %d; shared %d; in slots/mapped:%s",
		   folio_order(folio), &vaf, wrong, owners.mapcount,
		   mapped_total(model), owners.id[0], owners.count[0],
		   owners.id[1], owners.count[1], owners.shared, model->sticky,
		   pgtable_kunit_mapped_shared(folio), who);
	va_end(args);
	return false;
}
