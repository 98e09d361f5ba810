"""Files of the corpus, valid and hostile: an error of ours, or values, and never anything else."""

from pathlib import Path

import pytest

import zt

CORPUS = Path(__file__).parents[2] / "conformance" / "corpus"
FILES = [
    path for path in sorted(CORPUS.rglob("*")) if path.is_file() and path.stat().st_size < 4 << 20
]


@pytest.mark.skipif(not FILES, reason="the corpus is not part of the package")
@pytest.mark.parametrize("part", range(8))
def test_every_file_of_the_corpus_is_read_or_refused(part):
    opened = 0
    for path in FILES[part::8]:
        for source in (path, path.read_bytes()):
            try:
                file = zt.open(source)
            except zt.ZtError as error:
                assert error.code
                continue
            opened += 1
            assert file.kind and repr(file) and file._repr_html_()
            zt.verify(file)
            for name in list(file)[:50]:
                try:
                    tensor = file[name]
                    assert repr(tensor) and isinstance(tensor.attributes, dict)
                    if tensor.nbytes < 16 << 20:
                        tensor.dense()
                        tensor[(0,) * tensor.ndim]
                except (zt.ZtError, IndexError, ValueError):
                    pass
    assert opened
