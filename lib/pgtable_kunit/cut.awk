# SPDX-License-Identifier: GPL-2.0
#
# Cuts functions out of a C file, for tests that compile them a second time:
#
#	awk -v function_name='foo[a-z_]*' -f SCRIPT FILE
#	awk -v guards='foo bar' -v optional='new' -f SCRIPT FILE
#	awk -v required='foo bar_.*' -f SCRIPT names='.*' FILE names='bar_.*' FILE2
#
# The first command prints the function with a matching name, from the line of
# its name to the brace that closes its body. The second command prints the text
# between "#ifndef foo" and the matching #endif, without these two lines, and
# renames foo to generic_foo. The third command finds the functions that a file
# defines and that are not static. For each function with a matching name it
# prints a macro that renames foo to recorded_foo. The script parses braces,
# strings and comments as in C, so the layout does not matter. If a function or a
# guard is not found, the build fails, except for guards that only some kernels
# have.

# Counts the braces of a line; prints nothing.
function braces(text,		i, c, two)
{
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		two = substr(text, i, 2)
		if (comment) {
			if (two == "*/") {
				comment = 0
				i++
			}
		} else if (quote != "") {
			if (c == "\\")
				i++
			else if (c == quote)
				quote = ""
		} else if (two == "/*") {
			comment = 1
			i++
		} else if (two == "//") {
			return
		} else if (c == "\"" || c == "'") {
			quote = c
		} else if (c == "{") {
			depth++
			begun = 1
		} else if (c == "}") {
			depth--
		} else if (c == ";" && !begun) {
			declared = 1
		}
	}
	quote = ""
}

# Prints the lines of a function that were kept.
function print_kept(	i)
{
	for (i = 1; i <= kept; i++)
		print lines[i]
}

# Prints a macro that renames a function. The text is the function's definition
# up to the brace that opens its body.
function print_name(text,	before, name)
{
	sub(/[{].*/, "", text)
	before = ""
	while (match(text, /[A-Za-z_][A-Za-z_0-9]*[ \t]*[(]/)) {
		before = before substr(text, 1, RSTART - 1)
		name = substr(text, RSTART, RLENGTH - 1)
		sub(/[ \t]*$/, "", name)
		text = substr(text, RSTART + RLENGTH)
		# An attribute such as __printf(1, 2) may come first.
		if (before ~ /[A-Za-z]/)
			break
		sub(/^[^)]*[)]/, "", text)
		name = ""
	}
	if (name == "" || (" " before) ~ /[ \t](static|typedef|extern)[ \t]/ ||
	    before ~ /=/ || name !~ ("^(" names ")$"))
		return
	defined[name] = 1
	print "#undef " name
	print "#define " name " recorded_" name
}

BEGIN {
	guarded = split(guards, guard, " ")
	wanted = split(guards " " optional, guard, " ")
	functions = split(required, function_needed, " ")
	start = "^[a-z].*[ *]" function_name "[(]|^" function_name "[(]"
}

function_name != "" && !found {
	if (!inside && $0 ~ start) {
		inside = 1
		kept = depth = begun = declared = 0
	}
	if (inside) {
		lines[++kept] = $0
		braces($0)
		if (declared) {
			inside = 0
		} else if (begun && depth == 0) {
			print_kept()
			inside = 0
			found = 1
		}
	}
}

names != "" {
	if ($0 ~ /^[ \t]*#/ || continued) {
		continued = $0 ~ /\\$/
		next
	}
	if (!inside && !comment && $0 ~ /^[A-Za-z_]/) {
		inside = 1
		text = ""
		depth = begun = declared = 0
	}
	if (inside && !begun)
		text = text " " $0
	braces($0)
	if (inside && (declared || (begun && depth == 0))) {
		if (!declared)
			print_name(text)
		inside = 0
	}
}

guards != "" {
	if (!inside) {
		for (i = 1; i <= wanted; i++) {
			if ($0 ~ ("^#[ \t]*ifndef[ \t]+" guard[i] "[ \t]*$")) {
				inside = i
				seen[i] = 1
				level = 1
			}
		}
	} else {
		if ($0 ~ /^[ \t]*#[ \t]*if/)
			level++
		else if ($0 ~ /^[ \t]*#[ \t]*endif/)
			level--
		if (!level) {
			inside = 0
		} else if ($0 !~ ("^#[ \t]*define[ \t]+" guard[inside] "[ \t]")) {
			text = " " $0 " "
			out = ""
			while (match(text, "[^A-Za-z0-9_]" guard[inside] "[^A-Za-z0-9_]")) {
				out = out substr(text, 1, RSTART) "generic_" guard[inside]
				text = substr(text, RSTART + RLENGTH - 1)
			}
			text = out text
			print substr(text, 2, length(text) - 2)
		}
	}
}

END {
	if (function_name != "" && !found) {
		print FILENAME ": no function " function_name " to cut out" > "/dev/stderr"
		exit 1
	}
	for (i = 1; i <= guarded; i++) {
		if (!seen[i]) {
			print FILENAME ": no #ifndef " guard[i] " to cut out" > "/dev/stderr"
			failed = 1
		}
	}
	for (i = 1; i <= functions; i++) {
		name = ""
		for (name in defined) {
			if (name ~ ("^(" function_needed[i] ")$"))
				break
			name = ""
		}
		if (name == "") {
			print FILENAME ": no global function " function_needed[i] > "/dev/stderr"
			failed = 1
		}
	}
	exit failed
}
