"""The MPI libraries that the suites run with."""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import place


# What `colltune variants` says of a variant that one node cannot run.
SEVERAL_NODES = "several nodes with several ranks on one of them"


@dataclass(frozen=True)
class Library:
    """One installed MPI library.

    `key` is its database key (`openmpi-4.1.4`), `abi` the build of the shim that serves it,
    `launcher` the command up to the number of ranks, `variables` what every rank's environment needs,
    `patience` a library to preload that makes waiting ranks give the core away.
    """

    key: str
    abi: str
    launcher: tuple
    variables: dict = field(hash=False)
    patience: Path | None = None

    @property
    def name(self):
        return f"{self.key}-abi" if self.abi == "mpi_abi" else self.key

    def shim(self):
        file = place.TARGET / self.abi / "libcolltune.so"
        if not file.is_file():
            raise place.Missing(f"{file} is missing: run `make build` first")
        return file

    def forced(self):
        """For each k the k-th variants of all collectives, as COLLTUNE_FORCE takes them."""
        columns = list(variants(self.key).values())
        longest = max((len(column) for column in columns), default=0)
        return [";".join(column[k] for column in columns if k < len(column)) for k in range(longest)]


def find(wanted):
    """The libraries that are there, and a reason for each that is not; all where `wanted` is empty."""
    found, missing = [], {}
    for name in wanted or CANDIDATES:
        make = CANDIDATES[name]
        try:
            found.append(make())
        except place.Missing as reason:
            missing[name] = str(reason)
    return found, missing


def debian_openmpi():
    return openmpi(need("mpirun.openmpi"), {})


def debian_mpich():
    variables = {"LD_LIBRARY_PATH": str(place.debian_mpich())}
    return mpich(need("mpirun.mpich"), variables, patience=place.patience())


def pypi_openmpi():
    prefix = place.wheel("openmpi-5")
    return openmpi(str(prefix / "bin" / "mpirun"), {"LD_LIBRARY_PATH": str(prefix / "lib")})


# MPICH 5 waits in its shared memory without yielding: its own short-cuts there are left out.
WITHOUT_SHARED_MEMORY = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir" for name in ("ALLREDUCE", "BARRIER", "BCAST", "REDUCE")
}


def pypi_mpich():
    prefix = place.wheel("mpich-5")
    return mpich(str(prefix / "bin" / "mpirun"), {"LD_LIBRARY_PATH": str(prefix / "lib")} | WITHOUT_SHARED_MEMORY)


def standard():
    prefix = place.wheel("mpich-5")
    variables = {"LD_LIBRARY_PATH": str(prefix / "lib"), "PYTHONPATH": str(place.standard_mpi4py())}
    library = mpich(str(prefix / "bin" / "mpirun"), variables | WITHOUT_SHARED_MEMORY, abi="mpi_abi")
    library.shim()
    return library


def pypi_intel():
    prefix = place.wheel("intel")
    variables = {"LD_LIBRARY_PATH": str(prefix / "lib"), "I_MPI_ROOT": str(prefix), "MPI4PY_MPIABI": "impi",
                 "I_MPI_THREAD_YIELD": "2"}
    launcher = prefix / "bin" / "mpiexec.hydra"
    version = version_of(launcher, r"Version (\d+\.\d+\.\d+)")
    return Library(f"intel-{version}", "mpich", (str(launcher),), variables)


CANDIDATES = {
    "openmpi": debian_openmpi,
    "mpich": debian_mpich,
    "openmpi-5": pypi_openmpi,
    "mpich-5": pypi_mpich,
    "mpi_abi": standard,
    "intel": pypi_intel,
}


def openmpi(mpirun, variables):
    rights = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    version = version_of(mpirun, r"\) (\d+\.\d+\.\d+)")
    # More ranks than cores are the rule here: waiting ranks must yield.
    launcher = (mpirun, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
    return Library(f"openmpi-{version}", "openmpi", launcher, rights | variables | {"MPI4PY_MPIABI": "openmpi"})


def mpich(mpirun, variables, abi="mpich", patience=None):
    version = version_of(mpirun, r"Version:\s*(\d+\.\d+(?:\.\d+)?)")
    return Library(f"mpich-{version}", abi, (mpirun,), variables | {"MPI4PY_MPIABI": abi}, patience)


def version_of(mpirun, pattern):
    text = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    match = re.search(pattern, text)
    if not match:
        raise place.Missing(f"{mpirun} --version tells no version: {text[:80]!r}")
    return match[1]


def need(tool):
    path = shutil.which(tool)
    if not path:
        raise place.Missing(f"{tool} is not installed")
    return path


@functools.cache
def variants(key):
    """The catalogue: for each collective `collective=variant` in the catalogue's order; what one node can run."""
    command = os.environ.get("COLLTUNE") or str(place.TARGET / "release" / "colltune")
    output = subprocess.run([command, "variants", "--mpi", key, "--json"], stdout=subprocess.PIPE, check=True)
    columns = {}
    for row in json.loads(output.stdout)["variants"]:
        if SEVERAL_NODES in row["needs"]:
            continue
        columns.setdefault(row["collective"], []).append(f"{row['collective']}={row['name']}")
    return columns


@functools.cache
def digest(*files):
    """What jobs depend on: they are run again when it changes."""
    state = hashlib.sha256()
    for file in files:
        state.update(Path(file).read_bytes())
    return state.hexdigest()[:16]
