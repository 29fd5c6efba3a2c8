"""The call logs of all ranks of a job: they must tell the same story of every communicator."""

import json
from collections import Counter, defaultdict


def check(folder, n_ranks, spawns):
    """Returns {"variants": how often each ran, "disagreement": the first one, if any}.

    With `spawns` the job may have started further worlds, whose ranks write to files of the same
    names: then only what is there is counted.
    """
    ran, stories = Counter(), defaultdict(dict)
    for rank in range(n_ranks):
        file = folder / f"rank-{rank}.jsonl"
        if not file.is_file():
            continue
        for text in file.read_text().splitlines():
            try:
                call = json.loads(text)
            except ValueError:
                continue
            if rank == 0:
                ran[f"{call['collective']}={call['variant']}"] += 1
            if call["comm"] is not None:
                stories[call["comm"]].setdefault(rank, []).append(call)
    report = {"variants": dict(ran)}
    if not spawns:
        problem = next(filter(None, (compare(comm, ranks) for comm, ranks in stories.items())), None)
        if problem:
            report["disagreement"] = problem
    return report


def compare(comm, ranks):
    first_rank, *others = ranks
    first = ranks[first_rank]
    for rank in others:
        for a, b in zip(first, ranks[rank]):
            if a != b:
                return f"comm {comm}: rank {first_rank} ran {a}, rank {rank} ran {b}"
        if len(first) != len(ranks[rank]):
            return f"comm {comm}: ranks {first_rank} and {rank} logged {len(first)} and {len(ranks[rank])} calls"
    return None
