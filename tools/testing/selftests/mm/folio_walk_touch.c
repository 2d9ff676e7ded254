// SPDX-License-Identifier: GPL-2.0
/*
 * This part of folio_walk makes the loads and stores of a worker, catches the
 * signals that they cause, and compares the content with the model.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "folio_walk.h"

static sigjmp_buf caught;
static sig_atomic_t touching;

static void on_signal(int number)
{
	if (!touching) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	siglongjmp(caught, number);
}

/* Do not save the signal mask, because that costs two system calls. */
void walk_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/*
 * The offset of word @i in a page. The 8 words that the walk uses include both
 * ends of the page, and both sides of its middle.
 */
unsigned int walk_word_at(unsigned int i)
{
	const unsigned int size = walk_psize;
	const unsigned int at[WALK_WORDS] = {
		0, 8, size / 4 + 64, size / 2 - 8, size / 2, size / 4 * 3 + 24, size - 16, size - 8,
	};

	return at[i];
}

/* Word @i of a page, where @val is the value of the page. */
uint64_t walk_word(uint64_t val, unsigned int i)
{
	return val ? 0xf00dULL << 48 | val << 8 | i : 0;
}

/* One access, which the compiler cannot drop. */
static void store(char *at, uint64_t word)
{
	__atomic_store_n((uint64_t *)at, word, __ATOMIC_RELAXED);
}

static uint64_t load(const char *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
}

/*
 * Write the words of a page. Returns 0, or the signal that the first store
 * caused.
 */
int walk_poke(uint32_t page, uint64_t val)
{
	int number = sigsetjmp(caught, 0);
	unsigned int i;

	if (!number) {
		__atomic_store_n(&touching, 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		for (i = 0; i < WALK_WORDS; i++)
			store(at_page(page) + walk_word_at(i), walk_word(val, i));
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	touching = 0;
	return number;
}

/* Read the words of a page. Returns 0, or the signal that a load caused. */
int walk_peek(uint32_t page, uint64_t *words)
{
	int number = sigsetjmp(caught, 0);
	unsigned int i;

	if (!number) {
		__atomic_store_n(&touching, 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		for (i = 0; i < WALK_WORDS; i++)
			words[i] = load(at_page(page) + walk_word_at(i));
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	touching = 0;
	return number;
}

/* Describe in @text which page has this value, and which process has this page. */
static const char *owner_of(uint64_t val, char *text, size_t size)
{
	int proc;
	uint32_t i;

	if (!val)
		return "zeros";
	for (proc = 0; proc < WALK_PROCS; proc++) {
		for (i = 0; i < WALK_PAGES; i++) {
			if (page_of(proc, i)->kind && m_val(page_of(proc, i)) == val) {
				snprintf(text, size, "value %llu, which process %d has at page %u",
					 (unsigned long long)val, proc, i);
				return text;
			}
		}
	}
	snprintf(text, size, "value %llu, which no page has now", (unsigned long long)val);
	return text;
}

/**
 * walk_compare() - compare the words of a page with the model
 * @p: the page; the model learns whether a lazily freed page is gone
 * @page: its position, for messages
 * @words: what a read returned
 * @how: how it was read
 */
bool walk_compare(struct walk_page *p, uint32_t page, const uint64_t *words, const char *how)
{
	uint64_t val = m_val(p), got;
	unsigned int i, gone = 0;
	char text[96];

	for (i = 0; i < WALK_WORDS; i++) {
		if (words[i] == walk_word(val, i) && !gone)
			continue;
		if (p->flags & LAZY && !words[i]) {
			gone++;
			continue;
		}
		walk_lost_hugetlb(p, !words[i]);
		got = words[i] >> 48 == 0xf00d ? words[i] << 16 >> 24 : 0;
		walk_fail(got ? "content-foreign" : words[i] ? "content-garbage" : "content-lost",
			  "%s: page %u word %u is %#llx (%s), expected value %llu, kind %d flags %x",
			  how, page, i, (unsigned long long)words[i],
			  owner_of(got, text, sizeof(text)), (unsigned long long)val, p->kind,
			  p->flags);
		return false;
	}
	if (gone && !walk_word(val, 0))
		gone = 0;
	if (gone)
		m_zap(p);
	return true;
}

/* Read pages of this process, and check the signals and the content. */
void walk_check_content(uint32_t at, uint32_t len)
{
	uint64_t words[WALK_WORDS];
	uint32_t i;

	for (i = at; i < at + len; i++) {
		struct walk_page *p = page_of(walk_me, i);
		int want = m_signal(p, false), got;

		/*
		 * Most of the address range of the walk is empty, and signals
		 * are slow: read only a few of the empty pages.
		 */
		if (m_unsure(p) || (p->kind == NOTHING && i % 32))
			continue;
		got = walk_peek(i, words);
		/*
		 * MADV_FREE allows the kernel to free the page. Then the page is
		 * missing.
		 */
		if (got == SIGBUS && p->flags & LAZY && p->flags & MISS) {
			m_zap(p);
			continue;
		}
		if (got != want) {
			walk_fail("signal",
				  "read of page %u: signal %d, expected %d; kind %d prot %d flags %x",
				  i, got, want, p->kind, p->prot, p->flags);
			return;
		}
		if (!got && !walk_compare(p, i, words, "read"))
			return;
		walk->verdict.checks++;
	}
}
