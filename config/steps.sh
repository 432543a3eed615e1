# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What ./quickstart and ./check share: one line a step with the seconds it took, the output of a step that fails, Debian
# packages, and building in a folder below build/. Sourced by bash with the top of the tree as current folder.

begun=$SECONDS
jobs=$(nproc)
mkdir -p build
step_log=$(pwd)/build/step.log
# What configure and libtool run in. They would look for bash, in which a build takes a quarter more CPU time than in dash.
export CONFIG_SHELL=/bin/sh
say() { printf '%s\n' "$@"; }

# step TEXT COMMAND...: run a command in silence. Where it fails, show the end of what it said and return its status.
step() {
	local text=$1 at=$SECONDS status

	shift
	printf '[%4d s] %s ... ' $((at - begun)) "$text"
	if "$@" >"$step_log" 2>&1 </dev/null; then
		say "ok, $((SECONDS - at)) s"
		return 0
	else
		status=$?
	fi
	say "FAILED after $((SECONDS - at)) s (status $status), the last it said:"
	show_end "$step_log" 100
	return $status
}

# The last $2 lines of file $1, set off from our own. For make, whatever it complains about is near the end.
show_end() { tail -n "$2" "$1" | sed 's/^/    | /'; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif [ -t 2 ]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

apt_is_fresh=
has_package() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

apt_install() {
	[ -n "$apt_is_fresh" ] || as_root apt-get update -q || return
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# install_missing PACKAGE...: what is not there yet, of these. Touches nothing where all are there.
install_missing() {
	local package missing=()

	command -v dpkg-query >/dev/null || { say "not a Debian system: $* are taken to be here"; return 0; }
	for package in "$@"; do
		has_package "$package" || missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] && return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		say "missing: ${missing[*]}. Neither root nor sudo: have them installed with: apt-get install ${missing[*]}"
		return 1
	fi
	step "installing ${missing[*]}" apt_install "${missing[@]}" && apt_is_fresh=yes
}

# generate: make ./configure where there is none. Later changes of its sources are make's own business.
generate() {
	[ -x configure ] || step "autoreconf" autoreconf -i
}

# configure_in DIR OPTION...: configure in build/DIR, unless that was done before with the same options.
configure_in() {
	local dir=build/$1 wish="$* CC=${CC-} CFLAGS=${CFLAGS-}"

	shift
	[ -e "$dir/Makefile" ] && [ "$(cat "$dir/configured-as" 2>/dev/null)" = "$wish" ] && return 0
	[ ! -e "$dir" ] || { chmod -R u+w "$dir"; rm -rf "$dir"; }
	mkdir -p "$dir"
	step "configure $dir" in_dir "$dir" ../../configure "$@" && echo "$wish" > "$dir/configured-as"
}

in_dir() { (cd "$1" && shift && "$@"); }
