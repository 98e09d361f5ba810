#!/usr/bin/env python3
"""Quantized checkpoints: `zt convert --logical --dtype bf16` beside each dialect's own code for CPUs, and ten rows by URL.

usage: quantized.py PATH/TO/zt [--mib N] [--rounds N] [--folder DIR] [--dialects D,D] [--page FILE]

Run by `cargo xtask bench --quantized`. A model of each dialect has matrices of 4096 x 4096 random codes; N is the size of its weights in
bf16. zt and the dialect's own code convert the whole model to a plain safetensors file of bf16, in turn, round by round, each in a
process of its own. The limit reads the bytes of the model and writes as many bytes as the result has, in pieces of 1 MiB.
The first round compares the values. The time of zt is of the whole process. The others time themselves without their imports.
CPU time is user and system time of all threads; memory is the peak of the process. Files are in the page cache. Linux only.

It takes torch, safetensors and numpy, and for a dialect compressed-tensors, transformers, bitsandbytes, mlx or gguf. A dialect whose
library is not installed is left out, by name.
"""

import argparse
import http.server
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SIDE = 4096
NAME = "model.layers.{}.mlp.down_proj"
PIECE = 1 << 20
START, END = "<!-- quantized: written by benches/quantized.py -->", "<!-- quantized: end -->"


def random_bytes(*shape):
    import torch

    return torch.randint(0, 256, shape, dtype=torch.uint8)


def random_words(*shape):
    import torch

    return random_bytes(*shape, 4).view(torch.int32).squeeze(-1)


def random_fp8(*shape):
    """No NaN, and no code near the greatest: products stay finite in f16."""
    import torch

    return (random_bytes(*shape) & 0xBF).view(torch.float8_e4m3fn)


def scales(dtype, *shape):
    import torch

    return (torch.rand(shape) * 0.01 + 0.001).to(getattr(torch, dtype))


class Dialect:
    """`layer` makes the tensors of a layer, and `decode` gives its weight in bf16 by the dialect's own code."""

    library, config, header = "torch", {}, {"format": "pt"}
    weight = "weight"

    def about(self):
        return f"{self.library} {importlib.metadata.version(self.library)}"


class DeepSeek(Dialect):
    title = "FP8, blocks of 128 x 128"
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}

    def layer(self):
        return {"weight": random_fp8(SIDE, SIDE), "weight_scale_inv": scales("float32", SIDE // 128, SIDE // 128)}

    def decode(self, parts):
        import torch

        of = SIDE // 128
        blocks = parts["weight"].float().view(of, 128, of, 128) * parts["weight_scale_inv"][:, None, :, None]
        return blocks.view(SIDE, SIDE).to(torch.bfloat16)


class CompressedTensors(Dialect):
    library = "compressed-tensors"

    def __init__(self):
        weights = {"symmetric": True, "dynamic": False, **self.args}
        group = {"targets": ["Linear"], "weights": weights, "format": self.format}
        self.config = {"quantization_config": {"quant_method": "compressed-tensors", "format": self.format, "version": "0.20.1",
                                               "config_groups": {"group_0": group}}, "dtype": "bfloat16"}

    def decode(self, parts):
        import torch
        from compressed_tensors.compressors import BaseCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

        scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**self.args))
        compressor = BaseCompressor.get_value_from_registry(self.format)
        return compressor.decompress({**parts}, scheme)["weight"].to(torch.bfloat16)


class Float(CompressedTensors):
    title, format = "FP8, a scale a row", "float-quantized"
    args = dict(num_bits=8, type="float", strategy="channel")

    def layer(self):
        return {"weight": random_fp8(SIDE, SIDE), "weight_scale": scales("bfloat16", SIDE, 1)}


class Pack(CompressedTensors):
    title, format = "pack-quantized, 4 bits, groups of 128", "pack-quantized"
    args = dict(num_bits=4, type="int", strategy="group", group_size=128)

    def layer(self):
        import torch

        shape = torch.tensor([SIDE, SIDE])
        packed = random_words(SIDE, SIDE // 8)
        return {"weight_packed": packed, "weight_scale": scales("bfloat16", SIDE, SIDE // 128), "weight_shape": shape}


class Nvfp4(CompressedTensors):
    title, format = "NVFP4", "nvfp4-pack-quantized"
    args = dict(num_bits=4, type="float", strategy="tensor_group", group_size=16, scale_dtype="torch.float8_e4m3fn")

    def layer(self):
        import torch

        return {"weight_packed": random_bytes(SIDE, SIDE // 2), "weight_scale": (random_bytes(SIDE, SIDE // 16) & 0x3F).view(torch.float8_e4m3fn),
                "weight_global_scale": torch.tensor([300.0])}


class GptOss(Dialect):
    """Four experts of half the side each way."""

    title, library = "gpt-oss, MXFP4", "transformers"
    config = {"quantization_config": {"quant_method": "mxfp4"}, "dtype": "bfloat16"}
    weight = ""

    def layer(self):
        import torch

        half = SIDE // 2
        exponents = torch.randint(110, 130, (4, half, half // 32), dtype=torch.uint8)
        return {"_blocks": random_bytes(4, half, half // 32, 16), "_scales": exponents}

    def decode(self, parts):
        import torch
        from transformers.integrations import mxfp4

        convert = getattr(mxfp4, "_convert_moe_packed_tensors", None) or mxfp4.convert_moe_packed_tensors
        return convert(parts["_blocks"], parts["_scales"], dtype=torch.bfloat16)


class Gptq(Dialect):
    """The loop of auto-gptq's layer without kernels."""

    title = "GPTQ, 4 bits, groups of 128"
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}}

    def layer(self):
        import torch

        zeros = torch.full((SIDE // 128, SIDE // 8), 0x77777777, dtype=torch.int32)
        return {"qweight": random_words(SIDE // 8, SIDE), "qzeros": zeros, "scales": scales("float16", SIDE // 128, SIDE),
                "g_idx": (torch.arange(SIDE) // 128).to(torch.int32)}

    def decode(self, parts):
        import torch

        shifts = torch.arange(0, 32, 4, dtype=torch.int32)
        zeros = torch.bitwise_and(parts["qzeros"][:, :, None] >> shifts, 15).reshape(SIDE // 128, SIDE) + 1
        codes = torch.bitwise_and(parts["qweight"][:, None, :] >> shifts[None, :, None], 15).reshape(SIDE, SIDE)
        order = parts["g_idx"].long()
        return (parts["scales"][order] * (codes - zeros[order])).T.to(torch.bfloat16).contiguous()


class Awq(Dialect):
    """`dequantize_gemm` of autoawq."""

    title = "AWQ, groups of 128"
    config = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}}

    def layer(self):
        return {"qweight": random_words(SIDE, SIDE // 8), "qzeros": random_words(SIDE // 128, SIDE // 8),
                "scales": scales("float16", SIDE // 128, SIDE)}

    def decode(self, parts):
        import torch

        shifts = torch.arange(0, 32, 4, dtype=torch.int32)
        order = torch.arange(SIDE).view(-1, 8)[:, [0, 4, 1, 5, 2, 6, 3, 7]].reshape(-1)

        def unpacked(words):
            codes = torch.bitwise_right_shift(words[:, :, None], shifts).to(torch.int8).view(words.shape[0], -1)
            return torch.bitwise_and(codes[:, order], 15)

        zeros = unpacked(parts["qzeros"]).repeat_interleave(128, dim=0)
        weight = (unpacked(parts["qweight"]) - zeros) * parts["scales"].repeat_interleave(128, dim=0)
        return weight.T.to(torch.bfloat16).contiguous()


class Bitsandbytes(Dialect):
    title, library = "bitsandbytes NF4", "bitsandbytes"
    config = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}, "dtype": "bfloat16"}

    def layer(self):
        import torch
        from bitsandbytes.functional import quantize_4bit

        codes, state = quantize_4bit(torch.randn(SIDE, SIDE, dtype=torch.bfloat16), blocksize=64, quant_type="nf4")
        return {"weight": codes, **{f"weight.{key}": part for key, part in state.as_dict(packed=True).items()}}

    def decode(self, parts):
        import torch
        from bitsandbytes.functional import QuantState, dequantize_4bit

        state = {key.removeprefix("weight."): part for key, part in parts.items() if key != "weight"}
        return dequantize_4bit(parts["weight"], QuantState.from_dict(state, device=torch.device("cpu")))


class Mlx(Dialect):
    title, library = "MLX, 4 bits, groups of 64", "mlx"
    config = {"quantization": {"group_size": 64, "bits": 4}}
    header = {"format": "mlx"}

    def layer(self):
        import torch

        of = SIDE // 64
        return {"weight": random_words(SIDE, SIDE // 8).view(torch.uint32), "scales": scales("float16", SIDE, of),
                "biases": -scales("float16", SIDE, of)}

    def convert(self, path, target):
        import mlx.core as mx

        parts, weights = mx.load(path), {}
        for name in [name for name in parts if name.endswith(".weight")]:
            layer = name.removesuffix("weight")
            values = mx.dequantize(parts[name], parts[f"{layer}scales"], parts[f"{layer}biases"], group_size=64, bits=4)
            weights[name] = values.astype(mx.bfloat16)
        mx.save_safetensors(target, weights, {"format": "mlx"})


class Gguf(Dialect):
    title, library = "GGUF, Q4_0", "gguf"

    def convert(self, path, target):
        import gguf
        import torch
        from safetensors.torch import save_file

        weights = {}
        for tensor in gguf.GGUFReader(path).tensors:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
            weights[tensor.name] = torch.from_numpy(values).to(torch.bfloat16)
        save_file(weights, target)


DIALECTS = {
    "deepseek": DeepSeek, "ct-fp8": Float, "ct-pack": Pack, "ct-nvfp4": Nvfp4, "gpt-oss": GptOss, "gptq": Gptq, "awq": Awq,
    "bitsandbytes": Bitsandbytes, "mlx": Mlx, "gguf": Gguf,
}


def make(key, count, folder):
    """A model of `count` layers."""
    import numpy as np

    if key == "gguf":
        import gguf

        writer = gguf.GGUFWriter(f"{folder}/model.gguf", "llama")
        for at in range(count):
            blocks = random_bytes(SIDE, SIDE // 32, 18).numpy()
            blocks[:, :, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
            kind = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(NAME.format(at) + ".weight", blocks.reshape(SIDE, -1), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return
    from safetensors.torch import save_file

    dialect, tensors = DIALECTS[key](), {}
    for at in range(count):
        name = NAME.format(at)
        for part, tensor in dialect.layer().items():
            tensors[name + part if part.startswith("_") else f"{name}.{part}"] = tensor.contiguous()
    save_file(tensors, f"{folder}/model.safetensors", dialect.header)
    pathlib.Path(folder, "config.json").write_text(json.dumps(dialect.config))


def convert(key, path, target):
    """The whole model, by the dialect's own code: seconds of wall and of CPU time."""
    dialect = DIALECTS[key]()
    if hasattr(dialect, "convert"):
        __import__("mlx.core" if key == "mlx" else "gguf")
        if key == "gguf":
            import torch  # noqa: F401
        work = lambda: dialect.convert(path, target)
    else:
        import torch  # noqa: F401
        from safetensors import safe_open
        from safetensors.torch import save_file

        if key.startswith("ct-"):
            import compressed_tensors.compressors  # noqa: F401
        elif key == "bitsandbytes":
            import bitsandbytes.functional  # noqa: F401
        elif key == "gpt-oss":
            from transformers.integrations import mxfp4  # noqa: F401

        def work():
            with safe_open(path, "pt") as file:
                layers, weights = {}, {}
                for name in file.keys():
                    layer, part = name.split(".down_proj", 1)
                    layers.setdefault(f"{layer}.down_proj", {})[part.removeprefix(".")] = name
                for layer, parts in layers.items():
                    weight = dialect.decode({part: file.get_tensor(name) for part, name in parts.items()})
                    weights[f"{layer}.{dialect.weight}".removesuffix(".")] = weight
                save_file(weights, target)

    cpu, start = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def copy(path, target, byte_len):
    """Reads all bytes of a file, and writes so many: seconds of wall and of CPU time."""
    cpu, start = time.process_time(), time.perf_counter()
    piece = bytearray(PIECE)
    with open(path, "rb", buffering=0) as file, open(target, "wb", buffering=0) as out:
        while file.readinto(piece):
            pass
        for at in range(0, byte_len, PIECE):
            out.write(memoryview(piece)[: min(PIECE, byte_len - at)])
    return time.perf_counter() - start, time.process_time() - cpu


def run(command, is_own_time):
    """Seconds, seconds of CPU time, and the peak memory in MiB of a process."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - start
    if status:
        sys.exit(f"failed: {command}")
    if is_own_time:
        took, cpu = map(float, said.split()[-2:])
    else:
        cpu = usage.ru_utime + usage.ru_stime
    return took, cpu, usage.ru_maxrss / 1024


def compare(key, ours, theirs):
    """The share of values that are equal. Others are a step of bf16 apart, or near zero."""
    import torch
    from safetensors import safe_open

    same = count = 0
    with safe_open(ours, "pt") as a, safe_open(theirs, "pt") as b:
        if sorted(a.keys()) != sorted(b.keys()):
            sys.exit(f"{key}: other names")
        for name in a.keys():
            x, y = a.get_tensor(name).float(), b.get_tensor(name).float()
            if x.shape != y.shape or not torch.allclose(x, y, rtol=1 / 64, atol=float(y.abs().max()) / 512):
                sys.exit(f"{key}: {name} has other values")
            same, count = same + int((x == y).sum()), count + x.numel()
    return same / count


def contest(key, folder, byte_len, options):
    """Rows of a dialect."""
    dialect = DIALECTS[key]()
    file = f"{folder}/model.gguf" if key == "gguf" else f"{folder}/model.safetensors"
    targets = {name: f"{folder}/{name}.safetensors" for name in ["zt", "peer", "copy"]}
    script = [sys.executable, __file__]
    commands = {
        "zt": [options.zt, "convert", "--force", "--logical", "--dtype", "bf16", file, targets["zt"]],
        "peer": [*script, "--peer", key, file, targets["peer"]],
        "copy": [*script, "--copy", file, targets["copy"], str(byte_len)],
    }
    found = {name: [] for name in commands}
    names = list(commands)
    for at in range(options.rounds):
        for name in names[at % 3 :] + names[: at % 3]:
            found[name].append(run(commands[name], name != "zt"))
        if at == 0:
            # The peak of a process is at least the memory of the one that starts it.
            command = [*script, "--compare", key, targets["zt"], targets["peer"]]
            equal = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    middle = lambda name, which: statistics.median(turn[which] for turn in found[name])
    titles = {"zt": "**zt**", "peer": dialect.about(), "copy": "*limit: read and write*"}
    for name, title in titles.items():
        times = [turn[0] for turn in found[name]]
        took, cpu, memory = (middle(name, which) for which in range(3))
        said = f"{dialect.title} ({'all' if equal == 1 else f'{equal:.1%}'} equal)" if name == "zt" else ""
        speed, of_cpu = byte_len / took / 1e9, byte_len / cpu / 1e9
        yield (f"| {said} | {title} | {took:.2f} | {min(times):.2f} to {max(times):.2f} | {speed:.2f} | {cpu:.2f} | {of_cpu:.2f} "
               f"| {memory:.0f} | {took / middle('zt', 0):.2f} | {cpu / middle('zt', 1):.2f} |")


class Counting(http.server.BaseHTTPRequestHandler):
    """A server of ranges that counts what it sends."""

    protocol_version = "HTTP/1.1"
    requests = sent = 0
    folder = ""

    def do_GET(self):
        path = pathlib.Path(self.folder, pathlib.PurePosixPath(self.path).name)
        Counting.requests += 1
        if not path.is_file():
            self.send_error(404)
            return
        size, ranged = path.stat().st_size, self.headers.get("Range")
        start, end = 0, size - 1
        if ranged:
            first, last = ranged.removeprefix("bytes=").split("-")
            start, end = (int(first), min(int(last or end), end)) if first else (max(0, size - int(last)), end)
        self.send_response(206 if ranged else 200)
        self.send_header("Content-Length", str(end - start + 1))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        if ranged:
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        self.end_headers()
        if self.command == "GET":
            with open(path, "rb") as file:
                file.seek(start)
                data = file.read(end - start + 1)
            Counting.sent += len(data)
            self.wfile.write(data)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def ten_rows(key, folder, options):
    """Ten rows of one weight by URL: a row."""
    Counting.folder, Counting.requests, Counting.sent = folder, 0, 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    file = "model.gguf" if key == "gguf" else "model.safetensors"
    dialect = DIALECTS[key]()
    weight = f"{NAME.format(1)}.{dialect.weight}".removesuffix(".")
    rows = "1,1000:1010" if key == "gpt-oss" else "1000:1010"
    url = f"http://127.0.0.1:{server.server_port}/{file}"
    took, _, memory = run([options.zt, "show", "--allow-http", "--logical", url, weight, "--slice", rows], False)
    server.shutdown()
    size = os.path.getsize(f"{folder}/{file}")
    return f"| {dialect.title} | {size / (1 << 20):.0f} | {Counting.requests} | {Counting.sent / 1024:.0f} | {took:.2f} | {memory:.0f} |"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} threads, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zt")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--dialects", type=lambda text: text.split(","), default=list(DIALECTS))
    parser.add_argument("--page")
    options = parser.parse_args()
    count = max(2, (options.mib << 20) // (2 * SIDE * SIDE))
    byte_len = count * 2 * SIDE * SIDE
    rows, by_url = [], []
    for key in options.dialects:
        try:
            DIALECTS[key]().about()
        except (ImportError, importlib.metadata.PackageNotFoundError) as error:
            print(f"{key}: left out, {error} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            subprocess.run([sys.executable, __file__, "--make", key, str(count), folder], check=True)
            rows += contest(key, folder, byte_len, options)
            by_url.append(ten_rows(key, folder, options))
            print(*rows[-3:], by_url[-1], sep="\n", flush=True)
    section = [
        START,
        "",
        "## Quantized checkpoints",
        "",
        "`cargo xtask bench --quantized` writes this section. The measurement is described at the head of",
        "[`benches/quantized.py`](../benches/quantized.py).",
        "",
        f"Machine: {machine()}. Models of {count} matrices of {SIDE} x {SIDE}, {byte_len / (1 << 20):.0f} MiB in bf16; medians of",
        f"{options.rounds} rounds. GB/s are of bf16 values, a second and a second of CPU time. The load of a shared machine changes the times;",
        "CPU times are steadier. *Equal* is the share of values that are equal in bf16.",
        "",
        "| model | | s | from, to | GB/s | CPU s | GB/CPU s | peak MiB | time / zt's | CPU / zt's |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
        "Ten rows of one weight by URL, with `zt show --logical --slice`, from a server on the same machine that counts:",
        "",
        "| model | MiB | requests | KiB received | s | peak MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *by_url,
        "",
        END,
        "",
    ]
    print("\n".join(section))
    if options.page:
        page = pathlib.Path(options.page)
        text = page.read_text() if page.exists() else ""
        before, _, rest = text.partition(START)
        page.write_text(before.rstrip("\n") + "\n\n" + "\n".join(section) + rest.partition(END)[2].lstrip("\n"))


if __name__ == "__main__":
    # Each turn is a process of its own, and so is the making of a model, whose memory is not to stay.
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1:2] == ["--peer"]:
        print(*convert(*sys.argv[2:5]))
    elif sys.argv[1:2] == ["--compare"]:
        print(compare(*sys.argv[2:5]))
    elif sys.argv[1:2] == ["--copy"]:
        print(*copy(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        main()
