// SPDX-License-Identifier: GPL-2.0
/*
 * What move_pages() says about each page of a folio that it moves.
 *
 * Proves: after move_pages(), the status of each page is the node on which the page is. This holds
 * if the list has all pages of a folio, in order or with pages of another folio in between, and if
 * it has a page twice. If a page is missing, its status is -ENOENT, and the others still move.
 *
 * How: two folios move to the other node. A second call, without nodes, asks where the pages are
 * then. Single pages are the control: no page shares its folio with another page.
 *
 * Does not prove: which status a page has that cannot move (folio_exclusive: -EACCES).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=move_status
 */
#include "folio_owner.h"
#include "folio_pmd.h"
#include "hugetlb_pool.h"

#define FOLIOS 2

/* A value that move_pages() never stores. */
#define NOT_STORED -1000

enum kind { SINGLE, BLOCK, HUGE, HUGETLB };

/*
 * @each: how many pages each of the folios has
 * @to: the node to which they move
 */
FIXTURE(move_status)
{
	struct hugetlb_pool pool;
	struct memory memory;
	unsigned int each;
	int to;
};

FIXTURE_VARIANT(move_status)
{
	enum kind kind;
};

FIXTURE_VARIANT_ADD(move_status, single)
{
	.kind = SINGLE,
};

FIXTURE_VARIANT_ADD(move_status, block)
{
	.kind = BLOCK,
};

FIXTURE_VARIANT_ADD(move_status, huge)
{
	.kind = HUGE,
};

FIXTURE_VARIANT_ADD(move_status, hugetlb)
{
	.kind = HUGETLB,
};

/* Map FOLIOS hugetlb pages. Each folio needs a second page, to which it moves. */
static const char *map_hugetlb(struct memory *m, struct hugetlb_pool *pool)
{
	size_t size = hugetlb_size(0);
	const char *why = hugetlb_pool_have(pool, size, 2 * FOLIOS);

	if (why)
		return why;
	m->pages = FOLIOS * size / psize();
	m->room_bytes = FOLIOS * size;
	m->at = mmap(NULL, m->room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		     MAP_HUGETLB | order_of(size) << MAP_HUGE_SHIFT, -1, 0);
	if (m->at == MAP_FAILED)
		return "all hugetlb pages are in use";
	m->room = m->at;
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	return NULL;
}

FIXTURE_SETUP(move_status)
{
	const int order = variant->kind == BLOCK ? order_of(cont_ptes()) :
			  variant->kind == HUGE && pmd_pages() ? order_of(pmd_pages()) : 0;
	struct memory *m = &self->memory;
	const char *why = NULL;

	m->fd = -1;
	m->room = NULL;
	self->pool.folder[0] = 0;
	if (variant->kind == HUGETLB)
		why = map_hugetlb(m, &self->pool);
	else if (variant->kind == HUGE && !order)
		why = NO_HUGE_PAGES;
	else
		why = folio_settings(order) ?: memory_map(m, ANON, order, FOLIOS);
	if (why)
		SKIP(return, "%s", why);
	self->each = m->pages / FOLIOS;
	/* With one page of each folio in a list of its own, move_pages() has no choice. */
	self->to = !move_page(m->at, NULL);
	for (unsigned int page = 0; page < m->pages; page += self->each) {
		int from = !self->to, node = move_page(m->at + bytes(page), &from);

		if (node == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
		ASSERT_EQ(from, node);
	}
}

FIXTURE_TEARDOWN(move_status)
{
	memory_free(&self->memory);
	hugetlb_pool_restore(&self->pool);
}

/*
 * Move the pages of a list. Page list[i] gets the status status[i], and is then on node after[i].
 * Returns what move_pages() returned.
 */
static long move(const FIXTURE_DATA(move_status) * self, char **list, unsigned int nr,
		 int *status, int *after)
{
	int *nodes = malloc(nr * sizeof(*nodes));
	long ret;

	for (unsigned int i = 0; i < nr; i++) {
		nodes[i] = self->to;
		status[i] = NOT_STORED;
		after[i] = NOT_STORED;
	}
	ret = syscall(__NR_move_pages, 0, (long)nr, list, nodes, status, MPOL_MF_MOVE);
	if (syscall(__NR_move_pages, 0, (long)nr, list, NULL, after, 0))
		ret = -errno;
	free(nodes);
	return ret;
}

/*
 * How many entries of the list have the status -EBUSY because of known issue 96, or -1 if a status
 * is wrong in another way. The faulty kernel says this of a page whose folio it has put into its
 * own list for an earlier page. Then, and after any page that it need not move, it moves the folios
 * of this list.
 */
static int busy_by_issue(const FIXTURE_DATA(move_status) * self, char **list, unsigned int nr,
			 const int *status)
{
	enum { HOME, LISTED, MOVED } state[FOLIOS] = {};
	int count = 0;

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int folio = (list[i] - self->memory.at) / bytes(self->each);
		bool busy = state[folio] == LISTED;

		if (status[i] != (busy ? -EBUSY : self->to))
			return -1;
		count += busy;
		if (state[folio] == HOME) {
			state[folio] = LISTED;
			continue;
		}
		for (folio = 0; folio < FOLIOS; folio++)
			if (state[folio] == LISTED)
				state[folio] = MOVED;
	}
	return count;
}

/* Move the pages of the list, and check what move_pages() says about them. */
static void check(struct __test_metadata *_metadata, const FIXTURE_DATA(move_status) * self,
		  char **list, unsigned int nr)
{
	int *status = malloc(nr * sizeof(*status)), *after = malloc(nr * sizeof(*after));
	unsigned int said = 0, moved = 0;
	int busy;

	ASSERT_EQ(0, move(self, list, nr, status, after));
	for (unsigned int i = 0; i < nr; i++) {
		said += status[i] == self->to;
		moved += after[i] == self->to;
	}
	busy = busy_by_issue(self, list, nr, status);
	free(status);
	free(after);
	EXPECT_EQ(nr, moved);
	EXPECT_EQ(-1, foreign_page(self->memory.at, 0, self->memory.pages));
	DID(moved, "pages moved");
	if (busy > 0) {
		TH_LOG("%d of %u pages that moved have the status -EBUSY", busy, nr);
		KNOWN_ISSUE(96, "move_pages() says -EBUSY of a page that it moves");
		return;
	}
	EXPECT_EQ(nr, said);
	/* With single pages, only a list that has a page twice meets the issue. */
	if (self->each > 1 || nr > self->memory.pages)
		STALE_ISSUE(96);
}

/*
 * The list has all pages in the order of their addresses. So a page often follows a page of its own
 * folio.
 *
 * Known issue 96: the second page of each folio has the status -EBUSY.
 */
TEST_F(move_status, in_order)
{
	const unsigned int nr = self->memory.pages;
	char **list = malloc(nr * sizeof(*list));

	for (unsigned int i = 0; i < nr; i++)
		list[i] = self->memory.at + bytes(i);
	check(_metadata, self, list, nr);
	free(list);
}

/*
 * Pages of the two folios take turns in the list. So a page never follows a page of its own folio.
 *
 * Known issue 96: the second page of the first folio has the status -EBUSY.
 */
TEST_F(move_status, in_turn)
{
	const unsigned int nr = self->memory.pages;
	char **list = malloc(nr * sizeof(*list));

	for (unsigned int i = 0; i < nr; i++)
		list[i] = self->memory.at + bytes(i % FOLIOS * self->each + i / FOLIOS);
	check(_metadata, self, list, nr);
	free(list);
}

/*
 * The list has the first page of each folio twice.
 *
 * Known issue 96: the second entry of each page has the status -EBUSY, also for single pages.
 */
TEST_F(move_status, twice)
{
	char *list[2 * FOLIOS];

	for (unsigned int i = 0; i < 2 * FOLIOS; i++)
		list[i] = self->memory.at + bytes(i / 2 * self->each);
	check(_metadata, self, list, 2 * FOLIOS);
}

/* A page between the first pages of the two folios is missing. Its status is -ENOENT. */
TEST_F(move_status, missing)
{
	char *first = self->memory.at;
	char *hole = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	char *list[3] = { first, hole, first + bytes(self->each) };
	int status[ARRAY_SIZE(list)], after[ARRAY_SIZE(list)];

	ASSERT_NE(MAP_FAILED, hole);
	ASSERT_EQ(0, move(self, list, ARRAY_SIZE(list), status, after));
	EXPECT_EQ(self->to, status[0]);
	EXPECT_EQ(-ENOENT, status[1]);
	EXPECT_EQ(self->to, status[2]);
	for (unsigned int i = 0; i < ARRAY_SIZE(list); i++)
		EXPECT_EQ(status[i], after[i]);
	DID((after[0] == self->to) + (after[2] == self->to), "folios moved");
}

TEST_HARNESS_MAIN
