/* SPDX-License-Identifier: GPL-2.0 */
/* folio_walk_calls.c includes this part, which has the functions for calls on files. */
#ifndef FOLIO_WALK_FILE_H
#define FOLIO_WALK_FILE_H

/* Choose a random range of a file. */
static void draw_file(struct walk_step *s)
{
	s->len = 1 + walk_below(3 * walk->cont);
	draw_object(s);
}

static bool valid_file(const struct walk_step *s)
{
	return valid_object(s) && s->len && s->off + s->len <= WALK_OBJ_PAGES;
}

static void model_pwrite(const struct walk_step *s, long result)
{
	struct walk_object *o = &walk->object[s->obj];
	uint32_t i;

	(void)result;
	for (i = 0; i < s->len; i++)
		o->val[s->off + i] = s->val + i;
	if (s->off + s->len > o->size)
		o->size = s->off + s->len;
}

static void model_punch(const struct walk_step *s, long result)
{
	uint32_t i;

	(void)result;
	for (i = 0; i < s->len; i++)
		walk->object[s->obj].val[s->off + i] = 0;
}

static void draw_truncate(struct walk_step *s)
{
	s->len = 1;
	draw_object(s);
	s->len = 0;
	if (walk_below(3))
		s->off = WALK_OBJ_PAGES - walk_below(walk->cont);
}

static bool valid_truncate(const struct walk_step *s)
{
	return s->obj >= 0 && walk->object[s->obj].fd >= 0 && s->off <= WALK_OBJ_PAGES;
}

static void model_truncate(const struct walk_step *s, long result)
{
	(void)result;
	m_truncate(s->obj, s->off);
}

static void draw_direct(struct walk_step *s)
{
	draw_object(s);
}

/* open(2), O_DIRECT: the file must not be mapped at the same time. */
static bool valid_direct(const struct walk_step *s)
{
	struct walk_object *o;
	int proc;
	uint32_t i;

	if (!valid_object(s))
		return false;
	o = &walk->object[s->obj];
	if (o->direct < 0 || s->off + s->len > o->size)
		return false;
	for (proc = 0; proc < WALK_PROCS; proc++)
		for (i = 0; i < WALK_PAGES; i++)
			if (page_of(proc, i)->kind >= PRIVATE && page_of(proc, i)->obj == s->obj)
				return false;
	return ALL(!(p->flags & LAZY));
}

static void model_direct_read(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		m_write(p, walk->object[s->obj].val[s->off + nth(s, p)]);
}

static void model_direct_write(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		walk->object[s->obj].val[s->off + nth(s, p)] = m_val(p);
}

#endif /* FOLIO_WALK_FILE_H */
