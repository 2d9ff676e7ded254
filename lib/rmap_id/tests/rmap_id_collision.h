/* SPDX-License-Identifier: GPL-2.0 */
/* A search for several owners with the same sums of IDs as one owner. */
#ifndef _LIB_RMAP_ID_COLLISION_H
#define _LIB_RMAP_ID_COLLISION_H

#include <linux/types.h>

/* The largest number of digits that the search can handle. */
#define COLLISION_BITS	42

struct kunit;

/**
 * struct collision - several owners that look like one owner
 * @bits: digits of an ID
 * @norm: the largest absolute value in @vector; 0 if there is no collision
 * @vector: for each digit, its difference from the digit of one owner
 */
struct collision {
	unsigned int bits;
	u64 norm;
	s64 vector[COLLISION_BITS];
};

/**
 * struct collision_owner - one of the owners of a collision
 * @part: its ID, or the part of its ID that differs from the other owners
 * @mappings: how many mappings it has
 */
struct collision_owner {
	u64 part;
	u64 mappings;
};

void collision_search(struct kunit *test, u64 base, unsigned int bits,
		      struct collision *found);
unsigned int collision_owners(const struct collision *found, u64 mapcount,
			      struct collision_owner *owners);

#endif /* _LIB_RMAP_ID_COLLISION_H */
