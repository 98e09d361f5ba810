#!/usr/bin/env python3
"""Trains the classifier of two-moons.safetensors and saves it with the official library.

Run with `pip install safetensors==0.8.0 numpy==2.4.6 ml_dtypes==0.6.0`; writes beside itself.
"""
import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

rng = np.random.default_rng(7)
n = 2000
angle = rng.uniform(0, np.pi, n)
label = rng.integers(0, 2, n)
x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
points = np.stack([x, y], 1) + rng.normal(0, 0.12, (n, 2))

sizes = [2, 48, 48, 1]
weights = [rng.normal(0, (2 / a) ** 0.5, (a, b)) for a, b in zip(sizes, sizes[1:])]
biases = [np.zeros(b) for b in sizes[1:]]
for step in range(3000):
    layers = [points]
    for k, (w, b) in enumerate(zip(weights, biases)):
        z = layers[-1] @ w + b
        layers.append(np.maximum(z, 0) if k < 2 else 1 / (1 + np.exp(-z)))
    delta = (layers[-1] - label[:, None]) / n
    for k in (2, 1, 0):
        grad = layers[k].T @ delta
        bias = delta.sum(0)
        if k:
            delta = (delta @ weights[k].T) * (layers[k] > 0)
        weights[k] -= 0.5 * grad
        biases[k] -= 0.5 * bias
accuracy = ((layers[-1][:, 0] > 0.5) == label).mean()

tensors = {}
for k, (w, b) in enumerate(zip(weights, biases)):
    dtype = [np.float32, ml_dtypes.bfloat16, np.float16][k]
    tensors[f"layers.{k}.weight"] = np.ascontiguousarray(w.T).astype(dtype)
    tensors[f"layers.{k}.bias"] = b.astype(np.float32)
tensors["steps"] = np.array(3000, np.int64)
tensors["active"] = (np.abs(weights[1]).max(0) > 0.1)
out = pathlib.Path(__file__).with_name("two-moons.safetensors")
save_file(tensors, out, metadata={"format": "np", "task": "two moons", "accuracy": f"{accuracy:.3f}"})
print(f"{out.name}: accuracy {accuracy:.3f}")
