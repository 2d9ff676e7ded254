/* SPDX-License-Identifier: GPL-2.0 */
/*
 * folio_walk: random sequences of calls that change address spaces (each
 * sequence is called a life), and a model of what each process must see.
 * Documentation/mmcheck/walk.rst describes it.
 *
 * Positions and lengths are in pages of the arena, a range of addresses that is
 * the same in each process.
 */
#ifndef FOLIO_WALK_H
#define FOLIO_WALK_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define BITS(n) (1ULL << (n))

#define WALK_PROCS 4
#define WALK_PAGES 2048
#define WALK_OBJECTS 4
#define WALK_ISSUES 128	/* larger than the number of any known issue */
#define WALK_OBJ_PAGES 256
#define WALK_STEPS 4096
#define WALK_PINS 4
#define WALK_ARENA 0x1000000000UL
/*
 * The number of words that folio_walk writes and checks in each page; see
 * walk_word_at().
 */
#define WALK_WORDS 8

enum walk_kind { NOTHING, ANON, PRIVATE, SHARED };

/* What the model knows about one page of one process. */
enum walk_flags {
	OWN = 1 << 0,		/* has its own page, in memory or in swap */
	LAZY = 1 << 1,		/* MADV_FREE: the kernel may replace it by zeros */
	GUARD = 1 << 2,		/* any access raises SIGSEGV */
	LOCKED = 1 << 3,
	ONFAULT = 1 << 4,	/* locked, but only if present */
	NOFORK = 1 << 5,	/* MADV_DONTFORK */
	WIPE = 1 << 6,		/* MADV_WIPEONFORK */
	MERGE = 1 << 7,		/* MADV_MERGEABLE */
	MISS = 1 << 8,		/* userfaultfd: an access raises SIGBUS if not OWN */
	WPREG = 1 << 9,		/* userfaultfd: may be write-protected */
	ASYNC = 1 << 10,	/* userfaultfd: a write only drops WP */
	WP = 1 << 11,		/* userfaultfd: write-protected */
	HUGETLB = 1 << 12,
	PINNED = 1 << 13,	/* must keep its frame, struct walk_page.pfn */
	INHERITED = 1 << 14,	/* from fork(), and not written to since then */
	MOVED = 1 << 15,	/* by mremap() */
	SOFT = 1 << 16,		/* written to since soft-dirty bits were cleared */
	UFFD = MISS | WPREG | ASYNC | WP,
};

struct walk_page {
	uint64_t val;		/* what the page contains; 0 stands for zeros */
	uint64_t pfn;
	uint32_t off;		/* page of the object */
	uint32_t flags;
	uint8_t kind;
	uint8_t prot;
	int8_t obj;
};

struct walk_object {
	uint64_t val[WALK_OBJ_PAGES];
	uint32_t size;
	int fd;
	int direct;		/* the same file with O_DIRECT, or -1 */
	bool shmem;		/* see m_unsure() */
	char name[40];
};

/*
 * One step. It contains all arguments of its call, so the step stays the same
 * if other steps are removed.
 */
struct walk_step {
	uint16_t call;
	uint8_t proc;
	uint8_t other;
	uint32_t at, len;
	uint32_t to, tolen;
	uint32_t off;
	uint32_t x;
	int8_t obj;
	uint8_t prot;
	uint64_t val;
	uint64_t check;		/* seed of the checks after the step */
	bool skipped;		/* the step made no sense in its state */
};

struct walk_verdict {
	bool failed;
	int known;		/* number of a known issue, or 0 */
	uint32_t step;
	uint64_t checks;
	char rule[40];
	char text[360];
};

enum walk_order { IDLE, RUN, CHECK, MINCORE };

/* The driver and a worker communicate through this struct. */
struct walk_box {
	uint32_t go;
	uint32_t done;
	uint32_t order;
	int pid;
	int alive;
	uint32_t at, len;
	long result;
	int error;
	uint32_t count;		/* how much the call did, if its result does not show it */
	uint8_t vec[WALK_PAGES];
};

enum walk_feature {
	HAS_GUARD = 1 << 0,
	HAS_UFFD = 1 << 1,
	HAS_UFFD_WP = 1 << 2,
	HAS_UFFD_MOVE = 1 << 3,
	HAS_KSM = 1 << 4,
	HAS_SPLIT = 1 << 5,
	HAS_NODES = 1 << 6,
	HAS_SWAP = 1 << 7,
	HAS_SCAN = 1 << 8,
	HAS_HUGETLB = 1 << 9,
	HAS_URING = 1 << 10,
	HAS_RECLAIM = 1 << 11,
	HAS_THP = 1 << 12,
	HAS_COMPACT = 1 << 13,
	HAS_FORCE = 1 << 14,
	HAS_GUARD_BIT = 1 << 15,
	HAS_FILE_GUARD = 1 << 16,
	HAS_AUDIT = 1 << 17,
	HAS_MACHINE = 1 << 19,	/* may change the whole machine */
	HAS_SOFT_DIRTY = 1 << 20,
	HAS_ASYNC = 1 << 21,	/* writes to pages with asynchronous protection are safe */
};

/* The whole struct is in shared memory. */
struct walk {
	struct walk_page page[WALK_PROCS][WALK_PAGES];
	struct walk_object object[WALK_OBJECTS];
	struct walk_box box[WALK_PROCS];
	struct walk_step steps[WALK_STEPS];
	uint32_t nr_steps;
	uint32_t now;		/* the step that runs */
	uint32_t features;
	uint32_t orders;	/* of anonymous folios, one bit each */
	uint32_t table;		/* pages of a page table */
	uint32_t cont;		/* pages of a contiguous block */
	uint32_t unit;		/* pages of a hugetlb page */
	uint64_t stamp;
	uint8_t pins[WALK_PROCS];	/* which slots of a process hold pins */
	uint64_t calls[128];
	uint64_t pairs[128][2];	/* for each call, a bit for each call that came next */
	uint64_t audits, audit_ns;	/* how many audits, and how long they took */
	bool known[WALK_ISSUES];	/* known issues that were met */
	struct walk_verdict verdict;
};

/**
 * struct walk_call - one row of the table of calls
 * @name: for --calls, --list and messages
 * @weight: how often the walk chooses it
 * @needs: features of the kernel
 * @flags: see below
 * @arg: a number that draw(), run() and model() use
 * @draw: chooses the arguments that the general rules do not choose
 * @valid: whether the step makes sense in this state
 * @run: runs in the worker; returns 0 or -errno
 * @model: what the call must have changed
 * @may: errors that the documents allow, 0 at the end
 * @code: the call in C, for the reproducer
 */
struct walk_call {
	const char *name;
	int weight;
	uint32_t needs;
	uint32_t flags;
	long arg;
	void (*draw)(struct walk_step *s);
	bool (*valid)(const struct walk_step *s);
	long (*run)(const struct walk_step *s);
	void (*model)(const struct walk_step *s, long result);
	int may[6];
	const char *code;
};

/*
 * Flags of a call. Most flags are conditions that each page in the range of the
 * call must meet.
 */
enum walk_call_flags {
	MAPPED = 1 << 0,	/* mapped; a call with neither MAPPED nor ANY has no range */
	ANY = 1 << 1,		/* a range, and its pages may be unmapped */
	NO_HUGETLB = 1 << 2,
	NO_LOCKED = 1 << 3,
	NO_UFFD = 1 << 4,
	NO_GUARD = 1 << 5,
	ONLY_ANON = 1 << 6,
	ONLY_FILE = 1 << 7,
	READABLE = 1 << 8,
	WRITABLE = 1 << 9,
	INSIDE = 1 << 10,	/* not after the end of a file */
	ONE_VMA = 1 << 11,	/* pages of one kind, with offsets in order */
	ONLY_SHARED = 1 << 12,
	TOUCHES = 1 << 13,	/* content or entries of the range change */
	SHORT = 1 << 14,	/* a short range is enough */
	NO_PRIVATE_FILE = 1 << 15,
};

extern struct walk *walk;
extern const struct walk_call walk_calls[];
extern const unsigned int walk_nr_calls;
extern int walk_me;
extern long walk_psize;
extern bool walk_verbose;

static inline bool has(uint32_t features)
{
	return (walk->features & features) == features;
}

static inline char *at_page(uint32_t page)
{
	return (char *)WALK_ARENA + (size_t)page * walk_psize;
}

static inline size_t in_bytes(uint32_t pages)
{
	return (size_t)pages * walk_psize;
}

static inline struct walk_page *page_of(int proc, uint32_t page)
{
	return &walk->page[proc][page];
}

/* folio_walk_model.c */
uint64_t walk_random(void);
uint32_t walk_below(uint32_t limit);
void walk_seed(uint64_t seed);
uint64_t m_val(const struct walk_page *p);
bool m_beyond(const struct walk_page *p);
bool m_unsure(const struct walk_page *p);
bool m_soft_dirty(const struct walk_page *p);
int m_signal(const struct walk_page *p, bool write);
void m_write(struct walk_page *p, uint64_t val);
void m_zap(struct walk_page *p);
void m_drop(struct walk_page *p);
void m_fork(int parent, int child);
void m_truncate(int obj, uint32_t size);
void m_own(struct walk_page *p);
bool m_one_vma(int proc, uint32_t at, uint32_t len);
bool walk_fits(const struct walk_step *s);
bool walk_draw(struct walk_step *s, const bool *wanted);
const char *walk_words(const struct walk_step *s, char *text, size_t size);

/* folio_walk_work.c */
void walk_worker(int me);
long walk_command(int proc, enum walk_order order, uint32_t at, uint32_t len);
bool walk_alive(int proc);
int walk_start(void);
void walk_gone(int proc);
extern unsigned int walk_limit;

/* folio_walk_touch.c: accesses by the worker itself */
uint64_t walk_word(uint64_t val, unsigned int i);
unsigned int walk_word_at(unsigned int i);
int walk_poke(uint32_t page, uint64_t val);
int walk_peek(uint32_t page, uint64_t *words);
bool walk_compare(struct walk_page *p, uint32_t page, const uint64_t *words, const char *how);
void walk_check_content(uint32_t at, uint32_t len);
void walk_catch_signals(void);

/* folio_walk_check.c */
void walk_fail(const char *rule, const char *format, ...);
bool walk_has(int issue);
bool walk_known(int issue);
void walk_lost_hugetlb(const struct walk_page *p, bool lost);
void walk_check_begin(void);
void walk_check_step(const struct walk_step *s);
void walk_check_all(bool slow);
void walk_check_forget(int proc);
bool walk_before(const struct walk_step *s);
void walk_after(const struct walk_step *s, long result);

/* folio_walk_audit.c */
void walk_audit(bool quiet);
void walk_first_audit(void);

/* folio_walk_machine.c: what the kernel has, and settings */
void walk_probe(void);
void walk_save_settings(void);
void walk_restore_settings(void);
void walk_first_settings(void);
bool walk_open_objects(const char *const *folders);
bool walk_write_text(const char *path, const char *text);
long walk_read_number(const char *path);
extern char walk_debugfs[64];
const char *walk_missing(uint32_t needs);

/* folio_walk_life.c */
bool walk_life(uint64_t seed, uint32_t steps, const struct walk_step *given, uint32_t nr,
	       const bool *wanted);
uint32_t walk_shrink(uint64_t seed, struct walk_step *steps, uint32_t nr, unsigned int *of);
extern const char *walk_folders[8];
extern unsigned int walk_shrink_seconds;

/* folio_walk_repro.c */
void walk_print_words(const struct walk_step *steps, uint32_t nr);
void walk_print_program(FILE *out, uint64_t seed, const struct walk_step *steps, uint32_t nr);

#endif /* FOLIO_WALK_H */
