#!/usr/bin/env python3
"""`zt convert` beside programs that only copy: time, CPU time, system calls and threads.

usage: copying.py PATH/TO/zt FOLDER... [--rounds N] [--mib N] [--report FILE]

Run by `cargo xtask bench --copying FOLDER...`. In each FOLDER, one safetensors file of bf16 matrices of 1.6 and 3.7 MB is
converted and copied, in turn, round by round. The file is in the page cache. A time includes the start of the process and an
`fsync` of the result, which `zt convert` does itself. CPU time is that of the process and of this `fsync`, user and system. Linux
only; rows of programs that are not installed are left out.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROWS = [1408, 640]  # of 1280 columns: 3.6 and 1.6 MB
COLUMNS = 1280
BARE = "--digest none --chunk-digests=none"


def write_safetensors(path, byte_len):
    """Matrices until there are `byte_len` bytes; how many there are."""
    header, at = {}, 0
    while at < byte_len:
        shape = [ROWS[len(header) % 2], COLUMNS]
        end = at + 2 * shape[0] * shape[1]
        header[f"layers.{len(header)}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    values = random.Random(0)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in header.values():
            start, end = entry["data_offsets"]
            file.write(values.randbytes(end - start))
    return len(header)


def turn(command, result):
    """Seconds and CPU seconds of a program and of an `fsync` of what it wrote."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    before = time.process_time()
    file = os.open(result, os.O_RDWR)
    os.fsync(file)
    os.close(file)
    took, used = time.perf_counter() - start, time.process_time() - before
    os.remove(result)
    return took, used + usage.ru_utime + usage.ru_stime


def calls(command, result):
    """System calls, and threads, of one run under strace."""
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-f", "-o", log.name, *command], check=True, stdout=subprocess.DEVNULL)
        os.remove(result)
        lines = [line for line in log if re.match(r"\d+ +\w+\(", line)]
    return len(lines), 1 + sum(" clone" in line for line in lines)


def file_system(folder):
    found = subprocess.run(["stat", "-f", "-c", "%T", folder], check=True, capture_output=True, text=True)
    return {"ext2/ext3": "ext4"}.get(found.stdout.strip(), found.stdout.strip())


def hold(folder, options):
    """The rows of one file system."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        source, result = f"{inside}/model.safetensors", f"{inside}/result.zt"
        count = write_safetensors(source, options.mib << 20)
        contestants = {
            "`zt convert`": [options.zt, "convert", source, result],
            f"`zt convert {BARE}`": [options.zt, "convert", *BARE.split(), source, result],
            "`cp`": ["cp", "--reflink=never", source, result],
            "`cp --reflink=auto`": ["cp", "--reflink=auto", source, result],
            "`rsync --whole-file`": ["rsync", "--whole-file", source, result],
        }
        contestants = {name: command for name, command in contestants.items() if shutil.which(command[0])}
        names, times = list(contestants), {name: [] for name in contestants}
        for at in range(options.rounds + 1):
            for name in names[at % len(names) :] + names[: at % len(names)]:
                took = turn(contestants[name], result)
                if at:  # The first round warms up.
                    times[name].append(took)
        copy = [statistics.median(column) for column in zip(*times["`cp`"])]
        for name in names:
            wall, cpu = ([*column] for column in zip(*times[name]))
            middle, used = statistics.median(wall), statistics.median(cpu)
            cells = [name, f"{middle:.2f}", f"{min(wall):.2f} to {max(wall):.2f}", f"{middle / copy[0]:.2f}"]
            cells += [f"{used:.2f}", f"{used / copy[1]:.2f}"]
            total, threads = calls(contestants[name], result) if shutil.which("strace") else (0, 0)
            cells += [f"{total / count:.1f}", f"{threads}"] if total else ["", ""]
            yield f"| {' | '.join(cells)} |"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} threads, {platform.system()} {platform.release()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zt")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mib", type=int, default=800)
    parser.add_argument("--report")
    options = parser.parse_args()
    page = [
        "# Converting beside copying",
        "",
        "`cargo xtask bench --copying` writes this page; do not edit it by hand. The measurement is described at the head of",
        "[`benches/copying.py`](../benches/copying.py).",
        "",
        f"Machine: {machine()}. A safetensors file of {options.mib} MiB; medians of {options.rounds} rounds.",
        "`zt convert` computes a crc32c of every tensor and of its chunks, unless its row says otherwise.",
    ]
    for folder in options.folders:
        page += ["", f"## {file_system(folder)}", ""]
        page += ["| program | seconds | from, to | times `cp` | CPU seconds | times `cp` | system calls a tensor | threads |"]
        page += ["| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |", *hold(folder, options)]
    page.append("")
    print("\n".join(page))
    if options.report:
        pathlib.Path(options.report).write_text("\n".join(page))


if __name__ == "__main__":
    main()
