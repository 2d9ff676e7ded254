// SPDX-License-Identifier: GPL-2.0
/*
 * Small programs that run in user space, and a record of their page faults.
 *
 * The process executes a file of a few bytes. This file registers a binary
 * format, which recognises such a file and loads the program into memory.
 */

#include <linux/binfmts.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/mman.h>
#include <linux/personality.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <asm/cacheflush.h>

#include "pgtable_kunit.h"
#include "user_run.h"

#define USER_PATH	"/pgtable_kunit"
#define USER_MAGIC	"pgtable_kunit user_run\n"

/* The program that runs. */
static struct user_run *running;

static int user_load_code(struct user_run *run)
{
	size_t size = run->nr_code * sizeof(*run->code);
	unsigned long addr;

	addr = vm_mmap(NULL, USER_CODE, PAGE_ALIGN(size),
		       PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0);
	if (IS_ERR_VALUE(addr))
		return addr;
	if (copy_to_user((void __user *)addr, run->code, size))
		return -EFAULT;
	return caches_clean_inval_user_pou(addr, addr + size);
}

static int user_load(struct linux_binprm *bprm);

static struct linux_binfmt user_format = {
	.load_binary = user_load,
};

static int user_load(struct linux_binprm *bprm)
{
	struct user_run *run = running;
	struct pt_regs *regs = current_pt_regs();
	int err;

	if (!run || memcmp(bprm->buf, USER_MAGIC, strlen(USER_MAGIC)))
		return -ENOEXEC;
	err = begin_new_exec(bprm);
	if (err)
		return err;
	clear_thread_flag(TIF_32BIT);
	current->personality &= ~READ_IMPLIES_EXEC;
	setup_new_exec(bprm);
	set_binfmt(&user_format);
	err = setup_arg_pages(bprm, STACK_TOP, EXSTACK_DISABLE_X);
	if (!err)
		err = user_load_code(run);
	if (!err)
		err = run->prepare(run);
	run->err = err;
	if (err)
		return err;

	finalize_exec(bprm);
	start_thread(regs, USER_CODE, bprm->p);
	memcpy(regs->regs, run->regs, sizeof(run->regs));

	/* The program's mm outlives the process. */
	mmget(current->mm);
	run->mm = current->mm;
	run->task = get_task_struct(current);
	run->min_flt = current->min_flt;
	complete(&run->loaded);
	return 0;
}

/*
 * This function runs in the new process, since kernel threads may not see the
 * files.
 */
static int user_write_file(void)
{
	struct file *file = filp_open(USER_PATH, O_WRONLY | O_CREAT | O_TRUNC,
				      0700);
	ssize_t written;
	loff_t pos = 0;

	if (IS_ERR(file))
		return PTR_ERR(file);
	written = kernel_write(file, USER_MAGIC, strlen(USER_MAGIC), &pos);
	/* A file that is still open for writing cannot be executed. */
	__fput_sync(file);
	return written == strlen(USER_MAGIC) ? 0 : -EIO;
}

static int user_process(void *unused)
{
	static const char * const argv[] = { USER_PATH, NULL };
	static const char * const envp[] = { NULL };
	int err = user_write_file();

	if (!err)
		err = kernel_execve(USER_PATH, argv, envp);
	if (!err)
		return 0;
	running->err = running->err ?: err;
	complete(&running->loaded);
	do_exit(0);
}

/*
 * Record handle_mm_fault(vma, address, flags, regs). If a fault fails under the
 * lock of the VMA, the kernel repeats it under the lock of the mm. Both
 * together count once.
 */
static int user_fault(struct kprobe *probe, struct pt_regs *regs)
{
	struct vm_area_struct *vma = (void *)regs_get_kernel_argument(regs, 0);
	unsigned long addr = regs_get_kernel_argument(regs, 1);
	unsigned int flags = regs_get_kernel_argument(regs, 2);
	struct user_run *run = running;
	struct user_fault *last;

	if (!run || !run->mm || vma->vm_mm != run->mm || addr < run->addr ||
	    addr >= run->addr + run->size)
		return 0;
	last = run->nr && run->nr <= USER_FAULTS ? &run->fault[run->nr - 1] :
						   NULL;
	if (last && last->addr == addr && !(flags & FAULT_FLAG_VMA_LOCK) &&
	    last->flags & FAULT_FLAG_VMA_LOCK) {
		last->flags = flags;
		return 0;
	}
	if (run->nr < USER_FAULTS) {
		run->fault[run->nr].addr = addr;
		run->fault[run->nr].flags = flags;
		run->fault[run->nr].vma_locked = flags & FAULT_FLAG_VMA_LOCK;
	}
	run->nr++;
	return 0;
}

NOKPROBE_SYMBOL(user_fault);

static struct kprobe user_probe;

/*
 * Record arm64_force_sig_fault(signo, code, far, str), which kills the process.
 */
static int user_signal(struct kprobe *probe, struct pt_regs *regs)
{
	struct user_run *run = running;

	if (run && run->mm && current->mm == run->mm)
		run->si_code = regs_get_kernel_argument(regs, 1);
	return 0;
}

NOKPROBE_SYMBOL(user_signal);

static struct kprobe user_signal_probe;

static void user_stop(void *data)
{
	struct user_run *run = data;

	unregister_kprobe(&user_signal_probe);
	unregister_kprobe(&user_probe);
	unregister_binfmt(&user_format);
	running = NULL;
	if (run->mm)
		mmput(run->mm);
}

/**
 * user_run_alloc() - make a record for runs of programs
 * @test: the test that owns it
 */
struct user_run *user_run_alloc(struct kunit *test)
{
	struct user_run *run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, run);
	/* If compaction moves a page, this causes another fault. */
	pgtable_kunit_compaction_off(test);
	user_probe = (struct kprobe) {
		.symbol_name = "handle_mm_fault",
		.pre_handler = user_fault,
	};
	user_signal_probe = (struct kprobe) {
		.symbol_name = "arm64_force_sig_fault",
		.pre_handler = user_signal,
	};
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(&user_probe));
	if (register_kprobe(&user_signal_probe)) {
		unregister_kprobe(&user_probe);
		KUNIT_FAIL_AND_ABORT(test, "no probe on arm64_force_sig_fault()");
	}
	register_binfmt(&user_format);
	running = run;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, user_stop, run));
	return run;
}

/**
 * user_run() - run a program to its end
 * @test: the test
 * @run: the program; earlier records are dropped
 */
void user_run(struct kunit *test, struct user_run *run)
{
	pid_t pid;

	if (run->mm)
		mmput(run->mm);
	run->mm = NULL;
	run->task = NULL;
	run->nr = 0;
	run->err = 0;
	run->si_code = 0;
	init_completion(&run->loaded);

	kernel_sigaction(SIGCHLD, SIG_DFL);
	pid = user_mode_thread(user_process, NULL, SIGCHLD);
	KUNIT_ASSERT_GT(test, pid, 0);
	wait_for_completion(&run->loaded);
	if (!run->err && run->attend)
		run->attend(run);
	KUNIT_EXPECT_EQ(test, kernel_wait(pid, &run->status), pid);
	kernel_sigaction(SIGCHLD, SIG_IGN);

	KUNIT_ASSERT_EQ_MSG(test, run->err, 0, "the program was not started");
	KUNIT_ASSERT_NOT_NULL(test, run->task);
	run->min_flt = run->task->min_flt - run->min_flt;
	run->esr = run->task->thread.fault_code;
	run->fault_addr = run->task->thread.fault_address;
	put_task_struct(run->task);
}
