"""Writes stats.safetensors, a small model with odd tensors, and stats.json, what NumPy says of its values.

Run with NumPy 2: python stats.py"""
import json
import struct
from pathlib import Path

import numpy as np

random = np.random.default_rng(1)
halves = lambda values: (values.astype('<f4').view('<u4') >> 16).astype('<u2')
tensors = {}
for layer in range(5):
    deviation = 0.6 if layer == 3 else 0.02
    tensors[f'layers.{layer}.w'] = 'BF16', halves(random.normal(0, deviation, (16, 12)))
odd = random.normal(0, 1, (3, 4)).astype('<f4')
odd[0, 3], odd[1, 0] = np.nan, -np.inf
tensors['odd'] = 'F32', odd
dead = np.arange(1, 21, dtype='<i4').reshape(4, 5)
dead[1], dead[:, 2] = 0, 0
tensors['dead'] = 'I32', dead
tensors['zero'] = 'F16', np.zeros(7, '<f2')
tensors['ones'] = 'F32', np.ones(3, '<f4')
tensors['empty'] = 'F32', np.zeros((0, 3), '<f4')
tensors['step'] = 'I64', np.array(2**53 + 1, '<i8')
tensors['far'] = 'F64', 1e6 + random.normal(0, 1, 3000)

header, body, truth = {}, b'', {}
for name, (dtype, array) in tensors.items():
    data = array.tobytes()
    header[name] = {'dtype': dtype, 'shape': array.shape, 'data_offsets': [len(body), len(body) + len(data)]}
    body += data
    if dtype == 'BF16':
        array = (array.astype('<u4') << 16).view('<f4')
    finite = array[np.isfinite(array)]
    some = finite.size > 0
    truth[name] = {
        'count': array.size,
        'min': finite.min().item() if some else None,
        'max': finite.max().item() if some else None,
        'mean': finite.mean(dtype='f8').item() if some else None,
        'std': finite.std(dtype='f8').item() if some else None,
        'zeros': int((array == 0).sum()),
        'nan': int(np.isnan(array).sum()),
        'inf': int(np.isinf(array).sum()),
    }
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
folder = Path(__file__).parent
(folder / 'stats.safetensors').write_bytes(struct.pack('<Q', len(text)) + text + body)
(folder / 'stats.json').write_text(json.dumps(truth, indent=1) + '\n')
