// SPDX-License-Identifier: GPL-2.0
/*
 * Instruments the instructions that matter.
 *
 * Arguments: out=FILE, ram=BASE:SIZE, hooks=FILE (lines "NAME ADDRESS" with functions of the kernel), bbm=LEVEL.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_VERSION;

struct cpu cpus[MAX_CPUS];
uint64_t now = 1;
int bbm_level = -1;
bool hardware_dirty;
uint64_t memory_types;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* An instruction with a callback. */
struct site {
	uint64_t pc;
	uint32_t word;
	int hook;
};

enum hook { HOOK_NONE, HOOK_FREE, HOOK_FREE_BATCH, HOOK_LEARN_ADDRESS, HOOK_LEARN_PAGE, HOOK_EXIT_MMAP, HOOK_EXIT_TASK,
	    HOOK_AFTER_EXIT_MMAP, HOOKS };
static const char *const hook_names[HOOKS] = { "", "free", "free_batch", "learn_address", "learn_page", "exit_mmap",
					       "exit_task", "" };
static struct {
	uint64_t pc;
	enum hook hook;
} hooks[64];
static int hook_count;

#define TASKS 64
static uint64_t dying[TASKS];
static uint64_t first_page;
static int learned;

bool is_dying(uint64_t task)
{
	for (int i = 0; i < TASKS; i++)
		if (dying[i] == task && task)
			return true;
	return false;
}

static void set_dying(uint64_t task, bool on)
{
	for (int i = 0; i < TASKS; i++) {
		if (dying[i] == (on ? 0 : task)) {
			dying[i] = on ? task : 0;
			return;
		}
	}
}

static void on_store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t va, void *data)
{
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, va);
	uint64_t pa;

	if (!address || qemu_plugin_hwaddr_is_io(address))
		return;
	pa = qemu_plugin_hwaddr_phys_addr(address);
	if (!table_page(pa))
		return;
	pthread_mutex_lock(&lock);
	table_store(&cpus[index], pa, 1U << qemu_plugin_mem_size_shift(info), (uint64_t)data);
	pthread_mutex_unlock(&lock);
}

static void on_tlbi(struct cpu *cpu, const struct site *site)
{
	struct tlbi op;
	const char *wrong;

	counts[COUNT_TLBI]++;
	if (!decode_tlbi(site->word, guest_x(site->word & 31), cpu, &op, &wrong))
		return;
	op.pc = site->pc;
	if (wrong) {
		struct stale like = { .va = op.from, .size = op.to - op.from, .space = op.asid };

		like.store.pc = site->pc;
		report(RULE_OPERAND, cpu, &like, op.operand, site->pc, wrong);
	}
	stale_tlbi(cpu, &op);
}

static void on_dsb(struct cpu *cpu, uint32_t word)
{
	static const uint8_t nxs_domain[] = { 3, 7, 11, 15 };
	bool nxs = (word & 0xfffff3ff) == 0xd503323f;
	int option = nxs ? nxs_domain[word >> 10 & 3] : word >> 8 & 15, type = option & 3;

	counts[COUNT_DSB]++;
	stale_dsb(cpu, type >= 2 || !type, type == 3 || !type, (option & 12) == 4, nxs);
}

static void install(struct cpu *cpu, uint64_t pc)
{
	cpu->asid = cpu->ttbr[cpu->tcr >> 22 & 1] >> 48;
	hardware_dirty = cpu->tcr >> 40 & 1;
	if (!cpu->mmu || !guest_ready())
		return;
	cpu->switches++;
	table_install(cpu, 1, cpu->ttbr[1], cpu->asid, pc);
	table_install(cpu, 0, cpu->ttbr[0], cpu->asid, pc);
}

static void on_msr(struct cpu *cpu, enum insn kind, const struct site *site)
{
	uint64_t value = guest_x(site->word & 31);

	switch (kind) {
	case INSN_MSR_SCTLR:
		if (!(value & 1)) {
			cpu->mmu = false;
			table_mmu_off(cpu);
			return;
		}
		if (cpu->mmu)
			return;
		cpu->mmu = true;
		cpu->ttbr[0] = guest_register("TTBR0_EL1");
		cpu->ttbr[1] = guest_register("TTBR1_EL1");
		cpu->tcr = guest_register("TCR_EL1");
		memory_types = guest_register("MAIR_EL1");
		if (bbm_level < 0)
			bbm_level = guest_register("ID_AA64MMFR2_EL1") >> 52 & 15;
		break;
	case INSN_MSR_TTBR0:
		cpu->ttbr[0] = value;
		break;
	case INSN_MSR_TTBR1:
		cpu->ttbr[1] = value;
		break;
	default:
		cpu->tcr = value;
	}
	install(cpu, site->pc);
}

/* How many bits of an address are the offset in a page of the kernel. */
static int page_shift(const struct cpu *cpu)
{
	return guest_half(cpu->tcr, 1).shift;
}

/* The kernel clears memory. A page counts as cleared if its first byte is cleared. */
static void cleared(struct cpu *cpu, uint64_t va, uint64_t size, uint64_t pc)
{
	uint64_t page = 1ULL << page_shift(cpu), pa;

	for (uint64_t at = (va + page - 1) & -page; at - va < size; at += page)
		if (guest_va_to_pa(cpu, at, &pa))
			rule_zeroed(cpu, pa, pc);
}

static void on_insn(unsigned int index, void *data)
{
	const struct site *site = data;
	struct cpu *cpu = &cpus[index];
	enum insn kind = decode(site->word);
	uint64_t value, size = 1;

	if (kind == INSN_USER_ACCESS && !stale_space[cpu->asid])
		return;
	pthread_mutex_lock(&lock);
	switch (kind) {
	case INSN_USER_ACCESS:
		rule_boundary(cpu, site->pc, "access to user memory", false);
		break;
	case INSN_TLBI:
		on_tlbi(cpu, site);
		break;
	case INSN_DSB:
		on_dsb(cpu, site->word);
		break;
	case INSN_ERET:
		counts[COUNT_ERET]++;
		if (!(guest_register("SPSR_EL1") & 15)) {
			cpu->el0_asid = cpu->asid;
			rule_eret(cpu, site->pc);
		}
		break;
	case INSN_MSR_SP_EL0:
		value = guest_x(site->word & 31);
		if (value >> 55 & 1) {
			cpu->task = value;
			cpu->el0_asid = -1;
		}
		break;
	case INSN_SET:
		size = guest_x(site->word >> 5 & 31);
		/* fall through */
	case INSN_ZERO:
		if (stale_count)
			cleared(cpu, guest_x(site->word & 31), size, site->pc);
		break;
	default:
		on_msr(cpu, kind, site);
	}
	pthread_mutex_unlock(&lock);
}

static void free_pages(struct cpu *cpu, uint64_t page, unsigned int order, uint64_t pc)
{
	if (learned < 3 || order > 18)
		return;
	for (uint64_t i = 0; i < 1ULL << order; i++)
		rule_freed(cpu, ((page - first_page) / 64 + i) << page_shift(cpu), pc);
}

static void on_hook(unsigned int index, void *data)
{
	const struct site *site = data;
	struct cpu *cpu = &cpus[index];
	uint64_t pa, value, flags;

	pthread_mutex_lock(&lock);
	switch (site->hook) {
	case HOOK_FREE:
		free_pages(cpu, guest_x(0), guest_x(1), site->pc);
		break;
	case HOOK_FREE_BATCH:
		/*
		 * struct folio_batch: a byte with the number of folios, and 31
		 * pointers that begin at offset 8
		 */
		if (!guest_read(cpu, guest_x(0), &value))
			break;
		for (unsigned int i = 0; i < (value & 0xff) && i < 31; i++) {
			uint64_t folio, order = 0;

			if (!guest_read(cpu, guest_x(0) + 8 + 8 * i, &folio) || !guest_read(cpu, folio, &flags))
				continue;
			if (flags >> 6 & 1)	/* PG_head */
				guest_read(cpu, folio + 64, &order);
			free_pages(cpu, folio, order & 0xff, site->pc);
		}
		break;
	case HOOK_LEARN_ADDRESS:
		cpu->free_address = guest_x(0);
		break;
	case HOOK_LEARN_PAGE:
		if (cpu->free_address && guest_va_to_pa(cpu, cpu->free_address, &pa)) {
			value = guest_x(0) - (pa >> page_shift(cpu)) * 64;
			learned = value == first_page ? learned + 1 : 1;
			first_page = value;
		}
		cpu->free_address = 0;
		break;
	case HOOK_EXIT_MMAP:
		set_dying(cpu->task, true);
		break;
	case HOOK_AFTER_EXIT_MMAP:
		set_dying(cpu->task, false);
		break;
	case HOOK_EXIT_TASK:
		rule_boundary(cpu, site->pc, "the end of the task", true);
		break;
	}
	pthread_mutex_unlock(&lock);
}

static struct site *site_of(uint64_t pc, uint32_t word, int hook)
{
	struct site *one = malloc(sizeof(*one));

	*one = (struct site){ pc, word, hook };
	return one;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool user = guest_el() == 0;

	(void)id;
	for (size_t i = 0; !user && i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t pc = qemu_plugin_insn_vaddr(insn), target;
		enum insn kind;
		uint32_t word;

		if (qemu_plugin_insn_data(insn, &word, 4) != 4)
			continue;
		if (!guest_ready() && !(pc >> 55))
			guest_learn_ram(qemu_plugin_insn_haddr(insn), pc, word);
		for (int at = 0; at < hook_count; at++) {
			if (hooks[at].pc == pc)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_hook, PLUGIN_R_REGS,
								       site_of(pc, word, hooks[at].hook));
			if (hooks[at].hook == HOOK_EXIT_MMAP && is_bl(word, pc, &target) && target == hooks[at].pc &&
			    hook_count < 64) {
				hooks[hook_count].pc = pc + 4;
				hooks[hook_count++].hook = HOOK_AFTER_EXIT_MMAP;
			}
		}
		kind = decode(word);
		if (kind == INSN_STORE)
			qemu_plugin_register_vcpu_mem_cb(insn, on_store, PLUGIN_R_REGS, PLUGIN_MEM_W, (void *)pc);
		else if (kind != INSN_OTHER)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_insn, PLUGIN_R_REGS, site_of(pc, word, 0));
	}
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	if (index >= MAX_CPUS || !guest_setup()) {
		fprintf(stderr, "tlb: this QEMU does not give the registers of an arm64 CPU\n");
		exit(1);
	}
	cpus[index].index = index;
	cpus[index].el0_asid = -1;
}

static void on_quit(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	report_all();
}

static bool read_hooks(const char *path)
{
	FILE *from = fopen(path, "r");
	unsigned long long pc;
	char name[32];

	if (!from)
		return false;
	while (fscanf(from, "%31s %llx", name, &pc) == 2)
		for (int i = 1; i < HOOKS; i++)
			if (!strcmp(name, hook_names[i]) && hook_count < 32) {
				hooks[hook_count].pc = pc;
				hooks[hook_count++].hook = i;
			}
	fclose(from);
	return true;
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct plugin_info *info, int argc, char **argv)
{
	bool out = false;

	if (strcmp(info->target_name, "aarch64") || !info->system_emulation || info->version.cur < PLUGIN_VERSION) {
		fprintf(stderr, "tlb: needs qemu-system-aarch64 with version %d of the plugin interface\n",
			PLUGIN_VERSION);
		return -1;
	}
	for (int i = 0; i < argc; i++) {
		unsigned long long base, size;

		if (!strncmp(argv[i], "out=", 4)) {
			report_to(argv[i] + 4);
			out = true;
		} else if (sscanf(argv[i], "ram=%llx:%llx", &base, &size) == 2) {
			ram_base = base;
			ram_size = size;
		} else if (!strncmp(argv[i], "bbm=", 4)) {
			bbm_level = atoi(argv[i] + 4);
		} else if (strncmp(argv[i], "hooks=", 6) || !read_hooks(argv[i] + 6)) {
			fprintf(stderr, "tlb: %s: no such argument, or no such file\n", argv[i]);
			return -1;
		}
	}
	if (!out || !ram_size) {
		fprintf(stderr, "tlb: needs out=FILE and ram=BASE:SIZE\n");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_quit, NULL);
	return 0;
}
