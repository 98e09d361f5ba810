"""Writes a model, an adapter as peft saves it, two more models, and what torch says of them:

    merged.safetensors    base with the adapter, at the scale of its configuration
    scaled.safetensors    the same at the scale 0.3
    mean.safetensors      the mean of base, second and third
    weighted.safetensors  the same with the weights 1, 2 and 0.5

Run with torch 2.15 (any version for the CPU): python arithmetic.py"""
import json
import math
import struct
from pathlib import Path

import torch

folder = Path(__file__).parent
torch.manual_seed(36)
NAMES = {torch.float64: 'F64', torch.float32: 'F32', torch.float16: 'F16', torch.bfloat16: 'BF16', torch.int64: 'I64'}


def save(path, tensors):
    header, body = {}, b''
    for name, tensor in tensors.items():
        data = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.dim() else tensor.numpy().tobytes()
        header[name] = {'dtype': NAMES[tensor.dtype], 'shape': list(tensor.shape), 'data_offsets': [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    (folder / path).write_bytes(struct.pack('<Q', len(text)) + text + body)


def model():
    return {
        'embed.weight': torch.randn(10, 8),
        'layers.0.q.weight': torch.randn(24, 16),
        'layers.0.q.bias': torch.randn(24),
        'layers.0.k.weight': torch.randn(8, 16).bfloat16(),
        'layers.1.q.weight': torch.randn(24, 16).half(),
        'conv.weight': torch.randn(6, 4, 3, 3),
        'head.weight': torch.randn(5, 16).double(),
        'step': torch.tensor(7),
    }


RANK, ALPHA = 3, 5
base = model()
save('base.safetensors', base)

adapter, products = {}, {}
for name in ['layers.0.q', 'layers.0.k', 'layers.1.q', 'conv', 'head']:
    rows, *rest = base[name + '.weight'].shape
    a, b = torch.randn(RANK, *rest), torch.randn(rows, RANK, *[1] * (len(rest) - 1))
    prefix = 'base_model.model.' + name
    adapter[prefix + '.lora_A.weight'], adapter[prefix + '.lora_B.weight'] = a, b
    product = b.double().flatten(1) @ a.double().flatten(1)
    products[name + '.weight'] = product.reshape(rows, *rest)
a, b = torch.randn(RANK, 10).bfloat16(), torch.randn(8, RANK).bfloat16()
adapter['base_model.model.embed.lora_embedding_A'] = a
adapter['base_model.model.embed.lora_embedding_B'] = b
products['embed.weight'] = (b.double() @ a.double()).T
save('adapter/adapter_model.safetensors', adapter)
config = {'peft_type': 'LORA', 'r': RANK, 'lora_alpha': ALPHA, 'use_rslora': True, 'fan_in_fan_out': False, 'alpha_pattern': {}}
(folder / 'adapter/adapter_config.json').write_text(json.dumps(config, indent=2) + '\n')


def merged(scale):
    merge = lambda w, product: (w.double() + scale * product).to(w.dtype)
    return {name: merge(w, products[name]) if name in products else w for name, w in base.items()}


save('merged.safetensors', merged(ALPHA / math.sqrt(RANK)))
save('scaled.safetensors', merged(0.3))

second, third = model(), model()
save('second.safetensors', second)
save('third.safetensors', third)


def mean(weights):
    def of(name):
        a, b, c = base[name], second[name], third[name]
        if not a.is_floating_point():
            return a
        total = weights[0] * a.double() + weights[1] * b.double() + weights[2] * c.double()
        return (total / sum(weights)).to(a.dtype)

    return {name: of(name) for name in base}


save('mean.safetensors', mean([1, 1, 1]))
save('weighted.safetensors', mean([1, 2, 0.5]))
