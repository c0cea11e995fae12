"""The page on who looks ahead."""

from pathlib import Path

TYPES = "float32", "float16", "bfloat16"
MODES = "evaluation", "training"
# Those of the past, which are here to compare.
OLD = {("transformers", "5.17.0"), ("keras", "3.7.0")}


def markdown(models, made):
    rows = [row for row in models if "error" not in row]
    left = [row for row in models if "error" in row]
    leaking = [row for row in rows if leaks(row)]
    current = [
        row for row in leaking if (row["package"], row["version"]) not in OLD
    ]
    packages = sorted({f"{row['package']} {version(row)}" for row in rows})
    summary = (
        f"Of {len(rows)} models {len(leaking)} look ahead: {len(current)} of current "
        "releases, encoders and decoders without a mask to compare included, and "
        f"{len(leaking) - len(current)} of old ones. The four of transformers 5.17.0 "
        f"are mended in 5.24.0. Packages: {', '.join(packages)}."
    )
    template = (Path(__file__).parent / "page_template.txt").read_text()
    return template.format(
        summary=summary,
        leaks=table(current),
        made=made_table(made),
        alarms=alarms(made),
        models=table(rows),
        left=left_out(left),
    )


def version(row):
    """Without the build, which differs between machines."""
    return row["version"].partition("+")[0]


def leaks(row):
    return any(row[mode]["looks_ahead"] for mode in MODES)


def table(rows):
    lines = [
        "| package | class | outside training | in training | first positions "
        "| seconds | note |",
        "|---|---|---|---|---|--:|---|",
    ]
    for row in rows:
        verdicts = " | ".join(verdict(row[mode]) for mode in MODES)
        lines.append(
            f"| {row['package']} {version(row)} | {row['name']} | {verdicts} "
            f"| {positions(row)} | {row['seconds']:.1f} | {row['note']} |"
        )
    return "\n".join(lines)


def verdict(mode):
    text = "**looks ahead**" if mode["looks_ahead"] else "no"
    if not mode["looks_ahead"] and "truncation" not in mode["first"]:
        text = "no, by perturbation alone"
    return f"{text}, sees its batch" if mode["neighbours"] else text


def positions(row):
    """The first of the first mode and method that found any."""
    for mode in MODES:
        for pairs in row[mode]["first"].values():
            if pairs:
                return ", ".join(f"{t + 1} on {u + 1}" for t, u in pairs)
    return "–"


def made_table(made):
    lines = [
        "| part | leaks | " + " | ".join(TYPES) + " |",
        "|---|---|" + "--:|" * len(TYPES),
    ]
    counts = {(row["name"], row["type"]): row for row in made}
    for name in dict.fromkeys(row["name"] for row in made):
        cells = [cell(counts[name, kind]) for kind in TYPES]
        expected = counts[name, TYPES[0]]["leaks"]
        says = "yes" if expected else "no"
        if name == "BatchNorm over positions":
            says = "in training"
        lines.append(f"| {name} | {says} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(row):
    """In training, and outside if it differs."""
    inside, outside = row["training"], row["evaluation"]
    if inside == outside:
        return f"{inside} of 10"
    return f"{inside} of 10, outside training {outside}"


def alarms(made):
    leaking = [row for row in made if row["leaks"]]
    causal = [row for row in made if not row["leaks"]]
    hits = sum(row["training"] for row in leaking)
    false = sum(max(row["training"], row["evaluation"]) for row in causal)
    return (
        f"Found: {hits} of {10 * len(leaking)} leaks. False alarms: {false} in "
        f"{10 * len(causal)} audits of causal models."
    )


def left_out(rows):
    names = ", ".join(sorted({f"`{row['name']}`" for row in rows}))
    return (
        f"{len(rows)} classes of transformers are not audited: they have sizes by "
        f"other names than most, or take images or sound: {names}."
    )
