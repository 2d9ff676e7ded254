// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: what each page of each process must contain, and how the walk
 * chooses the calls at random. The comment on each rule names the document that
 * promises the behaviour in this rule.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "folio_walk.h"

static uint64_t state;

void walk_seed(uint64_t seed)
{
	state = seed;
}

/* splitmix64: the same seed gives the same walk on each machine. */
uint64_t walk_random(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint32_t walk_below(uint32_t limit)
{
	return limit ? walk_random() % limit : 0;
}

/*
 * The content of a page. A page of a private mapping shows the file until the
 * process first writes to the page: mmap(2), MAP_PRIVATE. Until this write,
 * Linux also shows changes that are made to the file after the call of mmap().
 */
uint64_t m_val(const struct walk_page *p)
{
	if (p->kind == SHARED || (p->kind == PRIVATE && !(p->flags & OWN)))
		return walk->object[p->obj].val[p->off];
	return p->val;
}

/*
 * Whether the page lies after the end of the file (see SIGBUS in mmap(2)). A
 * truncation also drops private copies of such pages.
 */
bool m_beyond(const struct walk_page *p)
{
	return (p->kind == SHARED || p->kind == PRIVATE) && p->off >= walk->object[p->obj].size;
}

/*
 * A fault on a memory file maps the complete last folio, although mmap(2)
 * promises SIGBUS after the end of the file. The commit "mm/memory: do not
 * populate page table entries beyond i_size" does not cover memory files. So
 * the walk does not access the pages after the end of a memory file.
 */
bool m_unsure(const struct walk_page *p)
{
	return m_beyond(p) && walk->object[p->obj].shmem;
}

/*
 * The signal that an access must cause, or 0. See mmap(2) and mprotect(2) for
 * permissions, madvise(2) for MADV_GUARD_INSTALL, and userfaultfd(2) for
 * UFFD_FEATURE_SIGBUS.
 */
int m_signal(const struct walk_page *p, bool write)
{
	if (p->kind == NOTHING || p->flags & GUARD || !(p->prot & (write ? PROT_WRITE : PROT_READ)))
		return SIGSEGV;
	if (m_beyond(p) || (p->flags & MISS && !(p->flags & OWN)))
		return SIGBUS;
	return write && p->flags & WP && !(p->flags & ASYNC) ? SIGBUS : 0;
}

/*
 * Record a successful write in the model. In the asynchronous mode such a write
 * removes the protection (see userfaultfd(2)).
 */
void m_write(struct walk_page *p, uint64_t val)
{
	if (p->kind == SHARED) {
		walk->object[p->obj].val[p->off] = val;
	} else {
		p->val = val;
		p->flags |= OWN | SOFT;
		p->flags &= ~(LAZY | INHERITED);
	}
	if (p->flags & ASYNC)
		p->flags &= ~WP;
}

/* The process gets its own page, with the old content. */
void m_own(struct walk_page *p)
{
	if (p->kind != SHARED && !(p->flags & OWN)) {
		p->val = m_val(p);
		p->flags |= OWN;
	}
}

/* The page reads as zeros again and has no protection. A guard stays. */
void m_zap(struct walk_page *p)
{
	p->flags &= ~(OWN | LAZY | WP | PINNED | INHERITED | SOFT);
	p->val = 0;
}

/*
 * madvise(2), MADV_DONTNEED: the page shows zeros again, or the content of the
 * file. ioctl_userfaultfd(2): a page of a file stays protected when the entry
 * of this page is removed.
 */
void m_drop(struct walk_page *p)
{
	uint32_t wp = p->kind >= PRIVATE ? p->flags & WP : 0;

	m_zap(p);
	p->flags |= wp;
}

/*
 * soft-dirty.rst: a page is soft-dirty if it was written to after the bits were
 * last cleared. Known issue 31: KSM drops the bit.
 */
bool m_soft_dirty(const struct walk_page *p)
{
	return p->flags & SOFT && p->kind == ANON && !(p->flags & (LAZY | HUGETLB)) &&
	       !(p->flags & MERGE && walk_has(31));
}

/*
 * fork(2): the child gets a copy. See madvise(2) for MADV_DONTFORK and
 * MADV_WIPEONFORK. mlock(2): locks are not inherited. userfaultfd(2): without
 * UFFD_FEATURE_EVENT_FORK the child is not registered.
 */
void m_fork(int parent, int child)
{
	uint32_t i;

	for (i = 0; i < WALK_PAGES; i++) {
		struct walk_page *p = page_of(child, i);

		*p = *page_of(parent, i);
		if (p->flags & NOFORK)
			*p = (struct walk_page){ .kind = NOTHING };
		if (p->flags & WIPE) {
			m_zap(p);
			p->flags &= ~GUARD;
		}
		p->flags &= ~(LOCKED | ONFAULT | UFFD | PINNED | SOFT);
		p->flags |= INHERITED;
	}
}

/*
 * truncate(2), mmap(2): all pages after the new end of the file are removed, including private
 * copies.
 */
void m_truncate(int obj, uint32_t size)
{
	struct walk_object *o = &walk->object[obj];
	uint32_t i;
	int proc;

	for (i = size; i < WALK_OBJ_PAGES; i++)
		o->val[i] = 0;
	o->size = size;
	for (proc = 0; proc < WALK_PROCS; proc++) {
		for (i = 0; i < WALK_PAGES; i++) {
			struct walk_page *p = page_of(proc, i);

			if (p->kind >= PRIVATE && p->obj == obj && p->off >= size)
				m_drop(p);
		}
	}
}

/*
 * Whether all pages of a range belong to one mapping according to the model.
 */
bool m_one_vma(int proc, uint32_t at, uint32_t len)
{
	const uint32_t same = ~(OWN | LAZY | GUARD | WP | PINNED | INHERITED | MOVED | SOFT);
	const struct walk_page *first = page_of(proc, at);
	uint32_t i;

	for (i = 1; i < len; i++) {
		const struct walk_page *p = page_of(proc, at + i);

		if (p->kind != first->kind || p->prot != first->prot || p->obj != first->obj ||
		    (p->flags ^ first->flags) & same ||
		    (p->kind >= PRIVATE && p->off != first->off + i))
			return false;
	}
	return true;
}

static bool page_fits(const struct walk_page *p, uint32_t flags)
{
	if (p->kind == NOTHING)
		return flags & ANY;
	return !((flags & NO_HUGETLB && p->flags & HUGETLB) ||
		 (flags & NO_LOCKED && p->flags & LOCKED) ||
		 (flags & NO_UFFD && p->flags & UFFD) ||
		 (flags & NO_GUARD && p->flags & GUARD) ||
		 (flags & ONLY_ANON && (p->kind != ANON || p->flags & HUGETLB)) ||
		 (flags & ONLY_FILE && p->kind < PRIVATE) ||
		 (flags & ONLY_SHARED && p->kind != SHARED) ||
		 (flags & NO_PRIVATE_FILE && p->kind == PRIVATE) ||
		 (flags & READABLE && !(p->prot & PROT_READ)) ||
		 (flags & WRITABLE && !(p->prot & PROT_WRITE)) ||
		 (flags & INSIDE && m_beyond(p)));
}

/*
 * Whether a range begins or ends inside a hugetlb page. A call on such a range
 * fails with EINVAL, or acts on more pages.
 */
static bool cuts_hugetlb(int proc, uint32_t at, uint32_t len)
{
	uint32_t end = at + len;

	if (!walk->unit)
		return false;
	return (at % walk->unit && page_of(proc, at)->flags & HUGETLB) ||
	       (end % walk->unit && page_of(proc, end - 1)->flags & HUGETLB);
}

/*
 * Whether a step makes sense in the current state of the model. If not, the
 * walk skips the step.
 */
bool walk_fits(const struct walk_step *s)
{
	const struct walk_call *c = &walk_calls[s->call];
	uint32_t i;

	if (!walk->box[s->proc].alive || (walk->features & c->needs) != c->needs)
		return false;
	if (c->flags & (MAPPED | ANY)) {
		if (!s->len || s->at + s->len > WALK_PAGES)
			return false;
		for (i = 0; i < s->len; i++)
			if (!page_fits(page_of(s->proc, s->at + i), c->flags))
				return false;
		if (cuts_hugetlb(s->proc, s->at, s->len))
			return false;
		if (c->flags & ONE_VMA && !m_one_vma(s->proc, s->at, s->len))
			return false;
	}
	return !c->valid || c->valid(s);
}

/*
 * A page count that the kernel treats specially: one, or the number of pages of
 * a block, of a folio or of a page table.
 */
static uint32_t special_size(void)
{
	int order;

	switch (walk_below(8)) {
	case 0:
	case 1:
		return 1;
	case 2:
	case 3:
		return walk->cont;
	case 4:
		return walk->table < WALK_PAGES ? walk->table : walk->cont;
	case 5:
		return walk->unit ? walk->unit : 2;
	default:
		for (;;) {
			order = walk_below(32);
			if (walk->orders >> order & 1 && 1U << order <= WALK_PAGES / 2)
				return 1U << order;
			if (!(walk->orders & 0x7fe))
				return 4;
		}
	}
}

/*
 * Start at a random page, and return the first page where the mapping changes.
 */
static uint32_t edge_of_mapping(int proc)
{
	uint32_t i, at = walk_below(WALK_PAGES);

	for (i = at; i + 1 < WALK_PAGES; i++)
		if (!m_one_vma(proc, i, 2))
			return i + 1;
	return at;
}

static uint32_t draw_position(int proc)
{
	uint32_t size = special_size(), at;

	switch (walk_below(4)) {
	case 0:
		at = walk_below(WALK_PAGES);
		break;
	case 1:
		at = edge_of_mapping(proc);
		break;
	default:
		at = walk_below(WALK_PAGES) / size * size;
	}
	switch (walk_below(6)) {
	case 0:
		at += 1;
		break;
	case 1:
		at -= 1;
	}
	return at < WALK_PAGES ? at : 0;
}

static uint32_t draw_length(uint32_t at, bool shorter)
{
	uint32_t len = special_size() * (1 + walk_below(3));

	if (!walk_below(3))
		len = len + 1 - 2 * walk_below(2);
	if (!walk_below(4))
		len = 1 + walk_below(4 * walk->cont);
	if (shorter && len > 2 * walk->cont)
		len = 1 + walk_below(2 * walk->cont);
	if (!len)
		len = 1;
	return len < WALK_PAGES - at ? len : WALK_PAGES - at;
}

/* Choose a random range, and shorten it so that it ends before the first page that does not fit. */
static void draw_range(struct walk_step *s, uint32_t flags)
{
	uint32_t tries, i;

	for (tries = 0; tries < 24; tries++) {
		s->at = draw_position(s->proc);
		s->len = draw_length(s->at, flags & SHORT);
		if (page_of(s->proc, s->at)->flags & HUGETLB) {
			s->at -= s->at % walk->unit;
			s->len = (s->len + walk->unit - 1) / walk->unit * walk->unit;
			if (s->at + s->len > WALK_PAGES)
				s->len = WALK_PAGES - s->at;
		}
		for (i = 0; i < s->len; i++) {
			if (!page_fits(page_of(s->proc, s->at + i), flags) ||
			    (flags & ONE_VMA && i && !m_one_vma(s->proc, s->at + i - 1, 2)))
				break;
		}
		if (i) {
			s->len = i;
			return;
		}
	}
}

bool walk_draw(struct walk_step *s, const bool *wanted)
{
	uint32_t sum = 0, pick, tries, flags;
	unsigned int i;

	for (i = 0; i < walk_nr_calls; i++)
		if (wanted[i] && has(walk_calls[i].needs))
			sum += walk_calls[i].weight;
	if (!sum)
		return false;
	for (tries = 0; tries < 1000; tries++) {
		*s = (struct walk_step){ .obj = -1 };
		pick = walk_below(sum);
		for (i = 0; i < walk_nr_calls; i++) {
			if (!wanted[i] || !has(walk_calls[i].needs))
				continue;
			if (pick < (uint32_t)walk_calls[i].weight)
				break;
			pick -= walk_calls[i].weight;
		}
		s->call = i;
		s->proc = walk_below(WALK_PROCS);
		s->other = walk_below(WALK_PROCS);
		s->check = walk_random();
		s->x = walk_random() >> 32;
		if (!walk->box[s->proc].alive)
			continue;
		flags = walk_calls[i].flags;
		/* Most accesses go to mapped memory. */
		if (flags & TOUCHES && walk_below(8))
			flags = (flags & ~ANY) | MAPPED;
		if (flags & (MAPPED | ANY))
			draw_range(s, flags);
		s->val = walk->stamp + 1;
		if (walk_calls[i].draw)
			walk_calls[i].draw(s);
		if (walk_fits(s))
			return true;
	}
	return false;
}

const char *walk_words(const struct walk_step *s, char *text, size_t size)
{
	const struct walk_call *c = &walk_calls[s->call];
	int n = snprintf(text, size, "process %d: %s", s->proc, c->name);

	if (c->flags & (MAPPED | ANY))
		n += snprintf(text + n, size - n, " pages %u-%u", s->at, s->at + s->len - 1);
	if (s->tolen)
		n += snprintf(text + n, size - n, " to %u, %u pages", s->to, s->tolen);
	if (s->obj >= 0)
		n += snprintf(text + n, size - n, " %s page %u", walk->object[s->obj].name, s->off);
	if (c->code && strstr(c->code, "$p"))
		n += snprintf(text + n, size - n, " prot %d", s->prot);
	if (c->code && strstr(c->code, "$q"))
		n += snprintf(text + n, size - n, " process %d", s->other);
	if (c->code && strstr(c->code, "$x"))
		n += snprintf(text + n, size - n, " %u", s->x);
	if (c->code && strstr(c->code, "$v"))
		snprintf(text + n, size - n, " value %llu", (unsigned long long)s->val);
	return text;
}
