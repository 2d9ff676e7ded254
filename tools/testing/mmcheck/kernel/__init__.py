# SPDX-License-Identifier: GPL-2.0
"""A kernel to build.

archive       kernel source packages, through apt
seal          notices a change of an unpacked source in the cache
source        an unpacked kernel, from the archive or from the user
packaged      kernels and programs that Debian has built for arm64
tarball       kernels from a tarball, its URL, or a remote git repository
checkout      commits of the user's git tree, in a private folder
patch         PATCH=: a patch for the kernel, applied to the private copy
graft         copies the overlay into a tree, and removes it again
suites        the KUnit suites in the overlay
shadow        the private working copy: symbolic links into a source, grafted
toolchain     architectures, compilers, emulators and the packages that provide them
make          the `make` that kunit.py finds first: shows progress, uses ccache, skips a build without changes
probes        the results of the library's probes in a tree
known_issues  the known kernel bugs, and the files that are generated from their table
library       installs Python packages that the standard library lacks
identity      the kernel, compiler and emulator of a result
"""
