"""What an agent may try, one by one: each is a few lines of shell or Python that knows every path and number.

The names in capitals are `Cell.names`. Those in `SEEN` do harm where there is no jail, which is how it is known that
they would; the others are never let loose outside.
"""

from typing import Final

GIT: Final = "git -c user.name=e -c user.email=e@x -c gc.auto=0"

_FILES: Final = {
    "write into the home": "echo x > $H/new",
    "write into the main checkout": "echo x > $MAIN/new",
    "change the main checkout": "echo x >> $MAIN/a.py",
    "empty the main checkout": "rm -rf $MAIN/sub $MAIN/a.py",
    "write into another worktree": "echo x > $OTHER/new",
    "append to .bashrc": "echo evil >> $H/.bashrc",
    "make a .profile": "echo evil > $H/.profile",
    "add a login key": "echo evil >> $H/.ssh/authorized_keys",
    "plant a program on PATH": "mkdir -p $H/.local/bin; echo evil > $H/.local/bin/git",
    "autostart": "mkdir -p $H/.config/autostart; echo evil > $H/.config/autostart/e.desktop",
    "write through a link to a folder": "ln -s $MAIN link; echo x > link/new",
    "write through a link to a file": "ln -s $H/.bashrc link; echo x >> link",
    "hard link of the configuration": "ln $COMMON/config c; echo '[x]' >> c",
    "hard link of a file of the home": "ln $H/.bashrc b; echo x >> b",
    "hard link of an object": "ln $(find $COMMON/objects -type f | head -1) o; chmod u+w o; echo x > o",
    "climb out": "echo x > ../escaped",
    "climb out far": "echo x > ../../project/escaped",
    "by /proc/self/root": "echo x > /proc/self/root$MAIN/new",
    "by the root of a process outside": "echo x > /proc/$VICTIM/root$MAIN/new",
    "move a file out": "echo x > n; mv n $MAIN/moved",
    "take a file in": "mv $MAIN/a.py taken",
    "a FIFO in the home": "mkfifo $H/fifo",
    "a folder in place of the ledger": "rm -rf $COMMON/relay; mkdir $COMMON/relay",
    "write into the ledger": "mkdir -p $COMMON/relay/runs/x; echo '{}' > $COMMON/relay/runs/x/receipt.json",
    "write into the reply of another leg": "echo x > $H/trees/01.io/reply.json",
}
_GIT: Final = {
    "commit": f"echo x >> a.py; {GIT} commit -qam evil",
    "empty commit": f"{GIT} commit -q --allow-empty -m evil",
    "branch": "git branch evil",
    "tag": "git tag evil",
    "move a branch": f"{GIT} update-ref refs/heads/main $(git hash-object -t commit -w --stdin </dev/null || echo x);"
    " git update-ref -d refs/heads/main",
    "write an object": "echo evil | git hash-object -w --stdin",
    "gc": "git gc -q --prune=now",
    "pack the refs": "git pack-refs --all",
    "set a configuration": "git config evil.x y",
    "set the hooks' folder": "git config core.hooksPath $WT/hooks",
    "set another repository's configuration": "git --git-dir=$COMMON config core.bare true",
    "write the configuration": "printf '[core]\\n\\tfsmonitor = ./evil\\n' >> $COMMON/config",
    "replace the configuration": "cp $COMMON/config c; mv c $COMMON/config",
    "remove the configuration": "rm -f $COMMON/config",
    "plant a hook": "mkdir -p $COMMON/hooks; echo evil > $COMMON/hooks/post-checkout",
    "plant attributes": "mkdir -p $COMMON/info; echo '* filter=x' > $COMMON/info/attributes",
    "plant an exclude": "mkdir -p $COMMON/info; echo '*' > $COMMON/info/exclude",
    "write the worktree's configuration": "printf '[core]\\n\\tfsmonitor = ./evil\\n' > $GD/config.worktree",
    "rewrite commondir": "echo $WT/own > $GD/commondir",
    "rewrite gitdir": "echo $OTHER/.git > $GD/gitdir",
    "rewrite HEAD": "echo 'ref: refs/heads/main' > $GD/HEAD",
    "unlock the worktree": "git worktree unlock $WT",
    "add a worktree": "git worktree add -f -q $H/evil HEAD",
    "remove a worktree": "git worktree remove -f -f $OTHER",
    "push": "git push -q $COMMON HEAD:refs/heads/evil",
    "remove the objects": "rm -rf $COMMON/objects",
    "remove the index": "rm -f $GD/index",
    "stage": "echo x > new; git add new",
    "stash": f"echo x >> a.py; {GIT} stash -q",
    "notes": f"{GIT} notes add -m evil",
    "replace": "git replace -f HEAD $(git rev-parse HEAD^{tree}) || git update-ref refs/replace/x HEAD",
    "reset": "git reset -q --hard",
    "check out": "git checkout -q -b evil",
    "forget the reflog": "git reflog expire --expire=now --all",
    "repack": "git repack -adq",
}
_POINTER: Final = {
    "remove the pointer": "rm -f .git",
    "rewrite the pointer": "echo gitdir: $WT/own > .git",
    "append to the pointer": "echo >> .git",
    "move the pointer": "mv .git g",
    "replace the pointer": "cp .git g; echo x >> g; mv -f g .git",
    "a link in place of the pointer": "ln -sfn $H/evil .git",
    "a folder in place of the pointer": "rm -f .git; mkdir -p .git/hooks",
    "date the pointer": "touch -d 2001-01-01 .git",
    "open the pointer to all": "chmod 777 .git",
    "move the worktree": "cd /; mv $WT $WT.moved && mkdir $WT",
}
_META: Final = {
    "chmod in the main checkout": "chmod 777 $MAIN/a.py $MAIN/sub",
    "chmod the keys": "chmod 777 $H/.ssh $H/.ssh/id_ed25519",
    "chmod the home": "chmod 777 $H",
    "date a file": "touch -d 2001-01-01 $MAIN/a.py",
    "date the ledger": "touch -d 2001-01-01 $COMMON/relay/lock $COMMON/relay",
    "chmod the repository": "chmod -R a+w $COMMON",
    "truncate": "truncate -s 0 $COMMON/HEAD $H/.bashrc",
    "attribute": '$PY -c \'import os; os.setxattr(os.environ["MAIN"] + "/a.py", "user.evil", b"x")\'',
    "attribute on the repository": '$PY -c \'import os; os.setxattr(os.environ["COMMON"], "user.evil", b"x")\'',
}
_SECRETS: Final = {
    "the environment of a process outside": "cat /proc/$VICTIM/environ",
    "every environment": "cat /proc/[0-9]*/environ",
    "a key": "cat $H/.ssh/id_ed25519",
    "cloud keys": "cat $H/.aws/credentials",
    "netrc": "cat $H/.netrc",
    "the forge's token": "cat $H/.config/gh/hosts.yml",
    "git's passwords": "cat $H/.git-credentials",
    "npm's token": "cat $H/.npmrc",
    "docker's token": "cat $H/.docker/config.json",
    "the project's .env": "cat $MAIN/.env",
    "the repository's configuration": "cat $COMMON/config",
    "the remote": "git config --get remote.origin.url; git remote -v",
    "the main worktree's configuration": "cat $COMMON/config.worktree",
    "a transcript in the ledger": "cat $COMMON/relay/runs/x/legs/*/transcript.jsonl",
    "the ledger by another way": "cat /proc/self/root$COMMON/relay/lock /proc/1/root$COMMON/relay/lock",
    "the reply of another leg": "cat $H/trees/01.io/reply.json",
    "everything in the home": "grep -rhs token $H",
    "everything there is": "grep -rhsI --exclude-dir=proc --exclude-dir=usr --exclude-dir=dev --exclude-dir=sys"
    " 'token = SECRET' $H /tmp/relay-cell-*",
    "through a link": "ln -s $H/.ssh/id_ed25519 k; cat k",
    "by the root of a process outside": "cat /proc/$VICTIM/root$H/.netrc",
    "by git": "git diff --no-index /dev/null $H/.netrc; git log --all -p; git config -f $H/.netrc -l",
}
_NET: Final = {
    "TCP": "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 3)",
    "IPv6": "import os, socket; socket.create_connection(('::1', int(os.environ['SIX'])), 3)",
    "UDP": "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    " s.sendto(b'x', ('127.0.0.1', int(os.environ['UDP'])))",
    "abstract socket": "import os, socket; socket.socket(socket.AF_UNIX).connect('\\0' + os.environ['ABSTRACT'])",
    "docker.sock": "import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ['H'] + '/docker.sock')",
}

SEEN: Final[dict[str, str | list[str]]] = {
    **{f"files: {name}": script for name, script in _FILES.items()},
    **{f"git: {name}": script for name, script in _GIT.items()},
    **{f"pointer: {name}": script for name, script in _POINTER.items()},
    **{f"meta: {name}": script for name, script in _META.items()},
    **{f"secrets: {name}": script for name, script in _SECRETS.items()},
    **{f"net: {name}": ["$PY", "-c", script] for name, script in _NET.items()},
}
"""What a program can do to its own user's things where nothing confines it."""

_KERNEL: Final = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    got = libc.syscall(*args) if isinstance(args[0], int) else getattr(libc, args[0])(*args[1:])
    print('GOT' if got >= 0 else 'refused', errno.errorcode.get(ctypes.get_errno()))
"""

SYSTEM: Final[dict[str, str]] = {
    "its own environment": "env; cat /proc/self/environ",
    "the environment of the first process": "cat /proc/1/environ",
    "the environment of its parents": "cat /proc/$PPID/environ; tr '\\0' '\\n' < /proc/1/environ",
    "files by the first process's root": "echo x > /proc/1/root$MAIN/new; echo x > /proc/1/cwd$MAIN/new",
    "files in /tmp": "echo x > /tmp/$MARK",
    "files in /var/tmp": "echo x > /var/tmp/$MARK",
    "files in /dev/shm": "echo x > /dev/shm/$MARK",
    "files in /run": "echo x > /run/$MARK",
    "files in /etc": "echo x > /etc/$MARK",
    "files in /": "echo x > /$MARK",
    "files in /usr": "echo x > /usr/local/bin/$MARK",
    "files in /opt": "echo x > /opt/$MARK",
    "files in /dev": "echo x > /dev/$MARK; mknod /dev/$MARK c 1 3",
    "a remount of the root": "mount -o remount,rw,bind / ; echo x > /$MARK",
    "a remount of the repository": "mount -o remount,rw,bind $COMMON; echo x > $COMMON/new",
    "a remount of the pointer": "mount -o remount,rw,bind $WT/.git; echo x > $WT/.git",
    "an unmount of the pointer": "umount -l $WT/.git; rm -f $WT/.git; echo x > $WT/.git",
    "an unmount of the ledger's mask": "umount $COMMON/relay; cat $COMMON/relay/lock",
    "an unmount of the home": "umount -l $H; cat $H/.netrc",
    "a mount over the pointer": "echo x > f; mount --bind f .git",
    "a namespace of its own": "unshare -Urm sh -c 'umount -l $COMMON/relay; cat $COMMON/relay/lock; umount -l $H;"
    " cat $H/.netrc; mount -o remount,rw,bind /; echo x > /$MARK'",
    "the namespaces of a process outside": "nsenter -t $VICTIM -a sh -c 'echo x > /$MARK'",
    "the namespaces of the first process": "nsenter -t 1 -m sh -c 'cat $H/.netrc'",
    "another root": "mkdir -p r; chroot r /bin/true; pivot_root . r; cat /oldroot$H/.netrc",
    "a device": "mknod d b 8 0; mknod d b 254 0; cat d | head -c 100",
    "a signal to a process outside": "kill -9 $VICTIM",
    "a signal to everybody": "kill -9 -1",
    "the memory of a process outside": "cat /proc/$VICTIM/mem /proc/$VICTIM/maps /proc/$VICTIM/cmdline",
    "tracing a process outside": "strace -p $VICTIM 2>&1 | head -3; gdb -p $VICTIM -batch 2>&1 | tail -1",
    "a daemon": "setsid sh -c 'sleep 300 # '$MARK >/dev/null 2>&1 &",
    "a daemon twice removed": "(setsid sh -c 'setsid sh -c \"sleep 300 #$MARK; true\" &' &) >/dev/null 2>&1; sleep 0.1",
    "a daemon without environment": "env -i setsid sh -c 'sleep 300; : '$MARK >/dev/null 2>&1 &",
    "all of its tree": "rm -rf sub a.py; echo x > new; chmod 777 .; touch -d 2001-01-01 .; mkdir d; ln -s $H l",
}
"""What is aimed at the machine, at other processes, or at the jail itself."""

CALLS: Final[dict[str, str]] = {
    "vsock": "try: socket.socket(40, socket.SOCK_STREAM); print('GOT')\nexcept OSError as e: print('refused', e)",
    "packet": "try: socket.socket(17, socket.SOCK_RAW); print('GOT')\nexcept OSError as e: print('refused', e)",
    "alg": "try: socket.socket(38, socket.SOCK_SEQPACKET); print('GOT')\nexcept OSError as e: print('refused', e)",
    "vsock pair": "try: socket.socketpair(40); print('GOT')\nexcept OSError as e: print('refused', e)",
    "a user namespace": "call('unshare', 0x10000000)",
    "a mount namespace": "call('unshare', 0x00020000)",
    "a remount": "call('mount', None, b'/', None, 4096 | 32, None)",
    "the first process's namespace": "call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)",
    "another host name": "call('sethostname', b'evil', 4)",
    "the clock": "call('settimeofday', bytes(16), None)",
}
"""What the host cannot see: here the answer is what the kernel said."""

REFUSED: Final = (
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "open_by_handle_at"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "kexec_load", "init_module", "fsopen", "open_tree"),
)
"""Calls that the filter refuses by number."""

_FORK = "exec $PY -c 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'"
_HOG = "$PY -c 'x = bytearray({size} << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nimport time; time.sleep(60)'"
_SHARED = (
    "exec $PY -c 'import mmap, time\nm = mmap.mmap(-1, 1 << 30)\n"
    "for i in range(0, 1 << 30, 4096): m[i] = 1\ntime.sleep(60)'"
)
_NAMELESS = (
    'exec $PY -c \'import os, time\nfor n in range(20):\n f = os.open("n", os.O_RDWR | os.O_CREAT)\n'
    ' os.unlink("n")\n for i in range(4): os.write(f, bytes(1 << 20))\ntime.sleep(60)\''
)
_TWENTY = " ".join(map(str, range(20)))
_BIG = "head -c 100M /dev/zero > {place}/big; test $(wc -c < {place}/big) -le {most} && exit 9"

FILLING: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "a fork bomb": (_FORK, frozenset({"memory", "timeout"})),
    "memory in one process": ("exec " + _HOG.format(size=4096), frozenset({"memory"})),
    "memory in twenty processes": (
        f"for i in {_TWENTY}; do {_HOG.format(size=60)} & done; wait",
        frozenset({"memory"}),
    ),
    "shared memory": (_SHARED, frozenset({"memory"})),
    "one file": (_BIG.format(place=".", most=48 << 20), frozenset({"exit", "disk"})),
    "many files": ("i=0; while :; do i=$((i+1)); head -c 4M /dev/zero > big$i || exit 9; done", frozenset({"disk"})),
    "files without a name": (_NAMELESS, frozenset({"disk"})),
    "/tmp": (_BIG.format(place="/tmp", most=16 << 20), frozenset({"exit"})),  # noqa: S108
    "/dev/shm": (_BIG.format(place="/dev/shm", most=16 << 20), frozenset({"exit"})),  # noqa: S108
    "output": ("exec yes", frozenset({"output"})),
    "time, deaf to signals": ("trap '' INT TERM HUP; while :; do sleep 1; done", frozenset({"timeout"})),
    "silence": ("sleep 300", frozenset({"idle"})),
}
"""What takes more than it may, with the endings that are right."""


def python(script: str) -> str:
    """Return a Python script that can make system calls by name or number."""
    return _KERNEL + script
