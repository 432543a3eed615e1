# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where server and client run: on this host, on two over ssh, or in two network namespaces that are made here.

Each has start(side, argv, env) -> Popen; address(side); env(side), what has to be in the environment there;
paste(side, argv, env), the same as start as a line for a shell; close() takes away what was made. Sides are 'server'
and 'client'.
"""
import os
import shlex
import subprocess
import sys

NETNS_KINDS = ('ipv4', 'ipv6', 'mtu1400', 'many', 'nat')
# Names that such interfaces have on users' machines; the first ones.
EXTRA_INTERFACES = ['docker0', 'virbr0', 'tailscale0', 'cni0', *(f'br-{n:012x}' for n in range(8)),
                    *(f'veth{n:06x}' for n in range(8))]


class HostError(Exception):
    """Hosts cannot be had; the text says which and why."""


def shell_line(argv, env):
    return ' '.join([*(f'{k}={shlex.quote(v)}' for k, v in env.items()), *map(shlex.quote, argv)])


def popen(argv, env=None, stdin=subprocess.DEVNULL):
    return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **(env or {})}, start_new_session=True)


class Local:
    name = 'this host'

    def __init__(self, server, client):
        self.addresses = {'server': server or '127.0.0.1', 'client': client or server or '127.0.0.1'}

    def start(self, side, argv, env):
        return popen(argv, env)

    def address(self, side):
        return self.addresses[side]

    def env(self, side):
        return {}

    def paste(self, side, argv, env):
        return shell_line(argv, env)

    def close(self):
        pass


class Ssh(Local):
    """Two hosts, the client's may be this one. Programs are at the same place on both, and end with the ssh that
    started them: a shell there waits for its input to end as well."""

    GUARD = ('exec 3<&0; "$@" </dev/null 3<&- & p=$!; { cat; kill -9 $p; } <&3 >/dev/null 2>&1 & w=$!; exec 3<&-; wait $p; c=$?; '
             'kill $w; exit $c')

    def __init__(self, server, client, server_address, client_address):
        super().__init__(server_address or server, client_address or client)
        self.hosts = {'server': server, 'client': client}
        self.name = f'{server} and {client or "this host"}'
        if not client:
            self.addresses['client'] = client_address

    def command(self, side, argv, env, guard=()):
        host = self.hosts[side]
        return ['ssh', '-o', 'BatchMode=yes', host, 'exec env ' + shell_line([*guard, *argv], env)] if host else None

    def start(self, side, argv, env):
        remote = self.command(side, argv, env, ('sh', '-c', self.GUARD, '-'))
        return popen(remote, stdin=subprocess.PIPE) if remote else popen(argv, env)

    def paste(self, side, argv, env):
        remote = self.command(side, argv, env)
        return ' '.join(map(shlex.quote, remote)) if remote else shell_line(argv, env)


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise HostError(f'{" ".join(argv)}: {done.stderr.strip() or done.returncode}')


class Keeper:
    """A process that says "here" when it is ready, and ends with its input."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid
        if self.process.stdout.readline() != b'here\n':
            raise HostError(f'{" ".join(argv[:2])}: {self.process.communicate()[1].decode().strip()}')

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait()


class Namespace(Keeper):
    """A network of its own, which lives as long as a process that waits in it."""

    def __init__(self):
        super().__init__(['unshare', '-n', 'sh', '-c', 'echo here; exec cat'])
        self.ip('link', 'set', 'lo', 'up')

    def enter(self, argv):
        return ['nsenter', '-t', str(self.pid), '-n', '--', *argv]

    def run(self, *argv):
        run(*self.enter(argv))

    def ip(self, *args):
        self.run('ip', *args)


def join(one, one_name, other, other_name, mtu=1500):
    """A cable between two namespaces."""
    one.ip('link', 'add', one_name, 'mtu', str(mtu), 'type', 'veth', 'peer', 'name', other_name, 'mtu', str(mtu),
           'netns', str(other.pid))


def bring_up(space, name, *addresses):
    for address in addresses:
        space.ip('addr', 'add', address, 'dev', name, *(['nodad'] if ':' in address else []))
    space.ip('link', 'set', name, 'up')


class Netns:
    """Two hosts as network namespaces.

    ipv4     one cable, 10.1.0.1 and 10.1.0.2
    ipv6     the same with addresses fd01::1 and fd01::2 only
    mtu1400  the same as ipv4 with an MTU of 1400
    many     the same with 20 more interfaces on each, none of which leads to the other host
    nat      the client, 10.2.0.2, is behind a router that gives its connections the router's address, 10.1.0.2, and
             lets nobody in; FI_TCP_ADVERTISE has the client tell that address
    """

    def __init__(self, kind):
        self.name, self.kind = f'two network namespaces ({kind})', kind
        self.spaces = {}
        self.others = []
        try:
            self.make(kind)
        except (HostError, OSError):
            self.close()
            raise

    def make(self, kind):
        for side in ('server', 'client'):
            self.spaces[side] = Namespace()
        server, client = self.spaces['server'], self.spaces['client']
        if kind == 'nat':
            return self.make_nat(server, client)
        join(server, 'eth0', client, 'eth0', 1400 if kind == 'mtu1400' else 1500)
        addresses = ('fd01::1/64', 'fd01::2/64') if kind == 'ipv6' else ('10.1.0.1/24', '10.1.0.2/24')
        for i, space in enumerate((server, client)):
            if kind == 'ipv6':
                space.ip('addr', 'del', '127.0.0.1/8', 'dev', 'lo')
            if kind == 'many':
                for number, name in enumerate(EXTRA_INTERFACES):
                    space.ip('link', 'add', name, 'type', 'veth', 'peer', 'name', f'end{number}')
                    space.ip('link', 'set', f'end{number}', 'up')
                    bring_up(space, name, f'172.{16 + i}.{number}.1/24')
            bring_up(space, 'eth0', addresses[i])
            # As on a real host, names without a route are for the default one.
            space.ip('route', 'add', 'default', 'via', addresses[1 - i].split('/')[0], 'dev', 'eth0')
        self.addresses = {'server': addresses[0].split('/')[0], 'client': addresses[1].split('/')[0]}

    def make_nat(self, server, client):
        here = os.path.dirname(os.path.abspath(__file__))
        router = Keeper([sys.executable, '-B', os.path.join(here, 'nat.py'), str(client.pid), str(server.pid)])
        self.others.append(router)
        bring_up(server, 'eth0', '10.1.0.1/24')
        bring_up(client, 'eth0', '10.2.0.2/24')
        client.ip('route', 'add', 'default', 'dev', 'eth0')
        self.addresses = {'server': '10.1.0.1', 'client': '10.2.0.2'}

    def start(self, side, argv, env):
        # No name server can be reached: who asks one all the same is not to wait long.
        return popen(self.spaces[side].enter(argv), {'RES_OPTIONS': 'timeout:1 attempts:1', **env})

    def address(self, side):
        return self.addresses[side]

    def env(self, side):
        return {'FI_TCP_ADVERTISE': '10.1.0.2'} if self.kind == 'nat' and side == 'client' else {}

    def paste(self, side, argv, env):
        return f'# {side}, in its namespace\n{shell_line(argv, env)}'

    def close(self):
        for keeper in [*self.others, *self.spaces.values()]:
            keeper.close()


def enter_user_namespace():
    """Start this program again as the root of a user namespace of its own, where networks can be made. Returns when
    that is so."""
    if os.geteuid() == 0 or os.environ.get('RUNFABTESTS_INSIDE'):
        return
    os.environ['RUNFABTESTS_INSIDE'] = '1'
    try:
        os.execvp('unshare', ['unshare', '-r', '--', sys.executable, *sys.argv])
    except OSError as e:
        raise HostError(f'unshare: {e}') from e
