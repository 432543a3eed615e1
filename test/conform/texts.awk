# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# From the tests to what they say of themselves: the comment before each test, and the manual pages that it or the head of
# its file names. Prints test_texts[], see runner.h.

function quoted(text) {
	gsub(/[ \t\n]+/, " ", text)
	gsub(/^ +| +$/, "", text)
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# The pages that a text names, each once.
function pages_of(text,    found, page) {
	while (match(text, /fi_[a-z_]+\([1-9]\)/)) {
		page = substr(text, RSTART, RLENGTH)
		if (index(found, page) == 0)
			found = found (found == "" ? "" : ", ") page
		text = substr(text, RSTART + RLENGTH)
	}
	return found
}

BEGIN {
	print "/* Made by texts.awk from the tests. */"
	print "#include \"runner.h\"\n"
	print "const struct test_text test_texts[] = {"
}

FNR == 1 {
	group = FILENAME
	sub(/.*\//, "", group)
	sub(/\..*/, "", group)
	in_comment = 0
	comment = head = ""
	next
}

/^\/\*/ && !in_comment {
	in_comment = 1
	comment = ""
}

in_comment {
	line = $0
	if (line ~ /\*\/ *$/) {
		in_comment = 0
		sub(/ *\*+\/ *$/, "", line)
	}
	sub(/^\/\*+/, "", line)
	sub(/^ \*+ ?/, "", line)
	comment = comment " " line
	if (!in_comment && head == "")
		head = pages_of(comment) " "
	next
}

/^TEST_(PROV|TABLE)\(/ {
	name = $0
	sub(/^[A-Z_]+\(/, "", name)
	sub(/[^a-z0-9_].*/, "", name)
	pages = pages_of(comment)
	if (pages == "")
		pages = head
	printf "\t{ \"%s/%s\", %s, %s },\n", group, name, quoted(comment), quoted(pages)
}

# Only the comment right before a test is the test's.
{ comment = "" }

END { print "\t{ NULL, NULL, NULL }\n};" }
