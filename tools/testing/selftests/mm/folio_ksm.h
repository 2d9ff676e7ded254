/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers that let KSM merge pages. The settings are restored at the end of the program. */
#ifndef FOLIO_KSM_H
#define FOLIO_KSM_H

#include <dirent.h>
#include <sched.h>

#include "folio_util.h"

/* Let KSM run. @zeros says whether it replaces pages of zeros with the zero page. */
static inline void ksm_merge_begin(bool zeros)
{
	/* Otherwise KSM often skips addresses at which it found no page to merge before. */
	write_text(FOLIO_KSM "smart_scan", "0");
	write_num(FOLIO_KSM "use_zero_pages", zeros);
	write_num(FOLIO_KSM "pages_to_scan", 1000);
	write_num(FOLIO_KSM "sleep_millisecs", 10);
	write_num(FOLIO_KSM "run", 1);
}

static inline void ksm_merge_end(void)
{
	write_num(FOLIO_KSM "run", 0);
}

/* The kernel thread of KSM, or 0, and the CPUs that it runs on outside the tests */
static pid_t ksm_thread, ksm_owner;
static cpu_set_t ksm_cpus;

/* Let the kernel thread of KSM run only on these CPUs. The program restores its CPUs at the end. */
static inline bool ksm_pin(const cpu_set_t *cpus)
{
	return ksm_thread && !sched_setaffinity(ksm_thread, sizeof(*cpus), cpus);
}

static void ksm_restore(void)
{
	if (getpid() == ksm_owner)
		ksm_pin(&ksm_cpus);
}

static void ksm_interrupted(int number)
{
	ksm_restore();
	folio_settings_interrupted(number);
}

static __attribute__((constructor)) void ksm_save(void)
{
	struct sigaction action = { .sa_handler = ksm_interrupted };
	char path[288], name[16];
	struct dirent *one;
	DIR *all;

	if (geteuid() || access(FOLIO_KSM, F_OK))
		return;
	all = opendir("/proc");
	while (all && !ksm_thread && (one = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", one->d_name);
		if (atoi(one->d_name) && read_file(path, name, sizeof(name)) &&
		    !strcmp(name, "ksmd\n"))
			ksm_thread = atoi(one->d_name);
	}
	if (all)
		closedir(all);
	if (ksm_thread && sched_getaffinity(ksm_thread, sizeof(ksm_cpus), &ksm_cpus))
		ksm_thread = 0;
	ksm_owner = getpid();
	atexit(ksm_restore);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

#endif /* FOLIO_KSM_H */
