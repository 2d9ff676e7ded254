// SPDX-License-Identifier: GPL-2.0
/*
 * With these functions, a worker of folio_walk makes the calls on mappings.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "folio_walk_run.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

static long result(long value)
{
	return value < 0 ? -errno : value;
}

static long mapped(const void *got, const void *wanted)
{
	return got == MAP_FAILED ? -errno : got == wanted ? 0 : -EADDRNOTAVAIL;
}

long run_map_anon(const struct walk_step *s)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (s->x & 1 ? MAP_POPULATE : 0);

	return mapped(mmap(at_page(s->at), in_bytes(s->len), s->prot, flags, -1, 0),
		      at_page(s->at));
}

long run_map_file(const struct walk_step *s)
{
	int flags = (walk_calls[s->call].arg == SHARED ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED |
		    (s->x & 1 ? MAP_POPULATE : 0);

	return mapped(mmap(at_page(s->at), in_bytes(s->len), s->prot, flags,
			   walk->object[s->obj].fd, in_bytes(s->off)), at_page(s->at));
}

long run_map_hugetlb(const struct walk_step *s)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB |
		    __builtin_ctzl(in_bytes(walk->unit)) << MAP_HUGE_SHIFT;

	return mapped(mmap(at_page(s->at), in_bytes(s->len), s->prot, flags, -1, 0),
		      at_page(s->at));
}

long run_munmap(const struct walk_step *s)
{
	return result(munmap(at_page(s->at), in_bytes(s->len)));
}

long run_mprotect(const struct walk_step *s)
{
	return result(mprotect(at_page(s->at), in_bytes(s->len), s->prot));
}

/*
 * Whether the kernel has one mapping that contains the whole range. mremap(2)
 * requires this, and the model does not know which mappings the kernel merges.
 */
bool run_one_mapping(uint32_t at, uint32_t len)
{
	unsigned long from = (unsigned long)at_page(at), to = from + in_bytes(len), a, b;
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx", &a, &b) == 2 && a <= from && b >= to;
	if (f)
		fclose(f);
	return found;
}

long run_mremap(const struct walk_step *s)
{
	char *to = at_page(s->to);
	long flags = walk_calls[s->call].arg;

	if (!run_one_mapping(s->at, s->len))
		return NOT_NOW;
	if (!(flags & MREMAP_FIXED))
		to = at_page(s->at);
	return mapped(mremap(at_page(s->at), in_bytes(s->len), in_bytes(s->tolen), flags, to), to);
}

static long write_values(const struct walk_step *s, bool same)
{
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		const struct walk_page *p = page_of(walk_me, s->at + i);
		int want = m_signal(p, true), got;

		if (m_unsure(p))
			continue;
		got = walk_poke(s->at + i, same ? s->val : s->val + i);

		if (got != want) {
			walk_fail("signal",
				  "write of page %u: signal %d, expected %d; kind %d prot %d flags %x",
				  s->at + i, got, want, p->kind, p->prot, p->flags);
			return 0;
		}
	}
	return 0;
}

long run_write(const struct walk_step *s)
{
	return write_values(s, false);
}

long run_write_same(const struct walk_step *s)
{
	return write_values(s, true);
}

long run_read(const struct walk_step *s)
{
	walk_check_content(s->at, s->len);
	return 0;
}

long run_madvise(const struct walk_step *s)
{
	return result(madvise(at_page(s->at), in_bytes(s->len), walk_calls[s->call].arg));
}

long run_process_madvise(const struct walk_step *s)
{
	struct iovec range = { at_page(s->at), in_bytes(s->len) };
	int fd = syscall(SYS_pidfd_open, walk->box[s->other].pid, 0);
	long done = result(syscall(SYS_process_madvise, fd, &range, 1,
				   (int)walk_calls[s->call].arg, 0));

	close(fd);
	return done < 0 ? done : 0;
}

long run_mlock(const struct walk_step *s)
{
	return result(syscall(SYS_mlock2, at_page(s->at), in_bytes(s->len),
			      (int)walk_calls[s->call].arg));
}

long run_munlock(const struct walk_step *s)
{
	return result(munlock(at_page(s->at), in_bytes(s->len)));
}

long run_msync(const struct walk_step *s)
{
	return result(msync(at_page(s->at), in_bytes(s->len), MS_SYNC));
}

long run_move_pages(const struct walk_step *s)
{
	static void *pages[WALK_PAGES];
	static int nodes[WALK_PAGES], status[WALK_PAGES];
	uint32_t i;
	long done;

	for (i = 0; i < s->len; i++) {
		pages[i] = at_page(s->at + i);
		nodes[i] = s->x & 1;
	}
	done = syscall(SYS_move_pages, 0, (long)s->len, pages, nodes, status,
		       has(HAS_MACHINE) ? 4 : 2);
	return done < 0 ? -errno : 0;
}

long run_mbind(const struct walk_step *s)
{
	unsigned long mask = 1UL << (s->x & 1);

	/* MPOL_PREFERRED, MPOL_MF_MOVE */
	return result(syscall(SYS_mbind, at_page(s->at), in_bytes(s->len), 1, &mask, 8L, 2));
}

static alignas(65536) char buffer[64 << 16];

/* How many of these @len pages fit into the buffer. */
static uint32_t fit(uint32_t len)
{
	return len < sizeof(buffer) / walk_psize ? len : sizeof(buffer) / walk_psize;
}

static void fill(uint64_t val, uint32_t pages)
{
	uint32_t i;
	unsigned int word;

	for (i = 0; i < pages; i++)
		for (word = 0; word < WALK_WORDS; word++)
			memcpy(buffer + in_bytes(i) + walk_word_at(word),
			       &(uint64_t){ walk_word(val + i, word) }, 8);
}

/* Write the pages in parts that fit into the buffer. */
long run_pwrite(const struct walk_step *s)
{
	uint32_t i, part;

	for (i = 0; i < s->len; i += part) {
		part = fit(s->len - i);
		fill(s->val + i, part);
		if (pwrite(walk->object[s->obj].fd, buffer, in_bytes(part),
			   in_bytes(s->off + i)) != (ssize_t)in_bytes(part))
			return -errno ?: -EIO;
	}
	return 0;
}

long run_pread(const struct walk_step *s)
{
	struct walk_object *o = &walk->object[s->obj];
	uint64_t words[WALK_WORDS];
	unsigned int word;
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		struct walk_page p = { .kind = SHARED, .obj = s->obj, .off = s->off + i };
		ssize_t want = s->off + i < o->size ? walk_psize : 0;

		if (pread(o->fd, buffer, walk_psize, in_bytes(s->off + i)) != want) {
			walk_fail("file-size", "pread of page %u of %s", s->off + i, o->name);
			return 0;
		}
		for (word = 0; word < WALK_WORDS; word++)
			memcpy(&words[word], buffer + walk_word_at(word), 8);
		if (want && !walk_compare(&p, s->off + i, words, "pread of a file"))
			return 0;
	}
	return 0;
}

long run_force_write(const struct walk_step *s)
{
	int fd = open("/proc/self/mem", O_RDWR);
	uint32_t i;
	long done = 0;

	for (i = 0; i < s->len && !done; i++) {
		fill(s->val + i, 1);
		if (pwrite(fd, buffer, walk_psize, (off_t)at_page(s->at + i)) != walk_psize)
			done = -errno;
	}
	close(fd);
	return done;
}

long run_vm_write(const struct walk_step *s)
{
	struct iovec mine = { buffer, walk_psize }, theirs = { NULL, walk_psize };
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		fill(s->val + i, 1);
		theirs.iov_base = at_page(s->at + i);
		if (process_vm_writev(walk->box[s->other].pid, &mine, 1, &theirs, 1,
				      0) != walk_psize)
			return -errno;
	}
	return 0;
}

long run_vm_read(const struct walk_step *s)
{
	struct iovec mine = { buffer, walk_psize }, theirs = { NULL, walk_psize };
	uint64_t words[WALK_WORDS];
	unsigned int word;
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		theirs.iov_base = at_page(s->at + i);
		if (process_vm_readv(walk->box[s->other].pid, &mine, 1, &theirs, 1,
				     0) != walk_psize)
			return -errno;
		for (word = 0; word < WALK_WORDS; word++)
			memcpy(&words[word], buffer + walk_word_at(word), 8);
		if (!walk_compare(page_of(s->other, s->at + i), s->at + i, words,
				  "process_vm_readv"))
			return 0;
	}
	return 0;
}

long run_direct_read(const struct walk_step *s)
{
	ssize_t done = pread(walk->object[s->obj].direct, at_page(s->at), in_bytes(s->len),
			     in_bytes(s->off));

	return done == (ssize_t)in_bytes(s->len) ? 0 : done < 0 ? -errno : -EIO;
}

long run_direct_write(const struct walk_step *s)
{
	ssize_t done = pwrite(walk->object[s->obj].direct, at_page(s->at), in_bytes(s->len),
			      in_bytes(s->off));

	return done == (ssize_t)in_bytes(s->len) ? 0 : done < 0 ? -errno : -EIO;
}

long run_truncate(const struct walk_step *s)
{
	return result(ftruncate(walk->object[s->obj].fd, in_bytes(s->off)));
}

long run_punch(const struct walk_step *s)
{
	return result(fallocate(walk->object[s->obj].fd, (int)walk_calls[s->call].arg,
				in_bytes(s->off), in_bytes(s->len)));
}

long run_fsync(const struct walk_step *s)
{
	return result(fsync(walk->object[s->obj].fd));
}

long run_fadvise(const struct walk_step *s)
{
	return -posix_fadvise(walk->object[s->obj].fd, in_bytes(s->off), in_bytes(s->len),
			      POSIX_FADV_DONTNEED);
}
