// SPDX-License-Identifier: GPL-2.0
#include "folio_walk.h"
void walk_print_words(const struct walk_step *steps, uint32_t nr)
{
	char words[200];
	uint32_t i;

	for (i = 0; i < nr; i++)
		printf("#   %u: %s\n", i, walk_words(&steps[i], words, sizeof(words)));
}

void walk_print_program(FILE *out, uint64_t seed, const struct walk_step *steps, uint32_t nr)
{
}
bool walk_before(const struct walk_step *s) { return false; }
void walk_after(const struct walk_step *s, long result) {}
