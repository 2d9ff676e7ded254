// SPDX-License-Identifier: GPL-2.0
/*
 * Registers, memory and translation tables of the guest.
 *
 * The plugin interface reads memory only by virtual address. But it gives the host's address of an instruction.
 * The first instructions run with the MMU off, so their virtual addresses are
 * physical addresses. RAM is one block of the host's memory. So one pair of a
 * physical address and a host address is enough to convert all other addresses.
 */
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

uint64_t ram_base, ram_size;

static char *ram;
static struct {
	const char *name;
	struct qemu_plugin_register *handle;
} *names;
static unsigned int name_count;
static struct qemu_plugin_register *x[31], *cpsr;
static __thread struct glib_bytes *buffer;

bool guest_setup(void)
{
	struct glib_array *all = qemu_plugin_get_registers();
	struct plugin_register *one = (struct plugin_register *)all->data;

	if (names)
		return true;
	names = calloc(all->len, sizeof(*names));
	for (unsigned int i = 0; i < all->len; i++) {
		if (one[i].name[0] == 'x' && one[i].name[1] >= '0' && one[i].name[1] <= '9' &&
		    atoi(one[i].name + 1) < 31)
			x[atoi(one[i].name + 1)] = one[i].handle;
		if (!strcmp(one[i].name, "cpsr"))
			cpsr = one[i].handle;
		names[name_count].name = strdup(one[i].name);
		names[name_count++].handle = one[i].handle;
	}
	return cpsr && x[0] && x[30];
}

static uint64_t read_handle(struct qemu_plugin_register *handle)
{
	uint64_t value = 0;

	if (!buffer)
		buffer = g_byte_array_new();
	g_byte_array_set_size(buffer, 0);
	if (handle && qemu_plugin_read_register(handle, buffer) > 0)
		memcpy(&value, buffer->data, buffer->len < 8 ? buffer->len : 8);
	return value;
}

/* The value of X0 to X30, or 0 for XZR. */
uint64_t guest_x(int number)
{
	return number < 31 ? read_handle(x[number]) : 0;
}

uint64_t guest_register(const char *name)
{
	for (unsigned int i = 0; i < name_count; i++)
		if (!strcmp(names[i].name, name))
			return read_handle(names[i].handle);
	return 0;
}

int guest_el(void)
{
	return read_handle(cpsr) >> 2 & 3;
}

void guest_learn_ram(const void *host, uint64_t pa, uint32_t word)
{
	if (ram || !host || pa < ram_base || pa - ram_base >= ram_size || memcmp(host, &word, 4))
		return;
	ram = (char *)host - (pa - ram_base);
}

bool guest_ready(void)
{
	return ram;
}

void *guest_ram(uint64_t pa, uint64_t length)
{
	if (!ram || pa < ram_base || pa - ram_base > ram_size || length > ram_size - (pa - ram_base))
		return NULL;
	return ram + (pa - ram_base);
}

/*
 * What TCR_EL1 says about the lower (0) or upper (1) half. Arm ARM D24.2,
 * TCR_EL1.
 */
struct half guest_half(uint64_t tcr, int half)
{
	static const int low[] = { 12, 16, 14, 12 }, high[] = { 12, 14, 12, 16 };
	struct half form = {
		.shift = half ? high[tcr >> 30 & 3] : low[tcr >> 14 & 3],
		.bits = 64 - (int)(tcr >> (half ? 16 : 0) & 0x3f),
	};

	form.lpa2 = tcr >> 59 & 1 && form.shift < 16;
	if (form.bits < 25)
		form.bits = 25;
	if (form.bits > 52)
		form.bits = 52;
	return form;
}

int level_shift(const struct half *form, int level)
{
	return form->shift + (form->shift - 3) * (3 - level);
}

int first_level(const struct half *form)
{
	return 3 - (form->bits - form->shift - 1) / (form->shift - 3);
}

/* The physical address in a table descriptor or leaf. */
uint64_t output(const struct half *form, uint64_t desc, int level)
{
	uint64_t pa = desc & ((1ULL << (form->lpa2 ? 50 : 48)) - 1) & ~((1ULL << form->shift) - 1);

	if (form->lpa2)
		pa |= (desc >> 8 & 3) << 50;
	else if (form->shift == 16)
		pa |= (desc >> 12 & 15) << 48;
	if (level < 3 && !(desc & DESC_TABLE))
		pa &= ~((1ULL << level_shift(form, level)) - 1);
	return pa;
}

/* Walk the tables in memory. False if the address has no translation. */
bool guest_walk(uint64_t root_pa, const struct half *form, uint64_t va, uint64_t *desc, int *level)
{
	uint64_t table = root_pa;

	for (int at = first_level(form);; at++) {
		int bits = at == first_level(form) ? form->bits - level_shift(form, at) : form->shift - 3;
		uint64_t slot = va >> level_shift(form, at) & ((1ULL << bits) - 1);
		uint64_t *entry = guest_ram(table + slot * 8, 8);

		if (!entry)
			return false;
		*desc = __atomic_load_n(entry, __ATOMIC_RELAXED);
		*level = at;
		if (!(*desc & DESC_VALID))
			return false;
		if (is_leaf(*desc, at))
			return true;
		if (!is_table(*desc, at))
			return false;
		table = output(form, *desc, at);
	}
}

bool guest_va_to_pa(const struct cpu *cpu, uint64_t va, uint64_t *pa)
{
	int half = va >> 55 & 1, level;
	struct half form = guest_half(cpu->tcr, half);
	uint64_t desc;

	if (!cpu->mmu) {
		*pa = va;
		return true;
	}
	if (!cpu->installed[half] || !guest_walk(cpu->installed[half]->table->pa, &form, va, &desc, &level))
		return false;
	*pa = output(&form, desc, level) | (va & ((1ULL << level_shift(&form, level)) - 1));
	return true;
}

bool guest_read(const struct cpu *cpu, uint64_t va, uint64_t *value)
{
	uint64_t pa, *from;

	if (va & 7 || !guest_va_to_pa(cpu, va, &pa))
		return false;
	from = guest_ram(pa, 8);
	if (from)
		*value = *from;
	return from;
}

/* A return address without its authentication code. */
static uint64_t plain(const struct cpu *cpu, uint64_t address)
{
	struct half form = guest_half(cpu->tcr, address >> 55 & 1);
	uint64_t mask = (1ULL << form.bits) - 1;

	return address >> 55 & 1 ? address | ~mask : address & mask;
}

/* Find the callers by frame pointers. */
void guest_backtrace(const struct cpu *cpu, uint64_t pc, struct place *to)
{
	uint64_t frame = guest_x(29), next, back;

	memset(to, 0, sizeof(*to));
	to->pc = pc;
	to->back[0] = plain(cpu, guest_x(30));
	for (int i = 1; i < DEPTH; i++) {
		if (!frame || !guest_read(cpu, frame, &next) || !guest_read(cpu, frame + 8, &back))
			break;
		to->back[i] = plain(cpu, back);
		if (next <= frame)
			break;
		frame = next;
	}
}
