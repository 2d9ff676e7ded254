// SPDX-License-Identifier: GPL-2.0
/*
 * The reports, one line of JSON each. All equal mistakes at the same places
 * have one line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

#define REPORTS 300

static struct entry {
	enum rule rule;
	uint64_t count, va, size, old, new, asid;
	int level, cpu;
	bool walk;
	struct place store, event;
	struct tlbi missed;
	const char *missed_why, *what;
} entries[REPORTS];
static int entry_count;
static uint64_t dropped;
static const char *path;

uint64_t counts[7];

void report_to(const char *to)
{
	path = strdup(to);
}

static bool same(const struct entry *one, enum rule rule, const struct stale *stale, const struct place *event)
{
	return one->rule == rule && one->store.pc == stale->store.pc && one->event.pc == event->pc &&
	       !memcmp(one->store.back, stale->store.back, 3 * sizeof(uint64_t)) &&
	       !memcmp(one->event.back, event->back, 2 * sizeof(uint64_t));
}

/*
 * one:      the translation that a TLB may hold
 * now_desc: the entry that the table has now
 * pc:       the instruction that makes the translation a mistake
 */
void report(enum rule rule, const struct cpu *cpu, const struct stale *one, uint64_t now_desc, uint64_t pc,
	    const char *what)
{
	struct place event;
	struct entry *to;

	guest_backtrace(cpu, pc, &event);
	for (int i = 0; i < entry_count; i++) {
		if (same(&entries[i], rule, one, &event)) {
			entries[i].count++;
			return;
		}
	}
	if (entry_count == REPORTS) {
		dropped++;
		return;
	}
	to = &entries[entry_count++];
	*to = (struct entry){
		.rule = rule, .count = 1, .va = one->va, .size = one->size, .old = one->desc, .new = now_desc,
		.asid = one->space, .level = one->level, .cpu = cpu->index, .walk = one->walk, .store = one->store,
		.event = event, .missed = one->missed, .missed_why = one->missed_why, .what = what,
	};
	report_all();
}

static void place(FILE *to, const char *name, const struct place *place)
{
	fprintf(to, ", \"%s\": [%llu", name, (unsigned long long)place->pc);
	for (int i = 0; i < DEPTH && place->back[i]; i++)
		fprintf(to, ", %llu", (unsigned long long)place->back[i]);
	fprintf(to, "]");
}

void report_all(void)
{
	static const char *const names[] = { "table_stores", "tlbi", "dsb", "eret", "stale", "freed",
					     "installs" };
	FILE *to = fopen(path, "w");

	if (!to)
		return;
	for (int i = 0; i < entry_count; i++) {
		const struct entry *one = &entries[i];

		fprintf(to, "{\"rule\": \"%s\", \"count\": %llu, \"what\": \"%s\", \"va\": %llu, \"size\": %llu, ",
			rule_names[one->rule], (unsigned long long)one->count, one->what,
			(unsigned long long)(one->va >> 55 & 1 ? one->va | ~VA_MASK : one->va),
			(unsigned long long)one->size);
		fprintf(to, "\"level\": %d, \"asid\": %lld, \"cpu\": %d, \"walk\": %s, \"old\": %llu, \"new\": %llu",
			one->level, one->asid >= SPACE_GLOBAL ? -1LL : (long long)one->asid, one->cpu,
			one->walk ? "true" : "false", (unsigned long long)one->old, (unsigned long long)one->new);
		place(to, "store", &one->store);
		place(to, "event", &one->event);
		if (one->missed_why)
			fprintf(to, ", \"missed\": {\"why\": \"%s\", \"pc\": %llu, \"operand\": %llu}", one->missed_why,
				(unsigned long long)one->missed.pc, (unsigned long long)one->missed.operand);
		fprintf(to, "}\n");
	}
	fprintf(to, "{\"dropped\": %llu, \"now_stale\": %llu, \"tables\": %llu", (unsigned long long)dropped,
		(unsigned long long)stale_count, (unsigned long long)table_count());
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		fprintf(to, ", \"%s\": %llu", names[i], (unsigned long long)counts[i]);
	fprintf(to, "}\n");
	fclose(to);
}
