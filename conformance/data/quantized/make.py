"""Small quantized models, whose values are those of their libraries: python make.py FOLDER.

Folders whose names begin with `2` are made here. The others come with the libraries' own checkpoints. On a CPU:
torch 2.15.0, compressed-tensors 0.20.1, hqq 0.2.8, bitsandbytes 0.50.2, mlx 0.32.4, nvidia-modelopt 0.47.0,
comfy-kitchen 0.2.40, torchao 0.18.0, optimum-quanto 0.2.7, transformers 5.24.0. Of auto-gptq 0.7.1, autoawq 0.2.9 and
GPTQModel 7.7.0, the sources are enough, in PYTHONPATH. A case whose library is not installed is left out, by name.
Further arguments name the functions that are run.
"""

import ast
import importlib.util
import json
import logging
import pathlib
import sys
import types
import typing

import numpy as np
import torch
from safetensors.torch import save_file

torch.manual_seed(5)
OUT = pathlib.Path(sys.argv[1])
NAME = "model.layers.0.mlp.down_proj"


def case(name, tensors, values, config=None, header=None, ulp=0, own=None, files=None, stays=()):
    """A model, and the values of its weights in float32. `own` holds them in the library's own type."""
    model = OUT / name / "model"
    model.mkdir(parents=True, exist_ok=True)
    copy = lambda it: {key: value.contiguous().clone() for key, value in it.items()}
    save_file(copy(tensors), model / "model.safetensors", header or {"format": "pt"})
    for file, json_ in {**({"config.json": config} if config else {}), **(files or {})}.items():
        (model / file).write_text(json.dumps(json_, indent=1) + "\n")
    stays = {key: tensors[key].float() for key in stays}
    save_file(copy({**{key: it.float() for key, it in values.items()}, **stays}), OUT / name / "truth.safetensors")
    own = own or {}
    if own:
        save_file(copy(own), OUT / name / "truth-own.safetensors")
    types_ = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}
    of = lambda key: types_[own[key].dtype] if key in own else None
    consumed = [key for key in tensors if key not in stays and (key not in values or key + "_scale" in tensors)]
    about = {key: {"ulp": ulp, "own": of(key), "consumed": consumed if len(values) == 1 else []} for key in values}
    about.update({key: {"ulp": 0, "own": None, "consumed": []} for key in stays})
    truth = {"may_stay": [], "tensors": about, "faults": []}
    (OUT / name / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(name)


def load(package, module):
    """A module of a package whose other modules need a GPU, or packages that are not installed."""
    parents = package.split(".") + module.split(".")[:-1]
    for at in range(1, len(parents) + 1):
        name = ".".join(parents[:at])
        if name not in sys.modules:
            found = importlib.util.find_spec(name)
            if found is None:
                raise ImportError(name)
            bare = types.ModuleType(name)
            bare.__path__ = list(found.submodule_search_locations)
            sys.modules[name] = bare
    return importlib.import_module(f"{package}.{module}")


def functions(package, path, known):
    """The functions of a file that imports the whole of its package."""
    file = pathlib.Path(sys.modules[package].__path__[0]) / path
    tree = ast.parse(file.read_text())
    absolute = lambda it: isinstance(it, ast.Import) or isinstance(it, ast.ImportFrom) and it.level == 0
    tree.body = [it for it in tree.body if absolute(it) or isinstance(it, ast.FunctionDef)]
    exec(compile(tree, file, "exec"), known)
    return known


def words(*shape):
    """Words of random codes."""
    return torch.randint(-(1 << 31), 1 << 31, shape, dtype=torch.int64).to(torch.int32)


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
    own = stored.dequantize(dtype=torch.bfloat16, scale=scale, block_sizes={-1: 32})
    case("24-modelopt-mxfp4", tensors, {f"{NAME}.weight": plain}, config("MXFP4"), own={f"{NAME}.weight": own})


def comfy():
    from comfy_kitchen.backends.eager.quantization import dequantize_mxfp8, quantize_mxfp8

    codes, scale = quantize_mxfp8(torch.randn(128, 128))
    plain = dequantize_mxfp8(codes, scale, torch.float32)
    mark = torch.tensor(list(json.dumps({"format": "mxfp8"}).encode()), dtype=torch.uint8)
    tensors = {f"{NAME}.weight": codes, f"{NAME}.weight_scale": scale.view(torch.uint8), f"{NAME}.comfy_quant": mark}
    own = {f"{NAME}.weight": dequantize_mxfp8(codes, scale)}
    case("25-comfy-mxfp8", tensors, {f"{NAME}.weight": plain}, own=own)


def convolution():
    """Of torch: codes of four dimensions with a scale for each of the first."""
    codes = torch.randn(4, 3, 2, 2).to(torch.float8_e4m3fn)
    scale = torch.rand(4, 1, 1, 1)
    tensors = {f"{NAME}.weight": codes, f"{NAME}.weight_scale": scale}
    case("26-scaled-convolution", tensors, {f"{NAME}.weight": codes.float() * scale})


def gptq():
    quantizer = load("auto_gptq", "nn_modules.qlinear.qlinear_cuda").QuantLinear
    known = {**vars(load("gptqmodel", "utils.planar_packing")), "LOG": logging.getLogger()}
    convert = functions("gptqmodel", "utils/model_dequant.py", known)["convert_gptq_file"]

    def one(name, bits, inputs, outputs, group, version="gptq", bias=False, order=None, keeps=True, **settings):
        size = inputs if group == -1 else group
        groups = -(-inputs // size)
        zeros = words(groups, outputs * bits // 32)
        if version == "gptq":
            # Readers do not agree where all bits of a zero are set.
            ones = torch.zeros(groups, outputs, dtype=torch.int32) + (1 << (bits - 1)) - 1
            zeros = pack(ones, bits)
        parts = {"qweight": words(-(-inputs * bits // 32), outputs), "qzeros": zeros,
                 "scales": (torch.rand(groups, outputs) * 0.1 + 0.01).half(),
                 "g_idx": torch.arange(inputs, dtype=torch.int32) // size}
        if order is not None:
            parts["g_idx"] = parts["g_idx"][torch.randperm(inputs)]
        tensors = {f"{NAME}.{key}": it for key, it in parts.items()}
        settings = {"bits": bits, "group_size": group, "desc_act": order is not None, "sym": version == "gptq",
                    "quant_method": "gptq", "checkpoint_format": version, **settings}
        path = OUT / "gptq.safetensors"
        save_file(tensors, path)
        plain = convert(path, torch.float32, settings, "cpu")[f"{NAME}.weight"]
        path.unlink()
        own = plain.half()
        if version == "gptq":
            layer = quantizer(bits, group, inputs, outputs, False, weight_dtype=torch.float16)
            layer.load_state_dict(parts)
            own = layer(torch.eye(inputs, dtype=torch.float16)).T
        if not keeps:
            del tensors[f"{NAME}.g_idx"]
        if bias:
            tensors[f"{NAME}.bias"] = torch.randn(outputs).half()
        case(name, tensors, {f"{NAME}.weight": plain}, {"quantization_config": settings, "torch_dtype": "float16"},
             own={f"{NAME}.weight": own}, stays=[f"{NAME}.bias"] if bias else [])

    def pack(codes, bits):
        """Rows of codes, the lowest bits first."""
        places = (codes[..., None] >> torch.arange(bits)) & 1
        places = places.reshape(codes.shape[0], -1, 32).long() << torch.arange(32)
        return places.sum(-1).to(torch.int32)

    one("27-gptq-2-bits", 2, 64, 32, 32)
    one("27-gptq-3-bits", 3, 96, 32, 32, order=True)
    one("27-gptq-3-bits-v2", 3, 64, 64, -1, "gptq_v2")
    one("27-gptq-8-bits", 8, 64, 32, 16, bias=True)
    one("27-gptq-4-bits-v2", 4, 64, 40, 32, "gptq_v2", order=True)
    one("27-gptq-8-bits-v2", 8, 64, 36, 32, "gptq_v2")
    one("27-gptq-2-bits-v2", 2, 64, 48, -1, "gptq_v2", keeps=False)
    one("27-gptq-no-order", 4, 96, 32, 64, keeps=False)


def awq():
    dequantize = load("awq", "utils.packing_utils").dequantize_gemm

    def one(name, inputs, outputs, group, bias=False, files=None, **settings):
        size = inputs if group == -1 else group
        parts = {"qweight": words(inputs, outputs // 8), "qzeros": words(inputs // size, outputs // 8),
                 "scales": (torch.rand(inputs // size, outputs) * 0.1 + 0.01).half()}
        codes = [parts["qweight"], parts["qzeros"]]
        plain = dequantize(*codes, parts["scales"].float(), 4, size).T
        own = dequantize(*codes, parts["scales"], 4, size).T
        tensors = {f"{NAME}.{key}": it for key, it in parts.items()}
        if bias:
            tensors[f"{NAME}.bias"] = torch.randn(outputs).half()
        settings = {"bits": 4, "group_size": group, "quant_method": "awq", "version": "gemm", "zero_point": True, **settings}
        config = {} if files else {"quantization_config": settings}
        case(name, tensors, {f"{NAME}.weight": plain}, config, files=files,
             own={f"{NAME}.weight": own}, stays=[f"{NAME}.bias"] if bias else [])

    one("28-awq-32", 96, 16, 32, bias=True)
    one("28-awq-all", 40, 24, -1, modules_to_not_convert=["lm_head"])
    settings = {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"}
    one("28-awq-64-own-settings", 128, 8, 64, files={"quant_config.json": settings})


def torchao():
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import (
        Float8Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, MappingType, PerBlock, PerRow, PerTensor)

    def one(name, stored, plain=None, ulp=0):
        norm = torch.randn(8).bfloat16()
        tensors, header = flatten_tensor_state_dict({f"{NAME}.weight": stored, "norm.weight": norm})
        if plain is None:
            plain = stored.dequantize(torch.float32)
        config = {"quantization_config": {"quant_method": "torchao"}, "dtype": "bfloat16"}
        case(name, tensors, {f"{NAME}.weight": plain}, config, {"format": "pt", **header}, ulp=ulp,
             own={f"{NAME}.weight": stored.dequantize()}, stays=["norm.weight"])

    random = lambda *shape: torch.randn(shape).bfloat16()
    one("29-torchao-fp8-row", Float8Tensor.from_hp(random(6, 40), granularity=PerRow()))
    one("29-torchao-fp8-tensor", Float8Tensor.from_hp(random(6, 40), granularity=PerTensor()))
    one("29-torchao-fp8-block", Float8Tensor.from_hp(random(64, 96), granularity=PerBlock([32, 32])))
    one("29-torchao-fp8-experts", Float8Tensor.from_hp(random(3, 4, 16), granularity=PerRow()))
    one("29-torchao-fp8-experts-columns", Float8Tensor.from_hp(random(3, 4, 16), granularity=PerRow(1)))
    one("29-torchao-fp8-experts-tensor", Float8Tensor.from_hp(random(3, 4, 16), granularity=PerTensor()))
    one("29-torchao-int8-tensor", Int8Tensor.from_hp(random(5, 24), granularity=PerTensor()))
    one("29-torchao-int8-experts", Int8Tensor.from_hp(random(2, 5, 24), granularity=PerRow()))
    one("29-torchao-int8-experts-tensor", Int8Tensor.from_hp(random(2, 5, 24), granularity=PerTensor()))
    one("29-torchao-int8-asymmetric", Int8Tensor.from_hp(random(5, 24), granularity=PerRow(), mapping_type=MappingType.ASYMMETRIC))
    for bits, mapping in [(4, MappingType.ASYMMETRIC), (2, MappingType.SYMMETRIC)]:
        stored = IntxUnpackedToInt8Tensor.from_hp(random(5, 64), (1, 32), getattr(torch, f"int{bits}"), mapping_type=mapping)
        wide = lambda it: it.float().reshape(5, 2).repeat_interleave(32, 1)
        plain = (stored.qdata.float() - wide(stored.zero_point)) * wide(stored.scale)
        one(f"29-torchao-int{bits}-in-bytes", stored, plain)
    one("29-torchao-mxfp8", MXTensor.to_mx(random(5, 64), torch.float8_e4m3fn, 32))
    one("29-torchao-mxfp4", MXTensor.to_mx(random(5, 64), torch.float4_e2m1fn_x2, 32))
    one("29-torchao-mxfp8-tiled", MXTensor.to_mx(random(5, 64), torch.float8_e4m3fn, 32, is_swizzled_scales=True))
    weight = random(5, 64)
    scale = per_tensor_amax_to_scale(weight.float().abs().max())
    one("29-torchao-nvfp4", NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=scale), ulp=1)
    one("29-torchao-nvfp4-tiled", NVFP4Tensor.to_nvfp4(weight, is_swizzled_scales=True))


def quanto():
    from optimum.quanto import qfloat8_e4m3fn, qfloat8_e4m3fnuz, qfloat8_e5m2, qint8
    from optimum.quanto.tensor.weights import WeightQBytesTensor

    def one(name, kind, shape, scale, axis=0):
        weight = torch.randn(shape).to(scale.dtype)
        stored = WeightQBytesTensor.quantize(weight, kind, axis, scale, None, False)
        codes = stored._data
        plain = codes.float() * scale.float()
        tensors = {f"{NAME}.weight._data": codes, f"{NAME}.weight._scale": scale,
                   f"{NAME}.input_scale": torch.ones(()), f"{NAME}.output_scale": torch.ones(())}
        case(name, tensors, {f"{NAME}.weight": plain}, own={f"{NAME}.weight": stored.dequantize()},
             files={"quanto_qmap.json": {NAME: {"weights": kind.name, "activations": "none"}}},
             stays=[f"{NAME}.input_scale", f"{NAME}.output_scale"])

    one("30-quanto-qfloat8", qfloat8_e4m3fn, (5, 24), torch.rand(5, 1).bfloat16() * 0.01)
    one("30-quanto-qfloat8-e5m2", qfloat8_e5m2, (5, 24), torch.rand(5, 1).half() * 0.01)
    one("30-quanto-qfloat8-fnuz", qfloat8_e4m3fnuz, (5, 24), torch.rand(5, 1).bfloat16() * 0.01)
    one("30-quanto-qint8-convolution", qint8, (4, 3, 2, 2), torch.rand(4, 1, 1, 1).bfloat16() * 0.01)


def wider():
    """More settings of compressed-tensors: groups of layers, experts, and scales of activations beside the weights."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    def layer(name, format, shape, scale, zero=None, extra=None, **args):
        args = QuantizationArgs(**args)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        compressor = BaseCompressor.get_value_from_registry(format)
        state = {"weight": torch.randn(shape).to(scale.dtype), "weight_scale": scale, **(extra or {})}
        if zero is not None:
            state["weight_zero_point"] = zero
        stored = compressor.compress(state, scheme)
        own = compressor.decompress({**stored}, scheme)["weight"]
        wide = {key: it.float() if "scale" in key else it for key, it in stored.items()}
        plain = compressor.decompress(wide, scheme)["weight"]
        if format == "nvfp4-pack-quantized":
            # That one gives bf16, always.
            packed, second = stored["weight_packed"], stored["weight_global_scale"]
            codes = unpack_fp4_from_uint8(packed, *shape).float()
            plain = dequantize(codes, wide["weight_scale"], args=args, global_scale=second, dtype=torch.float32)
        return {f"{name}.{key}": it for key, it in stored.items()}, plain, own, args

    def model(name, format, layers, groups, stays=(), ulp=0, **settings):
        """`groups` has the targets of the layers, each with the number of one whose settings it has."""
        tensors, values, owns, args = {}, {}, {}, []
        for key, *rest in layers:
            extra = rest.pop() if callable(rest[-1]) else dict
            stored, plain, own, of = layer(key, *rest[:-1], **rest[-1])
            tensors.update(stored)
            tensors.update({f"{key}.{part}": it for part, it in extra().items()})
            values[f"{key}.weight"], owns[f"{key}.weight"] = plain, own
            args.append((json.loads(of.model_dump_json()), rest[0]))
        groups = {f"group_{at}": {"targets": targets, "weights": args[number][0], "format": args[number][1]}
                  for at, (targets, number) in enumerate(groups)}
        config = {"quant_method": "compressed-tensors", "format": format, "version": "0.20.1", "config_groups": groups,
                  "ignore": ["lm_head"], **settings}
        stays = [key for key in tensors if key.rsplit(".", 1)[-1] in stays]
        case(name, tensors, values, {"quantization_config": config, "dtype": "bfloat16"}, own=owns, stays=stays, ulp=ulp)

    scale = lambda *shape: (torch.rand(shape) * 0.1 + 0.05).bfloat16()
    zeros = lambda low, high, *shape: torch.randint(low, high, shape, dtype=torch.int8)
    pack, ints, floats = "pack-quantized", "int-quantized", "float-quantized"
    four = lambda size, **more: dict(num_bits=4, type="int", strategy="group", group_size=size, **more)
    names = [f"model.layers.0.self_attn.{it}_proj" for it in "qkvo"]
    of = lambda *kinds: [f"re:.*{it}_proj$" for it in kinds]
    # Rows of 32 columns are one group of 32, and of 64, of 128, and of all.
    model("31-ct-mixed", "mixed-precision", [
        (names[0], pack, (8, 32), scale(8, 1), four(32)),
        (names[1], pack, (12, 32), scale(12, 2), zeros(-8, 8, 12, 2), four(16, symmetric=False)),
        (names[2], floats, (8, 32), scale(8, 1), dict(num_bits=8, type="float", strategy="channel")),
        (names[3], pack, (5, 7), scale(5, 1), dict(num_bits=3, type="int", strategy="channel")),
    ], [(of("q"), 0), (of("k"), 1), (["re:.*[v]_proj"], 2), ([names[3]], 3), (["Linear"], 0)])
    # 7 columns of 3 bits have the words of 4 bits.
    model("31-ct-mixed-bits", pack, [
        (names[0], pack, (5, 7), scale(5, 1), dict(num_bits=4, type="int", strategy="channel")),
        (names[1], pack, (5, 7), scale(5, 1), dict(num_bits=3, type="int", strategy="channel")),
        (names[2], pack, (4, 64), scale(4, 2), four(32)),
        (names[3], pack, (4, 64), scale(4, 1), four(64)),
    ], [(of("q"), 0), ([r"re:^model\.layers\.\d+\.self_attn\.k_proj"], 1), (of("v"), 2), (of("o"), 3)])
    model("31-ct-blocks-of-groups", floats, [
        (names[0], floats, (40, 48), scale(3, 3), dict(num_bits=8, type="float", strategy="block", block_structure=[16, 16])),
        (names[1], floats, (40, 48), scale(2, 2), dict(num_bits=8, type="float", strategy="block", block_structure=[24, 32])),
    ], [(of("q"), 0), (of("k"), 1)])
    model("31-ct-actorder-weight", pack, [
        (names[0], pack, (12, 64), scale(12, 2), zeros(-8, 8, 12, 2), four(32, symmetric=False, actorder="weight")),
    ], [(["Linear"], 0)])
    caches = lambda: {"k_scale": torch.rand(1).bfloat16(), "v_scale": torch.rand(1).bfloat16(),
                      "input_scale": torch.rand(1), "output_scale": torch.rand(1)}
    cache = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}
    model("31-ct-kv-cache", floats, [
        (names[1], floats, (6, 40), scale(1), dict(num_bits=8, type="float", strategy="tensor"), caches),
        (names[2], floats, (6, 40), scale(6, 1), dict(num_bits=8, type="float", strategy="channel"), caches),
    ], [(of("k"), 0), (of("v"), 1)], stays=["k_scale", "v_scale", "input_scale", "output_scale"], kv_cache_scheme=cache)
    model("31-ct-int8", ints, [
        (names[0], ints, (6, 33), scale(1), dict(num_bits=8, type="int", strategy="tensor")),
        (names[1], ints, (6, 64), scale(6, 2), dict(num_bits=8, type="int", strategy="group", group_size=32)),
        (names[2], ints, (6, 33), scale(6, 1), zeros(-128, 127, 6, 1), dict(num_bits=8, type="int", strategy="channel", symmetric=False)),
        (names[3], ints, (40, 33), scale(2, 2), dict(num_bits=8, type="int", strategy="block", block_structure=[32, 32])),
    ], [(of(it), at) for at, it in enumerate("qkvo")])
    model("31-ct-experts", floats, [
        ("model.layers.0.mlp.experts.down_proj", floats, (3, 6, 40), scale(3, 6, 1), dict(num_bits=8, type="float", strategy="channel")),
    ], [(["Linear"], 0)])
    divisor = lambda value: {"weight_global_scale": torch.tensor([value])}
    nvfp4 = dict(num_bits=4, type="float", strategy="tensor_group", group_size=16)
    eighths = lambda *shape: (torch.randint(1, 100, shape) / 8).float()
    model("31-ct-nvfp4", "nvfp4-pack-quantized", [
        (names[0], "nvfp4-pack-quantized", (5, 48), eighths(5, 3), None, divisor(417.25), nvfp4, lambda: {"input_global_scale": torch.tensor([700.5])}),
        (names[1], "nvfp4-pack-quantized", (8, 16), eighths(8, 1), None, divisor(0.75), nvfp4),
    ], [(["Linear"], 0)], stays=["input_global_scale"], ulp=1)


def more_of_modelopt():
    from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP8QTensor, NVFP4QTensor

    def one(name, algorithm, weight, parts, plain, own=None, stays=(), key=f"{NAME}.weight", ulp=0, **settings):
        stem = f"{NAME}." if key.endswith(".weight") else f"{key}_"
        tensors = {key: weight, **{f"{stem}{part}": it for part, it in parts.items()}}
        quantization = {"quant_algo": algorithm, "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"], **settings}
        producer = {"name": "modelopt", "version": "0.47.0"}
        case(name, tensors, {key: plain}, {"dtype": "bfloat16"}, ulp=ulp, own={key: own} if own is not None else None,
             files={"hf_quant_config.json": {"producer": producer, "quantization": quantization}},
             stays=[f"{stem}{part}" for part in stays])

    fp8 = lambda *shape: torch.randn(shape).to(torch.float8_e4m3fn)
    scale = lambda *shape: torch.rand(shape) * 0.01 + 0.001
    codes, rows = fp8(6, 40), scale(6)
    one("32-modelopt-fp8-channel", "FP8_PER_CHANNEL_PER_TOKEN", codes, {"weight_scale": rows}, codes.float() * rows[:, None])
    blocks = scale(3, 2)
    stored = FP8QTensor((70, 40), torch.bfloat16, fp8(70, 40))
    dequantize = lambda kind, blocks=blocks: stored.dequantize(kind, scale=blocks, block_sizes={-1: 32, -2: 32})
    one("32-modelopt-fp8-blocks", "FP8_PB_WO", stored._quantized_data, {"weight_scale": blocks[:, None, :, None]},
        dequantize(torch.float32), group_size=32)
    codes, rows = fp8(2, 6, 40), scale(2, 6)
    one("32-modelopt-fp8-experts", "FP8_PER_CHANNEL_PER_TOKEN", codes, {"weight_scale": rows}, codes.float() * rows[:, :, None],
        key="model.layers.0.mlp.experts.down_proj")
    columns = scale(2, 40)
    one("32-modelopt-fp8-experts-columns", "FP8_PER_CHANNEL_PER_TOKEN", codes, {"weight_scale": columns},
        codes.float() * columns[:, None], key="model.layers.0.mlp.experts.gate_up_proj")
    stored, rows = MXFP8QTensor.quantize(torch.randn(6, 64).bfloat16())
    plain = stored._quantized_data.float() * torch.exp2(rows.float() - 127).repeat_interleave(32, 1)
    one("32-modelopt-mxfp8", "MXFP8", stored._quantized_data, {"weight_scale": rows}, plain,
        stored.dequantize(torch.bfloat16, scale=rows))
    codes, rows = torch.randint(-128, 128, (6, 40)).to(torch.int8), scale(6)
    one("32-modelopt-int8", "W8A8_SQ_PER_CHANNEL", codes,
        {"weight_scale": rows, "input_scale": scale()}, codes.float() * rows[:, None], stays=["input_scale"])

    def nvfp4(name, shape, second, key=f"{NAME}.weight", parts=(), algorithm="NVFP4"):
        weight = torch.randn(shape).bfloat16()
        broadcast = second.view(-1, 1, 1) if second.dim() else second
        first = NVFP4QTensor.get_weights_scaling_factor(weight, 16, broadcast)[0]
        stored = NVFP4QTensor.quantize(weight, 16, first, broadcast)[0]
        values = {"scale": first, "double_scale": broadcast, "block_sizes": {-1: 16}}
        one(name, algorithm, stored._quantized_data, {"weight_scale": first, "weight_scale_2": second, **dict(parts)},
            stored.dequantize(torch.float32, **values), stored.dequantize(torch.bfloat16, **values), key=key, ulp=1,
            stays=[part for part, _ in parts], group_size=16)

    experts = "model.layers.0.mlp.experts.gate_up_proj"
    nvfp4("32-modelopt-nvfp4-experts", (3, 6, 32), scale(3), experts)
    nvfp4("32-modelopt-nvfp4-experts-one", (3, 6, 32), scale(), experts)
    nvfp4("32-modelopt-nvfp4-fused", (24, 48), scale(), parts=[("input_scale", scale()), ("k_scale", scale()), ("v_scale", scale())])
    nvfp4("32-modelopt-w4a8", (6, 48), scale(), algorithm="W4A8_NVFP4_FP8")


def more_of_mlx():
    import mlx.core as mx

    def tensor(it):
        return torch.from_numpy(np.array(it.astype(mx.float32))).bfloat16() if it.dtype == mx.bfloat16 else torch.from_numpy(np.array(it))

    for mode, group, bits in [("nvfp4", 16, 4), ("mxfp8", 32, 8), ("mxfp4", 32, 4)]:
        weight = mx.array(np.random.default_rng(bits).normal(size=(6, 64)).astype("f4")).astype(mx.bfloat16)
        codes, scales = mx.quantize(weight, group_size=group, bits=bits, mode=mode)
        dequantize = lambda kind: tensor(mx.dequantize(codes, scales, group_size=group, bits=bits, mode=mode, dtype=kind))
        tensors = {f"{NAME}.weight": tensor(codes), f"{NAME}.scales": tensor(scales)}
        config = {"quantization": {"group_size": group, "bits": bits, "mode": mode}}
        case(f"33-mlx-{mode}", tensors, {f"{NAME}.weight": dequantize(mx.float32)}, config, {"format": "mlx"},
             own={f"{NAME}.weight": dequantize(mx.bfloat16)})
    # A layer with settings of its own has none of the others: it is affine.
    other = "model.layers.0.mlp.up_proj"
    codes, scales = mx.quantize(weight, mode="mxfp4")
    tensors = {f"{NAME}.weight": tensor(codes), f"{NAME}.scales": tensor(scales)}
    values = {f"{NAME}.weight": tensor(mx.dequantize(codes, scales, mode="mxfp4", dtype=mx.float32))}
    parts = mx.quantize(weight, group_size=32, bits=8)
    tensors.update({f"{other}.{key}": tensor(it) for key, it in zip(["weight", "scales", "biases"], parts)})
    wide = lambda it: tensor(it).double().repeat_interleave(32, -1)
    integers = tensor(parts[0]).contiguous().view(torch.uint8).double()
    values[f"{other}.weight"] = (integers * wide(parts[1]) + wide(parts[2])).float()
    assert (values[f"{other}.weight"] - tensor(mx.dequantize(*parts, group_size=32, bits=8)).float()).abs().max() < 0.05
    config = {"quantization": {"mode": "mxfp4", "group_size": 32, "bits": 4, other: {"group_size": 32, "bits": 8}}}
    case("33-mlx-mixed", tensors, values, config, {"format": "mlx"})


def more_of_bitsandbytes():
    from bitsandbytes.functional import dequantize_4bit, int8_vectorwise_dequant, int8_vectorwise_quant, quantize_4bit

    def one(name, kind, shape, block, nested, dtype=torch.bfloat16):
        codes, state = quantize_4bit(torch.randn(shape).to(dtype), blocksize=block, quant_type=kind, compress_statistics=nested)
        parts = state.as_dict(packed=True)
        tensors = {f"{NAME}.weight": codes, **{f"{NAME}.weight.{key}": it for key, it in parts.items()}}
        own = dequantize_4bit(codes, state)
        state.dtype = torch.float32
        # One row: the library's own code for CPUs is wrong where a block is longer than a row.
        count = torch.Size(shape).numel()
        state.shape = torch.Size([1, count])
        plain = dequantize_4bit(codes, state).reshape(shape)
        own = own if block <= shape[-1] and shape[-1] % block == 0 else plain.to(dtype)
        config = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
        case(name, tensors, {f"{NAME}.weight": plain}, config, own={f"{NAME}.weight": own})

    one("34-bnb-nf4-odd", "nf4", (5, 33), 64, False)
    one("34-bnb-nf4-odd-nested", "nf4", (37, 33), 64, True, torch.float16)
    one("34-bnb-fp4-256", "fp4", (8, 100), 256, True)
    one("34-bnb-nf4-4096", "nf4", (40, 128), 4096, False)
    one("34-bnb-nf4-short", "nf4", (3, 8), 64, False, torch.float32)
    one("34-bnb-nf4-experts", "nf4", (2, 6, 64), 64, True)
    weight = torch.randn(6, 40).half()
    weight[:, 3] = 9.5
    codes, scale, _ = int8_vectorwise_quant(weight)
    tensors = {f"{NAME}.weight": codes, f"{NAME}.SCB": scale, f"{NAME}.weight_format": torch.tensor(0, dtype=torch.uint8)}
    case("34-bnb-int8-outliers", tensors, {f"{NAME}.weight": int8_vectorwise_dequant(codes, scale)},
         {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}, "torch_dtype": "float16"}, ulp=2)


def more_of_hqq():
    from hqq.core.quantize import Quantizer
    from hqq.core.utils import encode_safetensor_type

    def one(name, shape, bits, group, axis, dtype=torch.float16, **more):
        codes, meta = Quantizer.quantize(
            torch.randn(shape), nbits=bits, group_size=group, axis=axis, device="cpu", compute_dtype=dtype, **more)
        meta["compute_dtype"] = dtype
        narrow = {**meta, **{key: meta[key].to(dtype) for key in ["scale", "zero"]}}
        own = Quantizer.dequantize(codes, {**narrow})
        wide = {**narrow, **{key: narrow[key].float() for key in ["scale", "zero"]}, "compute_dtype": torch.float32}
        plain = Quantizer.dequantize(codes, wide)
        parts = {key: encode_safetensor_type(value) for key, value in narrow.items() if value is not None}
        tensors = {f"{NAME}.{key}": value for key, value in {"W_q": codes, **parts}.items() if value is not None}
        case(name, tensors, {f"{NAME}.weight": plain}, ulp=1, own={f"{NAME}.weight": own})

    one("35-hqq-odd", (10, 21), 4, 7, 1)
    one("35-hqq-odd-2-bits", (4, 15), 2, 5, 1, torch.bfloat16)
    one("35-hqq-odd-3-bits", (7, 24), 3, 8, 1)
    one("35-hqq-odd-1-bit", (8, 9), 1, 3, 1)
    one("35-hqq-axis-0-odd", (12, 9), 4, 6, 0)
    one("35-hqq-axis-0-8-bits", (6, 10), 8, 6, 0)
    one("35-hqq-axis-0-2-bits", (16, 9), 2, 16, 0)
    one("35-hqq-axis-0-no-groups", (10, 16), 4, None, 0)
    one("35-hqq-4-bits-channels", (16, 24), 4, None, 1, round_zero=True)


def more_of_comfy():
    from comfy_kitchen.backends.eager import quantization as eager

    prefix = "model.diffusion_model.blocks.0"
    fp8 = lambda kind, *shape: torch.randn(shape).to(kind)
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2

    def mark(**json_):
        return torch.tensor(list(json.dumps(json_).encode()), dtype=torch.uint8)

    values, owns, tensors = {}, {}, {"model.diffusion_model.scaled_fp8": torch.empty(2, dtype=e5m2)}
    for layer, shape in [("attn.to_q", (6, 10)), ("mlp.fc1", (7, 3))]:
        codes, scale = fp8(e5m2, *shape), torch.rand(()) * 0.01
        tensors.update({f"{prefix}.{layer}.weight": codes, f"{prefix}.{layer}.scale_weight": scale,
                        f"{prefix}.{layer}.bias": torch.randn(shape[0]).half()})
        values[f"{prefix}.{layer}.weight"] = eager.dequantize_per_tensor_fp8(codes, scale, torch.float32)
        owns[f"{prefix}.{layer}.weight"] = eager.dequantize_per_tensor_fp8(codes, scale)
    case("36-comfy-scaled-e5m2", tensors, values, own=owns, stays=[it for it in tensors if it.endswith("bias")])
    values, owns, tensors = {}, {}, {}
    codes, scale = fp8(e5m2, 6, 10), torch.rand(())
    tensors.update({f"{prefix}.a.weight": codes, f"{prefix}.a.weight_scale": scale, f"{prefix}.a.comfy_quant": mark(format="float8_e5m2")})
    values[f"{prefix}.a.weight"] = eager.dequantize_per_tensor_fp8(codes, scale, torch.float32)
    owns[f"{prefix}.a.weight"] = eager.dequantize_per_tensor_fp8(codes, scale)
    for layer, quantize in [("b", eager.quantize_int8_tensorwise), ("c", eager.quantize_int8_rowwise)]:
        codes, scale = quantize(torch.randn(6, 10))
        tensors.update({f"{prefix}.{layer}.weight": codes, f"{prefix}.{layer}.weight_scale": scale,
                        f"{prefix}.{layer}.comfy_quant": mark(format="int8_tensorwise", per_row=layer == "c")})
        values[f"{prefix}.{layer}.weight"] = eager.dequantize_int8_simple(codes, scale).float()
    codes, scale = eager.quantize_nvfp4(torch.randn(130, 80), torch.tensor(0.001953125))
    tensors.update({f"{prefix}.d.weight": codes, f"{prefix}.d.weight_scale": scale, f"{prefix}.d.weight_scale_2": torch.tensor(0.001953125),
                    f"{prefix}.d.comfy_quant": mark(format="nvfp4"), f"{prefix}.d.input_scale": torch.rand(())})
    values[f"{prefix}.d.weight"] = eager.dequantize_nvfp4(codes, torch.tensor(0.001953125), scale, torch.float32)
    owns[f"{prefix}.d.weight"] = eager.dequantize_nvfp4(codes, torch.tensor(0.001953125), scale)
    case("36-comfy-mixed", tensors, values, own=owns, stays=[f"{prefix}.d.input_scale"], ulp=1)


def gpt_oss():
    from transformers.integrations.mxfp4 import _convert_moe_packed_tensors as convert

    tensors, values, owns = {}, {}, {}
    for name, shape in [("gate_up_proj", (3, 10, 2, 16)), ("down_proj", (3, 5, 3, 16))]:
        key = f"model.layers.0.mlp.experts.{name}"
        blocks = torch.randint(0, 256, shape, dtype=torch.uint8)
        scales = torch.randint(100, 130, shape[:-1], dtype=torch.uint8)
        tensors.update({f"{key}_blocks": blocks, f"{key}_scales": scales, f"{key}_bias": torch.randn(3, shape[1]).bfloat16()})
        values[key] = convert(blocks, scales, dtype=torch.float32)
        owns[key] = convert(blocks, scales)
    case("37-gpt-oss-three", tensors, values, {"quantization_config": {"quant_method": "mxfp4"}, "dtype": "bfloat16"},
         own=owns, stays=[it for it in tensors if it.endswith("bias")])


def deepseek():
    """The product of `weight_dequant`, in torch: that kernel needs a GPU."""
    def wide(scale, shape, block):
        for at, (len_, size) in enumerate(zip(shape[-2:], block), -2):
            scale = scale.repeat_interleave(size, at).narrow(at, 0, len_)
        return scale

    def one(name, layers, block, **settings):
        tensors, values = {}, {}
        for key, shape in layers.items():
            codes = torch.randn(shape).to(torch.float8_e4m3fn)
            grid = [*shape[:-2], *(-(-len_ // size) for len_, size in zip(shape[-2:], block))]
            scale = torch.rand(grid) * 0.01
            tensors[key], tensors[f"{key}_scale_inv"] = codes, scale
            values[key] = codes.float() * wide(scale, shape, block)
        config = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": list(block), **settings}
        case(name, tensors, values, {"quantization_config": config, "dtype": "bfloat16"},
             own={key: it.bfloat16() for key, it in values.items()})

    load("gptqmodel", "utils.planar_packing")
    table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    known = {"_DEEPSEEK_V4_FP4_BLOCK_SIZE": 32, "_DEEPSEEK_V4_FP4_TABLE": (*table, *(-it for it in table)), "Optional": typing.Optional}
    fp4 = functions("gptqmodel", "utils/model_dequant.py", known)["dequantize_deepseek_v4_fp4_expert"]
    codes = torch.randint(-128, 128, (6, 48)).to(torch.int8)
    scale = torch.exp2(torch.randint(-9, 3, (6, 3)).float()).to(torch.float8_e8m0fnu)
    key = "model.layers.0.ffn.experts.1.w1"
    case("38-deepseek-fp4", {f"{key}.weight": codes, f"{key}.scale": scale},
         {f"{key}.weight": fp4(codes, scale, target_dtype=torch.float32)},
         {"quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "dtype": "bfloat16"},
         own={f"{key}.weight": fp4(codes, scale)})
    experts = "model.layers.0.mlp.experts"
    one("38-deepseek-edges", {f"{NAME}.weight": (70, 33), "model.layers.0.mlp.up_proj.weight": (31, 100)}, (32, 48))
    one("38-deepseek-experts", {f"{experts}.gate_up_proj": (3, 40, 36), f"{experts}.down_proj": (3, 20, 17)}, (32, 16))


MAKERS = [compressed_tensors, hqq, bitsandbytes, mlx, modelopt, comfy, convolution, gptq, awq, torchao, quanto, wider,
          more_of_modelopt, more_of_mlx, more_of_bitsandbytes, more_of_hqq, more_of_comfy, gpt_oss, deepseek]
for make in [it for it in MAKERS if it.__name__ in sys.argv[2:] or not sys.argv[2:]]:
    try:
        make()
    except ImportError as error:
        print(f"{make.__name__} is left out: {error}", file=sys.stderr)
