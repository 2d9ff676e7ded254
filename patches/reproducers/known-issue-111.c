// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 111: demote_size must accept the size that it shows.
 *
 * Read demote_size of each size of hugetlb pages, and write the same value back.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/sys/kernel/mm/hugepages"

int main(void)
{
	DIR *folder = opendir(FOLDER);
	struct dirent *entry;
	int tried = 0, refused = 0;

	while (folder && (entry = readdir(folder))) {
		char path[512], text[64];
		ssize_t length;
		int fd;

		snprintf(path, sizeof(path), FOLDER "/%s/demote_size", entry->d_name);
		fd = open(path, O_RDWR);
		if (fd < 0)
			continue;
		length = read(fd, text, sizeof(text) - 1);
		if (length > 0) {
			text[length] = 0;
			text[strcspn(text, "\n")] = 0;
			tried++;
			if (pwrite(fd, text, strlen(text), 0) < 0) {
				printf("%s: %s is refused: %s\n", entry->d_name, text,
				       strerror(errno));
				refused++;
			}
		}
		close(fd);
	}
	if (!tried) {
		printf("cannot tell: no huge pages can be demoted, or not root\n");
		return 4;
	}
	if (refused) {
		printf("BUG: demote_size refuses the size that it shows\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
