#!/usr/bin/env python3
"""Shows what two batches of the demo changed, what placement and collectives gave, and that the sums of all runs are the
same bits.

usage: what-changed.py FOLDER     the folder that `demo` wrote

Ends with 1 if any run of a problem ended with other sums or another mesh.
"""

import json
import math
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import changed_cells

SAME = ("steps", "checksums", "mesh_hash", "splits", "joins")
KINDS = ("default", "explore-0", "explore-1", "placement", "collectives", "tuned")
# Half the width of a 95 % interval of a mean in standard errors, by the number of values: Student's t.
T95 = {8: 2.365, 9: 2.306, 10: 2.262, 11: 2.228, 12: 2.201}


def runs(folder, kind):
    """The summaries of one kind of run, by problem."""
    found = {}
    for path in folder.glob(f"{kind}-*.json"):
        found[int(path.stem.rsplit("-", 1)[1])] = json.loads(path.read_text())
    return [found[nth] for nth in sorted(found)]


def ratios(label, default, tuned):
    values = sorted(a / b for a, b in zip(default, tuned))
    middle = statistics.median(values)
    print(
        f"  {label:<28} {sum(default):7.2f} s {sum(tuned):7.2f} s"
        f"   default / tuned: min {values[0]:.2f}, median {middle:.2f}, max {values[-1]:.2f} of {len(values)}"
    )


def problems(folder, by_kind):
    """A line for each problem: what it is, its reductions, and the arm of `placement` that ran longest."""
    lines = (folder / "problems.txt").read_text().splitlines()
    for nth, line in enumerate(lines):
        default, tuned = (by_kind[kind][nth]["time_s"]["reduce"] for kind in ("default", "tuned"))
        arms = by_kind["tuned"][nth]["levers"]["placement"]
        arm = max(arms, key=arms.get)
        print(f"  {line:<40} reductions {default:6.2f} s {tuned:6.2f} s   {default / tuned:5.2f}   placed by {arm}")


def mean_ratio(logarithms):
    """Geometric mean and its 95 % interval."""
    middle = statistics.mean(logarithms)
    half = T95[len(logarithms)] * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return tuple(math.exp(value) for value in (middle, middle - half, middle + half))


def what_each_gave(by_kind):
    """How many times as fast whole runs are with placement tuned, collectives, and both."""
    times = {kind: [math.log(run["time_s"]["total"]) for run in by_kind[kind]] for kind in KINDS}
    gains = {
        kind: [without - with_it for without, with_it in zip(times["default"], times[kind])]
        for kind in ("placement", "collectives", "tuned")
    }
    print("what each gave: whole runs without colltune over those with it, geometric mean and 95 % interval of the problems:")
    print(f"  {'neither':<12} 1")
    for kind, label in (("placement", "placement"), ("collectives", "collectives"), ("tuned", "both")):
        mean, low, high = mean_ratio(gains[kind])
        print(f"  {label:<12} {mean:.3f} [{low:.3f}, {high:.3f}]")
    beyond = [both - one - other for one, other, both in zip(*gains.values())]
    mean, low, high = mean_ratio(beyond)
    if low <= 1 <= high:
        verdict = "they are not shown to help or to hinder each other"
    else:
        verdict = "they help each other" if mean > 1 else "they stand in each other's way"
    print(f"Both give {mean:.3f} [{low:.3f}, {high:.3f}] times the product of each alone: {verdict}.")


def main():
    folder = pathlib.Path(sys.argv[1])
    changed_cells.show(folder)
    by_kind = {kind: runs(folder, kind) for kind in KINDS}
    n = len(by_kind["default"])
    print()
    print(f"{n} problems, without the shim and tuned, in turn; seconds and their ratios:")
    problems(folder, by_kind)
    time = lambda kind, name: [run["time_s"][name] for run in by_kind[kind]]
    for label, name in (("whole runs", "total"), ("their reductions", "reduce"), ("their ghost exchange", "comm")):
        ratios(label, time("default", name), time("tuned", name))
    for generation in (0, 1):
        spent = sum(time(f"explore-{generation}", "total"))
        print(f"  whole runs while exploring, batch {generation + 1}: {spent:.2f} s")
    print()
    what_each_gave(by_kind)
    differ = 0
    for nth in range(n):
        endings = {json.dumps([by_kind[kind][nth][name] for name in SAME]) for kind in KINDS}
        if len(endings) != 1:
            differ += 1
            print(f"problem {nth} ended differently:", *sorted(endings), sep="\n  ")
    print()
    if differ:
        sys.exit(1)
    sums = sum(len(run["checksums"]) for run in by_kind["default"])
    print(f"{sums} checksums of {n} problems: the same bits without the shim, in both batches, and tuned in each way")


if __name__ == "__main__":
    main()
