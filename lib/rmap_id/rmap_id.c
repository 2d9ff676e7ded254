// SPDX-License-Identifier: GPL-2.0
/*
 * rmap IDs: do all mappings of an object belong to one owner?
 */

#include <linux/idr.h>

#include "rmap_id.h"

static DEFINE_IDA(rmap_ids);

/**
 * rmap_id_alloc() - get an ID for an owner
 * @gfp: flags for the allocation of memory
 *
 * Return: the ID, or an error number.
 */
int rmap_id_alloc(gfp_t gfp)
{
	return ida_alloc_range(&rmap_ids, RMAP_ID_MIN, RMAP_ID_MAX, gfp);
}

/**
 * rmap_id_free() - free an ID
 * @id: the ID; no mapping may use it any more
 */
void rmap_id_free(unsigned int id)
{
	ida_free(&rmap_ids, id);
}

/**
 * rmap_id_sub() - the number that one mapping of an ID adds to one of the sums
 * @params: how the ID is divided into parts
 * @id: the ID
 * @value: the number of the sum
 *
 * Return: the bits of that part, as digits of the sum's base.
 */
u64 rmap_id_sub(const struct rmap_id_params *params, unsigned int id,
		unsigned int value)
{
	unsigned int part = id >> value * params->bits, bit;
	u64 sub = 0;

	for (bit = params->bits; bit-- > 0;)
		sub = sub * params->base + (part >> bit & 1);
	return sub;
}

/**
 * rmap_id_init() - initialize an object without mappings
 * @object: the object, with as many sums as rmap_id_params() requires
 * @order: one owner has at most 2^@order mappings of the object
 */
void rmap_id_init(struct rmap_id_object *object, unsigned int order)
{
	struct rmap_id_params params = rmap_id_params(order);
	unsigned int i;

	atomic_seqcount_init(&object->seqcount);
	object->order = order;
	atomic_set(&object->mapcount, 0);
	for (i = 0; i < params.values; i++)
		atomic64_set(&object->sum[i], 0);
}

/**
 * rmap_id_add() - add or remove mappings of an owner
 * @object: what is mapped
 * @id: of the owner
 * @nr: how many mappings to add; negative to remove them
 */
void rmap_id_add(struct rmap_id_object *object, unsigned int id, int nr)
{
	struct rmap_id_params params = rmap_id_params(object->order);
	bool exclusive;
	unsigned int i;

	exclusive = atomic_seqcount_write_begin(&object->seqcount, true);
	if (exclusive)
		atomic_set(&object->mapcount,
			   atomic_read(&object->mapcount) + nr);
	else
		atomic_add(nr, &object->mapcount);

	for (i = 0; i < params.values; i++) {
		s64 diff = rmap_id_sub(&params, id, i) * nr;

		if (exclusive)
			atomic64_set(&object->sum[i],
				     atomic64_read(&object->sum[i]) + diff);
		else
			atomic64_add(diff, &object->sum[i]);
	}
	atomic_seqcount_write_end(&object->seqcount, exclusive);
}

/**
 * rmap_id_exclusive() - check that no other owner has a mapping
 * @object: what is mapped
 * @id: of the owner
 *
 * Return: false if the object has more mappings than one owner can have, or a
 * mapping of another owner. Otherwise true: all mappings belong to @id, or
 * there are no mappings.
 */
bool rmap_id_exclusive(struct rmap_id_object *object, unsigned int id)
{
	struct rmap_id_params params = rmap_id_params(object->order);
	bool exclusive;
	unsigned int i;
	u64 mapcount;
	s64 start;

	do {
		start = atomic_seqcount_read_begin(&object->seqcount);
		mapcount = atomic_read(&object->mapcount);
		exclusive = mapcount <= 1U << object->order;
		for (i = 0; i < params.values && exclusive; i++)
			exclusive = (u64)atomic64_read(&object->sum[i]) ==
				    mapcount * rmap_id_sub(&params, id, i);
	} while (atomic_seqcount_read_retry(&object->seqcount, start));
	return exclusive;
}
