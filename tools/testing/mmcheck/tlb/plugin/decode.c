// SPDX-License-Identifier: GPL-2.0
/* Instruction words, and the operands of TLBI. Arm ARM C4.1, D8.17.5 (TLBI), C6.2 (DSB). */
#include <string.h>

#include "tlb.h"

#define SYS_RT 0x1f

static bool is_tlbi(uint32_t word)
{
	/* SYS, op1 0, CRn 8 or 9 (FEAT_XS), with a register */
	return (word & 0xffffe000) == 0xd5088000 && (word >> 8 & 15) <= 7 && (word >> 8 & 15) >= 1;
}

/*
 * Whether a load or store can write 64 bits or more from integer registers, to
 * an address that is not based on SP.
 */
static bool is_store(uint32_t word)
{
	bool pair = (word >> 27 & 7) == 5;

	if ((word & 0x0a000000) != 0x08000000 || word >> 26 & 1 || (word >> 5 & 31) == 31)
		return false;
	if (pair)
		return word >> 31;
	return word >> 30 == 3 || (word & 0xbfa07c00) == 0x08207c00;
}

enum insn decode(uint32_t word)
{
	if (is_tlbi(word))
		return INSN_TLBI;
	if ((word & 0xfffff0ff) == 0xd503309f || (word & 0xfffff3ff) == 0xd503323f)
		return INSN_DSB;
	switch (word & ~SYS_RT) {
	case 0xd5181000:
		return INSN_MSR_SCTLR;
	case 0xd5182000:
		return INSN_MSR_TTBR0;
	case 0xd5182020:
		return INSN_MSR_TTBR1;
	case 0xd5182040:
		return INSN_MSR_TCR;
	case 0xd5184100:
		return INSN_MSR_SP_EL0;
	case 0xd50b7420:
	case 0xd50b7480:
		return INSN_ZERO;
	}
	if (word == 0xd69f03e0 || word == 0xd69f0bff || word == 0xd69f0fff)
		return INSN_ERET;
	if ((word & 0x3f200c00) == 0x38000800)
		return INSN_USER_ACCESS;
	if ((word & 0xffe0cc00) == 0x19c00400)
		return INSN_SET;
	return is_store(word) ? INSN_STORE : INSN_OTHER;
}

bool is_bl(uint32_t word, uint64_t pc, uint64_t *target)
{
	*target = pc + ((int64_t)(int32_t)(word << 6) >> 4);
	return word >> 26 == 0x25;
}

/* Base, scale and number of a TLBI by range. Arm ARM D8.17.5.2. */
static void range_operand(uint64_t operand, const struct half *form, struct tlbi *to)
{
	bool wide = form->lpa2 || form->shift == 16;
	int shift = wide ? 16 : form->shift;
	uint64_t base = operand & ((1ULL << 37) - 1);
	uint64_t scale = operand >> 44 & 3, number = operand >> 39 & 31;

	if (base >> 36 & 1)
		base |= ~((1ULL << 37) - 1);
	to->from = (base << shift) & VA_MASK;
	to->to = to->from + ((number + 1) << (5 * scale + 1) << form->shift);
}

/*
 * Find out what a TLBI invalidates. *wrong says what is wrong with its operand,
 * or is NULL.
 */
bool decode_tlbi(uint32_t word, uint64_t operand, const struct cpu *cpu, struct tlbi *to, const char **wrong)
{
	int group = word >> 8 & 15, what = word >> 5 & 7, hint, granule, level;
	struct half form;

	*wrong = NULL;
	memset(to, 0, sizeof(*to));
	to->operand = operand;
	to->level = 0xff;
	to->nxs = word >> 12 & 1;
	to->asid = operand >> 48;
	to->range = group == 2 || group == 5 || group == 6;
	to->local = group == 6 || group == 7;
	if (group == 4 || (to->range && !(what & 1)))
		return false;
	if (!to->range && !what) {
		to->all = true;
		return true;
	}
	if (!to->range && what == 2) {
		to->by_asid = true;
		return true;
	}
	to->any_asid = what & 2;
	to->last = what & 4;
	if (to->range) {
		form = guest_half(cpu->tcr, operand >> 36 & 1);
		range_operand(operand, &form, to);
		hint = operand >> 37 & 3;
		granule = operand >> 46 & 3;
		level = hint;
		if (granule != (form.shift - 10) / 2) {
			*wrong = granule ? "granule (TG) that is not the granule of the tables" : "no granule (TG)";
			to->broken = true;
		}
	} else {
		form = guest_half(cpu->tcr, operand >> 43 & 1);
		to->from = (operand << 12 & VA_MASK) & ~((1ULL << form.shift) - 1);
		to->to = to->from + (1ULL << form.shift);
		hint = operand >> 44 & 15;
		granule = hint >> 2;
		level = hint & 3;
		if (granule && granule != (form.shift - 10) / 2) {
			*wrong = "level hint (TTL) for another granule";
			to->broken = true;
		} else if (!granule && level) {
			*wrong = "level hint (TTL) without a granule";
		}
		if (!granule)
			hint = 0;
	}
	if (!hint)
		return true;
	if (!level && (!form.lpa2 || form.shift != 12)) {
		*wrong = "level hint (TTL) of level 0";
	} else if (level == 1 && form.shift == 14 && !form.lpa2) {
		*wrong = "level hint (TTL) of level 1 with pages of 16K";
	} else {
		to->level = level;
		if (to->range && to->from & ((1ULL << level_shift(&form, level)) - 1) && level < 3)
			*wrong = "range that does not begin at a multiple of the size that its level hint (TTL) means";
	}
	return true;
}
