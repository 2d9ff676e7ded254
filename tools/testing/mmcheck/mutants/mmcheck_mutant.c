// SPDX-License-Identifier: GPL-2.0
/*
 * Enables one of the many mutants of this kernel, and records which functions
 * with mutants run.
 *
 * mmcheck_mutant=7 enables mutant 7 after the initcalls, just before the tests
 * run. mmcheck_mutant_early=7 enables it as soon as the command line is parsed,
 * for mutants of code that only runs during the boot. mmcheck_reach prints,
 * before each verdict of KUnit, the functions that ran since the last verdict.
 * mmcheck_cases=1c runs only the cases 0, 6 and 7. Each hexadecimal digit stands
 * for four cases, and its lowest bit for the first of them: the digit 1 selects
 * case 0 of the cases 0 to 3, and c selects 6 and 7 of the cases 4 to 7.
 * Selftests read /proc/mmcheck_reached.
 */

#include <linux/cache.h>
#include <linux/hex.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <kunit/test.h>

#define FUNCTIONS	4096
#define PER_LINE	60

extern int mmcheck_mutant;
int mmcheck_mutant;
static int mmcheck_mutant_later;

extern volatile unsigned char mmcheck_reached[];
volatile unsigned char mmcheck_reached[FUNCTIONS];

/* The code that runs before all other code has other names on arm64. */
extern int __pi_mmcheck_mutant;
int __pi_mmcheck_mutant;
extern volatile unsigned char __pi_mmcheck_reached[];
volatile unsigned char __pi_mmcheck_reached[FUNCTIONS];

static bool mmcheck_reach;
static const char *mmcheck_cases;

static int __init mmcheck_mutant_parse(char *value)
{
	return kstrtoint(value, 0, &mmcheck_mutant_later);
}
early_param("mmcheck_mutant", mmcheck_mutant_parse);

static int __init mmcheck_mutant_parse_early(char *value)
{
	return kstrtoint(value, 0, &mmcheck_mutant);
}
early_param("mmcheck_mutant_early", mmcheck_mutant_parse_early);

static int __init mmcheck_reach_parse(char *value)
{
	mmcheck_reach = true;
	return 1;
}
__setup("mmcheck_reach", mmcheck_reach_parse);

static int __init mmcheck_cases_parse(char *value)
{
	/* The argument is part of the saved command line, which stays. */
	mmcheck_cases = value;
	return 1;
}
__setup("mmcheck_cases=", mmcheck_cases_parse);

/* Writes numbers to `line` until it is full; returns the next place. */
static int mmcheck_some(int place, char *line, size_t size)
{
	int count = 0, length = 0;

	line[0] = '\0';
	for (; place < FUNCTIONS && count < PER_LINE; place++) {
		if (!mmcheck_reached[place])
			continue;
		mmcheck_reached[place] = 0;
		length += scnprintf(line + length, size - length, " %d", place);
		count++;
	}
	return place;
}

/* Called by KUnit before it prints a verdict, or the name of a suite. */
void mmcheck_report(void);
void mmcheck_report(void)
{
	static char line[PER_LINE * 6];
	int place = 0;

	while (mmcheck_reach && place < FUNCTIONS) {
		place = mmcheck_some(place, line, sizeof(line));
		if (line[0])
			pr_info("# mmcheck_reached:%s\n", line);
	}
}

#if IS_ENABLED(CONFIG_KUNIT)
static bool mmcheck_wants(unsigned int number)
{
	unsigned int digit = number / 4;

	if (digit >= strlen(mmcheck_cases))
		return false;
	return hex_to_bin(mmcheck_cases[digit]) >> number % 4 & 1;
}

/* Called by KUnit for each suite: is there a case to run? Skips the others. */
bool mmcheck_wanted(struct kunit_suite *suite);
bool mmcheck_wanted(struct kunit_suite *suite)
{
	static unsigned int number;
	struct kunit_case *test_case;
	bool any = false;

	if (!mmcheck_cases)
		return true;
	kunit_suite_for_each_test_case(suite, test_case) {
		if (mmcheck_wants(number++))
			any = true;
		else
			test_case->status = KUNIT_SKIPPED;
	}
	return any;
}
#endif

#ifdef CONFIG_PROC_FS
static int mmcheck_reached_show(struct seq_file *file, void *data)
{
	char line[PER_LINE * 6];
	int place = 0;

	while (place < FUNCTIONS) {
		place = mmcheck_some(place, line, sizeof(line));
		if (line[0])
			seq_printf(file, "%s\n", line);
	}
	return 0;
}
#endif

static int __init mmcheck_mutant_on(void)
{
#ifdef CONFIG_PROC_FS
	proc_create_single("mmcheck_reached", 0400, NULL, mmcheck_reached_show);
#endif
	if (mmcheck_mutant_later)
		mmcheck_mutant = mmcheck_mutant_later;
	return 0;
}
late_initcall_sync(mmcheck_mutant_on);
