/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's plugin interface that this plugin uses.
 *
 * No package has qemu-plugin.h, so this header declares the functions. They
 * come from version 4 of the interface, which QEMU 10.0 has. QEMU refuses a
 * plugin if it does not support the plugin's version.
 */
#ifndef MMCHECK_TLB_API_H
#define MMCHECK_TLB_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))
#define PLUGIN_VERSION 4

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;

struct plugin_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	int smp_vcpus;
	int max_vcpus;
};

enum { PLUGIN_NO_REGS, PLUGIN_R_REGS };
enum { PLUGIN_MEM_R = 1, PLUGIN_MEM_W };

/* GLib's arrays. QEMU itself uses GLib. */
struct glib_array {
	char *data;
	unsigned int len;
};

struct glib_bytes {
	uint8_t *data;
	unsigned int len;
};

struct plugin_register {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
};

struct glib_bytes *g_byte_array_new(void);
struct glib_bytes *g_byte_array_set_size(struct glib_bytes *array, unsigned int length);
char *g_array_free(struct glib_array *array, int free_segment);

typedef void (*plugin_cpu_fn)(qemu_plugin_id_t id, unsigned int cpu);
typedef void (*plugin_tb_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*plugin_insn_fn)(unsigned int cpu, void *data);
typedef void (*plugin_mem_fn)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *data);
typedef void (*plugin_exit_fn)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, plugin_cpu_fn cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, plugin_tb_fn cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, plugin_insn_fn cb, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, plugin_mem_fn cb, int flags, int rw,
				      void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, plugin_exit_fn cb, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t va);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

struct glib_array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct glib_bytes *to);

void qemu_plugin_outs(const char *text);

#endif
