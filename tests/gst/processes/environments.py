#!/usr/bin/env python3
"""The ball is found wherever a service may have to run: `environments.py MODEL.xml`.

PoCL finds no device where it can write no cache. As root, an unprivileged user and a read-only root are tried as well.
"""
import os
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 600  # seconds: nothing is cached, so all kernels are compiled, for which an idle machine takes 2 seconds
LINE = ("gst-launch-1.0 -q videotestsrc pattern=ball num-buffers=3 ! video/x-raw,width=320,height=240 ! "
        "clinfer model={} ! clpublish ! fakesink")
NOBODY = 65534


def environment(home, temporary):
    """Without what names a folder for caches, and with `home` as HOME unless it is None."""
    dropped = ("HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "POCL_CACHE_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    kept["TMPDIR"] = temporary
    if home is not None:
        kept["HOME"] = home
    return kept


def cases(model):
    """Name, command and HOME."""
    line = LINE.format(model).split()
    homes = {"HOME=/nonexistent": "/nonexistent", "HOME=/proc": "/proc", "without HOME": None}
    if os.geteuid() == 0 and shutil.which("setpriv"):
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        for name, home in [*homes.items(), ("HOME=/", "/")]:
            yield f"{name}, uid {NOBODY}", drop + line, home
    else:
        for name, home in homes.items():
            yield name, line, home
    script = ("mount --make-rprivate / && mount --rbind / /mnt && mount -o remount,ro,bind /mnt && "
              "mount -t tmpfs none /mnt/tmp && exec chroot /mnt /bin/sh -c 'cd \"$0\" && ! touch there 2>/dev/null && exec \"$@\"' ")
    unshare = ["unshare", "--mount", "sh", "-c", script + '"$@"', "sh", "/root"]
    if os.geteuid() == 0 and subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0:
        yield "read-only root", unshare + line, "/root"


def main():
    model = os.path.abspath(sys.argv[1])
    wrong = 0
    for name, command, home in cases(model):
        with tempfile.TemporaryDirectory() as temporary:
            os.chmod(temporary, 0o1777)
            done = subprocess.run(command, env=environment(home, temporary), capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
        found = done.stdout.count('"label":"ball"') or done.stdout.count('"detection"')
        good = done.returncode == 0 and found >= 3
        print(f"{name}: status {done.returncode}, {found} frames with a detection", flush=True)
        if not good:
            wrong += 1
            print(done.stdout[-500:], done.stderr[-2000:], sep="\n", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
