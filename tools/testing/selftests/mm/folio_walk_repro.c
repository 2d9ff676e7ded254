// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: print a sequence of steps in words, or as a C program. The C
 * program needs no header of this project, and is compiled with gcc -static
 * program.c.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "folio_walk_prelude.h"

void walk_print_words(const struct walk_step *steps, uint32_t nr)
{
	char words[200];
	uint32_t i;

	for (i = 0; i < nr; i++)
		printf("#   %u: %s\n", i, walk_words(&steps[i], words, sizeof(words)));
}

/* Print one step in C: insert the arguments of the step into the template of the call. */
static void print_call(FILE *out, const struct walk_step *s)
{
	const struct walk_call *c = &walk_calls[s->call];
	const char *t;

	for (t = c->code; *t; t++) {
		if (*t != '$') {
			fputc(*t, out);
			continue;
		}
		switch (*++t) {
		case 'a':
			fprintf(out, "A(%u)", s->at);
			break;
		case 'l':
			fprintf(out, "%u * page", s->len);
			break;
		case 'b':
			fprintf(out, "A(%u)", s->to);
			break;
		case 'm':
			fprintf(out, "%u * page", s->tolen);
			break;
		case 'n':
			fprintf(out, "%u", s->len);
			break;
		case 'p':
			fprintf(out, "%d", s->prot);
			break;
		case 'f':
			fprintf(out, "file[%d]", s->obj);
			break;
		case 'o':
			fprintf(out, "%u * page", s->off);
			break;
		case 'w':
			fprintf(out, "%u", s->off);
			break;
		case 'v':
			fprintf(out, "%llu", (unsigned long long)s->val);
			break;
		case 'x':
			fprintf(out, "%u", s->x);
			break;
		case 'q':
			fprintf(out, "%d", s->other);
			break;
		case 'k':
			fprintf(out, "%ld", c->arg);
			break;
		case 'h':
			fprintf(out, "%d << 26", __builtin_ctzl(in_bytes(walk->unit)));
			break;
		}
	}
}

/*
 * Print the folio sizes that are allowed at the start of the sequence with this
 * seed, and the entry into the memory cgroup if a step needs it; see
 * walk_first_settings().
 */
static void print_settings(FILE *out, uint64_t seed, const struct walk_step *steps, uint32_t nr)
{
	uint32_t anon, shmem, i;
	int order;

	walk_seed(seed);
	anon = walk_random();
	shmem = walk_random();
	for (order = 1; order < 16; order++)
		if (walk->orders >> order & 1)
			fprintf(out, "\tthp(%d, %d); shmem_thp(%d, %d);\n", order,
				anon >> order & 1,
				order, shmem >> order & 1);
	for (i = 0; i < nr; i++)
		if (walk_calls[steps[i].call].needs & HAS_RECLAIM)
			break;
	if (i < nr)
		fprintf(out, "\tgroup();\n");
}

/**
 * walk_print_program() - print a sequence as a C program
 * @out: the output file
 * @seed: the seed of the life, which decides its first settings
 * @steps: the sequence
 * @nr: the number of steps
 *
 * At the end of the program each process reads the page that failed, and prints
 * its content and its pagemap entry. The first comment of the program names the
 * broken rule.
 */
void walk_print_program(FILE *out, uint64_t seed, const struct walk_step *steps, uint32_t nr)
{
	char words[200], *place;
	uint32_t i, look = 0;

	if (!nr)
		return;
	place = strstr(walk->verdict.text, "page ");
	if (!place || sscanf(place, "page %u", &look) != 1)
		look = steps[nr - 1].at;
	fprintf(out, "/*\n * %s: %s\n * seed %llu. Compile with gcc -static, run as root.\n */\n%s",
		walk->verdict.rule, walk->verdict.text, (unsigned long long)seed, walk_prelude);
	fprintf(out, "\n/* At the end, each process reads these pages. */\n");
	fprintf(out, "#define LOOK_AT %u\n#define LOOK_PAGES 1\n", look);
	fprintf(out, "\nstatic void settings(void)\n{\n");
	print_settings(out, seed, steps, nr);
	fprintf(out, "}\n\nstatic const int owner[] = {");
	for (i = 0; i < nr; i++)
		fprintf(out, " %d,", steps[i].proc);
	fprintf(out, " };\n\nstatic void step(int n)\n{\n\tswitch (n) {\n");
	for (i = 0; i < nr; i++) {
		fprintf(out, "\tcase %u: /* %s */\n\t\t", i, walk_words(&steps[i], words,
									sizeof(words)));
		print_call(out, &steps[i]);
		fprintf(out, "\n\t\tbreak;\n");
	}
	fprintf(out, "\t}\n}\n%s", walk_main);
}
