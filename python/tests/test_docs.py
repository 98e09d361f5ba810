"""What the documentation shows: docstrings, and the README as it is copied and pasted."""

import contextlib
import doctest
import importlib
import inspect
import operator
import re
from pathlib import Path

import pytest

import zt

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", ["zt", "zt.delta", "zt.numpy"])
def test_examples_of_modules_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted and not outcome.failed


@pytest.mark.parametrize("name", ["Writer", "edit", "open", "stats", "verify"])
def test_examples_of_the_native_module_run(name):
    parsed = doctest.DocTestParser().get_doctest(getattr(zt, name).__doc__, {}, name, None, 0)
    outcome = doctest.DocTestRunner().run(parsed)
    assert outcome.attempted and not outcome.failed


def test_every_name_is_documented():
    for name in zt.__all__:
        documented = getattr(zt, name)
        assert documented.__doc__, name
        if isinstance(documented, type) and not issubclass(documented, Exception):
            for member in vars(documented):
                if not member.startswith("_"):
                    assert getattr(documented, member).__doc__, f"{name}.{member}"


def test_help_shows_every_default():
    for name in zt.__all__ + ["safetensors.safe_open"]:
        documented = operator.attrgetter(name)(zt)
        members = vars(documented).values() if isinstance(documented, type) else []
        for member in [documented, *members]:
            if isinstance(documented, type) and issubclass(documented, (Exception, dict)):
                continue
            with contextlib.suppress(TypeError, ValueError):  # It is not called, or has no signature.
                parameters = inspect.signature(member).parameters.values()
                assert not any(it.default is ... for it in parameters), (name, member)


def test_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    cells = re.findall(r"^\| `[^|]*` \| `([^|]*)` \|", text, re.MULTILINE)
    assert len(blocks) >= 5 and len(cells) >= 12
    names = {}
    for code in blocks + cells:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102
