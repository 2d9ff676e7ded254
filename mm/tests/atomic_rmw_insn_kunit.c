// SPDX-License-Identifier: GPL-2.0
/*
 * Which arm64 instructions are atomic read-modify-write operations.
 *
 * arm64 can handle a read fault of such an instruction as a write fault. If the
 * decoder misses an atomic, the atomic faults twice. If the decoder treats
 * another instruction as an atomic, a read allocates memory. The decoder is
 * plain C, so the tests run on any architecture. They compare it with bit
 * patterns from the encoding index of the Arm ARM, and with words from an
 * assembler.
 *
 * Not covered: the fault handler, which uses the result (atomic_rmw_fault);
 * 128-bit atomics, which the decoder does not recognize.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests atomic_rmw_insn
 */

#include <kunit/test.h>

#include "pgtable_kunit.h"
#include "atomic_rmw_insn.h"

/* Bit 31 comes first; x is 0 or 1. Blanks are only for readability. */
static const char * const rmw_patterns[] = {
	/* size 111 V 00 A R 1 Rs o3 opc 00 Rn Rt: LDADD, LDCLR, LDEOR, ... */
	"xx 111 0 00 x x 1 xxxxx 0 xxx 00 xxxxx xxxxx",
	/* SWP */
	"xx 111 0 00 x x 1 xxxxx 1 000 00 xxxxx xxxxx",
	/* RCWCLR, RCWSWP, RCWSET; with bit 30 RCWSCLR, RCWSSWP, RCWSSET */
	"0x 111 0 00 x x 1 xxxxx 1 001 00 xxxxx xxxxx",
	"0x 111 0 00 x x 1 xxxxx 1 010 00 xxxxx xxxxx",
	"0x 111 0 00 x x 1 xxxxx 1 011 00 xxxxx xxxxx",
	/* ST64BV0, ST64BV: Rt is even, and the last of eight is X29 */
	"11 111 0 00 0 0 1 xxxxx 1 010 00 xxxxx 0xxx0",
	"11 111 0 00 0 0 1 xxxxx 1 010 00 xxxxx 10xx0",
	"11 111 0 00 0 0 1 xxxxx 1 011 00 xxxxx 0xxx0",
	"11 111 0 00 0 0 1 xxxxx 1 011 00 xxxxx 10xx0",
	/* size 0010001 L 1 Rs o0 11111 Rn Rt: CAS */
	"xx 001000 1 x 1 xxxxx x 11111 xxxxx xxxxx",
	/* 0 sz 0010000 L 1 Rs o0 11111 Rn Rt: CASP, Rs and Rt are even */
	"0x 001000 0 x 1 xxxx0 x 11111 xxxxx xxxx0",
};

/* A pattern, as the bits that it fixes and their values. */
struct rmw_bits {
	u32 mask;
	u32 value;
};

static void rmw_parse(struct kunit *test, struct rmw_bits *bits)
{
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(rmw_patterns); i++) {
		const char *c;

		bits[i] = (struct rmw_bits){};
		for (n = 0, c = rmw_patterns[i]; *c; c++) {
			if (*c == ' ')
				continue;
			bits[i].mask = bits[i].mask << 1 | (*c != 'x');
			bits[i].value = bits[i].value << 1 | (*c == '1');
			n++;
		}
		KUNIT_ASSERT_EQ_MSG(test, n, 32, "%s", rmw_patterns[i]);
	}
}

/* Rs, Rn and Rt. */
#define RMW_REGISTERS	0x001f03ffU

/* Keep the patterns that match @insn apart from its registers. */
static unsigned int rmw_candidates(const struct rmw_bits *bits, u32 insn,
				   struct rmw_bits *found)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(rmw_patterns); i++) {
		if (!((insn ^ bits[i].value) & bits[i].mask & ~RMW_REGISTERS))
			found[nr++] = bits[i];
	}
	return nr;
}

static bool rmw_matches(const struct rmw_bits *bits, unsigned int nr, u32 insn)
{
	while (nr--) {
		if ((insn & bits[nr].mask) == bits[nr].value)
			return true;
	}
	return false;
}

/*
 * The next combination of registers, or 0 after the last. UML runs at the speed
 * of the host, so there the test tries all combinations. Elsewhere it tries
 * only register numbers at the limits of some instruction.
 */
static u32 rmw_next(u32 registers)
{
	static const u8 some[] = { 0, 1, 2, 22, 23, 24, 30, 31 };
	static const u8 shifts[] = { 0, 5, 16 };
	unsigned int i, at;

	if (IS_ENABLED(CONFIG_UML))
		return ((registers | ~RMW_REGISTERS) + 1) & RMW_REGISTERS;
	for (i = 0; i < ARRAY_SIZE(shifts); i++) {
		for (at = 0; some[at] != (registers >> shifts[i] & 31); at++)
			;
		registers &= ~(31U << shifts[i]);
		if (at + 1 < ARRAY_SIZE(some))
			return registers | some[at + 1] << shifts[i];
	}
	return 0;
}

/* Each case tests the instructions with one value of the highest four bits. */
static PGTABLE_KUNIT_GEN_PARAMS(rmw_top)
{
	unsigned long top = (unsigned long)prev;

	if (top == 16)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%lx0000000 on", top);
	return (const void *)(top + 1);
}

/*
 * The decoder treats a 32-bit word as an atomic if some pattern matches, and
 * only then. On UML the test tries all 4294967296 words. Elsewhere it tries all
 * values of the bits that do not name registers. These include the 512
 * combinations of size, V, A, R, o3 and opc. Each value is tried with 512
 * combinations of registers.
 */
static void decoder_every_instruction(struct kunit *test)
{
	u32 top = (unsigned long)test->param_value - 1, upper, registers;
	struct rmw_bits bits[ARRAY_SIZE(rmw_patterns)], found[ARRAY_SIZE(bits)];
	unsigned long checked = 0, atomics = 0;
	unsigned int nr;

	rmw_parse(test, bits);
	/* Bits 27 to 21, and 15 to 10. */
	for (upper = 0; upper < BIT(13); upper++) {
		u32 insn = top << 28 | (upper >> 6) << 21 | (upper & 63) << 10;

		nr = rmw_candidates(bits, insn, found);
		registers = 0;
		do {
			bool want = rmw_matches(found, nr, insn | registers);

			if (atomic_rmw_insn(insn | registers) != want) {
				KUNIT_FAIL(test, "%08x is %s atomic",
					   insn | registers,
					   want ? "an" : "no");
				return;
			}
			checked++;
			atomics += want;
			registers = rmw_next(registers);
		} while (registers);
		cond_resched();
	}
	PGTABLE_KUNIT_DID(test, checked, "instructions");
	kunit_info(test, "%lu of them atomics\n", atomics);
}

/*
 * The class of atomic memory operations has 512 combinations of size, V, A, R,
 * o3 and opc. The decoder recognizes 170 of them as atomics: 128 LD<op>, 16
 * SWP, 24 RCW* and 2 ST64BV*.
 */
static void decoder_class_combinations(struct kunit *test)
{
	unsigned int i, atomics = 0;

	for (i = 0; i < 512; i++) {
		u32 size = i >> 7, v = i >> 6 & 1, ar = i >> 4 & 3, op = i & 15;

		atomics += atomic_rmw_insn(size << 30 | 7 << 27 | v << 26 |
					   ar << 22 | 1 << 21 | op << 12);
	}
	KUNIT_EXPECT_EQ(test, atomics, 170);
}

/* Instructions, with the words that an assembler makes of them. */
static const struct rmw_word {
	u32 insn;
	bool atomic;
	const char *desc;
} rmw_words[] = {
	{ 0xb8210062, true, "ldadd w1, w2, [x3]" },
	{ 0x38e10062, true, "ldaddalb w1, w2, [x3]" },
	{ 0x783e13fd, true, "ldclrh w30, w29, [sp]" },
	{ 0xf8a12062, true, "ldeora x1, x2, [x3]" },
	{ 0xf8613062, true, "ldsetl x1, x2, [x3]" },
	{ 0xb8214062, true, "ldsmax w1, w2, [x3]" },
	{ 0xf8215062, true, "ldsmin x1, x2, [x3]" },
	{ 0x38216062, true, "ldumaxb w1, w2, [x3]" },
	{ 0xf8e17062, true, "lduminal x1, x2, [x3]" },
	{ 0xb821007f, true, "stadd w1, [x3]" },
	{ 0x3861607f, true, "stumaxlb w1, [x3]" },
	{ 0xf8218062, true, "swp x1, x2, [x3]" },
	{ 0x38e18062, true, "swpalb w1, w2, [x3]" },
	{ 0x88a17c62, true, "cas w1, w2, [x3]" },
	{ 0x08e1fc62, true, "casalb w1, w2, [x3]" },
	{ 0x48a17c62, true, "cash w1, w2, [x3]" },
	{ 0xc8e17c62, true, "casa x1, x2, [x3]" },
	{ 0x08207c82, true, "casp w0, w1, w2, w3, [x4]" },
	{ 0x4860fc82, true, "caspal x0, x1, x2, x3, [x4]" },
	{ 0xf821b062, true, "st64bv x1, x2, [x3]" },
	{ 0xf821a062, true, "st64bv0 x1, x2, [x3]" },
	/* loads and stores that are encoded close by */
	{ 0x38bfc062, false, "ldaprb w2, [x3]" },
	{ 0xf8bfc062, false, "ldapr x2, [x3]" },
	{ 0xf83fd062, false, "ld64b x2, [x3]" },
	{ 0xf83f9062, false, "st64b x2, [x3]" },
	{ 0xf8646862, false, "ldr x2, [x3, x4]" },
	{ 0xf8247862, false, "str x2, [x3, x4, lsl 3]" },
	{ 0xb85fc062, false, "ldur w2, [x3, -4]" },
	{ 0xb81fc062, false, "stur w2, [x3, -4]" },
	{ 0xf8408462, false, "ldr x2, [x3], 8" },
	{ 0xb9400062, false, "ldr w2, [x3]" },
	{ 0xf8a46860, false, "prfm pldl1keep, [x3, x4]" },
	{ 0xf8200462, false, "ldraa x2, [x3]" },
	{ 0xf8a01462, false, "ldrab x2, [x3, 8]" },
	{ 0x3ce46860, false, "ldr q0, [x3, x4]" },
	{ 0x3c246860, false, "str b0, [x3, x4]" },
	/* exclusives, and ordered accesses: none reads and writes by itself */
	{ 0x885f7c62, false, "ldxr w2, [x3]" },
	{ 0x88017c62, false, "stxr w1, w2, [x3]" },
	{ 0xc87f8861, false, "ldaxp x1, x2, [x3]" },
	{ 0xc8208861, false, "stlxp w0, x1, x2, [x3]" },
	{ 0x88dffc62, false, "ldar w2, [x3]" },
	{ 0x889ffc62, false, "stlr w2, [x3]" },
	{ 0x88df7c62, false, "ldlar w2, [x3]" },
	{ 0x889f7c62, false, "stllr w2, [x3]" },
	{ 0x99404062, false, "ldapur w2, [x3, 4]" },
	{ 0x99004062, false, "stlur w2, [x3, 4]" },
	{ 0xa9400861, false, "ldp x1, x2, [x3]" },
	{ 0xad400460, false, "ldp q0, q1, [x3]" },
	{ 0x4c407060, false, "ld1 {v0.16b}, [x3]" },
	{ 0xd9600061, false, "ldg x1, [x3]" },
	{ 0xd9200861, false, "stg x1, [x3]" },
	{ 0xd50b7423, false, "dc zva, x3" },
	{ 0xd4000001, false, "svc 0" },
	{ 0xd503201f, false, "nop" },
	{ 0x00000000, false, "udf 0" },
};

KUNIT_ARRAY_PARAM_DESC(rmw_word, rmw_words, desc);

/* The decoder recognizes each atomic from an assembler, and no other word. */
static void decoder_assembled_word(struct kunit *test)
{
	const struct rmw_word *word = test->param_value;

	KUNIT_EXPECT_EQ(test, atomic_rmw_insn(word->insn), word->atomic);
}

static struct kunit_case atomic_rmw_insn_cases[] = {
	KUNIT_CASE_PARAM(decoder_assembled_word, rmw_word_gen_params),
	KUNIT_CASE(decoder_class_combinations),
	KUNIT_CASE_PARAM_ATTR(decoder_every_instruction, rmw_top_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite atomic_rmw_insn_suite = {
	.name = "atomic_rmw_insn",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = atomic_rmw_insn_cases,
};

kunit_test_suite(atomic_rmw_insn_suite);

MODULE_DESCRIPTION("KUnit tests for the decoder of arm64 atomic instructions");
MODULE_LICENSE("GPL");
