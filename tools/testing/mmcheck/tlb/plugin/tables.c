// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of the tables that are in use.
 *
 * A root becomes known when a TTBR points to it. It stays known until no TTBR
 * points to it and a TLBI has removed everything that a TLB may hold of it. A
 * table is known while a known table links it. One byte for each page of memory
 * says whether the page has a known table, so an ordinary store costs one
 * look-up.
 */
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

static uint8_t *pages;
static struct table **page_table;
static struct root *roots;
static uint64_t tables;

uint64_t table_count(void)
{
	return tables;
}

bool is_leaf(uint64_t desc, int level)
{
	return (desc & 3) == (level == 3 ? 3 : 1);
}

bool is_table(uint64_t desc, int level)
{
	return level < 3 && (desc & 3) == 3;
}

/* How many entries the contiguous bit joins. Arm ARM D8.7.1. */
unsigned int contiguous(const struct half *form, int level)
{
	if (form->shift == 12)
		return level >= 1 ? 16 : 1;
	if (form->shift == 14)
		return level == 3 ? 128 : level == 2 ? 32 : 1;
	return level >= 2 ? 32 : 1;
}

bool table_page(uint64_t pa)
{
	return pages && pa - ram_base < ram_size && pages[(pa - ram_base) >> 12];
}

struct table *table_at(uint64_t pa)
{
	struct table *one;

	if (!table_page(pa))
		return NULL;
	for (one = page_table[(pa - ram_base) >> 12]; one; one = one->next)
		if (pa - one->pa < one->count * 8ULL)
			return one;
	return NULL;
}

struct root *root_at(uint64_t pa)
{
	struct table *one = table_at(pa);

	return one && one->pa == pa ? one->root : NULL;
}

/* The store, or the change of a TTBR, that makes a table known. */
struct cause {
	struct cpu *cpu;
	uint64_t pc;
};

static struct table *add(const struct cause *cause, uint64_t pa, int level, int count, int half)
{
	uint64_t *from = guest_ram(pa, count * 8ULL);
	struct table *one;

	if (!from)
		return NULL;
	if (!pages) {
		pages = calloc(ram_size >> 12, 1);
		page_table = calloc(ram_size >> 12, sizeof(*page_table));
	}
	one = calloc(1, sizeof(*one));
	one->pa = pa;
	one->level = level;
	one->count = count;
	one->half = half;
	one->desc = malloc(count * 8ULL);
	one->born = malloc(count * 8ULL);
	memcpy(one->desc, from, count * 8ULL);
	for (int i = 0; i < count; i++)
		one->born[i] = now;
	for (uint64_t at = pa >> 12; at <= (pa + count * 8ULL - 1) >> 12; at++) {
		uint64_t page = at - (ram_base >> 12);

		pages[page] = 1;
		if (at == pa >> 12) {
			one->next = page_table[page];
			page_table[page] = one;
		} else {
			page_table[page] = one;
		}
	}
	tables++;
	rule_becomes_table(cause->cpu, pa, cause->pc);
	return one;
}

static void unlink_child(struct table *parent, int slot, const struct half *form, uint64_t desc);

static void forget(struct table *one, const struct half *form)
{
	for (int i = 0; i < one->count; i++)
		if (is_table(one->desc[i], one->level))
			unlink_child(one, i, form, one->desc[i]);
	for (uint64_t at = one->pa >> 12; at <= (one->pa + one->count * 8ULL - 1) >> 12; at++) {
		struct table **from = &page_table[at - (ram_base >> 12)];

		if (at == one->pa >> 12) {
			while (*from != one)
				from = &(*from)->next;
			*from = one->next;
		} else {
			*from = NULL;
		}
		pages[at - (ram_base >> 12)] = page_table[at - (ram_base >> 12)] != NULL;
	}
	free(one->parents);
	free(one->desc);
	free(one->born);
	free(one);
	tables--;
}

static void unlink_child(struct table *parent, int slot, const struct half *form, uint64_t desc)
{
	struct table *child = table_at(output(form, desc, parent->level));

	if (!child || child->level != parent->level + 1)
		return;
	for (int i = 0; i < child->parent_count; i++) {
		if (child->parents[i].parent == parent && child->parents[i].slot == slot) {
			child->parents[i] = child->parents[--child->parent_count];
			if (!child->parent_count && !child->root)
				forget(child, form);
			return;
		}
	}
}

static void link_child(const struct cause *cause, struct table *parent, int slot, const struct half *form,
		       uint64_t desc)
{
	uint64_t pa = output(form, desc, parent->level);
	struct table *child = table_at(pa);

	if (!child) {
		child = add(cause, pa, parent->level + 1, 1 << (form->shift - 3), parent->half);
		if (!child)
			return;
		for (int i = 0; i < child->count; i++)
			if (is_table(child->desc[i], child->level))
				link_child(cause, child, i, form, child->desc[i]);
	} else if (child->level != parent->level + 1 || child->pa != pa) {
		return;
	}
	child->parents = realloc(child->parents, (child->parent_count + 1) * sizeof(*child->parents));
	child->parents[child->parent_count++] = (struct link){ parent, slot };
}

/* One way from a root to an entry. */
struct change {
	struct cpu *cpu;
	struct table *table;
	int slot;
	uint64_t old, new, pc;
	void (*fn)(const struct change *change, struct root *root, uint64_t va);
};

static const struct half *form_of(const struct table *one)
{
	while (!one->root)
		if (one->parent_count)
			one = one->parents[0].parent;
		else
			return NULL;
	return &one->root->form;
}

static void each_way(const struct change *change, const struct table *at, uint64_t va, const struct half *form)
{
	if (at->root) {
		if (at->root->half)
			va |= ~((1ULL << form->bits) - 1);
		change->fn(change, at->root, va & VA_MASK);
	}
	for (int i = 0; i < at->parent_count; i++)
		each_way(change, at->parents[i].parent,
			 va | (uint64_t)at->parents[i].slot << level_shift(form, at->parents[i].parent->level), form);
}

static void changed(const struct change *change, struct root *root, uint64_t va)
{
	rule_changed(change->cpu, root, change->table, change->slot, va, change->old, change->new, change->pc);
}

static void changed_after(const struct change *change, struct root *root, uint64_t va)
{
	if (is_leaf(change->new, change->table->level) || is_leaf(change->old, change->table->level))
		rule_contiguous(change->cpu, change->table, change->slot, &root->form, va, change->pc);
}

static bool empty(const struct table *one)
{
	for (int i = 0; i < one->count; i++)
		if (one->desc[i] & DESC_VALID)
			return false;
	return true;
}

static void forget_root(struct root *root)
{
	struct table *table = root->table;

	for (struct root **at = &roots; *at; at = &(*at)->next) {
		if (*at == root) {
			*at = root->next;
			break;
		}
	}
	table->root = NULL;
	if (!table->parent_count)
		forget(table, &root->form);
	free(root);
}

static void store_one(struct cpu *cpu, struct table *table, int slot, uint64_t new, uint64_t pc)
{
	struct change change = { cpu, table, slot, table->desc[slot], new, pc, changed };
	const struct half *form = form_of(table);
	uint64_t old = change.old;

	if (old == new || !form)
		return;
	counts[COUNT_TABLE_STORES]++;
	now++;
	each_way(&change, table, (uint64_t)slot << level_shift(form, table->level), form);
	table->desc[slot] = new;
	table->born[slot] = now;
	if (is_table(old, table->level) && is_table(new, table->level) &&
	    output(form, old, table->level) == output(form, new, table->level))
		return;
	if (is_table(old, table->level))
		unlink_child(table, slot, form, old);
	if (is_table(new, table->level))
		link_child(&(struct cause){ cpu, pc }, table, slot, form, new);
	change.fn = changed_after;
	each_way(&change, table, (uint64_t)slot << level_shift(form, table->level), form);
	if (table->root && !table->root->on && !table->parent_count && empty(table))
		forget_root(table->root);
}

/* A store of 8 bytes or more to a page with a table; memory has the new value already. */
void table_store(struct cpu *cpu, uint64_t pa, unsigned int size, uint64_t pc)
{
	for (uint64_t at = pa & ~7ULL; at < pa + size; at += 8) {
		struct table *table = table_at(at);
		uint64_t *from = guest_ram(at, 8);

		if (table && from)
			store_one(cpu, table, (at - table->pa) / 8, __atomic_load_n(from, __ATOMIC_RELAXED), pc);
	}
}

/*
 * The table may have changed while it was not in use: the plugin does not see
 * all writes to it.
 */
static void refresh(struct cpu *cpu, struct table *table, uint64_t pc)
{
	for (int i = 0; i < table->count; i++) {
		uint64_t *from = guest_ram(table->pa + i * 8, 8);

		if (*from != table->desc[i])
			store_one(cpu, table, i, *from, pc);
	}
}

static void add_asid(struct root *root, int asid)
{
	for (int i = 0; i < root->asid_count; i++)
		if (root->asid[i] == asid)
			return;
	if (root->asid_count == PAIRS) {
		memmove(root->asid, root->asid + 1, sizeof(root->asid) - sizeof(root->asid[0]));
		root->asid_count--;
	}
	root->asid[root->asid_count++] = asid;
}

static void remove_from(struct cpu *cpu, int half)
{
	struct root *old = cpu->installed[half];

	cpu->installed[half] = NULL;
	if (!old)
		return;
	now++;
	old->off = now;
	if (!(cpu->installed[!half] == old))
		old->on &= ~(1ULL << cpu->index);
	if (!old->on && !old->table->parent_count && empty(old->table))
		forget_root(old);
}

/*
 * With the MMU off a CPU loads no translations; it keeps the translations that
 * it has.
 */
void table_mmu_off(struct cpu *cpu)
{
	remove_from(cpu, 0);
	remove_from(cpu, 1);
}

/*
 * Report an ASID that another table used, if no TLBI has removed its
 * translations.
 */
static void check_asid(struct cpu *cpu, struct root *root, int asid, uint64_t pc)
{
	for (struct root *one = empty(root->table) ? NULL : roots; one; one = one->next) {
		if (one == root || one->half || !(one->cpus >> cpu->index & 1) || !asid)
			continue;
		for (int i = 0; i < one->asid_count; i++) {
			if (one->asid[i] == asid && !(one->on & ~(1ULL << cpu->index)) && !empty(one->table)) {
				struct stale like = {
					.va = one->table->pa, .pa = one->table->pa, .space = asid,
					.desc = one->table->pa, .level = one->table->level,
				};

				like.store.pc = pc;
				report(RULE_ASID, cpu, &like, root->table->pa, pc,
				       "an ASID gets another table, and no TLBI has removed its translations");
			}
		}
	}
}

/* A TTBR, or the ASID, changes. */
void table_install(struct cpu *cpu, int half, uint64_t ttbr, int asid, uint64_t pc)
{
	struct half form = guest_half(cpu->tcr, half);
	int level = first_level(&form), entries = 1 << (form.bits - level_shift(&form, level));
	uint64_t pa = ttbr & ((1ULL << 48) - 1) & ~1ULL;
	const struct cause cause = { cpu, pc };
	struct table *table;
	struct root *root;

	counts[COUNT_INSTALL]++;
	if (form.lpa2 || form.shift == 16)
		pa = (pa & ~0x3fULL) | (uint64_t)(ttbr >> 2 & 15) << 48;
	pa &= ~((uint64_t)entries * 8 - 1);
	root = root_at(pa);
	if (root && root->half == half && root == cpu->installed[half] && root->form.bits == form.bits) {
		add_asid(root, asid);
		return;
	}
	if (root && (root->half != half || root->form.bits != form.bits) && !root->on)
		forget_root(root);
	remove_from(cpu, half);
	root = root_at(pa);
	if (!root) {
		table = table_at(pa);
		if (table)		/* also part of another tree with another shape */
			return;
		table = add(&cause, pa, level, entries, half);
		if (!table)
			return;
		root = calloc(1, sizeof(*root));
		root->table = table;
		root->half = half;
		root->form = form;
		root->next = roots;
		roots = root;
		table->root = root;
		for (int i = 0; i < table->count; i++)
			if (is_table(table->desc[i], level))
				link_child(&cause, table, i, &form, table->desc[i]);
	} else if (!root->on) {
		refresh(cpu, root->table, pc);
		if (root_at(pa) != root)
			return;
	}
	now++;
	root->on |= 1ULL << cpu->index;
	root->cpus |= 1ULL << cpu->index;
	add_asid(root, asid);
	cpu->installed[half] = root;
	if (!half)
		check_asid(cpu, root, asid, pc);
}

static bool in_use(const struct root *root, int asid)
{
	for (int i = 0; i < MAX_CPUS; i++)
		if (root->on >> i & 1 && (root->half || cpus[i].asid == asid))
			return true;
	return false;
}

/* A TLBI of a whole ASID, or of everything, is complete: forget a root if nothing of it can be cached. */
void table_forget_flushed(const struct tlbi *op, const struct cpu *cpu)
{
	for (struct root *one = roots, *next; one; one = next) {
		next = one->next;
		for (int i = one->asid_count; i--;)
			if ((op->all || one->asid[i] == op->asid) && !in_use(one, one->asid[i]) &&
			    (!op->local || !(one->cpus & ~(1ULL << cpu->index))))
				one->asid[i] = one->asid[--one->asid_count];
		if (op->local && op->all && !one->on)
			one->cpus &= ~(1ULL << cpu->index);
		if (!one->on && (!one->asid_count || !one->cpus) && (!one->half || op->all))
			forget_root(one);
	}
}
