/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rmap IDs: do all mappings of an object belong to one owner?
 *
 * An object keeps the number of its mappings and a few sums of the IDs of their
 * owners. These numbers show whether all mappings belong to a given owner. For
 * any number of owners, this needs no list of owners. rmap_id_params.h has the
 * proof.
 */
#ifndef _LIB_RMAP_ID_H
#define _LIB_RMAP_ID_H

#include <linux/atomic.h>
#include <linux/gfp_types.h>

#include "atomic_seqcount.h"
#include "rmap_id_params.h"

/* No owner has ID 0: the sums would not show its mappings. */
#define RMAP_ID_MIN		1U
#define RMAP_ID_MAX		((1U << RMAP_ID_BITS) - 1)

int rmap_id_alloc(gfp_t gfp);
void rmap_id_free(unsigned int id);

/**
 * struct rmap_id_object - something that is mapped
 * @seqcount: sequence count for changes of the other members
 * @order: one owner has at most 2^@order mappings
 * @mapcount: number of mappings
 * @sum: sums of IDs, as many as rmap_id_params() requires
 */
struct rmap_id_object {
	struct atomic_seqcount seqcount;
	unsigned int order;
	atomic_t mapcount;
	atomic64_t sum[] /* rmap_id_params(order).values */;
};

u64 rmap_id_sub(const struct rmap_id_params *params, unsigned int id,
		unsigned int value);
void rmap_id_init(struct rmap_id_object *object, unsigned int order);
void rmap_id_add(struct rmap_id_object *object, unsigned int id, int nr);
bool rmap_id_exclusive(struct rmap_id_object *object, unsigned int id);

#endif /* _LIB_RMAP_ID_H */
