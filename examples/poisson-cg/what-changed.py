#!/usr/bin/env python3
"""Shows what two batches of the demo changed: probabilities per generation, and times.

usage: what-changed.py FOLDER     the folder that `demo` wrote
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import changed_cells


def times(folder, name):
    rows = [line.split() for line in (folder / f"{name}.times").read_text().splitlines()]
    return sorted(float(row[0]) for row in rows), sorted(float(row[1]) for row in rows)


def show(label, values):
    middle = values[len(values) // 2]
    print(f"  {label:<36} {middle:7.3f} s   ({values[0]:.3f} to {values[-1]:.3f}, {len(values)} runs)")
    return middle


def main():
    folder = pathlib.Path(sys.argv[1])
    changed_cells.show(folder)
    print()
    names = ("default", "tuned")
    whole = {}
    for place, what in enumerate(("the solver", "its collectives (rank 0)")):
        whole[what] = [show(f"{what}, {name}", times(folder, name)[place]) for name in names]
    for generation in (0, 1):
        show(f"the solver while exploring, batch {generation + 1}", times(folder, f"explore-{generation}")[0])
    print()
    for what, (default, tuned) in whole.items():
        print(f"  {what}: default / tuned = {default / tuned:.2f}")


if __name__ == "__main__":
    main()
