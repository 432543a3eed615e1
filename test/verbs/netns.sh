# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Sourced first by a test that wants ports and names which are nobody else's: starts it again in a network namespace of its
# own, where the loopback interface is up, or ends it, skipped.
if [ -z "$NETNS_INSIDE" ]; then
	unshare=(unshare -n)
	[ "$(id -u)" = 0 ] || unshare=(unshare -rn)
	command -v ip >/dev/null && "${unshare[@]}" true 2>/dev/null ||
		{ echo "1..0 # SKIP no ip(8), or may not make network namespaces"; exit 0; }
	NETNS_INSIDE=1 exec "${unshare[@]}" "$0"
fi
ip link set lo up || exit
