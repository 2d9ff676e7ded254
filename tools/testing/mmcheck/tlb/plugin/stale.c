// SPDX-License-Identifier: GPL-2.0
/*
 * Translations that the tables no longer have, but that a TLB may still hold.
 *
 * A valid entry of a table in use may be cached at any time, so it counts as cached. When it changes, the old
 * translation is added here. Only a TLBI that hits it, and the DSB that completes the TLBI, remove it again.
 */
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

#define BUCKETS 16384

uint64_t stale_count;
struct stale *stale_space[SPACES];

static struct stale *by_va[BUCKETS], *by_frame[BUCKETS];

/* Each bit is a size that a translation, or the memory that it points to, has had. */
static uint64_t va_sizes, frame_sizes;

static unsigned int bucket(int space, uint64_t va)
{
	uint64_t key = (va >> 21) * 0x9e3779b97f4a7c15ULL + (uint64_t)space * 0xc2b2ae3d27d4eb4fULL;

	return key >> 40 & (BUCKETS - 1);
}

static unsigned int frame_bucket(uint64_t pa)
{
	return (pa >> 12) * 0x9e3779b97f4a7c15ULL >> 40 & (BUCKETS - 1);
}

/*
 * The accesses that an entry allows. A CPU that manages the dirty state may
 * make an entry with DBM writable at any time.
 */
int rights(uint64_t desc)
{
	int found = 0;

	if (desc & DESC_USER)
		found |= RIGHT_READ;
	if (!(desc & DESC_RDONLY))
		found |= RIGHT_WRITE | RIGHT_WRITE_LATER;
	if (hardware_dirty && desc & DESC_DBM)
		found |= RIGHT_WRITE_LATER;
	if (!(desc & DESC_UXN))
		found |= RIGHT_EXEC;
	if (!(desc & DESC_PXN))
		found |= RIGHT_KERNEL_EXEC;
	return found;
}

/*
 * The memory type, the shareability, and whether the translation is for one ASID. Normal memory and tagged memory are
 * of the same kind: the difference counts as a permission.
 */
uint64_t kind(uint64_t desc, const struct half *form)
{
	uint64_t type = memory_types >> (desc >> 2 & 7) * 8 & 0xff;

	if (type == 0xf0)
		type = 0xff;
	return type | (desc & ((form->lpa2 ? 0 : 0x300ULL) | DESC_NG));
}

void stale_add(const struct stale *like)
{
	struct stale *one, **head;

	/* The same translation may be stale already. */
	for (one = by_va[bucket(like->space, like->va)]; one; one = one->next)
		if (one->va == like->va && one->space == like->space && one->size == like->size &&
		    one->desc == like->desc && one->walk == like->walk) {
			one->number = like->number;
			one->task = like->task;
			one->cpu = like->cpu;
			one->cpus |= like->cpus;
			one->store = like->store;
			one->dying = like->dying;
			one->reported = like->reported;
			one->taken = false;
			one->missed_why = NULL;
			return;
		}
	one = malloc(sizeof(*one));
	*one = *like;
	head = &by_va[bucket(one->space, one->va)];
	one->next = *head;
	one->prev = head;
	if (*head)
		(*head)->prev = &one->next;
	*head = one;
	head = &stale_space[one->space];
	one->space_next = *head;
	one->space_prev = head;
	if (*head)
		(*head)->space_prev = &one->space_next;
	*head = one;
	head = &by_frame[frame_bucket(one->pa)];
	one->frame_next = *head;
	one->frame_prev = head;
	if (*head)
		(*head)->frame_prev = &one->frame_next;
	*head = one;
	va_sizes |= one->size;
	frame_sizes |= one->bytes;
	stale_count++;
	counts[COUNT_STALE]++;
}

void stale_remove(struct stale *one)
{
	*one->prev = one->next;
	if (one->next)
		one->next->prev = one->prev;
	*one->space_prev = one->space_next;
	if (one->space_next)
		one->space_next->space_prev = one->space_prev;
	*one->frame_prev = one->frame_next;
	if (one->frame_next)
		one->frame_next->frame_prev = one->frame_prev;
	stale_count--;
	free(one);
}

/* Call fn for each translation that overlaps the range; fn may remove it. */
void stale_each(int space, uint64_t va, uint64_t size, void (*fn)(struct stale *one, void *data), void *data)
{
	struct stale *one, *next;

	if (!stale_space[space])
		return;
	if (size <= 32ULL << 21) {
		/*
		 * A large translation is only in the bucket of its first
		 * address, so search there too.
		 */
		uint64_t seen[34 + 64];
		unsigned int count = 0;

		for (uint64_t at = va & ~((1ULL << 21) - 1); at < va + size; at += 1ULL << 21)
			seen[count++] = at;
		for (uint64_t sizes = va_sizes & -1ULL << 22; sizes; sizes &= sizes - 1)
			seen[count++] = va & -(sizes & -sizes);
		for (unsigned int i = 0; i < count; i++) {
			bool again = false;

			for (unsigned int j = 0; j < i; j++)
				again |= bucket(space, seen[j]) == bucket(space, seen[i]);
			for (one = again ? NULL : by_va[bucket(space, seen[i])]; one; one = next) {
				next = one->next;
				if (one->space == space && one->va < va + size && va < one->va + one->size)
					fn(one, data);
			}
		}
		return;
	}
	for (one = stale_space[space]; one; one = next) {
		next = one->space_next;
		if (one->va < va + size && va < one->va + one->size)
			fn(one, data);
	}
}

/*
 * Call fn for each translation that has this page in its frame, block or table.
 */
void stale_each_frame(uint64_t pa, void (*fn)(struct stale *one, void *data), void *data)
{
	struct stale *one, *next;

	for (uint64_t sizes = stale_count ? frame_sizes : 0; sizes; sizes &= sizes - 1) {
		uint64_t size = sizes & -sizes, base = pa & -size;

		for (one = by_frame[frame_bucket(base)]; one; one = next) {
			next = one->frame_next;
			if (one->pa == base && one->bytes == size)
				fn(one, data);
		}
	}
}

/* Whether an address still leads to this table. mremap() moves whole tables to other addresses. */
static bool leads_to(const struct root *root, uint64_t va, const struct table *table)
{
	const struct table *at = root->table;

	while (at && at != table && at->level < table->level) {
		uint64_t desc = at->desc[va >> level_shift(&root->form, at->level) & (at->count - 1)];

		if (!is_table(desc, at->level))
			return false;
		at = table_at(output(&root->form, desc, at->level));
	}
	return at == table;
}

/* Whether another entry of a contiguous block still has the same translation of the block, so a TLB may load it again. */
static bool reborn(const struct stale *one)
{
	struct table *table = one->desc & DESC_CONT && !one->walk ? table_at(one->table_pa) : NULL;
	struct root *root = root_at(one->root_pa);
	unsigned int count, first;

	if (!table || !root || table->pa != one->table_pa || table->level != one->level ||
	    !leads_to(root, one->va, table))
		return false;
	count = contiguous(&root->form, one->level);
	first = one->slot & ~(count - 1);
	for (unsigned int i = first; i < first + count && i < (unsigned int)table->count; i++) {
		uint64_t desc = table->desc[i];

		if (is_leaf(desc, one->level) && desc & DESC_CONT && !(rights(one->desc) & ~rights(desc)) &&
		    kind(desc, &root->form) == kind(one->desc, &root->form) &&
		    output(&root->form, desc, one->level) - i * one->size ==
			    one->pa - one->slot * one->size)
			return true;
	}
	return false;
}

/*
 * Whether a TLBI invalidates a translation. If it does not, although its
 * addresses include the translation, *why has the reason.
 */
bool stale_hit(const struct stale *one, const struct tlbi *op, const char **why)
{
	*why = NULL;
	if (op->number < one->number)
		return false;
	if (!op->all && op->by_asid) {
		if (one->space != op->asid)
			return false;
	} else if (!op->all) {
		if (one->va >= op->to || op->from >= one->va + one->size)
			return false;
		if (op->broken)
			*why = "its operand is not defined";
		else if (one->space == SPACE_KERNEL ? !op->any_asid :
			 one->space != SPACE_GLOBAL && !op->any_asid && one->space != op->asid)
			*why = "it is for another ASID";
		else if (one->walk && op->last)
			*why = "it is for the last level only, and walk caches hold the table";
		else if (!one->walk && op->level != 0xff && op->level != one->level)
			*why = "its level hint is for another level";
		else if (one->walk && op->level != 0xff && op->level <= one->level)
			*why = "its level hint is for another level";
		if (*why)
			return false;
	}
	if (op->ordered < one->number) {
		*why = "no DSB comes between the store and the TLBI";
		return false;
	}
	return true;
}

bool stale_pending(const struct stale *one)
{
	const char *why;

	for (int i = 0; i < MAX_CPUS; i++)
		for (int j = 0; j < cpus[i].pending_count; j++)
			if (stale_hit(one, &cpus[i].pending[j], &why))
				return true;
	return false;
}

struct completion {
	struct cpu *cpu;
	const struct tlbi *op;
};

static void complete_one(struct stale *one, void *data)
{
	struct completion *done = data;
	const struct tlbi *op = done->op;
	struct tlbi given = *op;
	const char *why;

	if (one->cpu != done->cpu->index)
		given.ordered = ~0ULL;
	if (!stale_hit(one, &given, &why)) {
		if (why && !one->had_level) {
			one->missed = *op;
			one->missed_why = why;
			if (!one->walk && op->level != 0xff && op->level != one->level && !op->broken &&
			    !stale_pending(one)) {	/* otherwise a TLBI for the translation came before */
				one->had_level = true;
				report(RULE_LEVEL, done->cpu, one, 0, op->pc,
				       "a TLBI with a level hint that is not the level of the translation");
			}
		}
		return;
	}
	if (op->local)
		one->cpus &= ~(1ULL << done->cpu->index);
	else
		one->cpus = 0;
	if (one->cpus)
		return;
	if (reborn(one)) {
		one->cpus = 1ULL << one->cpu;
		one->missed = *op;
		one->missed_why = "another entry of the contiguous block still has the translation";
		return;
	}
	stale_remove(one);
}

static void complete(struct cpu *cpu, const struct tlbi *op)
{
	struct completion done = { cpu, op };

	if (!stale_count)
		return;
	if (op->all) {
		for (int space = 0; space < SPACES; space++)
			stale_each(space, 0, ~0ULL >> 1, complete_one, &done);
	} else if (op->by_asid) {
		stale_each(op->asid, 0, ~0ULL >> 1, complete_one, &done);
	} else {
		stale_each(op->asid, op->from, op->to - op->from, complete_one, &done);
		/* The two calls after the loop handle the upper half. */
		if (op->any_asid && !(op->from >> 55 & 1))
			for (int space = 0; space < SPACE_GLOBAL; space++)
				if (space != op->asid)
					stale_each(space, op->from, op->to - op->from, complete_one, &done);
		stale_each(SPACE_GLOBAL, op->from, op->to - op->from, complete_one, &done);
		stale_each(SPACE_KERNEL, op->from, op->to - op->from, complete_one, &done);
	}
}

void stale_tlbi(struct cpu *cpu, const struct tlbi *op)
{
	if (cpu->pending_count == PENDING) {
		/*
		 * Too many TLBIs without a DSB: the oldest TLBI counts as never
		 * completed.
		 */
		memmove(cpu->pending, cpu->pending + 1, sizeof(cpu->pending) - sizeof(cpu->pending[0]));
		cpu->pending_count--;
	}
	now++;
	cpu->pending[cpu->pending_count] = *op;
	cpu->pending[cpu->pending_count].ordered = cpu->dsb;
	cpu->pending[cpu->pending_count++].number = now;
}

/* A DSB. Arm ARM D8.17.8: it completes TLBIs if it waits for loads and stores. */
void stale_dsb(struct cpu *cpu, bool stores, bool complete_tlbi, bool local, bool nxs)
{
	int kept = 0;

	if (stores)
		cpu->dsb = now;
	if (!complete_tlbi)
		return;
	for (int i = 0; i < cpu->pending_count; i++) {
		struct tlbi *op = &cpu->pending[i];

		if ((local && !op->local) || (nxs && !op->nxs)) {
			cpu->pending[kept++] = *op;
			continue;
		}
		complete(cpu, op);
		if (op->all || op->by_asid)
			table_forget_flushed(op, cpu);
	}
	cpu->pending_count = kept;
}
