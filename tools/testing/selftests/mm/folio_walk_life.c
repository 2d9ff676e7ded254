// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: run one life, and search for a shorter life that fails in the
 * same way. A life is a random sequence of steps that begins with fresh
 * processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "folio_walk_run.h"

const char *walk_folders[8] = { "/mnt", "/var/tmp", "/tmp", "/dev/shm" };
unsigned int walk_shrink_seconds = 60;

static bool allowed(const struct walk_call *c, long error)
{
	unsigned int i;

	for (i = 0; i < sizeof(c->may) / sizeof(*c->may); i++)
		if (c->may[i] && c->may[i] == -error)
			return true;
	return error == NOT_NOW;
}

/* Note which call follows which. A pair may be calls of two processes. */
static void note_pair(const struct walk_step *before, const struct walk_step *s)
{
	walk->pairs[before->call][s->call / 64] |= BITS(s->call % 64);
}

static void step(const struct walk_step *s)
{
	const struct walk_call *c = &walk_calls[s->call];
	bool watched = walk_before(s);
	long result = walk_command(s->proc, RUN, 0, 0);
	char words[200];

	walk->stamp = s->val + WALK_PAGES;
	walk->calls[s->call]++;
	if (walk->verdict.failed)
		return;
	if (result < 0 && !allowed(c, result)) {
		walk_fail("result", "%s: %s, expected success", walk_words(s, words, sizeof(words)),
			  strerror(-result));
		return;
	}
	if (result >= 0 && c->model)
		c->model(s, result);
	if (watched)
		walk_after(s, result);
	walk_check_step(s);
}

/* The process that drives a life. When it ends, all workers end. */
static void driver(uint64_t seed, uint32_t steps, const struct walk_step *given, uint32_t nr,
		   const bool *wanted)
{
	char words[200];
	uint32_t i;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	walk_seed(seed);
	walk_first_settings();
	if (!walk_open_objects(walk_folders)) {
		walk_fail("setup", "no file to work with");
		return;
	}
	walk_check_begin();
	if (walk_start()) {
		walk_fail("setup", "no worker: %s", strerror(errno));
		return;
	}
	for (i = 0; i < (given ? nr : steps) && !walk->verdict.failed; i++) {
		struct walk_step *s = &walk->steps[i];

		if (given)
			*s = given[i];
		else if (!walk_draw(s, wanted))
			break;
		/*
		 * Record the step before it runs, so that the report has this
		 * step even if its call never returns.
		 */
		walk->now = i;
		walk->nr_steps = i + 1;
		s->skipped = given && !walk_fits(s);
		if (s->skipped)
			continue;
		if (walk_verbose) {
			printf("# %u: %s\n", i, walk_words(s, words, sizeof(words)));
			fflush(stdout);
		}
		step(s);
		if (i && !given && !walk->verdict.failed)
			note_pair(&walk->steps[i - 1], s);
	}
	if (!walk->verdict.failed)
		walk_check_all(true);
}

/**
 * walk_life() - run one life
 * @seed: decides the first settings and all steps
 * @steps: how many steps to draw
 * @given: steps to repeat instead, or NULL
 * @nr: how many steps are given
 * @wanted: which calls to draw
 *
 * Return: whether the life passed. walk->verdict, walk->steps and walk->nr_steps hold the details.
 */
bool walk_life(uint64_t seed, uint32_t steps, const struct walk_step *given, uint32_t nr,
	       const bool *wanted)
{
	int status;
	pid_t pid;

	memset(walk->page, 0, sizeof(walk->page));
	memset(walk->box, 0, sizeof(walk->box));
	memset(walk->pins, 0, sizeof(walk->pins));
	walk->stamp = 0;
	walk->nr_steps = 0;
	walk->verdict = (struct walk_verdict){};
	/* If the kernel dies, this line is the last one with a seed on the console. */
	if (given)
		printf("# seed %llu, %u steps again\n", (unsigned long long)seed, nr);
	else
		printf("# seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		walk_fail("setup", "fork: %s", strerror(errno));
		return false;
	}
	if (!pid) {
		driver(seed, steps, given, nr, wanted);
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);
	if (!WIFEXITED(status))
		walk_fail("driver-died", "the driver ended by signal %d", WTERMSIG(status));
	/* main() adopted the workers. */
	while (waitpid(-pid, &status, 0) > 0 || errno == EINTR)
		;
	/* On a machine that does nothing else, all folios of the life must be free now. */
	if (!walk->verdict.failed && has(HAS_MACHINE))
		walk_audit(true);
	return !walk->verdict.failed;
}

static uint64_t shrink_seed;
static char shrink_rule[40];

/*
 * Returns true if these steps still fail in the same way in at least one life.
 * The function runs at most @tries lives.
 */
static bool still(const struct walk_step *steps, uint32_t nr, unsigned int tries)
{
	while (tries--)
		if (!walk_life(shrink_seed, 0, steps, nr, NULL) &&
		    !strcmp(walk->verdict.rule, shrink_rule))
			return true;
	return false;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Remove the steps that the last life skipped. Otherwise a C program that
 * repeats the steps would wait for a process that does not exist. Returns how
 * many steps are left.
 */
static uint32_t without_skipped(struct walk_step *steps, uint32_t nr)
{
	uint32_t i, left = 0, failed = walk->verdict.step;

	for (i = 0; i < nr; i++) {
		if (i < walk->nr_steps && walk->steps[i].skipped)
			walk->verdict.step -= i < failed;
		else
			steps[left++] = steps[i];
	}
	return left;
}

/**
 * walk_shrink() - leave out steps and shorten ranges while the life still fails
 * @seed: the seed of the life that failed
 * @steps: its steps, which are changed in place
 * @nr: the number of steps
 * @of: is set to how often the whole sequence failed again in 4 repetitions
 *
 * Return: the number of steps that are left; walk->verdict belongs
 *	to these steps
 */
uint32_t walk_shrink(uint64_t seed, struct walk_step *steps, uint32_t nr, unsigned int *of)
{
	static struct walk_step less[WALK_STEPS];
	struct walk_verdict first = walk->verdict;
	time_t end = now() + walk_shrink_seconds;
	uint32_t chunk, at, i;
	unsigned int tries;

	shrink_seed = seed;
	snprintf(shrink_rule, sizeof(shrink_rule), "%s", walk->verdict.rule);
	for (i = 0, *of = 0; i < 4; i++)
		*of += still(steps, nr, 1);
	tries = *of == 4 ? 1 : *of ? 4 : 0;
	for (chunk = nr / 2; chunk && tries; chunk /= 2) {
		for (at = 0; at < nr && now() < end;) {
			uint32_t cut = chunk < nr - at ? chunk : nr - at;

			memcpy(less, steps, at * sizeof(*less));
			memcpy(less + at, steps + at + cut, (nr - at - cut) * sizeof(*less));
			if (cut < nr && still(less, nr - cut, tries)) {
				nr -= cut;
				memcpy(steps, less, nr * sizeof(*less));
			} else {
				at += cut;
			}
		}
	}
	for (i = 0; i < nr && tries; i++) {
		uint32_t len;

		for (len = 1; len < steps[i].len && now() < end; len *= 4) {
			memcpy(less, steps, nr * sizeof(*less));
			less[i].len = len;
			if (less[i].tolen == steps[i].len)
				less[i].tolen = len;
			if (still(less, nr, tries)) {
				steps[i] = less[i];
				break;
			}
		}
	}
	/* The reported verdict must belong to the reported sequence. */
	for (i = 0; i < 8 && tries; i++)
		if (still(steps, nr, 1))
			return without_skipped(steps, nr);
	walk->verdict = first;
	return nr;
}
