"""Writes docs/python-benchmarks.md and its chart from the times that compare.py kept."""

from __future__ import annotations

import math
import statistics
from html import escape
from pathlib import Path
from typing import Any

OURS = {"zt", "zt.torch"}
TORCH = ["zt.torch", "safetensors.torch", "torch", "fastsafetensors"]

ROWS = {
    "save": "save, without digests, unsynced",
    "save_digests": "save with digests (crc32c), unsynced",
    "save_durable": "save, without digests, on the disk",
    "save_default": "save with digests, on the disk: the default of zt",
    "tied": "save each tensor under two names",
    "load": "load into arrays of one's own",
    "load_digests": "the same, digests compared",
    "views": "open, and read every page of views",
    "one": "open, one tensor",
    "row": "open, two rows of one",
    "save_zstd": "save as zstd, level 3",
    "load_zstd": "load from zstd",
    "save_planes": "save in byte planes",
    "load_planes": "load from byte planes",
    "load_cold": "load, not in the cache",
    "one_cold": "open, one tensor, not in the cache",
    "row_cold": "open, two rows of one, not in the cache",
}

NOTES = """\
# Benchmarks of the Python package

`python python/benches/compare.py --write` writes this page and its chart; do not edit them by hand.

* Each library works in a process of its own, on the same tensors of f32. They take turns, round by round.
* Figures are medians in milliseconds, with the shortest and the longest time.
* Compare figures only within one table: another machine, or another day, gives other figures.
* Every load reads a byte of each page of what it loaded.
* Before each figure, untimed, the program returns free memory to the system. Then it touches and frees as much
  memory as the tensors take: a hypervisor takes back memory that is not used.
* "Arrays of one's own" are writable and share nothing with the file. Where a library only gives views, the
  program copies them. `numpy`, `torch` and `safetensors.numpy` give such arrays themselves.
* A column of torch has tensors of torch. `torch.save` writes a whole storage, so its values are cloned first.
* "Unsynced" is what safetensors does: the file is in the cache of the system, and a loss of power may
  damage it. "On the disk" adds `fsync` of the file and its folder. It is the default of `save_file` in `zt`.
* A figure whose range is one number is of a single round: look at its order of magnitude only.
* "Under two names" is one tensor in memory that has two names. zt and torch store it once, and
  safetensors.torch refuses it.
"""

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}"
    ".grid{stroke:#d1d9e0}.ours{stroke:#1a7f37;stroke-width:2}"
    ".c0{fill:#0969da}.c1{fill:#bc4c00}.c2{fill:#8250df}.c3{fill:#1b7c83}.c4{fill:#bf3989}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.small{fill:#9198a1}.grid{stroke:#3d444d}"
    ".ours{stroke:#3fb950}}"
)
PEERS = ["safetensors", "ztensor 1", "ztensor 2", "numpy", "gguf-py"]
LEFT, WIDTH, TOP, ROW, LEAST, MOST = 400, 960, 64, 24, 0.25, 64


def median(answers: list[list[float]]) -> float:
    return statistics.median(took for took, _ in answers)


def cell(answers: list[list[float]] | None, best: float) -> str:
    if not answers:
        return "-"
    times = [took for took, _ in answers]
    digits = 2 if max(times) < 10 else 0 if min(times) >= 100 else 1
    middle = f"{statistics.median(times):.{digits}f}"
    bold = "**" if statistics.median(times) <= best else ""
    return f"{bold}{middle}{bold} ({min(times):.{digits}f} to {max(times):.{digits}f})"


def title(case: dict[str, Any]) -> str:
    count, rows, columns = case["tensors"]
    mib = count * rows * columns * 4 / 2**20
    cores = "one core" if case["cores"] == 1 else f"{case['cores']} cores"
    place = "files in memory (tmpfs)" if case["memory"] else "files on the disk"
    return f"{count} tensors of {rows} x {columns}, {mib:.0f} MiB; {cores}, {place}"


def table(case: dict[str, Any], names: list[str]) -> list[str]:
    rows = {
        row: answers
        for row, answers in case["rows"].items()
        if any(name in answers for name in names)
    }
    present = [name for name in names if any(name in answers for answers in rows.values())]
    if not present:
        return []
    lines = [
        f"| ms | {' | '.join(present)} |",
        "| --- |" + " ---: |" * len(present),
    ]
    for row, answers in rows.items():
        best = min(median(answers[name]) for name in present if name in answers)
        cells = [cell(answers.get(name), best) for name in present]
        lines.append(f"| {ROWS[row]} | {' | '.join(cells)} |")
    return [*lines, ""]


def sizes(case: dict[str, Any]) -> list[str]:
    """The sizes of compressed files, which say what the times are worth."""
    found = []
    for row in ("save_zstd", "save_planes", "tied"):
        for name, answers in case["rows"].get(row, {}).items():
            found.append(f"{name}, {ROWS[row]}: {answers[0][1] / 2**20:.0f} MiB")
    return [f"Sizes: {'; '.join(found)}.", ""] if found else []


def write(results: dict[str, Any], folder: Path) -> None:
    """Writes the page and the chart into `folder`."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = [
        NOTES,
        "| | |",
        "| --- | --- |",
        f"| versions | {versions} |",
        f"| machine | {machine['processor']}, {machine['cores']} cores |",
        f"| system | {machine['system']}, Python {machine['python']} |",
        "",
        "![Times of other libraries as multiples of zt's](python-benchmarks.svg)",
        "",
    ]
    cases = results["cases"].values()
    for case in cases:
        names = list(dict.fromkeys(name for row in case["rows"].values() for name in row))
        lines += [f"## {title(case)}", ""]
        lines += table(case, [name for name in names if name not in TORCH])
        lines += table(case, [name for name in names if name in TORCH])
        lines += sizes(case)
    (folder / "python-benchmarks.md").write_text("\n".join(lines).rstrip() + "\n")
    (folder / "python-benchmarks.svg").write_text(chart(list(cases)))


def place(multiple: float) -> float:
    held = min(max(multiple, LEAST), MOST)
    share = math.log2(held / LEAST) / math.log2(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - 30)


def chart(cases: list[dict[str, Any]]) -> str:
    """A row for each operation of each case, a dot for each library: how many times zt's time it takes."""
    rows = [
        (f"{ROWS[row]}, {case['case']}, {case['cores']}", answers)
        for case in cases
        for row, answers in case["rows"].items()
        if "zt" in answers and any(name in answers for name in PEERS)
    ]
    bottom = TOP + ROW * len(rows)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" role="img">',
        f"<title>Times of other libraries as multiples of zt's</title>\n<style>{STYLE}</style>",
        '<text x="10" y="20">Time as a multiple of zt\'s: right of the green line is slower than zt</text>',
    ]
    for at, name in enumerate(PEERS):
        x = LEFT + 105 * at
        svg.append(
            f'<circle class="c{at}" cx="{x}" cy="38" r="5"/>'
            f'<text class="small" x="{x + 10}" y="42">{name}</text>'
        )
    at = LEAST
    while at <= MOST:
        x, kind = place(at), "ours" if at == 1 else "grid"
        svg.append(
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>'
            f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{at:g}x</text>'
        )
        at *= 2
    for row, (text, answers) in enumerate(rows):
        y = TOP + ROW * (row + 0.5)
        svg.append(
            f'<text class="small" x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(text)}</text>'
        )
        ours = median(answers["zt"])
        for at, name in enumerate(PEERS):
            if name in answers:
                multiple = median(answers[name]) / ours
                svg.append(
                    f'<circle class="c{at}" cx="{place(multiple):.1f}" cy="{y}" r="5">'
                    f"<title>{name}: {multiple:.2f}x</title></circle>"
                )
    return "\n".join([*svg, "</svg>\n"])
