/* SPDX-License-Identifier: GPL-2.0 */
/*
 * folio_walk: functions for the calls that use userfaultfd, PAGEMAP_SCAN or
 * pins. folio_walk_calls.c includes this file.
 */
#ifndef FOLIO_WALK_WATCH_H
#define FOLIO_WALK_WATCH_H

/*
 * Do not register pages that the kernel may free because of MADV_FREE. If the
 * kernel frees such a page, the page loses its protection together with its
 * content. Known issue 31: a page that KSM merges loses its protection by
 * userfaultfd.
 */
static bool valid_register(const struct walk_step *s)
{
	bool merge = !walk_has(31) || !(walk_calls[s->call].arg & (WPREG | ASYNC));

	return ALL(!(p->flags & (LAZY | PINNED))) && (merge || ALL(!(p->flags & MERGE)));
}

/* ioctl_userfaultfd(2): only the asynchronous mode protects pages of any file. */
static bool valid_register_file(const struct walk_step *s)
{
	bool any = walk_calls[s->call].arg & ASYNC;

	return ALL(!(p->flags & PINNED) && (any || walk->object[p->obj].shmem));
}

static bool valid_mergeable(const struct walk_step *s)
{
	return !walk_has(31) || ALL(!(p->flags & (WPREG | ASYNC)));
}

static void model_register(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		if (walk_calls[s->call].arg & MISS)
			m_zap(p);
		p->flags |= walk_calls[s->call].arg;
	}
}

static bool valid_unregister(const struct walk_step *s)
{
	uint16_t first = page_of(s->proc, s->at)->flags;

	return first & (MISS | WPREG) && ALL(p->flags & (MISS | WPREG) &&
					     !((p->flags ^ first) & (ASYNC | MISS | WPREG)));
}

static void model_unregister(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		p->flags &= ~UFFD;
}

static void draw_copy(struct walk_step *s)
{
	s->x &= 1;
}

static bool valid_copy(const struct walk_step *s)
{
	return s->len <= 64 && ALL(p->flags & MISS && !(p->flags & OWN) &&
				   (!s->x || p->flags & WPREG));
}

/*
 * Known issue 39: if a missing page is protected, UFFDIO_ZEROPAGE says that the
 * page exists.
 */
static bool valid_zero(const struct walk_step *s)
{
	return valid_copy(s) && (!walk_has(39) || ALL(!(p->flags & WP)));
}

static void draw_zero(struct walk_step *s)
{
	s->x = 0;
}

static void model_copy(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		p->flags = ((p->flags | OWN) & ~WP) | (s->x ? WP : 0);
		p->val = s->val + nth(s, p);
	}
}

static void model_zero(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		p->flags = (p->flags | OWN) & ~WP;
		p->val = 0;
	}
}

static bool valid_protect(const struct walk_step *s)
{
	return valid_unregister(s) && page_of(s->proc, s->at)->flags & WPREG;
}

static void model_protect(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		p->flags = (p->flags & ~WP) | (walk_calls[s->call].arg ? WP : 0);
}

static bool valid_scan(const struct walk_step *s)
{
	return ALL(p->flags & ASYNC);
}

static void model_scan(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		if (walk->box[s->proc].vec[s->at + nth(s, p)])
			p->flags |= WP;
}

static void draw_move(struct walk_step *s)
{
	uint32_t tries;

	for (tries = 0; tries < 64; tries++) {
		s->to = walk_below(WALK_PAGES);
		if (page_of(s->proc, s->to)->flags & MISS)
			break;
	}
	s->tolen = s->len;
}

/*
 * ioctl_userfaultfd(2), UFFDIO_MOVE: the call moves pages that exist to places
 * where pages are missing.
 */
static bool valid_move(const struct walk_step *s)
{
	uint32_t i;

	if (s->to + s->len > WALK_PAGES || s->tolen != s->len ||
	    (s->to < s->at + s->len && s->at < s->to + s->len))
		return false;
	for (i = 0; i < s->len; i++) {
		const struct walk_page *from = page_of(s->proc, s->at + i);
		const struct walk_page *to = page_of(s->proc, s->to + i);

		if (!(from->flags & OWN) || !from->val || from->flags & LAZY ||
		    !(from->prot & PROT_WRITE) || !(to->prot & PROT_WRITE) ||
		    (to->flags & (MISS | OWN | WPREG | GUARD)) != MISS)
			return false;
	}
	return m_one_vma(s->proc, s->to, s->len);
}

static void model_move(const struct walk_step *s, long result)
{
	long i;

	for (i = 0; i < result; i++) {
		struct walk_page *from = page_of(s->proc, s->at + i);
		struct walk_page *to = page_of(s->proc, s->to + i);

		to->val = from->val;
		to->flags = (to->flags | OWN) & ~WP;
		m_zap(from);
	}
}

static void draw_pin(struct walk_step *s)
{
	s->x = walk_below(WALK_PINS);
}

static bool valid_pin(const struct walk_step *s)
{
	return s->x < WALK_PINS && !(walk->pins[s->proc] >> s->x & 1) && ALL(!(p->flags & LAZY));
}

static void model_pin(const struct walk_step *s, long result)
{
	(void)result;
	walk->pins[s->proc] |= 1 << s->x;
	/*
	 * The next check of pagemap stores the frame of the page in p->pfn.
	 * Until then p->pfn is 0.
	 */
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		m_own(p);
		p->flags |= PINNED;
		p->pfn = 0;
	}
}

static void model_unpin(const struct walk_step *s, long result)
{
	uint32_t i;

	(void)result;
	walk->pins[s->proc] = 0;
	for (i = 0; i < WALK_PAGES; i++)
		page_of(s->proc, i)->flags &= ~PINNED;
}

#endif /* FOLIO_WALK_WATCH_H */
