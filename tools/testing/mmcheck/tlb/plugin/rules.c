// SPDX-License-Identifier: GPL-2.0
/*
 * Decide when a translation that a TLB may still hold is a mistake. Documentation/mmcheck/tlb.rst explains each rule.
 *
 * The plugin reports some mistakes at once: a new entry over an old translation, or a translation of a freed page. It
 * reports a right that the table no longer gives only when the task that changed the entry returns to user space,
 * accesses user memory, or ends. The reason is that the kernel may clear many entries before it invalidates them.
 */
#include <string.h>

#include "tlb.h"

const char *const rule_names[RULES] = {
	[RULE_BBM] = "break-before-make",
	[RULE_BBM_SIZE] = "break-before-make-size",
	[RULE_STALE] = "stale-rights",
	[RULE_FRAME] = "frame-reuse",
	[RULE_TABLE] = "table-reuse",
	[RULE_DSB] = "missing-dsb",
	[RULE_OPERAND] = "tlbi-operand",
	[RULE_LEVEL] = "tlbi-level",
	[RULE_CONTIGUOUS] = "contiguous-mix",
	[RULE_ASID] = "asid-reuse",
};

struct event {
	struct cpu *cpu;
	struct root *root;
	uint64_t va, desc, pc, size;
	int level;
	const char *what;
	bool everywhere;
	bool kept;	/* the entry was valid, and gets no other translation and no more rights */
};

static uint64_t size_of(const struct root *root, int level)
{
	return 1ULL << level_shift(&root->form, level);
}

static bool cached(const struct root *root, const struct table *table, int slot)
{
	return root->on || (root->asid_count && root->off > table->born[slot]);
}

/*
 * Whether both pages have the same content, and nothing can write to them. Then
 * a change of address is harmless.
 */
static bool same_content(uint64_t old, uint64_t new, const struct root *root, int level)
{
	uint64_t size = size_of(root, level);
	const void *a = guest_ram(output(&root->form, old, level), size);
	const void *b = guest_ram(output(&root->form, new, level), size);

	return a && b && !(rights(old) & RIGHT_WRITE_LATER) && !(rights(new) & RIGHT_WRITE_LATER) &&
	       !memcmp(a, b, size);
}

static bool same_kind(uint64_t old, uint64_t new, const struct root *root)
{
	return kind(old, &root->form) == kind(new, &root->form);
}

static void dead(struct event *event, int level, int slot, uint64_t table_pa, uint64_t desc, bool walk,
		 bool reported)
{
	struct root *root = event->root;
	struct stale like = {
		.va = event->va, .size = size_of(root, level), .desc = desc, .pa = output(&root->form, desc, level),
		.bytes = walk ? 1ULL << root->form.shift : size_of(root, level),
		.root_pa = root->table->pa, .table_pa = table_pa, .number = now, .task = event->cpu->task,
		.cpus = root->cpus, .slot = slot, .level = level, .cpu = event->cpu->index, .half = root->half,
		.walk = walk, .dying = is_dying(event->cpu->task), .reported = reported,
	};

	guest_backtrace(event->cpu, event->pc, &like.store);
	if (walk ? root->half : !(desc & DESC_NG)) {
		like.space = SPACE_GLOBAL;
		stale_add(&like);
	} else if (root->half) {
		like.space = SPACE_KERNEL;
		stale_add(&like);
	} else {
		for (int i = 0; i < root->asid_count; i++) {
			like.space = root->asid[i];
			stale_add(&like);
		}
	}
}

/* If a table is unlinked, all translations in it are unlinked too. */
static void dead_below(struct event *event, uint64_t pa, int level)
{
	uint64_t size = size_of(event->root, level), va = event->va;
	struct table *table = table_at(pa);

	for (int i = 0; table && table->pa == pa && i < table->count; i++, event->va += size) {
		uint64_t desc = table->desc[i];

		if (is_leaf(desc, level)) {
			dead(event, level, i, pa, desc, false, false);
		} else if (is_table(desc, level)) {
			dead(event, level, i, pa, desc, true, false);
			dead_below(event, output(&event->root->form, desc, level), level + 1);
		}
	}
	event->va = va;
}

/*
 * If a TLBI has hit the old translation and no DSB has completed the TLBI, the
 * mistake is the missing DSB.
 */
static void clash(struct event *event, enum rule rule, struct stale *one, const char *what)
{
	if (rule == RULE_BBM_SIZE && bbm_level >= 3)
		return;
	report(stale_pending(one) ? RULE_DSB : rule, event->cpu, one, event->desc, event->pc, what);
	one->reported = true;
}

/*
 * Whether another task has cleared the entry of user space and has not returned yet. Linux unlocks the table before it
 * invalidates the pages that madvise() drops, and meanwhile a fault of another thread may map a new page. The plugin
 * checks the task that cleared the entry when this task returns.
 */
static bool still_busy(const struct stale *one, const struct event *event)
{
	return one->space < SPACE_GLOBAL && one->task && event->cpu->task && one->task != event->cpu->task;
}

static void live_over(struct stale *one, void *data)
{
	struct event *event = data;
	const struct half *form = &event->root->form;
	uint64_t pa = output(form, event->desc, event->level);
	bool leaf = is_leaf(event->desc, event->level);

	if (!one->cpus || one->half != event->root->half)
		return;
	if (one->walk) {
		if (one->level != event->level)
			return;
		if (!leaf && one->pa == pa)
			stale_remove(one);
		else if (one->root_pa == event->root->table->pa)
			clash(event, leaf ? RULE_BBM_SIZE : RULE_BBM, one,
			      "a new entry where a walk cache may still hold the old table");
		return;
	}
	if (!leaf)
		return;
	if (one->level != event->level) {
		clash(event, RULE_BBM_SIZE, one, "a new entry over an old translation of another size");
		return;
	}
	if (one->pa != pa) {
		if (still_busy(one, event) || event->kept)
			return;		/* if it was kept, it was judged when it was made */
		if (!same_content(one->desc, event->desc, event->root, event->level))
			clash(event, RULE_BBM, one, "a new entry for another address over an old translation");
	} else if (!same_kind(one->desc, event->desc, event->root)) {
		clash(event, RULE_BBM, one, "a new entry of another memory type over an old translation");
	} else if ((one->desc ^ event->desc) & DESC_CONT) {
		clash(event, RULE_BBM_SIZE, one, "a new entry with another contiguous bit over an old translation");
	} else if (!(rights(one->desc) & ~rights(event->desc))) {
		stale_remove(one);	/* the table has the translation again */
	}
}

static void live(struct event *event)
{
	struct root *root = event->root;

	if (!stale_count)
		return;
	event->size = size_of(root, event->level);
	for (int i = 0; i < root->asid_count && !root->half; i++)
		stale_each(root->asid[i], event->va, event->size, live_over, event);
	stale_each(SPACE_GLOBAL, event->va, event->size, live_over, event);
	if (root->half)
		stale_each(SPACE_KERNEL, event->va, event->size, live_over, event);
}

static void live_below(struct event *event, uint64_t pa, int level)
{
	uint64_t size = size_of(event->root, level), va = event->va;
	int count = 1 << (event->root->form.shift - 3);
	uint64_t *desc = guest_ram(pa, count * 8ULL);

	event->level = level;
	for (int i = 0; desc && stale_count && i < count; i++, event->va += size) {
		event->desc = desc[i];
		event->level = level;
		if (is_leaf(desc[i], level) || is_table(desc[i], level))
			live(event);
		if (is_table(desc[i], level))
			live_below(event, output(&event->root->form, desc[i], level), level + 1);
	}
	event->va = va;
}

/*
 * A task changes an entry that another task has made invalid. Both tasks may rely on the table's lock. So the old
 * translation must be gone when the task that changes the entry is done, no matter what the other task still does.
 */
static void take(struct stale *one, void *data)
{
	struct event *event = data;

	if (one->walk || one->half != event->root->half || one->level != event->level ||
	    one->task == event->cpu->task)
		return;
	one->task = event->cpu->task;
	one->taken = true;
}

/* Report the translation that a store replaced. */
static void over(struct event *event, enum rule rule, uint64_t old, uint64_t new, const char *what)
{
	struct stale like = {
		.va = event->va, .size = size_of(event->root, event->level), .desc = old,
		.space = event->root->half ? SPACE_GLOBAL : event->root->asid[event->root->asid_count - 1],
		.level = event->level,
	};

	if (rule == RULE_BBM_SIZE && bbm_level >= 3)
		return;
	guest_backtrace(event->cpu, event->pc, &like.store);
	report(rule, event->cpu, &like, new, event->pc, what);
}

/* An entry of a table in use changes. */
void rule_changed(struct cpu *cpu, struct root *root, struct table *table, int slot, uint64_t va, uint64_t old,
		  uint64_t new, uint64_t pc)
{
	int level = table->level;
	struct event event = { cpu, root, va, new, pc, 0, level, NULL, false, false };
	uint64_t old_pa = output(&root->form, old, level), new_pa = output(&root->form, new, level);
	bool old_leaf = is_leaf(old, level), old_table = is_table(old, level);
	bool new_leaf = is_leaf(new, level), new_table = is_table(new, level);

	if (old_table && new_table && old_pa == new_pa)
		return;
	if (cached(root, table, slot) && old_leaf) {
		bool address = new_leaf && old_pa != new_pa;
		bool type = new_leaf && !same_kind(old, new, root);
		bool size = new_leaf && (old ^ new) & DESC_CONT;

		if (address && !same_content(old, new, root, level))
			over(&event, RULE_BBM, old, new, "another address over a valid entry");
		else if (type && !address)
			over(&event, RULE_BBM, old, new, "another memory type over a valid entry");
		else if (size)
			over(&event, RULE_BBM_SIZE, old, new, "another contiguous bit over a valid entry");
		else if (new_table)
			over(&event, RULE_BBM_SIZE, old, new, "a table over a valid block");
		if (!new_leaf || address || type || size || rights(old) & ~rights(new))
			dead(&event, level, slot, table->pa, old, false, address || type || size || new_table);
		if (address || type || size || new_table)
			return;		/* reported */
	}
	if (cached(root, table, slot) && old_table) {
		if (new_leaf)
			over(&event, RULE_BBM_SIZE, old, new, "a block over a valid table");
		else if (new_table)
			over(&event, RULE_BBM, old, new, "another table over a valid table");
		dead(&event, level, slot, table->pa, old, true, new_leaf || new_table);
		dead_below(&event, old_pa, level + 1);
		if (new_leaf || new_table)
			return;
	}
	if (!new_leaf && !new_table) {
		event.size = size_of(root, level);
		if (!old_leaf && !old_table && !root->half && !is_dying(cpu->task))
			for (int i = 0; stale_count && i < root->asid_count; i++)
				stale_each(root->asid[i], va, event.size, take, &event);
		return;
	}
	event.kept = old_leaf && new_leaf && !(rights(new) & ~rights(old));
	live(&event);
	if (new_table)
		live_below(&event, new_pa, level + 1);
}

static void judge(struct stale *one, void *data)
{
	struct event *event = data;
	struct root *root = root_at(one->root_pa);
	uint64_t desc = 0, offset;
	bool valid, mine = event->cpu->task ? one->task == event->cpu->task : one->cpu == event->cpu->index;
	const char *why;
	int level = 0;

	if (one->walk || one->dying || one->reported || !mine || !root)
		return;
	valid = guest_walk(one->root_pa, &root->form, one->va, &desc, &level);
	if (!valid && one->space >= SPACE_GLOBAL)
		return;		/* a kernel may invalidate its own unmapped addresses later, before it uses them again */
	if (valid) {
		offset = one->va & (size_of(root, level) - 1);
		if (output(&root->form, desc, level) + offset == one->pa && same_kind(desc, one->desc, root) &&
		    !(rights(one->desc) & ~rights(desc))) {
			stale_remove(one);
			return;
		}
	}
	for (int i = 0; i < event->cpu->pending_count; i++) {
		if (stale_hit(one, &event->cpu->pending[i], &why)) {
			report(RULE_DSB, event->cpu, one, valid ? desc : 0, event->pc, event->what);
			stale_remove(one);
			return;
		}
	}
	if (stale_pending(one)) {
		if (!one->taken)
			return;
		report(RULE_DSB, event->cpu, one, valid ? desc : 0, event->pc, event->what);
		stale_remove(one);
		return;
	}
	report(RULE_STALE, event->cpu, one, valid ? desc : 0, event->pc, event->what);
	stale_remove(one);
}

struct block {
	uint64_t table_pa, root_pa, task, va, pc;
	int first;
};

#define BLOCKS 1024
static struct block blocks[BLOCKS];
static int block_count;

/* An entry of a contiguous block changes: judge the block later, when all entries are written. */
void rule_contiguous(struct cpu *cpu, struct table *table, int slot, const struct half *form, uint64_t va,
		     uint64_t pc)
{
	unsigned int count = contiguous(form, table->level), first = slot & ~(count - 1);
	struct block *one = &blocks[(table->pa / 64 + first / count * 37) % BLOCKS];
	const struct table *top = table;

	if (count == 1 || (unsigned int)table->count < count)
		return;
	while (!top->root && top->parent_count)
		top = top->parents[0].parent;
	block_count += !one->table_pa;
	*one = (struct block){ table->pa, top->pa, cpu->task, va, pc, first };
}

static void judge_blocks(struct event *event)
{
	for (int at = 0; at < BLOCKS && block_count; at++) {
		struct block *one = &blocks[at];
		struct table *table = one->table_pa ? table_at(one->table_pa) : NULL;
		struct root *root = root_at(one->root_pa);
		int joined = 0, count, differ = 0;

		if (!one->table_pa || one->task != event->cpu->task)
			continue;
		if (table && root && table->pa == one->table_pa) {
			uint64_t page = size_of(root, table->level), first = table->desc[one->first];

			count = contiguous(&root->form, table->level);
			for (int i = one->first; i < one->first + count; i++) {
				uint64_t desc = table->desc[i];

				joined += is_leaf(desc, table->level) && desc & DESC_CONT;
				differ += output(&root->form, desc, table->level) !=
					  output(&root->form, first, table->level) + (i - one->first) * page;
				differ += (rights(desc) ^ rights(first)) & ~(RIGHT_WRITE | RIGHT_WRITE_LATER) ||
					  !same_kind(desc, first, root);
				differ += (desc ^ first) & DESC_RDONLY && !(desc & first & DESC_DBM);
			}
			if (joined && (joined != count || differ)) {
				struct stale like = { .va = one->va, .desc = first, .size = page,
						      .level = table->level, .space = event->cpu->asid };

				like.store.pc = one->pc;
				report(RULE_CONTIGUOUS, event->cpu, &like, table->desc[one->first + 1], event->pc,
				       joined != count ? "only some entries of the block have the contiguous bit" :
				       "entries of a contiguous block that differ in more than access and dirty state");
			}
		}
		one->table_pa = 0;
		block_count--;
	}
}

/* The task of this CPU is done with its changes. */
void rule_boundary(struct cpu *cpu, uint64_t pc, const char *what, bool everywhere)
{
	struct event event = { .cpu = cpu, .pc = pc, .what = what, .everywhere = everywhere };

	if (block_count)
		judge_blocks(&event);
	if (!stale_count)
		return;
	for (int space = everywhere ? 0 : cpu->asid; space < (everywhere ? SPACE_GLOBAL : cpu->asid + 1); space++)
		stale_each(space, 0, ~0ULL >> 1, judge, &event);
	stale_each(SPACE_GLOBAL, 0, ~0ULL >> 1, judge, &event);
	stale_each(SPACE_KERNEL, 0, ~0ULL >> 1, judge, &event);
}

static void reused(struct stale *one, void *data)
{
	struct event *event = data;

	if (!one->armed)
		return;
	report(RULE_FRAME, event->cpu, one, 0, event->pc, one->armed);
	stale_remove(one);
}

void rule_eret(struct cpu *cpu, uint64_t pc)
{
	struct event event = { .cpu = cpu, .pc = pc };

	stale_each(cpu->asid, 0, ~0ULL >> 1, reused, &event);
	rule_boundary(cpu, pc, "return to user space", false);
}

static void freed(struct stale *one, void *data)
{
	struct event *event = data;
	bool pending = stale_pending(one);

	if (!one->walk && (one->space >= SPACE_GLOBAL || one->dying))
		return;
	report(pending ? RULE_DSB : one->walk ? RULE_TABLE : RULE_FRAME, event->cpu, one, 0, event->pc,
	       one->walk ? "a table is freed, and a walk cache may hold it" :
	       "a page is freed, and a TLB may hold a translation of it");
	stale_remove(one);
}

void rule_freed(struct cpu *cpu, uint64_t pa, uint64_t pc)
{
	struct event event = { .cpu = cpu, .pc = pc };

	counts[COUNT_FREED]++;
	stale_each_frame(pa, freed, &event);
}

/*
 * A page gets another use while a TLB may hold a translation of it. That is a mistake if the process runs, now or later.
 * A process that has ended does not run.
 */
static void must_not_run(struct stale *one, struct event *event, const char *here, const char *elsewhere)
{
	if (one->space >= SPACE_GLOBAL)
		return;
	one->armed = here;
	for (int i = 0; i < MAX_CPUS; i++) {
		if (cpus[i].el0_asid == one->space && i != event->cpu->index) {
			report(RULE_FRAME, event->cpu, one, 0, event->pc, elsewhere);
			stale_remove(one);
			return;
		}
	}
}

static void zeroed(struct stale *one, void *data)
{
	struct event *event = data;

	if (one->walk) {
		report(RULE_TABLE, event->cpu, one, 0, event->pc, "a table is cleared, and a walk cache may hold it");
		stale_remove(one);
		return;
	}
	must_not_run(one, event, "user space runs with a translation of a page that was cleared",
		     "a page is cleared, and user space on another CPU has a translation of it");
}

static void becomes_table(struct stale *one, void *data)
{
	if (!one->walk && one->desc & DESC_USER)
		must_not_run(one, data, "user space runs with a translation of a page that became a table",
			     "a page becomes a table, and user space on another CPU has a translation of it");
}

void rule_becomes_table(struct cpu *cpu, uint64_t pa, uint64_t pc)
{
	struct event event = { .cpu = cpu, .pc = pc };

	stale_each_frame(pa, becomes_table, &event);
}

void rule_zeroed(struct cpu *cpu, uint64_t pa, uint64_t pc)
{
	struct event event = { .cpu = cpu, .pc = pc };

	stale_each_frame(pa, zeroed, &event);
}
