"""What two batches of a demo changed in the database: `status-0.json` and `status-1.json` side by side."""

import json

SHOWN = 10  # cells, those with most samples


def size(number):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= factor and number % factor == 0:
            return f"{number // factor} {unit}"
    return f"{number} B"


def span(low, high):
    return f"{size(low)} and more" if high is None else f"{size(low)} to {size(high)}"


def cells(folder, generation):
    status = json.loads((folder / f"status-{generation}.json").read_text())
    found = {}
    for cell in status["cells"]:
        key = (cell["collective"], tuple(cell["bytes"]), tuple(cell["nodes"]), tuple(cell["ppn"]))
        found[key] = cell
    return found


def samples(cell):
    return sum(variant["samples"] for variant in cell["variants"])


def probability(cell, name):
    return next((variant["probability"] for variant in cell["variants"] if variant["name"] == name), 0.0)


def show(folder):
    first, second = cells(folder, 0), cells(folder, 1)
    measured = sorted((key for key in second if samples(second[key]) > 0), key=lambda key: -samples(second[key]))
    print(f"{len(measured)} cells were measured; those with most samples, and how likely their best variant became:")
    print(f"  {'':<10} {'message':<22} {'best variant':<36} {'before':>7} {'batch 1':>8} {'batch 2':>8} {'gain':>6}")
    for key in measured[:SHOWN]:
        cell, best = second[key], second[key]["best"]
        drawn = [variant for variant in cell["variants"] if variant["probability"] > 0 or variant["samples"] > 0]
        before = 1 / max(len(drawn), 1)
        batch_1 = probability(first[key], best) if key in first else 0.0
        gain = cell["gain"]
        print(
            f"  {key[0]:<10} {span(*key[1]):<22} {best:<36} {before:6.0%} {batch_1:8.0%}"
            f" {probability(cell, best):8.0%} {'' if gain is None else f'{gain:5.2f}x':>6}"
        )
