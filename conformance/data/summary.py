"""Writes summary-a.safetensors and summary-b.safetensors, two versions of a small model, and summary.json, what NumPy
says of the distances of their values.

Run with NumPy 2: python summary.py"""
import json
import struct
from pathlib import Path

import numpy as np

random = np.random.default_rng(2)
halves = lambda values: (values.astype('<f4').view('<u4') >> 16).astype('<u2')
normal = lambda *shape: random.normal(0, 1, shape).astype('<f4')
weights = [normal(40, 70) for _ in range(3)]
odd = normal(5, 7)
odd_b = odd.copy()
odd[0, :2], odd_b[0, :3] = (np.nan, np.inf), (np.nan, 1, -np.inf)
signal = (normal(9) + 1j * normal(9)).astype('<c8')
a = {f'layers.{at}.w': ('BF16', halves(w)) for at, w in enumerate(weights)}
b = {f'layers.{at}.w': ('BF16', halves(w + at * 0.01 * normal(40, 70))) for at, w in enumerate(weights)}
a |= {
    'cast.w': ('F32', weights[0]),
    'odd': ('F32', odd),
    'signal': ('C64', signal),
    'zero': ('F16', np.zeros(7, '<f2')),
    'step': ('I64', np.array([3, -4], '<i8')),
    'far': ('F64', 1e6 + random.normal(0, 1, 3000)),
    'wide': ('F32', normal(3)),
    'old': ('F32', normal(2)),
}
b |= {
    'cast.w': ('F16', weights[0].astype('<f2')),
    'odd': ('F32', odd_b),
    'signal': ('C64', signal * np.complex64(1 + 0.5j)),
    'zero': ('F16', np.ones(7, '<f2')),
    'step': ('I32', np.array([3, -5], '<i4')),
    'far': ('F64', a['far'][1] + 1e-3),
    'wide': ('F32', normal(4)),
    'new': ('F32', normal(2)),
}

folder = Path(__file__).parent
for name, tensors in ('a', a), ('b', b):
    header, body = {}, b''
    for key, (dtype, array) in tensors.items():
        data = array.tobytes()
        header[key] = {'dtype': dtype, 'shape': array.shape, 'data_offsets': [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    (folder / f'summary-{name}.safetensors').write_bytes(struct.pack('<Q', len(text)) + text + body)


def values(tensor):
    dtype, array = tensor
    wide = (array.astype('<u4') << 16).view('<f4') if dtype == 'BF16' else array
    return wide.astype('c16' if dtype == 'C64' else 'f8').ravel()


truth = {}
for name in a.keys() & b.keys():
    x, y = values(a[name]), values(b[name])
    if x.shape != y.shape:
        continue
    finite = np.isfinite(x) & np.isfinite(y)
    different = (x != y) & ~(np.isnan(x) & np.isnan(y))
    u, v = x[finite], y[finite]
    norm, other, apart = (np.linalg.norm(it).item() for it in (u, v, v - u))
    truth[name] = {
        'count': x.size,
        'different': int(different.sum()),
        'not_finite': int((different & ~finite).sum()),
        'relative': apart / norm if norm else None,
        'cosine': np.vdot(u, v).real.item() / (norm * other) if norm * other else None,
        'max_abs': np.abs(v - u).max().item(),
    }
(folder / 'summary.json').write_text(json.dumps(truth, indent=1, sort_keys=True) + '\n')
