#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Slurm on this machine alone, for the time of a test: controller, node and authentication, with all
of their files in one folder.

    one_node_slurm.py COMMAND...    runs a command next to it; exit code 77 where it cannot start
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
SKIPPED = 77

CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ReturnToService=2
MaxArraySize=5000
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class NoSlurm(Exception):
    """Why it does not start here."""


def path_of(program):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    if path is None:
        raise NoSlurm(f"{program} was not found (Debian: slurm-wlm, munge)")
    return path


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def command(*words, **options):
    try:
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=30,
                              stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired as error:
        raise NoSlurm(f"{words[0]} does not answer") from error


def start(environment, *words):
    """Each program goes to the background by itself, and says before whether it can start."""
    done = command(*words, env=environment)
    if done.returncode != 0:
        raise NoSlurm(f"{words[0]}: {(done.stderr or done.stdout).strip()[-300:]}")


def process_id(pid_file):
    """That the program itself has written; None where it never started."""
    try:
        return int(pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def stop(pid_files):
    """All at once: each takes up to two seconds."""
    pids = set(map(process_id, pid_files)) - {None}
    for number in (signal.SIGTERM, *[0] * 100, signal.SIGKILL):
        for pid in list(pids):
            try:
                os.kill(pid, number)
            except OSError:
                pids.discard(pid)  # it is gone
        if not pids:
            return
        time.sleep(0.05)


@contextlib.contextmanager
def one_node_slurm():
    """Yields the environment in which sbatch finds it.

    Raises NoSlurm.
    """
    paths = {program: path_of(program) for program in PROGRAMS}
    host = socket.gethostname().split(".")[0]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm"))
    try:
        folder.chmod(0o755)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        configuration = folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(host=host, folder=folder, ports=free_ports(2),
                                                      user=pwd.getpwuid(os.getuid()).pw_name), encoding="utf-8")
        environment = {**os.environ, "SLURM_CONF": str(configuration)}
        start(environment, paths["munged"], f"--key-file={key}", f"--socket={folder}/munge.socket",
              f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
        start(environment, paths["slurmctld"])
        start(environment, paths["slurmd"], "-N", host)
        for _ in range(100):
            if "idle" in command(paths["sinfo"], "-h", "-o", "%T", env=environment).stdout:
                break
            time.sleep(0.2)
        else:
            raise NoSlurm("the node does not become idle: " +
                          (folder / "slurmd.log").read_text(encoding="utf-8", errors="replace")[-300:])
        yield environment
    finally:
        stop([folder / f"{name}.pid" for name in ("slurmd", "slurmctld", "munged")])
        shutil.rmtree(folder, ignore_errors=True)


def main():
    try:
        with one_node_slurm() as environment:
            return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    except NoSlurm as reason:
        print(f"test skipped: {reason}", file=sys.stderr)
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
