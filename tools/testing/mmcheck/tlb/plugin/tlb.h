/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A TLB that never drops a translation by itself. See
 * Documentation/mmcheck/tlb.rst.
 *
 *   main.c    instruments the instructions that matter
 *   guest.c   registers, memory and translation tables of the guest
 *   decode.c  instruction words and operands of TLBI
 *   tables.c  copies of the tables that are in use
 *   stale.c   translations that the tables no longer have, but that a TLB may still hold
 *   rules.c   when such a translation is a mistake
 *   report.c  writes the mistakes to a file
 */
#ifndef MMCHECK_TLB_H
#define MMCHECK_TLB_H

#include "api.h"

#define MAX_CPUS 64
#define DEPTH 10			/* levels of a backtrace */
#define SPACE_GLOBAL 0x10000		/* translations that every ASID uses */
#define SPACE_KERNEL 0x10001		/* translations of the upper half that are not global */
#define SPACES 0x10002
#define VA_MASK ((1ULL << 56) - 1)

#define DESC_VALID 1ULL
#define DESC_TABLE 2ULL
#define DESC_USER (1ULL << 6)
#define DESC_RDONLY (1ULL << 7)
#define DESC_NG (1ULL << 11)
#define DESC_DBM (1ULL << 51)
#define DESC_CONT (1ULL << 52)
#define DESC_PXN (1ULL << 53)
#define DESC_UXN (1ULL << 54)

enum { RIGHT_READ = 1, RIGHT_WRITE = 2, RIGHT_EXEC = 4, RIGHT_KERNEL_EXEC = 8, RIGHT_WRITE_LATER = 16 };

/* The rules. rules.c has their names. */
enum rule {
	RULE_BBM,		/* a new entry for another address or memory type over an old translation */
	RULE_BBM_SIZE,		/* a new entry of another size over an old translation */
	RULE_STALE,		/* a right that the table no longer gives */
	RULE_FRAME,		/* a page freed or reused while a TLB may hold a translation of it */
	RULE_TABLE,		/* a table freed or reused while a walk cache may hold it */
	RULE_DSB,		/* a TLBI that no DSB has completed */
	RULE_OPERAND,		/* an operand that TLBI does not define */
	RULE_LEVEL,		/* a level hint that is wrong for the translation */
	RULE_CONTIGUOUS,	/* contiguous entries that differ */
	RULE_ASID,		/* an ASID with a new table, not invalidated */
	RULES
};

/* How one half of the address space is translated. */
struct half {
	int shift;		/* of a page: 12, 14 or 16 */
	int bits;		/* of an address */
	bool lpa2;
};

struct place {
	uint64_t pc;
	uint64_t back[DEPTH];
};

/* A TLBI. */
struct tlbi {
	uint64_t from, to;	/* addresses, of 56 bits */
	uint64_t operand, pc;
	uint64_t ordered;	/* stores up to this number were complete */
	uint64_t number;
	int asid;
	uint8_t level;		/* hint, or 0xff */
	bool all, by_asid, any_asid, last, local, range, nxs;
	bool broken;		/* hits nothing */
};

#define PENDING 512

struct cpu {
	int index;
	bool mmu;
	uint64_t ttbr[2], tcr;
	int asid;
	int el0_asid;		/* the ASID that runs at EL0 now, or -1 */
	uint64_t task;
	uint64_t dsb;		/* number of the last store that a DSB completed */
	uint64_t switches;
	uint64_t free_address;
	int pending_count;
	struct tlbi pending[PENDING];
	struct root *installed[2];
};

struct root;

struct link {
	struct table *parent;
	int slot;
};

/* A translation table in use, and a copy of its entries. */
struct table {
	uint64_t pa;
	int level, count, half;
	uint64_t *desc, *born;	/* born: when the entry was written */
	struct link *parents;
	int parent_count;
	struct root *root;
	struct table *next;	/* in the same page */
};

#define PAIRS 4

/* A table that a TTBR points to, and the ASIDs that it was used with. */
struct root {
	struct table *table;
	int half;
	struct half form;
	uint64_t on;		/* CPUs that have it in their TTBR */
	uint64_t off;		/* when a CPU removed it last */
	uint64_t cpus;		/* CPUs that may hold translations */
	int asid[PAIRS];
	int asid_count;
	struct root *next;
};

/*
 * A translation that the tables no longer have, but that a TLB may still hold.
 */
struct stale {
	struct stale *next, **prev;		/* by address */
	struct stale *space_next, **space_prev;	/* by space */
	struct stale *frame_next, **frame_prev;	/* by frame */
	uint64_t va, size, desc, root_pa, table_pa;
	uint64_t pa, bytes;			/* of the page, block or table that the entry points to */
	uint64_t number, task, cpus;
	int slot, level, space, cpu, half;
	bool walk, dying, reported, had_level, taken;	/* taken: another task has changed the entry since */
	const char *armed;			/* why the process must not run with this translation */
	struct place store;
	struct tlbi missed;			/* the last TLBI for the address that did not hit */
	const char *missed_why;
};

/* main.c */
extern struct cpu cpus[MAX_CPUS];
extern uint64_t now;
extern int bbm_level;
extern bool hardware_dirty;
extern uint64_t memory_types;
bool is_dying(uint64_t task);

/* guest.c */
extern uint64_t ram_base, ram_size;
bool guest_setup(void);
void guest_learn_ram(const void *host, uint64_t pa, uint32_t word);
bool guest_ready(void);
void *guest_ram(uint64_t pa, uint64_t length);
uint64_t guest_x(int number);
uint64_t guest_register(const char *name);
int guest_el(void);
struct half guest_half(uint64_t tcr, int half);
int first_level(const struct half *form);
int level_shift(const struct half *form, int level);
uint64_t output(const struct half *form, uint64_t desc, int level);
bool guest_walk(uint64_t root_pa, const struct half *form, uint64_t va, uint64_t *desc, int *level);
bool guest_va_to_pa(const struct cpu *cpu, uint64_t va, uint64_t *pa);
bool guest_read(const struct cpu *cpu, uint64_t va, uint64_t *value);
void guest_backtrace(const struct cpu *cpu, uint64_t pc, struct place *to);

/* decode.c */
enum insn {
	INSN_OTHER, INSN_STORE, INSN_USER_ACCESS, INSN_TLBI, INSN_DSB, INSN_MSR_SCTLR, INSN_MSR_TTBR0, INSN_MSR_TTBR1,
	INSN_MSR_TCR, INSN_MSR_SP_EL0, INSN_ERET, INSN_ZERO, INSN_SET
};
enum insn decode(uint32_t word);
bool is_bl(uint32_t word, uint64_t pc, uint64_t *target);
bool decode_tlbi(uint32_t word, uint64_t operand, const struct cpu *cpu, struct tlbi *to, const char **wrong);

/* tables.c */
bool table_page(uint64_t pa);
struct table *table_at(uint64_t pa);
void table_store(struct cpu *cpu, uint64_t pa, unsigned int size, uint64_t pc);
void table_install(struct cpu *cpu, int half, uint64_t ttbr, int asid, uint64_t pc);
void table_mmu_off(struct cpu *cpu);
void table_forget_flushed(const struct tlbi *op, const struct cpu *cpu);
bool is_leaf(uint64_t desc, int level);
bool is_table(uint64_t desc, int level);
unsigned int contiguous(const struct half *form, int level);
struct root *root_at(uint64_t pa);
uint64_t table_count(void);

/* stale.c */
extern uint64_t stale_count;
extern struct stale *stale_space[SPACES];
void stale_add(const struct stale *like);
void stale_remove(struct stale *one);
void stale_tlbi(struct cpu *cpu, const struct tlbi *op);
void stale_dsb(struct cpu *cpu, bool stores, bool complete, bool local, bool nxs);
bool stale_hit(const struct stale *one, const struct tlbi *op, const char **why);
bool stale_pending(const struct stale *one);
void stale_each(int space, uint64_t va, uint64_t size, void (*fn)(struct stale *one, void *data), void *data);
void stale_each_frame(uint64_t pa, void (*fn)(struct stale *one, void *data), void *data);
int rights(uint64_t desc);
uint64_t kind(uint64_t desc, const struct half *form);

/* rules.c */
extern const char *const rule_names[RULES];
void rule_changed(struct cpu *cpu, struct root *root, struct table *table, int slot, uint64_t va, uint64_t old,
		  uint64_t new, uint64_t pc);
void rule_boundary(struct cpu *cpu, uint64_t pc, const char *what, bool everywhere);
void rule_eret(struct cpu *cpu, uint64_t pc);
void rule_freed(struct cpu *cpu, uint64_t pa, uint64_t pc);
void rule_zeroed(struct cpu *cpu, uint64_t pa, uint64_t pc);
void rule_becomes_table(struct cpu *cpu, uint64_t pa, uint64_t pc);
void rule_contiguous(struct cpu *cpu, struct table *table, int slot, const struct half *form, uint64_t va,
		     uint64_t pc);

/* report.c */
void report_to(const char *path);
void report(enum rule rule, const struct cpu *cpu, const struct stale *one, uint64_t now_desc, uint64_t pc,
	    const char *what);
void report_all(void);
extern uint64_t counts[7];
enum { COUNT_TABLE_STORES, COUNT_TLBI, COUNT_DSB, COUNT_ERET, COUNT_STALE, COUNT_FREED, COUNT_INSTALL };

#endif
