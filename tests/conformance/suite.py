"""mpi4py's own tests: what is run, and what became of each test."""

import json
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import agreement
import job
import library as libraries
import place

# A job that dies is run again without the test that it died in, so often at most.
ATTEMPTS = 8
UNREACHED = "a job died in the same module before"
WHOLE, COLLECTIVE = [], ["-i", "cco"]
SEED = "20"


@dataclass(frozen=True)
class Run:
    """One cell of the table: a library, a variant and a number of ranks.

    `variant` is `bare`, `explore`, `exploit`, `explore-multiple` or `force-K`; what forced ones are
    compared with is `bare-collective`.
    """

    library: libraries.Library
    variant: str
    n_ranks: int
    force: str = ""
    only: str = ""

    def name(self):
        of = f".{self.only}" if self.only else ""
        return f"{self.library.name}.{self.variant}.{self.n_ranks}{of}"

    def tests(self):
        """The modules of the suite that it runs, as arguments of the suite's main.py."""
        if self.only:
            return ["-i", self.only]
        return COLLECTIVE if self.collective() else WHOLE

    def collective(self):
        """Whether it runs the collective tests alone."""
        return bool(self.force) or self.variant == "bare-collective"

    def arrays(self):
        """The kinds of Python arrays, as arguments of mpi4py_rank.py: MPI sees the same calls with each of the six.

        The whole suite uses all of them, the many forced runs the one that has the most types.
        """
        return ["--arrays", "numpy"] if self.collective() else []

    def bare(self):
        """What it is compared with."""
        multiple = self.variant.endswith("multiple")
        same = "bare-collective" if self.force else "bare-multiple" if multiple else "bare"
        return Run(self.library, same, self.n_ranks, only=self.only)

    def learning(self):
        """The run that tells which collectives each test calls."""
        return Run(self.library, "force-0", self.n_ranks, self.library.forced()[0], self.only)

    def before(self):
        """The runs that must have ended before this one begins."""
        if self.variant.startswith("bare"):
            return []
        if self.force:
            return [self.bare()] + ([self.learning()] if self.variant != "force-0" else [])
        explore = Run(self.library, "explore", self.n_ranks, only=self.only)
        return [self.bare()] + ([explore] if self.variant == "exploit" else [])

    def database(self, scratch):
        """What exploit uses is what explore learned, on as many ranks."""
        return scratch.with_name(self.name().replace(".exploit.", ".explore.")) / "db"

    def settings(self, db):
        if self.force:
            return {"COLLTUNE_FORCE": self.force}
        return {"COLLTUNE_DB": str(db), "COLLTUNE_MODE": self.variant.split("-")[0], "COLLTUNE_SEED": SEED,
                "COLLTUNE_SETUP_AFTER": "1"}


def plan(found, ranks, forced_ranks, threaded_ranks, only):
    """All runs, in an order in which whatever needs another comes behind it and each library comes early."""
    for n_ranks in ranks:
        for variant in ("bare", "explore", "exploit"):
            yield from (Run(library, variant, n_ranks, only=only) for library in found)
    forced = {library: library.forced() for library in found}
    for n_ranks in forced_ranks:
        yield from (Run(library, "bare-collective", n_ranks, only=only) for library in found)
    for k in range(max(map(len, forced.values()), default=0)):
        for n_ranks in forced_ranks:
            for library in found:
                if k < len(forced[library]):
                    yield Run(library, f"force-{k}", n_ranks, forced[library][k], only)
    for n_ranks in threaded_ranks:
        for variant in ("bare-multiple", "explore-multiple"):
            yield from (Run(library, variant, n_ranks, only=only) for library in found)


def perform(run, scratch, left_out=(), patience_s=job.PATIENCE_S, tests=None):
    """Runs the tests but those of `left_out`, and gives a job up that says nothing for `patience_s`.

    Returns {"tests": {name: [outcome, reason]}, "slowest": seconds of a test, "collectives": {name: those of its
    tuned calls}, "hangs_at_its_end": whether a job hangs behind its last test, "calls": ..., "seconds": ...}.
    """
    shim = None if run.variant.startswith("bare") else run.library.shim()
    scratch = scratch / run.name()
    db = run.database(scratch)
    db.mkdir(parents=True, exist_ok=True)
    if run.variant == "exploit":
        train(db)
    began, outcomes, exclusion = time.monotonic(), {}, Exclusion(left_out)
    slowest, collectives = 0.0, {}
    for attempt in range(ATTEMPTS):
        notes, log = fresh(scratch / "notes"), fresh(scratch / "log")
        (notes / "left-out.json").write_text(json.dumps(exclusion.names()))
        output = scratch / "out"
        command = [place.python(), Path(__file__).with_name("mpi4py_rank.py"), place.suite(), notes, *run.arrays(), "-q"]
        level = "multiple" if run.variant.endswith("multiple") else "serialized"
        command += ["--thread-level", level, *(run.tests() if tests is None else tests)]
        variables = {}
        if shim:
            variables = run.settings(db) | {"COLLTUNE_LOG": f"calls:{log}", "COLLTUNE_HANDSHAKE_TIMEOUT": "120s"}
        end = job.run(run.library, run.n_ranks, command, variables, notes, output, patience_s, preload=shim)
        seen = Notes(notes, run.n_ranks)
        slowest = max(slowest, seen.slowest)
        for name, those in seen.collectives.items():
            collectives.setdefault(name, set()).update(those)
        for name, outcome in seen.outcomes.items():
            worst(outcomes, name, outcome)
        culprits = seen.hangs() if end == "hung" else seen.culprits
        for name in culprits:
            outcomes[name] = ["failed", f"the job {'hangs' if end == 'hung' else 'dies'} in it"]
        for name in seen.listed:
            # Overwritten when a later attempt runs it.
            outcomes.setdefault(name, ["skipped", UNREACHED])
        if not culprits:
            break
        shutil.copy(output, scratch / f"died{attempt}.out")
        exclusion.extend(culprits, outcomes)
    calls = agreement.check(log, run.n_ranks, spawns=not run.force) if shim else {}
    if shim:
        calls["messages"] = messages(output)
    return {"tests": outcomes, "slowest": slowest,
            "collectives": {name: sorted(of) for name, of in collectives.items()},
            "hangs_at_its_end": end == "hung" and not culprits, "calls": calls, "seconds": round(time.monotonic() - began, 1)}


class Exclusion:
    """What the next attempt leaves out: culprits, modules with two of them, and finished modules."""

    def __init__(self, names):
        self.given, self.culprits, self.modules = set(names), [], set()

    def extend(self, culprits, outcomes):
        self.culprits += culprits
        modules = [name.split(".")[0] for name in self.culprits]
        self.modules |= {module for module in modules if modules.count(module) > 1}
        open_modules = {name.split(".")[0] for name, outcome in outcomes.items() if outcome[1] == UNREACHED}
        self.modules |= {name.split(".")[0] for name in outcomes} - open_modules

    def names(self):
        return sorted(self.given | set(self.culprits) | self.modules)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def messages(output):
    """What the shim said."""
    lines = output.read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("colltune: ")][:20]


def train(db):
    command = [place.TARGET / "release" / "colltune", "train", "--db", db]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if output.returncode:
        print(f"exploit without a generation: {output.stdout.strip()[-200:]}", file=sys.stderr)


class Notes:
    """What the ranks noted: what became of each test over all of them, and where they died."""

    def __init__(self, folder, n_ranks):
        self.outcomes, self.collectives, self.slowest, self.listed = {}, {}, 0.0, []
        self.finishers = defaultdict(set)
        culprits = {self.read(folder / f"rank-{rank}.jsonl") for rank in range(n_ranks)} - {None}
        # What some rank did not finish was not reached, unless it failed on another.
        self.outcomes = {name: outcome for name, outcome in self.outcomes.items()
                         if outcome[0] == "failed" or len(self.finishers[name]) == n_ranks}
        if not self.outcomes and not culprits and not self.listed:
            culprits = {"the start"}
        self.culprits = sorted(culprits)

    def hangs(self):
        """The first of the tests in which ranks hang: it may hold up ranks that got on, which the next job shows."""
        order = {name: place for place, name in enumerate(self.listed)}
        return sorted(self.culprits, key=lambda name: order.get(name, -1))[:1]

    def read(self, file):
        """The test that this rank did not finish."""
        open_test, ended = None, False
        for line in lines(file):
            self.listed = line.get("tests", self.listed)
            if line.get("begins"):
                open_test = line["test"]
            elif "outcome" in line:
                worst(self.outcomes, line["test"], [line["outcome"], line["reason"]])
                self.finishers[line["test"]].add(file)
                self.collectives.setdefault(line["test"], set()).update(line.get("collectives", ()))
                self.slowest = max(self.slowest, line.get("seconds", 0.0))
                open_test = None
            ended = ended or line.get("ends", False)
        return None if ended else open_test


def lines(file):
    if not file.is_file():
        return
    for text in file.read_text().splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            return  # the rank died while it wrote


def worst(outcomes, name, outcome):
    order = {"passed": 0, "skipped": 1, "failed": 2}
    if name not in outcomes or outcomes[name][1] == UNREACHED or order[outcome[0]] > order[outcomes[name][0]]:
        outcomes[name] = outcome
