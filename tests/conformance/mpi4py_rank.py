"""One rank of a job that runs mpi4py's own test suite and writes down what became of each test.

usage: mpi4py_rank.py SUITE RESULTS [--arrays BACKEND] [argument of the suite's main.py ...]

`SUITE` is the folder with the suite's main.py, whose tests make each call with six kinds of Python arrays; with
`BACKEND` they make it with that kind alone, say `numpy`. `RESULTS/left-out.json` lists the tests and modules that are not
run. Each rank appends to `RESULTS/rank-N.jsonl`: {"tests": NAMES} at the start, {"test": NAME, "begins": true}
before a test, {"test": NAME, "outcome": "passed" | "failed" | "skipped", "reason": TEXT, "seconds": S,
"collectives": NAMES} behind it, {"ends": true} at the end. The collectives are those that the shim logged as
tuned calls. A rank that dies leaves the name of the test that it died in.
"""

import json
import os
import sys
import time
import unittest


def rank_in_environment():
    """This process's rank, as the launcher tells it; MPI is not started yet."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


class Notes:
    """The file that this rank writes."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rank-{rank_in_environment()}.jsonl")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **line):
        os.write(self.file, (json.dumps(line) + "\n").encode())


class CallLog:
    """The shim's log of this rank (COLLTUNE_LOG=calls:FOLDER), which it writes at once."""

    def __init__(self):
        _, _, folder = os.environ.get("COLLTUNE_LOG", "").partition(":")
        self.path = os.path.join(folder, f"rank-{rank_in_environment()}.jsonl") if folder else os.devnull
        self.file = None

    def collectives(self):
        """Those of the calls since the last question."""
        if self.file is None and os.path.exists(self.path):
            self.file = open(self.path, "rb")
        return sorted({json.loads(line)["collective"] for line in self.file or () if line.endswith(b"\n")})


class NotedResult(unittest.TestResult):
    """A result that notes each test at once, and the first problem of those that fail."""

    notes, calls = None, None

    def __init__(self, *_arguments, **_named):
        super().__init__()
        self.problem = None

    def startTest(self, test):
        super().startTest(test)
        self.calls.collectives()
        self.problem, self.began = None, time.monotonic()
        self.notes.write(test=test.id(), begins=True)

    def stopTest(self, test):
        outcome, reason = self.problem or ("passed", "")
        seconds = round(time.monotonic() - self.began, 3)
        self.notes.write(test=test.id(), outcome=outcome, reason=reason[-2000:], seconds=seconds,
                         collectives=self.calls.collectives())
        super().stopTest(test)

    def note(self, outcome, reason):
        # A subtest that failed outweighs others that were skipped.
        if self.problem is None or outcome == "failed":
            self.problem = (outcome, reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.note("failed", self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):
            # Set-up of a class or module: no test was started, so it is noted by itself.
            self.notes.write(test=test.id(), outcome="failed", reason=self.problem[1][-2000:])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note("failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note("failed", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", reason)
        if not isinstance(test, unittest.TestCase):
            self.notes.write(test=test.id(), outcome="skipped", reason=reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note("failed", "succeeds, which the suite does not expect")

    # What unittest's text runner asks of its results.
    def printErrors(self):
        pass


def flat(tests):
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def keep_arrays(backend):
    """The suite's tests loop over the kinds of arrays that are listed here."""
    import arrayimpl  # the suite's own

    arrayimpl.ArrayBackends[:] = [kind for kind in arrayimpl.ArrayBackends if kind.backend == backend][:1]
    assert arrayimpl.ArrayBackends, f"the suite has no arrays of {backend}"


def main():
    suite, folder, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    backend = arguments.pop(1) if arguments[:1] == ["--arrays"] else None
    arguments = arguments[1:] if backend else arguments
    NotedResult.notes, NotedResult.calls = Notes(folder), CallLog()
    with open(os.path.join(folder, "left-out.json")) as file:
        left_out = set(json.load(file))
    unittest.TextTestRunner.resultclass = NotedResult
    sys.path.insert(0, suite)
    sys.dont_write_bytecode = True
    sys.argv = [os.path.join(suite, "main.py"), *arguments]
    import main as program  # the suite's own

    run_tests = program.TestProgram.runTests

    def listed(self):
        # The name of a test begins with its module.
        kept = [test for test in flat(self.test) if left_out.isdisjoint({test.id(), test.id().split(".")[0]})]
        NotedResult.notes.write(tests=[test.id() for test in kept])
        if backend:
            keep_arrays(backend)
        self.test = unittest.TestSuite(kept)
        run_tests(self)

    program.TestProgram.runTests = listed
    try:
        program.main(module=None)
    finally:
        NotedResult.notes.write(ends=True)


main()
