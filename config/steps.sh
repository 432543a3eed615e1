# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What ./quickstart and ./check share: one line a step with the seconds it took, the output of a step that fails, packages
# of the system, and building in a folder below build/. Sourced by bash with the top of the tree as current folder.

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

# The system's installer, a column of config/packages: apt, dnf or apk. Empty: another system.
if command -v dpkg-query >/dev/null; then
	installer=apt
elif command -v rpm >/dev/null && command -v dnf >/dev/null; then
	installer=dnf
elif command -v apk >/dev/null; then
	installer=apk
else
	installer=
fi

# packages_here NAME...: the names that this system has for packages of Debian's names.
packages_here() {
	printf '%s\n' "$@" | awk -v installer="$installer" '
		NR == FNR && /^#/ { next }
		NR == FNR && !column { for (column = 1; $column != installer; ) column++; next }
		NR == FNR { other[$1] = $column; next }
		{ name = $1 in other ? other[$1] : $1 }
		name != "-" && !seen[name]++ { print name }' config/packages -
}

has_package() {
	case $installer in
	apt) [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ] ;;
	dnf) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
	apk) apk info -e "$1" >/dev/null 2>&1 ;;
	esac
}

# How the user would install packages by hand.
install_command() {
	case $installer in
	apt) echo "apt-get install $*" ;;
	dnf) echo "dnf install $*" ;;
	apk) echo "apk add $*" ;;
	esac
}

apt_is_fresh=
install_packages() {
	case $installer in
	apt)
		[ -n "$apt_is_fresh" ] || as_root apt-get update -q || return
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" ;;
	dnf) as_root dnf install -q -y --setopt=install_weak_deps=False "$@" ;;
	apk) as_root apk add -q "$@" ;;
	esac
}

# install_missing PACKAGE...: what is not there yet, of these, by Debian's names. Touches nothing where all are there.
install_missing() {
	local package missing=()

	[ -n "$installer" ] || { say "no apt, dnf or apk here: $* are taken to be here"; return 0; }
	for package in $(packages_here "$@"); do
		has_package "$package" || missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] && return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		say "missing: ${missing[*]}. Neither root nor sudo: have them installed with: $(install_command "${missing[@]}")"
		return 1
	fi
	step "installing ${missing[*]}" install_packages "${missing[@]}" && apt_is_fresh=yes
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
