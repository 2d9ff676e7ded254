#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints which entries of the table "probes" (next to this script) a kernel tree
# has.
#
# usage: probe.sh TREE        one line per entry: name, and yes, no or unknown
#        probe.sh -D TREE     the definitions for the compiler
#
# "no" needs proof: the place where the feature would be must exist. If the
# script cannot tell, it prints a message on standard error.

defines=
if [ "$1" = -D ]; then
	defines=1
	shift
fi
tree=$1

has()
{
	grep -sqw -- "$1" "$tree/$2"
}

told=0
unknown=
while read -r how name word file anchor _; do
	case $how in
	''|'#'*) continue ;;
	esac
	place=$file
	case $anchor in
	*:*) place=${anchor%%:*}; anchor=${anchor##*:} ;;
	esac
	told=$((told + 1))
	if has "$word" "$file"; then
		value=yes
	elif has "$anchor" "$place"; then
		value=no
	else
		value=unknown
		told=$((told - 1))
		unknown=$unknown${unknown:+,}$name
		echo "mmcheck: probe $name: cannot tell, $place has no $anchor" >&2
	fi
	if [ -z "$defines" ]; then
		echo "$name $value"
	elif [ "$how $value" = "build yes" ]; then
		echo "-DPGTABLE_KUNIT_HAS_$name"
	fi
done < "${0%/*}/probes"

if [ -n "$defines" ]; then
	echo "-DPGTABLE_KUNIT_PROBES=$told"
	[ -z "$unknown" ] || echo "-DPGTABLE_KUNIT_UNKNOWN=$unknown"
fi
