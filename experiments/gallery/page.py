"""The page on who looks ahead."""

from pathlib import Path

TYPES = "float32", "float16", "bfloat16"
MODES = "evaluation", "training"
# These releases of the past are here to compare.
OLD = {("transformers", "5.17.0"), ("keras", "3.7.0")}


def markdown(models, parts):
    """Returns the page of other packages' models and of the parts made here."""
    rows = [row for row in models if "error" not in row]
    errors = [row for row in models if "error" in row]
    leaks = [row for row in rows if looks_ahead(row)]
    old_leaks, current_leaks = [], []
    for row in leaks:
        if (row["package"], row["version"]) in OLD:
            old_leaks.append(row)
        else:
            current_leaks.append(row)
    packages = sorted({f"{row['package']} {version(row)}" for row in rows})
    summary = (
        f"Of {len(rows)} models {len(leaks)} look ahead: {len(current_leaks)} of "
        "current releases, encoders and decoders without a mask to compare included, "
        f"and {len(old_leaks)} of old ones. The four of transformers 5.17.0 "
        f"are fixed in 5.24.0. Packages: {', '.join(packages)}."
    )
    template = (Path(__file__).parent / "page_template.txt").read_text()
    return template.format(
        summary=summary,
        leaks=table(current_leaks),
        made=parts_table(parts),
        alarms=alarms(parts),
        models=table(rows),
        left=left_out(errors),
    )


def version(row):
    """Returns the version without the build, which differs between machines."""
    return row["version"].partition("+")[0]


def looks_ahead(row):
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
    if mode["looks_ahead"]:
        text = "**looks ahead**"
    elif "truncation" in mode["first"]:
        text = "no"
    else:
        text = "no, by perturbation alone"
    return f"{text}, sees its batch" if mode["neighbours"] else text


def positions(row):
    """Returns those of the first mode and method that have any."""
    for mode in MODES:
        for pairs in row[mode]["first"].values():
            if pairs:
                return ", ".join(f"{t + 1} on {u + 1}" for t, u in pairs)
    return "–"


def parts_table(rows):
    lines = [
        "| part | leaks | " + " | ".join(TYPES) + " |",
        "|---|---|" + "--:|" * len(TYPES),
    ]
    parts = {}
    for row in rows:
        parts.setdefault(row["name"], {})[row["type"]] = row
    for name, types in parts.items():
        cells = [cell(types[kind]) for kind in TYPES]
        leaks = "yes" if types[TYPES[0]]["leaks"] else "no"
        if name == "BatchNorm over positions":
            leaks = "in training"
        lines.append(f"| {name} | {leaks} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(row):
    """Returns the count in training, and outside if it differs."""
    training, evaluation = row["training"], row["evaluation"]
    if training == evaluation:
        return f"{training} of 10"
    return f"{training} of 10, outside training {evaluation}"


def alarms(parts):
    leaks = [row for row in parts if row["leaks"]]
    causal = [row for row in parts if not row["leaks"]]
    hits = sum(row["training"] for row in leaks)
    false = sum(max(row["training"], row["evaluation"]) for row in causal)
    return (
        f"Found: {hits} of {10 * len(leaks)} leaks. False alarms: {false} in "
        f"{10 * len(causal)} audits of causal models."
    )


def left_out(rows):
    names = ", ".join(sorted({f"`{row['name']}`" for row in rows}))
    return (
        f"{len(rows)} classes of transformers are not audited: they have sizes by "
        f"other names than most, or take images or sound: {names}."
    )
