// SPDX-License-Identifier: GPL-2.0
/*
 * The auditor as files of debugfs:
 *
 *	mm_audit	write 1: audit
 *			write 2: quiet audit, only page tables and caches may
 *			have references to folios
 *			read: the last audit, one line per violation
 *	mm_audit_rules	read: how much the last audit compared, by rule
 */

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "mm_audit.h"

static DEFINE_MUTEX(last_lock);
static struct mm_audit last;
static int last_error = -ENODATA;

static ssize_t mm_audit_write(struct file *file, const char __user *from,
			      size_t size, loff_t *pos)
{
	unsigned int mode;
	int err = kstrtouint_from_user(from, size, 0, &mode);

	if (err)
		return err;
	if (mode < 1 || mode > 2)
		return -EINVAL;
	guard(mutex)(&last_lock);
	last.quiet = mode == 2;
	last_error = mm_audit_run(&last);
	return last_error ?: size;
}

static int mm_audit_show(struct seq_file *seq, void *unused)
{
	char text[256];
	unsigned int i;

	guard(mutex)(&last_lock);
	if (last_error)
		return last_error;
	seq_printf(seq, "mm_audit: %lu mms, %lu entries, %lu folios, %lu violations\n",
		   last.mms, last.entries, last.folios, last.violations);
	for (i = 0; i < last.nr; i++) {
		mm_audit_text(&last.violation[i], text, sizeof(text));
		seq_printf(seq, "%s\n", text);
	}
	return 0;
}

static int mm_audit_open(struct inode *inode, struct file *file)
{
	return single_open(file, mm_audit_show, NULL);
}

static const struct file_operations mm_audit_fops = {
	.open = mm_audit_open,
	.read = seq_read,
	.write = mm_audit_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int mm_audit_rules_show(struct seq_file *seq, void *unused)
{
	unsigned int i;

	guard(mutex)(&last_lock);
	if (last_error)
		return last_error;
	seq_printf(seq, "stopped %llu us, %u rounds\n", last.ns / 1000,
		   last.rounds);
	for (i = 0; i < MM_AUDIT_NR_RULES; i++)
		seq_printf(seq, "%s: %lu compared\n", mm_audit_rule_name(i),
			   last.compared[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mm_audit_rules);

static int __init mm_audit_init(void)
{
	debugfs_create_file("mm_audit", 0600, NULL, NULL, &mm_audit_fops);
	debugfs_create_file("mm_audit_rules", 0400, NULL, NULL,
			    &mm_audit_rules_fops);
	return 0;
}
late_initcall(mm_audit_init);
