"""From what became of each test to the table library x variant x ranks."""

from collections import Counter, defaultdict

import suite

LEFT_OUT = "left out"


def judge(result, bare):
    """Counts and failures of one run against the bare one: (passed, failures, skipped reasons)."""
    passed, failures, skipped = 0, {}, Counter()
    unsteady = set(result.get("unsteady", ()))
    steady = {name for name, (outcome, _) in result["tests"].items() if outcome == "failed"} - unsteady
    broken = {name.split(".")[0] for name in steady if bare["tests"].get(name, ["passed"])[0] == "passed"}
    for name, (outcome, reason) in bare["tests"].items():
        if outcome == "skipped":
            skipped["the suite skips it: " + first_line(reason)] += 1
        elif outcome == LEFT_OUT:
            skipped[reason] += 1
        elif outcome == "failed":
            skipped["fails without the shim, too"] += 1
        else:
            with_shim, why = result["tests"].get(name, ("failed", "it was not run"))
            if with_shim == "passed":
                passed += 1
            elif with_shim == LEFT_OUT:
                skipped[why] += 1
            elif name in unsteady:
                skipped["fails at times without the shim, too"] += 1
            elif why == suite.UNREACHED and name.split(".")[0] not in broken:
                skipped["behind a test that fails at times without the shim, too"] += 1
            else:
                failures[name] = f"{with_shim}: {last_line(why)}"
    if result.get("hangs_at_its_end") and not bare.get("hangs_at_its_end"):
        failures["the job's end"] = "the job hangs behind its last test"
    if result["calls"].get("disagreement"):
        failures["agreement of the ranks"] = result["calls"]["disagreement"]
    untuned = [message for message in result["calls"]["messages"] if message.endswith("untuned")]
    if untuned or not result["calls"]["variants"]:
        failures["tuning"] = (untuned or ["no call was tuned, so that nothing was shown"])[0]
    return passed, failures, skipped


def judge_bare(bare):
    """A bare run passes what the library passes; it has no failures of ours."""
    outcomes = Counter(outcome for outcome, _ in bare["tests"].values())
    reasons = Counter({"fails without the shim": outcomes["failed"]}) if outcomes["failed"] else Counter()
    for outcome, reason in bare["tests"].values():
        if outcome == "skipped":
            reasons["the suite skips it: " + first_line(reason)] += 1
        elif outcome == LEFT_OUT:
            reasons[reason] += 1
    return outcomes["passed"], {}, reasons


def first_line(text):
    return (text.strip().splitlines() or [""])[0][:80]


def last_line(text):
    return (text.strip().splitlines() or [""])[-1][:200]


def table(rows):
    """`rows` are (library, variant, ranks, passed, failed, skipped); one line per library and variant."""
    cells, columns = defaultdict(dict), set()
    for library, variant, n_ranks, passed, failed, skipped in rows:
        cells[library, variant][n_ranks] = f"{passed}/{failed}/{skipped}"
        columns.add(n_ranks)
    columns = sorted(columns)
    head = ["library", "variant", *(f"{n} ranks" for n in columns)]
    body = [[library, variant, *(of.get(n, "-") for n in columns)] for (library, variant), of in cells.items()]
    widths = [max(len(str(row[place])) for row in [head, *body]) for place in range(len(head))]
    text = ["passed/failed/skipped"]
    for row in [head, *body]:
        text.append("  ".join(str(word).ljust(width) for word, width in zip(row, widths)).rstrip())
    return "\n".join(text)


def never_ran(library, forced, ran):
    """Which of the forced variants never ran, in words: none of the suite's calls is one that they apply to."""
    never = sorted(forced - ran)
    text = f"{library}: {len(forced) - len(never)} of {len(forced)} variants ran where they were forced"
    return text + (f"; no call was one for {', '.join(never)}" if never else "")
