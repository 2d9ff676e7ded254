// SPDX-License-Identifier: GPL-2.0
/*
 * Which mutant is on, in a kernel that holds many.
 *
 * mmcheck_mutant=7 switches number 7 on after the initcalls, just before the
 * tests run; mmcheck_mutant_early=7 from the parsing of the command line on,
 * for code that is done by then.
 */

#include <linux/cache.h>
#include <linux/init.h>
#include <linux/kernel.h>

extern int mmcheck_mutant;
int mmcheck_mutant;
static int mmcheck_mutant_later;

/* Code that runs before all other has names of its own on arm64. */
extern int __pi_mmcheck_mutant;
int __pi_mmcheck_mutant;

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

static int __init mmcheck_mutant_on(void)
{
	if (mmcheck_mutant_later)
		mmcheck_mutant = mmcheck_mutant_later;
	return 0;
}
late_initcall_sync(mmcheck_mutant_on);
