"""Runs one MPI job with a deadline; nothing of it outlives its end."""

import os
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

DEADLINE_S = 1500
# A job none of whose ranks writes anything for so long hangs; until the first test begins, longer.
PATIENCE_S = 60
PATIENCE_AT_START_S = 120
# Set when the call is to stop: all jobs end at once.
STOP = threading.Event()
# In the environment of every process of a job. Not a COLLTUNE_ name: those are settings.
MARK = "TESTED_JOB"


class Stopped(Exception):
    """The call was stopped; what the job did so far says nothing."""


def run(library, n_ranks, command, variables, watched, output, patience_s, preload=None):
    """Runs `command` on `n_ranks` ranks.

    `variables` and `preload` are for the ranks alone, `watched` is the folder whose growth shows that
    the job lives, `output` the file for what it prints, `patience_s` how long it may say nothing.
    Returns "ended" or "hung".
    """
    mark = uuid.uuid4().hex
    ranks = {**library.variables, **variables}
    preloads = [str(file) for file in (preload, library.patience) if file]
    if preloads:
        ranks["LD_PRELOAD"] = ":".join(preloads)
    line = [*library.launcher, "-n", str(n_ranks), "env", *(f"{name}={value}" for name, value in ranks.items())]
    line += [str(word) for word in command]
    environment = {name: value for name, value in os.environ.items() if not foreign(name)}
    environment |= library.variables | {MARK: mark}
    with open(output, "wb") as log:
        log.write((" ".join(line) + "\n").encode())
        log.flush()
        job = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                               start_new_session=True)
        try:
            return "ended" if wait(job, [watched, output], patience_s) else "hung"
        finally:
            end(job, mark)


def foreign(name):
    """Settings of the person who runs the suites must not leak into the jobs."""
    return name.startswith(("COLLTUNE_", "OMPI_", "MPIR_CVAR_", "MPI4PY_", "PMI_", "PMIX_")) or name == "LD_PRELOAD"


def wait(job, watched, patience_s):
    """Whether the job ended by itself."""
    began = grew = time.monotonic()
    size = sum(size_of(path) for path in watched)
    patience = PATIENCE_AT_START_S
    while job.poll() is None:
        if STOP.is_set():
            raise Stopped
        now, seen = time.monotonic(), sum(size_of(path) for path in watched)
        if seen != size:
            size, grew, patience = seen, now, PATIENCE_S
        if now - grew > patience or now - began > DEADLINE_S:
            return False
        time.sleep(0.1)
    return True


def size_of(path):
    path = Path(path)
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.iterdir())
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def end(job, mark):
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    job.wait()
    # Launchers put ranks into process groups of their own.
    wanted = f"{MARK}={mark}".encode()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if wanted in Path("/proc", process, "environ").read_bytes().split(b"\0"):
                os.kill(int(process), signal.SIGKILL)
        except OSError:
            continue
