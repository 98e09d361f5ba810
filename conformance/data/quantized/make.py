"""Small quantized models, whose values are those of their libraries: python make.py FOLDER.

Folders whose names begin with `2` are made here. The others come with the libraries' own checkpoints. On a CPU:
torch 2.9.1, compressed-tensors 0.20.1, hqq 0.2.8, bitsandbytes 0.50.2, mlx 0.32.4, nvidia-modelopt 0.47.0,
comfy-kitchen 0.2.40. A case whose library is not installed is left out, by name.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file

torch.manual_seed(5)
OUT = pathlib.Path(sys.argv[1])
NAME = "model.layers.0.mlp.down_proj"


def case(name, tensors, values, config=None, header=None, ulp=0):
    """A model, and the values of its weights in float32."""
    model = OUT / name / "model"
    model.mkdir(parents=True, exist_ok=True)
    own = lambda it: {key: value.contiguous().clone() for key, value in it.items()}
    save_file(own(tensors), model / "model.safetensors", header or {"format": "pt"})
    (model / "config.json").write_text(json.dumps(config or {}, indent=1) + "\n")
    save_file(own({key: it.float() for key, it in values.items()}), OUT / name / "truth.safetensors")
    consumed = [key for key in tensors if key not in values or key + "_scale" in tensors]
    about = {key: {"ulp": ulp, "own": None, "consumed": consumed if len(values) == 1 else []} for key in values}
    truth = {"may_stay": [], "tensors": about, "faults": []}
    (OUT / name / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(name)


def compressed_tensors():
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    def weight(format, shape, scale, zero=None, **args):
        args = QuantizationArgs(**args)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        compressor = BaseCompressor.get_value_from_registry(format)
        state = {"weight": torch.randn(shape), "weight_scale": scale}
        if zero is not None:
            state["weight_zero_point"] = zero
        stored = compressor.compress(state, scheme)
        plain = compressor.decompress({**stored}, scheme)["weight"]
        return stored, plain, json.loads(args.model_dump_json())

    def one(name, format, *rest, **args):
        stored, plain, args = weight(format, *rest, **args)
        stored = {f"{NAME}.{key}": value for key, value in stored.items()}
        group = {"targets": ["Linear"], "weights": args, "format": format}
        config = {"quant_method": "compressed-tensors", "format": format, "version": "0.20.1",
                  "config_groups": {"group_0": group}}
        case(name, stored, {f"{NAME}.weight": plain}, {"quantization_config": config, "dtype": "bfloat16"})

    scale = lambda *shape: torch.rand(shape) * 0.1 + 0.05
    zeros = lambda low, high, *shape: torch.randint(low, high, shape, dtype=torch.int8)
    pack, ints, floats = "pack-quantized", "int-quantized", "float-quantized"
    group = dict(strategy="group", group_size=32, type="int")
    for bits in [2, 3, 5, 8]:
        half = 1 << (bits - 1)
        is_zeroed = bits != 5
        zero = zeros(-half, half, 5, 3) if is_zeroed else None
        one(f"20-ct-pack-{bits}-bits", pack, (5, 96), scale(5, 3), zero,
            num_bits=bits, symmetric=not is_zeroed, **group)
    one("20-ct-pack-odd", pack, (3, 45), scale(3, 1), num_bits=3, type="int", strategy="channel")
    one("20-ct-pack-tensor", pack, (6, 32), scale(1), num_bits=4, type="int", strategy="tensor")
    one("20-ct-pack-experts", pack, (3, 6, 64), scale(3, 6, 1), num_bits=4, type="int", strategy="channel")
    one("20-ct-int8-zeros", ints, (6, 32), scale(6, 1), zeros(-100, 100, 6, 1),
        num_bits=8, type="int", strategy="channel", symmetric=False)
    one("20-ct-int8-zero", ints, (6, 32), scale(1), zeros(-100, 100, 1),
        num_bits=8, type="int", strategy="tensor", symmetric=False)
    one("20-ct-int8-groups", ints, (6, 96), scale(6, 3), zeros(-100, 100, 6, 3), num_bits=8, symmetric=False, **group)
    one("20-ct-fp8-blocks", floats, (70, 40), scale(3, 2),
        num_bits=8, type="float", strategy="block", block_structure=[32, 32])
    one("20-ct-mxfp6", "mxfp6-pack-quantized", (6, 64), torch.tensor([[1.0, 0.5]] * 5 + [[2.0, 0.25]]),
        num_bits=6, type="float", strategy="group", group_size=32, scale_dtype="torch.uint8")


def hqq():
    from hqq.core.quantize import Quantizer
    from hqq.core.utils import encode_safetensor_type

    def one(name, shape, bits, group, axis):
        codes, meta = Quantizer.quantize(
            torch.randn(shape), nbits=bits, group_size=group, axis=axis, device="cpu", compute_dtype=torch.float32)
        plain = Quantizer.dequantize(codes, {**meta})
        meta = {key: encode_safetensor_type(value) for key, value in meta.items() if value is not None}
        tensors = {f"{NAME}.{key}": value for key, value in {"W_q": codes, **meta}.items() if value is not None}
        # A zero point need not be whole: the difference is rounded before the product.
        case(name, tensors, {f"{NAME}.weight": plain}, ulp=1)

    for bits in [1, 2, 3, 8]:
        one(f"21-hqq-{bits}-bits", (16, 32), bits, 16, 1)
    one("21-hqq-axis-0", (16, 32), 4, 16, 0)
    one("21-hqq-no-groups", (16, 32), 4, None, 1)


def bitsandbytes():
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    def one(name, kind, shape, block, nested, storage):
        codes, state = quantize_4bit(
            torch.randn(shape), blocksize=block, quant_type=kind, compress_statistics=nested, quant_storage=storage)
        plain = dequantize_4bit(codes, state)
        parts = state.as_dict(packed=True)
        tensors = {f"{NAME}.weight": codes, **{f"{NAME}.weight.{key}": it for key, it in parts.items()}}
        case(name, tensors, {f"{NAME}.weight": plain})

    one("22-bnb-nf4-32", "nf4", (6, 32), 32, False, torch.uint8)
    # The library's own code for CPUs is wrong where a block is longer than a row.
    one("22-bnb-fp4-128", "fp4", (3, 128), 128, True, torch.uint8)
    one("22-bnb-nf4-stored-as-bf16", "nf4", (6, 64), 64, True, torch.bfloat16)


def mlx():
    import mlx.core as mx

    tensor = lambda it: torch.from_numpy(np.array(it))
    for bits in [2, 3, 5, 6]:
        weight = mx.array(np.random.default_rng(bits).normal(size=(2, 6, 64)).astype("f4"))
        codes, scales, biases = mx.quantize(weight, group_size=32, bits=bits)
        # A product and a sum, each rounded. The exact one has the codes of a scale of one.
        own = tensor(mx.dequantize(codes, scales, biases, group_size=32, bits=bits))
        ones, none = mx.ones_like(scales), mx.zeros_like(biases)
        integers = tensor(mx.dequantize(codes, ones, none, group_size=32, bits=bits)).double()
        wide = lambda it: tensor(it).double().repeat_interleave(32, -1)
        plain = (integers * wide(scales) + wide(biases)).float()
        assert (plain - own).abs().max() < 1e-6
        tensors = {"weight": tensor(codes), "scales": tensor(scales), "biases": tensor(biases)}
        tensors = {f"{NAME}.{key}": it for key, it in tensors.items()}
        config = {"quantization": {"group_size": 64, "bits": 4, NAME: {"group_size": 32, "bits": bits}}}
        case(f"23-mlx-{bits}-bits", tensors, {f"{NAME}.weight": plain}, config, {"format": "mlx"})


def modelopt():
    from modelopt.torch.export.quant_utils import pack_int4_in_uint8
    from modelopt.torch.quantization.qtensor import MXFP4QTensor

    codes = torch.randint(-8, 8, (8, 64)).float()
    scale = torch.rand(8, 4) * 0.1 + 0.05
    plain = codes * scale.repeat_interleave(16, 1)
    tensors = {f"{NAME}.weight": pack_int4_in_uint8(plain, scale, 16), f"{NAME}.weight_scale": scale}
    config = lambda name: {"quantization_config": {"quant_method": "modelopt", "quant_algo": name}}
    case("24-modelopt-int4", tensors, {f"{NAME}.weight": plain}, config("INT4_AWQ"))
    stored, scale = MXFP4QTensor.quantize(torch.randn(6, 64), block_size=32)
    plain = stored.dequantize(dtype=torch.float32, scale=scale, block_sizes={-1: 32})
    tensors = {f"{NAME}.weight": stored._quantized_data, f"{NAME}.weight_scale": scale.view(6, 2)}
    case("24-modelopt-mxfp4", tensors, {f"{NAME}.weight": plain}, config("MXFP4"))


def comfy():
    from comfy_kitchen.backends.eager.quantization import dequantize_mxfp8, quantize_mxfp8

    codes, scale = quantize_mxfp8(torch.randn(128, 128))
    plain = dequantize_mxfp8(codes, scale, torch.float32)
    mark = torch.tensor(list(json.dumps({"format": "mxfp8"}).encode()), dtype=torch.uint8)
    tensors = {f"{NAME}.weight": codes, f"{NAME}.weight_scale": scale.view(torch.uint8), f"{NAME}.comfy_quant": mark}
    case("25-comfy-mxfp8", tensors, {f"{NAME}.weight": plain})


def convolution():
    """Of torch: codes of four dimensions with a scale for each of the first."""
    codes = torch.randn(4, 3, 2, 2).to(torch.float8_e4m3fn)
    scale = torch.rand(4, 1, 1, 1)
    tensors = {f"{NAME}.weight": codes, f"{NAME}.weight_scale": scale}
    case("26-scaled-convolution", tensors, {f"{NAME}.weight": codes.float() * scale})


for make in [compressed_tensors, hqq, bitsandbytes, mlx, modelopt, comfy, convolution]:
    try:
        make()
    except ImportError as error:
        print(f"{make.__name__} is left out: {error}", file=sys.stderr)
