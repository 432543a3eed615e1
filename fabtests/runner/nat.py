# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nat.py CLIENT_PID SERVER_PID: a router that hides a client, for hosts where the kernel's own translation is not to
be had.

Makes an interface eth0 in the network namespaces of both processes, prints "here", and carries IPv4 packets between the
two until its input ends. What leaves the client gets the router's address and keeps its port; what comes back is let
through where the client spoke first. TCP and UDP only. One thread.
"""
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys

CLIENT, ROUTER = socket.inet_aton('10.2.0.2'), socket.inet_aton('10.1.0.2')
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x1, 0x1000
CLONE_NEWNET = 0x40000000
SOURCE, DESTINATION = 12, 16            # where the addresses are in an IPv4 header
CHECKSUM_AT = {socket.IPPROTO_TCP: 16, socket.IPPROTO_UDP: 6}


def open_tun(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f'/proc/{pid}/ns/net', 'rb') as ns:
        if libc.setns(ns.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f'setns: {os.strerror(ctypes.get_errno())}')
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH22x', b'eth0', IFF_TUN | IFF_NO_PI))
    return fd


def patch(packet, at, old, new):
    """The checksum at an offset, after `old` was replaced by `new` in what it covers (RFC 1624)."""
    value = ~struct.unpack_from('!H', packet, at)[0] & 0xffff
    for was, now in zip(struct.unpack('!2H', old), struct.unpack('!2H', new)):
        value += (~was & 0xffff) + now
    while value >> 16:
        value = (value & 0xffff) + (value >> 16)
    struct.pack_into('!H', packet, at, ~value & 0xffff)


def rewrite(packet, at, new):
    """Another address at an offset of the IPv4 header."""
    head = (packet[0] & 15) * 4
    old = bytes(packet[at:at + 4])
    packet[at:at + 4] = new
    patch(packet, 10, old, new)
    sum_at = head + CHECKSUM_AT[packet[9]]
    if packet[9] != socket.IPPROTO_UDP or packet[sum_at:sum_at + 2] != b'\0\0':
        patch(packet, sum_at, old, new)


def translate(packet, outward, known):
    """Whether a packet goes on, with its address changed."""
    if packet[0] >> 4 != 4 or packet[9] not in CHECKSUM_AT:
        return False
    head = (packet[0] & 15) * 4
    source, destination = struct.unpack_from('!2H', packet, head)
    if outward:
        known.add((packet[9], source, bytes(packet[DESTINATION:DESTINATION + 4]), destination))
        rewrite(packet, SOURCE, ROUTER)
        return True
    if (packet[9], destination, bytes(packet[SOURCE:SOURCE + 4]), source) not in known:
        return False
    rewrite(packet, DESTINATION, CLIENT)
    return True


def carry(inside, outside):
    known = set()
    while True:
        for fd in select.select([inside, outside, 0], [], [])[0]:
            if fd == 0:
                return
            packet = bytearray(os.read(fd, 65536))
            if translate(packet, fd == inside, known):
                os.write(outside if fd == inside else inside, packet)


def main():
    inside, outside = (open_tun(pid) for pid in sys.argv[1:])
    print('here', flush=True)
    carry(inside, outside)


main()
