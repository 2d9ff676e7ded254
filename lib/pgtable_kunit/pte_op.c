// SPDX-License-Identifier: GPL-2.0
/*
 * The functions on user entries in the architecture's versions, and test cases
 * for all rows of the table.
 */

#include "pte_run.h"

#define PTE_OP_TABLE	arch_ops
#include "pte_op_table.h"

static bool arch_own(enum pte_op_id id)
{
	return true;
}

const struct pte_backend pte_arch_backend = {
	.name = "",
	.ops = arch_ops,
	.own = arch_own,
};

/**
 * pte_case_get() - the function that a parameter stands for
 * @backend: the back end
 * @param: the parameter, see pte_case_next()
 *
 * Return: the function, its flags, and a description of both.
 */
struct pte_case pte_case_get(const struct pte_backend *backend,
			     const void *param)
{
	unsigned long number = (unsigned long)param - 1;
	struct pte_case pc = { .id = number / PTE_OP_WAYS };
	const struct pte_op_way *way;

	pc.op = &backend->ops[pc.id];
	way = &pc.op->way[number % PTE_OP_WAYS];
	pc.flags = way->flags;
	snprintf(pc.desc, sizeof(pc.desc), "%s%s%s", backend->name,
		 pc.op->name, way->name ?: "");
	return pc;
}

/**
 * pte_case_next() - a generator of parameters: the rows of a table in turn, with
 *	each of their flags
 * @backend: the back end
 * @prev: the parameter before, or NULL
 * @wanted: which rows to use
 * @desc: buffer for the description
 *
 * Return: the parameter, a number plus one; NULL if there are no more.
 */
const void *pte_case_next(const struct pte_backend *backend, const void *prev,
			  bool (*wanted)(const struct pte_case *pc), char *desc)
{
	unsigned long number;

	for (number = (unsigned long)prev; number < PTE_OPS * PTE_OP_WAYS;
	     number++) {
		void *param = (void *)(number + 1);
		struct pte_case pc = pte_case_get(backend, param);
		unsigned int way = number % PTE_OP_WAYS;

		if (!pc.op->call || !backend->own(pc.id) ||
		    (way && !pc.op->way[way].name) || !wanted(&pc))
			continue;
		strscpy(desc, pc.desc, KUNIT_PARAM_DESC_SIZE);
		return param;
	}
	return NULL;
}

/**
 * pte_case_entry() - the entry that a case sets
 * @pc: the case
 * @old: an entry
 *
 * Return: depending on the kind of function, a swap entry, the same entry but
 * old and clean, or the same entry with another page. For set_ptes(), an entry
 * for a page.
 */
struct pte_model_entry pte_case_entry(const struct pte_case *pc,
				      const struct pte_model_entry *old)
{
	struct pte_model_entry e = *old;

	if (pc->id == PTE_OP_SET_PTES && e.kind < MODEL_PROTNONE)
		e = (struct pte_model_entry){ .kind = MODEL_VALID, .write = true };
	e.cont = false;
	if (pc->id == PTE_OP_SET_PTE_AT && pc->flags & PTE_STEP_SAME) {
		e.young = false;
		e.hw_dirty = false;
		e.sw_dirty = false;
		return e;
	}
	e.page = 1;
	if (pc->id == PTE_OP_SET_PTE_AT && pc->flags & PTE_STEP_SWAP)
		e = (struct pte_model_entry){ .kind = MODEL_SWAP, .page = 1 };
	return e;
}
