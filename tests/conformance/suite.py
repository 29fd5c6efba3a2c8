"""mpi4py's own tests: what is run, and what became of each test."""

import json
import shutil
import subprocess
import sys
import time
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
        return f"{self.library.key}.{self.variant}.{self.n_ranks}{of}"

    def tests(self):
        """The modules of the suite that it runs, as arguments of the suite's main.py."""
        if self.only:
            return ["-i", self.only]
        return COLLECTIVE if self.force or self.variant == "bare-collective" else WHOLE

    def bare(self):
        """What it is compared with."""
        multiple = self.variant.endswith("multiple")
        same = "bare-collective" if self.force else "bare-multiple" if multiple else "bare"
        return Run(self.library, same, self.n_ranks, only=self.only)

    def settings(self, db):
        if self.force:
            return {"COLLTUNE_FORCE": self.force}
        return {"COLLTUNE_DB": str(db), "COLLTUNE_MODE": self.variant.split("-")[0], "COLLTUNE_SEED": SEED,
                "COLLTUNE_SETUP_AFTER": "1"}


def plan(found, ranks, forced_ranks, only):
    """All runs, in an order in which whatever needs another comes behind it."""
    for library in found:
        for n_ranks in ranks:
            for variant in ("bare", "explore", "exploit", "bare-multiple", "explore-multiple"):
                yield Run(library, variant, n_ranks, only=only)
        for n_ranks in forced_ranks:
            yield Run(library, "bare-collective", n_ranks, only=only)
        for k, force in enumerate(library.forced()):
            for n_ranks in forced_ranks:
                yield Run(library, f"force-{k}", n_ranks, force, only)


def perform(run, scratch, excluded=(), tests=None):
    """Runs the tests; returns {"tests": {name: [outcome, reason]}, "calls": ..., "seconds": ...}."""
    shim = None if run.variant.startswith("bare") else run.library.shim()
    db = scratch / f"db-{run.library.key}"
    db.mkdir(exist_ok=True)
    if run.variant == "exploit":
        train(db)
    began, outcomes, left_out = time.monotonic(), {}, Exclusion(list(excluded))
    for attempt in range(ATTEMPTS):
        notes, log = fresh(scratch / "notes"), fresh(scratch / "log")
        output = scratch / f"{run.name()}.out"
        command = [place.python(), Path(__file__).with_name("mpi4py_rank.py"), place.suite(), notes, "-q"]
        level = "multiple" if run.variant.endswith("multiple") else "serialized"
        command += ["--thread-level", level, *(run.tests() if tests is None else tests), *left_out.words()]
        variables = {}
        if shim:
            variables = run.settings(db) | {"COLLTUNE_LOG": f"calls:{log}", "COLLTUNE_HANDSHAKE_TIMEOUT": "120s"}
        end = job.run(run.library, run.n_ranks, command, variables, notes, output, preload=shim)
        seen, culprits, listed = read(notes, run.n_ranks)
        for name, outcome in seen.items():
            worst(outcomes, name, outcome)
        for name in culprits:
            outcomes[name] = ["failed", f"the job {'hangs' if end == 'hung' else 'dies'} in it"]
        for name in listed:
            # Overwritten when a later attempt runs it.
            outcomes.setdefault(name, ["skipped", UNREACHED])
        if not culprits:
            break
        shutil.copy(output, scratch / f"{run.name()}.died{attempt}.out")
        left_out.extend(culprits, outcomes)
    calls = agreement.check(log, run.n_ranks, spawns=not run.force) if shim else {}
    if shim:
        calls["messages"] = messages(output)
    return {"tests": outcomes, "calls": calls, "seconds": round(time.monotonic() - began, 1)}


class Exclusion:
    """What the next attempt leaves out: culprits, modules with two of them, and finished modules."""

    def __init__(self, names):
        self.names, self.modules = names, set()

    def extend(self, culprits, outcomes):
        self.names += culprits
        modules = [name.split(".")[0] for name in self.names]
        self.modules |= {module for module in modules if modules.count(module) > 1}
        open_modules = {name.split(".")[0] for name, outcome in outcomes.items() if outcome[1] == UNREACHED}
        self.modules |= {name.split(".")[0] for name in outcomes} - open_modules

    def words(self):
        # A pattern with a star is taken as it is, so that it fits one test alone.
        words = [word for name in self.names for word in ("-x", "*" + name)]
        return words + [word for module in sorted(self.modules) for word in ("-e", f"^{module}.py$")]


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


def read(notes, n_ranks):
    """What became of each test over all ranks, the tests that ranks died in, and all that were to run."""
    outcomes, culprits, listed = {}, [], []
    for rank in range(n_ranks):
        open_test, ended = None, False
        for line in lines(notes / f"rank-{rank}.jsonl"):
            listed = line.get("tests", listed)
            if line.get("begins"):
                open_test = line["test"]
            elif "outcome" in line:
                worst(outcomes, line["test"], [line["outcome"], line["reason"]])
                open_test = None
            ended = ended or line.get("ends", False)
        if not ended and open_test:
            culprits.append(open_test)
    if not outcomes and not culprits:
        culprits = ["the start"]
    # Ranks that wait for the culprit are in the same test; whoever got on was not held up.
    return outcomes, sorted(set(culprits)), listed


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
