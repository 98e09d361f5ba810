"""Tests that need torch: `cargo xtask test-torch` runs them. They are skipped without it."""

import pytest

pytest.importorskip("torch")
