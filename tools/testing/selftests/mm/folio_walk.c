// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk makes random sequences of calls. Several processes with memory in
 * large folios make these calls. A model knows after each step what every
 * process must see.
 *
 * One such sequence is called a life. A life is several hundred random calls by
 * up to four processes: map, fork, move, protect, page out, split, migrate,
 * pin, register with userfaultfd, truncate and so on. After each step the
 * program checks content, signals, pagemap, smaps, and the kernel's log against
 * the model. If a check fails, the program shortens the sequence, and prints
 * the shorter sequence in words and as a C program.
 *
 * The program does not check which folios the kernel allocates, swaps out or
 * merges. Documentation/mmcheck/walk.rst has the rules.
 *
 * Run folio_walk as root. The command folio_walk --seconds 60 begins with a
 * random seed. Without options, folio_walk runs a fixed number of lives from
 * three fixed seeds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "folio_walk.h"

struct walk *walk;
long walk_psize;
bool walk_verbose;

static struct {
	uint64_t seed;
	bool seeded;
	uint32_t steps;
	uint32_t lives;
	unsigned int seconds;
	bool going;
	bool strict;
	bool shrink;
	const char *program;
} option = { .steps = 400, .shrink = true };

static bool wanted[128];
static int cases, failures;
static sig_atomic_t stopped;

static const struct option options[] = {
	{ "seed", required_argument, NULL, 's' },	{ "steps", required_argument, NULL, 'n' },
	{ "lives", required_argument, NULL, 'l' },	{ "seconds", required_argument, NULL, 't' },
	{ "keep-going", no_argument, NULL, 'k' },	{ "calls", required_argument, NULL, 'c' },
	{ "list", no_argument, NULL, 'L' },		{ "verbose", no_argument, NULL, 'v' },
	{ "machine", no_argument, NULL, 'm' },		{ "folder", required_argument, NULL, 'd' },
	{ "limit", required_argument, NULL, 'h' },	{ "no-shrink", no_argument, NULL, 'S' },
	{ "program", required_argument, NULL, 'p' },	{ "help", no_argument, NULL, 'H' },
	{ "shrink-seconds", required_argument, NULL, 'T' }, {},
};

static const char usage[] =
	"usage: folio_walk [OPTION ...]\n"
	"  --seed N          seed of the first life; the next lives have N+1, N+2, ...\n"
	"  --steps N         steps of a life (400)\n"
	"  --lives N         end after this many lives\n"
	"  --seconds N       end after this time\n"
	"  --keep-going      continue after a failure; each rule is reported once\n"
	"  --calls A,B       run only these calls; -A,-B runs all calls except these\n"
	"  --list            print the calls, and what each call needs that is missing here\n"
	"  --machine         also run calls on the whole machine: swap, hugetlb pools, caches\n"
	"  --folder DIR      use a file in this folder too\n"
	"  --limit N         a step that takes this many seconds is a failure (20)\n"
	"  --no-shrink       print the whole sequence\n"
	"  --shrink-seconds N  how long to look for a shorter sequence (60)\n"
	"  --program FILE    write the shortest sequence to this file, as a C program\n"
	"  --verbose         print each step before it runs\n"
	"example: folio_walk --seed 7 --lives 1 --verbose\n";

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static void choose_calls(char *names)
{
	bool without = *names == '-';
	unsigned int i;
	char *name;

	for (i = 0; i < walk_nr_calls; i++)
		wanted[i] = without;
	for (name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		for (i = 0; i < walk_nr_calls; i++)
			if (!strcmp(walk_calls[i].name, name + (*name == '-')))
				break;
		if (i == walk_nr_calls) {
			fprintf(stderr, "--calls %s: no such call; see --list\n", name);
			exit(125);
		}
		wanted[i] = *name != '-';
	}
}

static void list_calls(void)
{
	unsigned int i;

	for (i = 0; i < walk_nr_calls; i++) {
		const char *lacks = walk_missing(walk_calls[i].needs);

		printf("%-18s weight %2d%s%s\n", walk_calls[i].name, walk_calls[i].weight,
		       lacks ? "  left out: needs " : "", lacks ?: "");
	}
}

/*
 * Print the calls that the walk does not use. The output must name these calls
 * even if all lives pass.
 */
static void print_left_out(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < walk_nr_calls; i++)
		n += walk_calls[i].weight && !walk_missing(walk_calls[i].needs);
	printf("# %u of %u calls; left out:", n, walk_nr_calls);
	for (i = 0; i < walk_nr_calls; i++)
		if (walk_missing(walk_calls[i].needs))
			printf(" %s (needs %s)", walk_calls[i].name,
			       walk_missing(walk_calls[i].needs));
	printf("\n");
	if (!has(HAS_AUDIT))
		printf("# no mm_audit in debugfs: the kernel's own counters are not audited\n");
}

/*
 * Print how many pairs of calls the walk has made, of those that it can make.
 * The second call of a pair follows the first one directly.
 */
static void print_pairs(void)
{
	unsigned int i, calls = 0, seen = 0;

	for (i = 0; i < walk_nr_calls; i++) {
		calls += wanted[i] && walk_calls[i].weight && has(walk_calls[i].needs);
		seen += __builtin_popcountll(walk->pairs[i][0]) +
			__builtin_popcountll(walk->pairs[i][1]);
	}
	printf("# %u of %u pairs of calls\n", seen, calls * calls);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void write_program(uint64_t seed, const struct walk_step *steps, uint32_t nr)
{
	FILE *f = option.program ? fopen(option.program, "w") : NULL;

	if (f) {
		walk_print_program(f, seed, steps, nr);
		fclose(f);
	} else if (option.program) {
		printf("# %s: %s\n", option.program, strerror(errno));
	}
}

/*
 * Returns whether a life without steps fails in the same way. Then the kernel's
 * counters are wrong until the next boot, and each sequence of steps fails.
 */
static bool stays(uint64_t seed, const struct walk_step *steps)
{
	struct walk_verdict first = walk->verdict;
	bool same;

	same = !strncmp(first.rule, "audit-", 6) && !walk_life(seed, 0, steps, 0, NULL) &&
	       !strcmp(first.rule, walk->verdict.rule);
	walk->verdict = first;
	return same;
}

/* Report a failure. Returns whether the walk can continue in this boot. */
static bool report(uint64_t seed, bool hang)
{
	static struct walk_step steps[WALK_STEPS];
	uint32_t nr = walk->nr_steps;
	unsigned int of = 0;
	bool stuck;

	memcpy(steps, walk->steps, nr * sizeof(*steps));
	printf("# seed %llu fails in step %u: %s: %s\n", (unsigned long long)seed,
	       walk->verdict.step, walk->verdict.rule, walk->verdict.text);
	fflush(stdout);
	stuck = !hang && stays(seed, steps);
	if (stuck) {
		printf("# the violation stays after the life, so the walk ends; see all steps\n");
	} else if (option.shrink && !hang) {
		nr = walk_shrink(seed, steps, nr, &of);
		printf("# the same steps fail %u of 4 times; %u steps are enough: %s: %s\n", of, nr,
		       walk->verdict.rule, walk->verdict.text);
	}
	walk_print_words(steps, nr);
	write_program(seed, steps, nr);
	fflush(stdout);
	return !stuck;
}

static bool seen_before(const char *rule)
{
	static char seen[32][40];
	unsigned int i;

	for (i = 0; i < 32 && seen[i][0]; i++)
		if (!strcmp(seen[i], rule))
			return true;
	if (i < 32)
		snprintf(seen[i], sizeof(seen[i]), "%s", rule);
	return false;
}

/* Run one case, which is a series of lives with consecutive seeds. */
static void run_case(uint64_t seed, unsigned int seconds, uint32_t lives)
{
	uint64_t first = seed, steps = 0, checks = 0;
	uint64_t audits = walk->audits, audit_ns = walk->audit_ns;
	double begin = now(), spent;
	uint32_t done = 0, bad = 0, passes = 0;
	static bool reported[WALK_ISSUES];
	char known[64] = "";
	int issue;

	while (!stopped && (!lives || done < lives) && (!seconds || now() - begin < seconds)) {
		bool passed = walk_life(seed, option.steps, NULL, 0, wanted);

		done++;
		passes += passed;
		steps += walk->nr_steps;
		checks += walk->verdict.checks;
		if (!passed && walk->verdict.known) {
			printf("# seed %llu meets issue %d after %.1f s and %llu steps: %s: %s\n",
			       (unsigned long long)seed, walk->verdict.known, now() - begin,
			       (unsigned long long)steps, walk->verdict.rule, walk->verdict.text);
			snprintf(known, sizeof(known), ", met known issue %d", walk->verdict.known);
			if (option.program && !seen_before(walk->verdict.rule))
				report(seed, false);
		} else if (!passed) {
			bool hang = !strcmp(walk->verdict.rule, "hang");

			bad++;
			if ((!seen_before(walk->verdict.rule) && !report(seed, hang)) ||
			    !option.going)
				break;
		}
		for (issue = 0; issue < WALK_ISSUES; issue++) {
			if (!walk->known[issue] || reported[issue])
				continue;
			reported[issue] = true;
			printf("# seed %llu meets known issue %d after %.1f s and %llu steps\n",
			       (unsigned long long)seed, issue, now() - begin,
			       (unsigned long long)steps);
		}
		seed++;
	}
	spent = now() - begin;
	audits = walk->audits - audits;
	audit_ns = walk->audit_ns - audit_ns;
	/*
	 * A case fails if it made no step, no check or no audit. Each life that
	 * passes ends with an audit.
	 */
	bad += !steps || !checks || (has(HAS_AUDIT) && passes && !audits);
	printf("# %u lives, %llu steps, %llu checks, %.0f steps/s\n", done,
	       (unsigned long long)steps, (unsigned long long)checks, steps / spent);
	print_pairs();
	if (audits)
		printf("# %llu audits in %.1f s, %.1f audits/s\n", (unsigned long long)audits,
		       audit_ns / 1e9, audits / (audit_ns / 1e9));
	printf("%s %d seed_%llu%s\n", bad ? "not ok" : "ok", ++cases, (unsigned long long)first,
	       known);
	fflush(stdout);
	failures += !!bad;
}

static unsigned long parse_number(const char *text, const char *name)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (*end || end == text) {
		fprintf(stderr, "--%s %s: give a number\n", name, text);
		exit(125);
	}
	return value;
}

static void parse(int argc, char **argv)
{
	int c, at;

	while ((c = getopt_long(argc, argv, "", options, &at)) >= 0) {
		switch (c) {
		case 's':
			option.seed = parse_number(optarg, "seed");
			option.seeded = true;
			break;
		case 'n':
			option.steps = parse_number(optarg, "steps");
			if (!option.steps || option.steps > WALK_STEPS) {
				fprintf(stderr, "--steps %s: from 1 to %d\n", optarg, WALK_STEPS);
				exit(125);
			}
			break;
		case 'l':
			option.lives = parse_number(optarg, "lives");
			break;
		case 't':
			option.seconds = parse_number(optarg, "seconds");
			break;
		case 'T':
			walk_shrink_seconds = parse_number(optarg, "shrink-seconds");
			break;
		case 'h':
			walk_limit = parse_number(optarg, "limit");
			break;
		case 'k':
			option.going = true;
			break;
		case 'c':
			choose_calls(optarg);
			break;
		case 'm':
			walk->features |= HAS_MACHINE;
			break;
		case 'd':
			walk_folders[4] = optarg;
			break;
		case 'p':
			option.program = optarg;
			break;
		case 'v':
			walk_verbose = true;
			break;
		case 'S':
			option.shrink = false;
			break;
		case 'L':
			walk_probe();
			list_calls();
			exit(0);
		case 'H':
			printf("%s", usage);
			exit(0);
		default:
			exit(125);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: no such argument; see --help\n", argv[optind]);
		exit(125);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };
	uint64_t random_seed = 0;

	walk_psize = sysconf(_SC_PAGESIZE);
	walk = mmap(NULL, sizeof(*walk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (walk == MAP_FAILED) {
		fprintf(stderr, "no memory for the model: %s\n", strerror(errno));
		return 125;
	}
	/*
	 * Write line by line: if the output goes to the kernel's log, each line
	 * then becomes one record.
	 */
	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(wanted, 1, sizeof(wanted));
	/* --list exits in parse(), after it has found out what the kernel has. */
	atexit(walk_restore_settings);
	parse(argc, argv);
	if (geteuid()) {
		printf("TAP version 13\n1..0 # SKIP needs root\n");
		return 4;
	}
	walk_open_objects(walk_folders);
	walk_probe();
	walk_save_settings();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	printf("TAP version 13\n");
	print_left_out();
	walk_first_audit();
	if (getrandom(&random_seed, 4, 0) != 4)
		random_seed = time(NULL);
	if (option.seeded || option.seconds || option.lives) {
		printf("1..1\n");
		run_case(option.seeded ? option.seed : random_seed, option.seconds,
			 option.lives ?: option.seconds ? 0 : 1);
	} else {
		printf("1..3\n");
		run_case(1, 0, 2);
		run_case(1000, 0, 2);
		run_case(2000, 0, 2);
	}
	printf("# Totals: pass:%d fail:%d xfail:0 xpass:0 skip:0 error:0\n", cases - failures,
	       failures);
	return stopped ? 130 : failures ? 1 : 0;
}
