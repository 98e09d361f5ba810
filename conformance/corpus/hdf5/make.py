#!/usr/bin/env python3
"""Writes the files of this folder and their truths: `make.py`, with h5py 3.12.1 (HDF5 1.14.4) and NumPy 2.4.6 installed.

Truths are computed from the arrays that are handed to h5py, with NumPy alone; no reader of this project is asked.
What h5py has no name for is set through the library that it comes with.
"""
import ctypes, hashlib, itertools, json, pathlib, warnings, zipfile

import h5py
import numpy as np

warnings.filterwarnings("ignore")
FOLDER = pathlib.Path(__file__).resolve().parent


def library():
    """The HDF5 library within h5py."""
    maps = pathlib.Path("/proc/self/maps").read_text().split("\n")
    return ctypes.CDLL(next(line.split()[-1] for line in maps if "libhdf5-" in line))


HDF5 = library()
NARROW = {np.dtype("c8"): ("f32", "complex64"), np.dtype("c16"): ("f64", "complex128")}


def truth(values):
    values = np.asarray(values)
    little = values.astype(values.dtype.newbyteorder("<")) if values.dtype.kind != "b" else values
    dtype, logical = NARROW.get(little.dtype, (None, None))
    dtype = dtype or ("bool" if values.dtype.kind == "b" else f"{values.dtype.kind}{values.dtype.itemsize * 8}")
    said = {"shape": list(values.shape), "dtype": dtype, "sha256": hashlib.sha256(little.tobytes()).hexdigest()}
    return said | ({"type": logical} if logical else {})


class Case:
    """A file, and what is to be said of it."""

    def __init__(self, name, about, libver="latest", **options):
        self.name, self.about, self.options = name, about, {"libver": libver, **options}
        self.objects, self.refused, self.attributes, self.warnings, self.expect, self.others, self.files = {}, {}, {}, [], None, None, None

    def __enter__(self):
        self.path = FOLDER / f"{self.name}.h5"
        plist = self.options.pop("fcpl", None)
        access = self.options.pop("fapl", None)
        if access is not None:
            self.file = h5py.File(h5py.h5f.create(bytes(self.path), h5py.h5f.ACC_TRUNC, fapl=access))
        elif plist is None:
            self.file = h5py.File(self.path, "w", **self.options)
        else:
            self.file = h5py.File(h5py.h5f.create(bytes(self.path), h5py.h5f.ACC_TRUNC, plist))
        return self

    def dataset(self, path, values, parent=None, only=None, **options):
        """Writes values, all of them or those at the places `only`; the others are what the file fills in."""
        values = np.asarray(values)
        parent = self.file if parent is None else parent
        if only is None:
            made = parent.create_dataset(path, data=values, **options)
        else:
            made = parent.create_dataset(path, values.shape, values.dtype, **options)
            expected = np.full(values.shape, options.get("fillvalue", 0), values.dtype)
            for place in only:
                made[place] = values[place]
                expected[place] = values[place]
            values = expected
        parts = [name for name in (parent.name, path) if isinstance(name, str)]
        self.objects["/".join(parts).lstrip("/")] = truth(values)
        return made

    def low(self, path, values, chunk, dcpl, limits=None, only=None):
        """The same with a list of properties of its own."""
        values = np.asarray(values)
        dcpl.set_chunk(chunk)
        space = h5py.h5s.create_simple(values.shape, limits or values.shape)
        made = h5py.Dataset(h5py.h5d.create(self.file.id, path.encode(), h5py.h5t.py_create(values.dtype, logical=True), space, dcpl))
        expected = values if only is None else np.zeros_like(values)
        for place in [...] if only is None else only:
            made[place] = values[place]
            expected[place] = values[place]
        self.objects[path] = truth(expected)
        return made

    def odd(self, path, values, datatype, chunk=None, properties=None):
        """Values of a datatype that NumPy does not have; the truth is what the library reads."""
        dcpl = creation()
        if chunk:
            dcpl.set_chunk(chunk)
        if properties:
            assert properties(dcpl) >= 0
        made = h5py.h5d.create(self.file.id, path.encode(), datatype, h5py.h5s.create_simple(values.shape), dcpl)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))
        self.file.flush()
        if datatype.get_size() <= 8:
            self.objects[path] = truth(h5py.Dataset(made)[()])

    def same(self, path, as_path):
        self.objects[path] = self.objects[as_path]

    def bf16(self, path, values, **attributes):
        """Two bytes without a meaning, as h5py writes the bfloat16 of ml_dtypes."""
        bits = (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")
        self.file.create_dataset(path, data=bits.view("V2")).attrs.update(attributes)
        self.objects[path] = truth(bits) | {"dtype": "bf16"}

    def archive(self, others):
        """Puts the file into an archive, as Keras does it."""
        with zipfile.ZipFile(self.path.with_suffix(".keras"), "w") as archive:
            for name, data in [*others.items(), ("model.weights.h5", self.path.read_bytes())]:
                archive.writestr(zipfile.ZipInfo(name), data)
        self.path.unlink()
        return self.path.with_suffix(".keras").name

    def share_index(self):
        """Has every layout name the tree of chunks that one of them names."""
        head, dimensions = b"\3\2\2", b"\1\0\0\0\1\0\0\0"
        stored, none = self.path.read_bytes(), head + b"\xff" * 8 + dimensions
        found = [at for at in range(len(stored)) if stored[at : at + 3] == head and stored[at + 11 : at + 19] == dimensions]
        (own,) = [stored[at : at + 19] for at in found if stored[at : at + 19] != none]
        self.path.write_bytes(stored.replace(none, own))

    def __exit__(self, *error):
        self.file.close()
        if error[0]:
            return
        said = {"about": self.about, "kind": "h5", "expect": self.expect or ("partial" if self.refused else "read"), "objects": self.objects}
        said |= {"refused": self.refused, "attributes": self.attributes, "warnings": sorted(self.warnings)}
        # The library itself reads back what is said, but for names that stand for others.
        with h5py.File(self.path) as file:
            for name, truth_ in self.objects.items():
                assert "\\x" in name or truth_["dtype"] == "f64" or truth_["dtype"] == "bf16" or truth(file[name][()])["sha256"] == truth_["sha256"], name
        said |= {"entry": self.archive(self.others)} if self.others else {}
        said |= {"files": self.files} if self.files is not None else {}
        self.path.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n")


def creation():
    return h5py.h5p.create(h5py.h5p.DATASET_CREATE)


def numbers(*shape, dtype="<i2"):
    """Numbers that compress, no two chunks alike."""
    return (np.arange(np.prod(shape)) % 30011).astype(dtype).reshape(shape)


# ---- Indices of chunks, with more than one level.

with Case("tree2_internal", "chunks found by B-trees of version 2 whose roots are not leaves: one level, and two of wide records") as case:
    case.dataset("one_level", numbers(300, 1), chunks=(1, 1), maxshape=(None, None))
    case.dataset("filtered", numbers(120, 4), chunks=(1, 4), maxshape=(None, None), compression="gzip", shuffle=True)
    case.dataset("two_levels", numbers(900, 1, 1, 1, 1, 1, 1, 1, dtype="u1"), chunks=(1,) * 8, maxshape=(None,) * 8)

with Case("extensible_array", "chunks found by extensible arrays: data blocks of super blocks, and one whose data blocks have pages") as case:
    case.dataset("super_blocks", numbers(1500, dtype="u1"), chunks=(1,), maxshape=(None,))
    # The data blocks of super block 13 have two pages each; their chunks begin behind 4 + 16 * (2^13 - 1).
    first = 4 + 16 * (2**13 - 1)
    pages = numbers(first + 6000, dtype="u1")
    places = [3, 200, first, first + 1023, first + 2048 + 1024, first + 5000]
    case.dataset("pages", pages, only=places, chunks=(1,), maxshape=(None,), fillvalue=7)
    case.dataset("filtered", numbers(40, 6), chunks=(1, 6), maxshape=(None, 6), compression="gzip", fletcher32=True)
    case.dataset("unlimited_inner", numbers(3, 90), chunks=(2, 1), maxshape=(5, None))

with Case("fixed_array", "chunks found by fixed arrays: pages, some of which were never written, and a last one that is short") as case:
    case.dataset("pages", numbers(3000, dtype="u1"), only=[0, 1023, 2999], chunks=(1,), fillvalue=9)
    case.dataset("filtered", numbers(1100, 2), only=[slice(0, 3), slice(1030, 1100)], chunks=(1, 2), compression="gzip")
    case.dataset("limited", numbers(5, 3), chunks=(2, 2), maxshape=(9, 11))

with Case("implicit", "chunks that lie one behind the other, without an index, some beyond the shape") as case:
    dcpl = creation()
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    case.low("whole", numbers(6, 10), (2, 5), dcpl)
    case.low("edges", numbers(7, 11), (3, 4), dcpl)
    case.low("limited", numbers(4, 3), (2, 2), dcpl, limits=(8, 9))

with Case("plain_edges", "filtered chunks of which those on the edge are not: H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS") as case:
    dcpl = creation()
    dcpl.set_chunk((16, 16))
    assert HDF5.H5Pset_chunk_opts(ctypes.c_int64(dcpl.id), ctypes.c_uint(2)) >= 0
    dcpl.set_deflate(6)
    case.low("fixed", numbers(50, 30), (16, 16), dcpl)
    case.low("extensible", numbers(50, 30), (16, 16), dcpl, limits=(h5py.h5s.UNLIMITED, 30))
    case.low("tree", numbers(50, 30), (16, 16), dcpl, limits=(h5py.h5s.UNLIMITED, h5py.h5s.UNLIMITED))
    case.low("whole", numbers(32, 32), (16, 16), dcpl)

with Case("tree1_levels", "chunks and names found by B-trees of version 1 of two and three levels", libver="earliest") as case:
    case.dataset("two_levels", numbers(200, 2), chunks=(1, 2))
    case.dataset("filtered", numbers(150, 8), chunks=(1, 8), compression="gzip")
    group = case.file.create_group("names")
    kept = case.dataset("names/w000", numbers(3))
    for at in range(1, 290):
        group[f"w{at:03}"] = kept
        case.same(f"names/w{at:03}", "names/w000")

fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
fcpl_id = ctypes.c_int64(fcpl.id)
assert HDF5.H5Pset_istore_k(fcpl_id, ctypes.c_uint(1)) >= 0
assert HDF5.H5Pset_sym_k(fcpl_id, ctypes.c_uint(1), ctypes.c_uint(1)) >= 0
assert HDF5.H5Pset_sizes(fcpl_id, ctypes.c_size_t(4), ctypes.c_size_t(4)) >= 0
with Case("tree1_narrow", "B-trees of version 1 with two children a node, many levels deep; addresses of four bytes", fcpl=fcpl) as case:
    case.dataset("chunks", numbers(9, 3), chunks=(1, 2))
    kept = case.dataset("names/w00", numbers(3))
    for at in range(1, 20):
        case.file["names"][f"w{at:02}"] = kept
        case.same(f"names/w{at:02}", "names/w00")

with Case("never_written", "chunked datasets of many thousands of chunks of which none, or two, were written") as case:
    case.dataset("none", np.zeros(200_000, "u1"), only=[], chunks=(1,), fillvalue=3)
    case.dataset("none_filtered", np.zeros((100, 100), ">f4"), only=[], chunks=(10, 10), fillvalue=0.5, compression="gzip")
    case.dataset("two", np.full(200_000, 9, "u1"), only=[5, 199_999], chunks=(1,), maxshape=(None,))
    case.dataset("across", numbers(400, 500, dtype="u1"), only=[(0, 499), (399, 0)], chunks=(1, 1), maxshape=(None, None))

with Case("shared_index", "a hundred datasets whose layouts name the chunks of the first: each would hold an index as long as the file", libver="earliest") as case:
    case.file.create_dataset("a", data=numbers(1000, dtype="u1"), chunks=(1,))
    for at in range(100):
        case.file.create_dataset(f"b{at:02}", (1000,), "u1", chunks=(1,))
    case.file.flush()
    case.share_index()
    case.expect = "reject"

# ---- Groups.

for libver in ("earliest", "latest"):
    with Case(f"{libver}_named_type", "datasets that share a datatype with a name, an enumeration of 600 names, and attributes of it", libver) as case:
        names = {f"label_{at:04}": at for at in range(600)}
        case.file["types/label"] = h5py.enum_dtype(names, basetype="<u2")
        case.file["types/plain"] = np.dtype("<f4")
        for at in range(200):
            made = case.dataset(f"w{at:03}", np.array([at, 7], "<u2"), dtype=case.file["types/label"])
        case.file.attrs.create("plain", np.arange(3.0, dtype="<f4"), dtype=case.file["types/plain"])
        case.attributes["plain"] = [0.0, 1.0, 2.0]

    with Case(f"{libver}_soft_links", "a group of 40 that 30 soft links and 3 hard ones lead to, with attributes, and links through it", libver) as case:
        group = case.file.create_group("group")
        group.attrs["note"] = "of the group"
        for at in range(40):
            case.dataset(f"group/w{at:02}", np.array([at], "<i4"))
        links = [f"soft{at:02}" for at in range(30)]
        for name in links:
            case.file[name] = h5py.SoftLink("/group" if name < "soft15" else "./group")
        for name in ("hard0", "hard1", "hard2"):
            case.file[name] = group
        for name in [*links, "hard0", "hard1", "hard2"]:
            for at in range(40):
                case.same(f"{name}/w{at:02}", f"group/w{at:02}")
            case.attributes[f"{name}@note"] = "of the group"
        case.file["through"] = h5py.SoftLink("soft07/w03")
        case.same("through", "group/w03")

with Case("links_unfold", "ten groups of ten links each to the next: a few kilobytes that stand for 10^10 paths") as case:
    groups = [case.file.create_group(f"g{at}") for at in range(10)]
    for group, below in zip(groups, groups[1:]):
        for at in range(10):
            group[f"link{at}"] = below
    case.dataset("g9/w", np.arange(2.0))
    case.expect = "reject"

with Case("tree2_names", "links and attributes found by B-trees of version 2 of two and of three levels") as case:
    kept = case.dataset("kept", numbers(2))
    for at in range(120):
        case.file[f"links/w{at:03}"] = h5py.SoftLink("/kept")
        case.same(f"links/w{at:03}", "kept")
    many = case.file.create_group("many", track_order=True)
    for at in range(800):
        many.attrs.create(f"a{at:03}", at, dtype="<i2")
        case.attributes[f"many@a{at:03}"] = at

with Case("attributes", "attributes of every kind: dense ones, ones larger than the blocks of their heap, shapes without elements, texts", track_order=True) as case:
    made = case.dataset("w", numbers(2))
    values = {
        "large": np.arange(1300, dtype="<i4"), "larger": np.arange(20_000, dtype="<u4"), "half": np.float16(0.5), "big": np.array([1, 2], ">i8"),
        "flag": np.bool_(True), "flags": np.array([True, False]), "complex": np.complex64(1 - 2j), "text": "текст", "bytes": np.bytes_(b"abc"),
        "texts": np.array(["a", "bc", ""], dtype=h5py.string_dtype()), "fixed": np.array([b"ab", b"c"]), "matrix": np.arange(6).reshape(2, 3),
        "none": h5py.Empty("f4"), "no_rows": np.zeros((0, 2)), "no_columns": np.zeros((2, 0)), "empty_text": "", "count": 3,
    }
    said = {
        "half": 0.5, "big": [1, 2], "flag": True, "flags": [True, False], "complex": [1.0, -2.0], "text": "текст", "bytes": "abc",
        "texts": ["a", "bc", ""], "fixed": ["ab", "c"], "matrix": [[0, 1, 2], [3, 4, 5]], "none": None, "no_rows": [], "no_columns": [[], []],
        "empty_text": "", "count": 3, "large": list(range(1300)),
    }
    for owner in (case.file, made):
        for name, value in values.items():
            owner.attrs[name] = value
    case.attributes = said
    # Both would be `group@x`.
    case.file.attrs["group@x"] = 1
    case.file.create_group("group").attrs["x"] = 2
    case.attributes["group@x"] = 1
    case.file.attrs["reference"] = made.ref
    case.file["group"].attrs["record"] = np.array((1, 2.0), dtype=[("a", "i4"), ("b", "f8")])
    case.warnings = ["attribute", "attribute", "attribute-conflict"]

for libver in ("earliest", "latest"):
    with Case(f"{libver}_names", "names that are not UTF-8, two of which would be one text, and texts that look like what stands for them", libver) as case:
        for stored, text in ((b"caf\xe9", "caf\\xE9"), (b"caf\xe8", "caf\\xE8"), (b"caf\\xE9", "caf\\x5CxE9"), ("café".encode(), "café")):
            made = case.dataset(stored, np.array([len(case.objects)], "<i4"))
            case.objects[text] = case.objects.popitem()[1]
        made.attrs.create("value", 1)
        group = case.file.create_group(b"gr\xfcn")
        group.attrs["x"] = 5
        case.dataset("w", numbers(2), parent=group)
        case.objects["gr\\xFCn/w"] = case.objects.popitem()[1]
        case.file.id.links.create_soft(b"soft", b"/gr\xfcn/w")
        case.same("soft", "gr\\xFCn/w")
        case.attributes["gr\\xFCn@x"] = 5
        case.warnings = ["name"] * 4

# ---- What people have.

FILTERS = {
    "gzip": {"compression": "gzip"}, "gzip_all": {"compression": "gzip", "compression_opts": 9, "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"}, "lzf_all": {"compression": "lzf", "shuffle": True, "fletcher32": True}, "checked": {"fletcher32": True},
    "shuffled": {"shuffle": True},
}
for libver in ("earliest", "latest"):
    with Case(f"{libver}_filters", "every filter that h5py has, alone and together, of several types, either byte order, ragged chunks", libver) as case:
        for name, options in FILTERS.items():
            for dtype in ("<f4", ">f8", ">i2", "u1", "<c8", "?"):
                values = (numbers(21, 13, dtype="<i4") % 2 == 0) if dtype == "?" else numbers(21, 13, dtype=dtype)
                case.dataset(f"{name}/{np.dtype(dtype).name}", values, chunks=(8, 5), maxshape=(None, 13) if dtype == ">i2" else None, **options)
        noise = np.frombuffer(hashlib.shake_256(b"noise").digest(600), "u1")
        case.dataset("noise", noise, chunks=(100,), compression="lzf")

    with Case(f"{libver}_beside", "texts, references, records and null dataspaces beside tensors, in groups that keep their order", libver, track_order=True) as case:
        file = case.file
        made = case.dataset("tensor", numbers(3, 2, dtype=">f4"))
        case.dataset("scalar", np.float64(2.5))
        case.dataset("empty", np.zeros((0, 4), "f2"))
        case.dataset("bools", np.array([[True, False]]))
        case.dataset("unlimited", numbers(5), maxshape=(None,))
        others = {
            "texts": np.array(["a", "βγ"], dtype=h5py.string_dtype()), "fixed": np.array([b"ab", b"c"]), "text": "one text",
            "null": h5py.Empty("<f4"), "references": np.array([made.ref], dtype=h5py.ref_dtype), "records": np.zeros(2, [("a", "i4"), ("b", "f4")]),
            "record": np.zeros(2, [("a", "i4")]), "opaque": np.zeros(2, "V3"), "long_double": np.zeros(2, np.longdouble), "ragged": None,
            "times": np.array(["2020-01-01"], "datetime64[s]").astype(h5py.opaque_dtype("datetime64[s]")),
        }
        group = file.create_group("beside", track_order=True)
        for name, value in others.items():
            if name == "ragged":
                group.create_dataset(name, (2,), dtype=h5py.vlen_dtype("i4"))[0] = [1, 2]
            else:
                group[name] = value
            case.refused[f"beside/{name}"] = "no tensor"
        # A number without a dtype, which is rounded to one.
        del case.refused["beside/long_double"]
        case.objects["beside/long_double"] = truth(np.zeros(2))
        file["to_text"] = h5py.SoftLink("/beside/texts")
        file["to_file"] = h5py.ExternalLink("other.h5", "/w")
        file["to_nothing"] = h5py.SoftLink("/nothing")
        case.refused |= {"to_text": "no tensor"}
        case.dataset("beside/last", numbers(4, dtype="<u8"))
        made.attrs["reference"] = made.ref
        made.attrs["shape"] = (3, 2)
        # Bytes without a path have no files beside them.
        case.files = {}
        case.warnings = ["attribute", "dangling-link", "dangling-link", "rounded"]

    with Case(f"{libver}_keras", "weights laid out as Keras 2 and 3 do, with an optimizer's state, and a scale of a dimension as netCDF has it", libver) as case:
        file = case.file
        file.attrs["backend"], file.attrs["keras_version"] = "tensorflow", "2.15.0"
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": ["x" * 3000]}})
        file.attrs["layer_names"] = [b"dense", b"dropout"]
        case.attributes |= {"backend": "tensorflow", "keras_version": "2.15.0", "layer_names": ["dense", "dropout"]}
        weights = file.create_group("model_weights")
        layer = weights.create_group("dense")
        layer.attrs["weight_names"] = [b"dense/kernel:0", b"dense/bias:0"]
        case.attributes["model_weights/dense@weight_names"] = ["dense/kernel:0", "dense/bias:0"]
        case.dataset("dense/kernel:0", numbers(4, 3, dtype="<f4"), parent=layer)
        case.dataset("dense/bias:0", np.zeros(3, "<f4"), parent=layer)
        weights.create_group("dropout").attrs["weight_names"] = np.zeros(0)
        case.attributes["model_weights/dropout@weight_names"] = []
        case.dataset("optimizer_weights/Adam/iter:0", np.int64(12))
        for at, values in enumerate((numbers(4, 3, dtype="<f2"), np.zeros(3, "<f4"))):
            case.dataset(f"layers/dense/vars/{at}", values)
        scale = case.dataset("x", np.arange(4.0))
        scale.make_scale("x")
        case.file["model_weights/dense/dense/kernel:0"].dims[0].attach_scale(scale)
        case.warnings = ["attribute", "attribute"]

with Case("paged_file", "a file whose space is managed in pages, with a superblock extension", fs_strategy="page", fs_page_size=4096, fs_persist=True) as case:
    case.dataset("w", numbers(300, 4), chunks=(100, 4), compression="gzip")
    case.dataset("v", np.float32(1.5))

with Case("keras_archive", "an archive of Keras 3: the weights, some of them bf16, beside the model as JSON", libver="earliest") as case:
    case.dataset("layers/dense/vars/0", numbers(4, 3, dtype="<f4"))
    case.bf16("layers/dense/vars/1", [1.5, -2.0, 3e38], dtype="bfloat16")
    case.file.create_group("layers/dropout/vars")
    case.others = {"metadata.json": json.dumps({"keras_version": "3.15.1"}), "config.json": json.dumps({"class_name": "Sequential"})}

with Case("opaque", "two bytes without a meaning, which nobody says to be bf16, and others of them") as case:
    case.dataset("w", numbers(2))
    case.bf16("unsaid", [1.5, -2.0])
    del case.objects["unsaid"]
    case.file.create_dataset("bytes", data=np.zeros(2, "V3")).attrs["dtype"] = "bfloat16"
    case.refused = {"unsaid": "no tensor", "bytes": "no tensor"}

# ---- The library's own filters that lose bits. This file is by h5py 3.16.0 (HDF5 2.0.0).

with Case("bit_filters", "scale-offset of every number and either byte order, alone and compressed, and n-bit of whole elements", libver="earliest") as case:
    generator = np.random.default_rng(1)
    made = {}
    for dtype in ("i1", "u1", "<i2", ">u2", "<i4", ">i4", "<i8", "<u8"):
        low, high = (3, 100) if np.dtype(dtype).itemsize == 1 else (1000, 1300)
        values = generator.integers(low, high, 20).astype(dtype)
        made[f"scaled/{np.dtype(dtype).name}"] = (values - values.dtype.type(low + 20) if values.dtype.kind == "i" else values, 0)
    made["scaled/four_bits"] = (generator.integers(0, 15, 20).astype("<u4"), 4)
    made["scaled/all_bits"] = (generator.integers(0, 2**32 - 1, 20, dtype="<u4"), 0)
    made["scaled/equal"] = (np.full(20, -5, "<i2"), 0)
    for dtype in ("<f4", ">f4", "<f8", ">f8"):
        made[f"decimals/{np.dtype(dtype).str[1:]}_{'big' if dtype[0] == '>' else 'little'}"] = ((generator.normal(size=20) * 30).astype(dtype), 3)
    for name, (values, factor) in made.items():
        case.file.create_dataset(name, data=values, chunks=(7,), scaleoffset=factor)
    case.file.create_dataset("decimals/compressed", data=(generator.normal(size=(20, 3)) * 30).astype("<f4"), chunks=(7, 3), scaleoffset=2, shuffle=True, compression="gzip")
    filled = case.file.create_dataset("scaled/filled", (20,), "<i4", chunks=(7,), scaleoffset=0, fillvalue=-9)
    filled[3:6], filled[15] = [5, 6, 70], 1000
    for dtype in ("<u2", ">i4"):
        dcpl = creation()
        dcpl.set_chunk((7,))
        dcpl.set_filter(h5py.h5z.FILTER_NBIT)
        case.low(f"nbit_{np.dtype(dtype).name}", numbers(20, dtype=dtype), (7,), dcpl)
    # Decimals are rounded, so the truth is what the library reads.
    case.file.flush()
    for group in ("scaled", "decimals"):
        for name, made in case.file[group].items():
            case.objects[f"{group}/{name}"] = truth(made[()])

# ---- A file whose structures are in an image of the library's cache.


class ImageConfig(ctypes.Structure):
    """`H5AC_cache_image_config_t`."""
    _fields_ = [("version", ctypes.c_int), ("generate_image", ctypes.c_bool), ("save_resize_status", ctypes.c_bool), ("entry_ageout", ctypes.c_int)]


fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
assert HDF5.H5Pset_mdc_image_config(ctypes.c_int64(fapl.id), ctypes.byref(ImageConfig(1, True, False, -1))) >= 0
with Case("cache_image", "an image of the metadata cache, which has the structures: groups, chunks, attributes, values in headers; unsupported", fapl=fapl) as case:
    case.expect = "reject"
    case.dataset("w", numbers(5))
    made = case.dataset("group/chunks", numbers(40, 6), chunks=(3, 6), compression="gzip")
    for at in range(5):
        made.attrs[f"a{at:02}"] = at
        case.dataset(f"many/w{at:02}", np.array([at], "<i4"))
    dcpl = creation()
    dcpl.set_layout(h5py.h5d.COMPACT)
    values = numbers(7, dtype="<i4")
    space = h5py.h5s.create_simple(values.shape)
    h5py.Dataset(h5py.h5d.create(case.file.id, b"compact", h5py.h5t.STD_I32LE, space, dcpl))[...] = values
    case.objects["compact"] = truth(values)
    case.file.attrs["note"] = "kept"
    case.attributes["note"] = "kept"

# ---- Virtual datasets. The files from here on are by h5py 3.16.0 (HDF5 2.0.0).

PARTS = FOLDER / "parts"
PARTS.mkdir(exist_ok=True)
for at in range(3):
    with h5py.File(PARTS / f"p{at}.h5", "w", libver="latest") as file:
        file.create_dataset("w", data=numbers(6, dtype="<i4") + 100 * at, chunks=(4,), maxshape=(None,), compression="gzip")
        file.create_dataset("deep/x", data=numbers(4, 6, dtype="<f8") + 1000 * at)
        file.create_dataset("packed", data=numbers(5, 4, dtype="<i4") + 10_000 * at, chunks=(2, 4), compression="gzip")
        file["link"] = h5py.SoftLink("/deep/x")
with h5py.File(PARTS / "nested.h5", "w", libver="latest") as file:
    layout = h5py.VirtualLayout((2, 6), "<i4")
    for at in range(2):
        layout[at] = h5py.VirtualSource(f"p{at}.h5", "w", (6,))
    file.create_virtual_dataset("rows", layout)


def source(name, path, shape, limits=None):
    return h5py.VirtualSource(name if name == "." else f"parts/{name}.h5", path, shape, maxshape=limits)


for libver in ("earliest", "latest"):
    with Case(f"{libver}_virtual", "virtual datasets: blocks, stripes, irregular selections, this file and others, one in another, sources that are missing", libver) as case:
        # Bytes without a path have no files beside them.
        case.files = {f"parts/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(PARTS.iterdir())}
        case.file["here"] = numbers(6, dtype="<i4") * 7
        layout = h5py.VirtualLayout((5, 6), "<i4")
        for at in range(3):
            layout[at] = source(f"p{at}", "w", (6,))
        layout[3, ::2] = source(".", "here", (6,))[3:]
        layout[4, 1:3] = source("missing", "w", (2,))
        case.file.create_virtual_dataset("rows", layout, fillvalue=-1)
        layout = h5py.VirtualLayout((4, 18), "<f8")
        for at in range(3):
            layout[:, at::3] = source(f"p{at}", "link", (4, 6))
        case.file.create_virtual_dataset("mixed", layout)
        layout = h5py.VirtualLayout((5, 12), "<i4")
        for at in range(3):
            layout[:, at::3] = source(f"p{at}", "packed", (5, 4))
        case.file.create_virtual_dataset("mixed_packed", layout)
        layout = h5py.VirtualLayout((4, 5), "<f8")
        layout[:, :3] = source("p1", "deep/x", (4, 6))[:, [0, 2, 5]]
        layout[1:3, 3:] = source("p2", "deep/x", (4, 6))[[0, 3], 2:4]
        case.file.create_virtual_dataset("irregular", layout, fillvalue=0.5)
        layout = h5py.VirtualLayout((3, 6), "<i4")
        layout[:2] = source("nested", "rows", (2, 6))
        layout[2] = source(".", "rows", (5, 6))[3]
        case.file.create_virtual_dataset("nested", layout)
        case.file.create_virtual_dataset("nothing", h5py.VirtualLayout((2, 2), ">i2"), fillvalue=9)
        # Blocks of sources whose names have numbers, and a source that grows: h5py has no name for these.
        unlimited = h5py.h5s.UNLIMITED
        for name, stride, location in (("numbered", 6, b"parts/p%b.h5"), ("numbered_apart", 8, b"parts/p%b.h5"), ("unlimited", 3, b"parts/p1.h5")):
            spaces = []
            for width in (stride, 6):
                spaces.append(h5py.h5s.create_simple((6,), (unlimited,)))
                spaces[-1].select_hyperslab((0,), (unlimited,), (width,), (6,) if name != "unlimited" else (1,))
            if name == "unlimited":
                spaces[1].select_hyperslab((0,), (unlimited,), (2,), (1,))
            else:
                spaces[1] = h5py.h5s.create_simple((6,))
            dcpl = creation()
            dcpl.set_fill_value(np.array(-3, "<i4"))
            dcpl.set_virtual(spaces[0], location, b"w", spaces[1])
            h5py.h5d.create(case.file.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((0,), (unlimited,)), dcpl)
        case.file.flush()
        for name in ("rows", "mixed", "mixed_packed", "irregular", "nested", "unlimited", "nothing", "numbered", "numbered_apart", "here"):
            case.objects[name] = truth(case.file[name][()])
        for name, location in (("above", "../hdf5/parts/p0.h5"), ("absolute", "/p0.h5")):
            layout = h5py.VirtualLayout((6,), "<i4")
            layout[:] = h5py.VirtualSource(location, "w", (6,))
            case.file.create_virtual_dataset(name, layout)
            case.refused[name] = "outside the folder"
        layout = h5py.VirtualLayout((6,), "<i4")
        layout[:] = source("p0", "deep/x", (4, 6))[1]
        case.file.create_virtual_dataset("other_elements", layout)
        case.refused["other_elements"] = "elements of another type"
        layout = h5py.VirtualLayout((6,), "<i4")
        layout[:] = source(".", "itself", (6,))
        case.file.create_virtual_dataset("itself", layout)
        case.refused["itself"] = "contains itself"
        case.warnings = ["missing-source"]

# ---- The filter szip.

with Case("szip", "szip of samples of every width, with and without prediction, ragged chunks, runs of zeros, noise") as case:
    generator = np.random.default_rng(2)
    smooth = np.cumsum(generator.integers(-3, 4, 600)) + 4000
    for dtype in ("u1", "<i2", ">u2", "<i4", ">i4", "<i8", "<f4", ">f4", "<f8"):
        for method in ("nn", "ec"):
            for block in (4, 32):
                values = smooth.astype(dtype).reshape(20, 30)
                case.dataset(f"{method}{block}/{np.dtype(dtype).str.replace('<', 'little_').replace('>', 'big_').replace('|', '')}", values, chunks=(9, 13), compression="szip", compression_opts=(method, block))
    zeros = np.zeros(70_000, "<u2")
    zeros[[3, 20_000, 69_999]] = 7
    case.dataset("zeros", zeros, chunks=(50_000,), compression="szip", compression_opts=("nn", 16))
    case.dataset("few", (generator.random(5000) > 0.9).astype("u1"), chunks=(1000,), compression="szip", compression_opts=("ec", 16))
    case.dataset("noise", generator.integers(0, 65536, 3000).astype("<u2"), chunks=(1000,), compression="szip", compression_opts=("nn", 8))
    case.dataset("checked", smooth.astype("<u2"), chunks=(256,), compression="szip", compression_opts=("nn", 8), fletcher32=True, shuffle=True)

# ---- Numbers that no dtype has.

with Case("odd_numbers", "integers with unused bits, and floats with other parts than IEEE's: of 20 and 24 bits, of 80 and of 128") as case:
    generator = np.random.default_rng(3)
    for base, bits, offset in (("STD_I32LE", 31, 0), ("STD_I32BE", 17, 5), ("STD_U16BE", 10, 3), ("STD_I8LE", 3, 2), ("STD_U64LE", 40, 24), ("STD_I16LE", 15, 1)):
        odd = getattr(h5py.h5t, base).copy()
        odd.set_precision(bits)
        odd.set_offset(offset)
        signed = "_I" in base
        values = generator.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed), 50)
        case.odd(f"{base[4:].lower()}_{bits}_of_{offset}", values, odd)
    for bits in (10, 20):
        odd = (h5py.h5t.STD_U16LE if bits == 10 else h5py.h5t.STD_U32LE).copy()
        odd.set_precision(bits)
        case.odd(f"szip_of_{bits}_bits", generator.integers(0, 2**bits, 500), odd, (100,), lambda dcpl: HDF5.H5Pset_szip(ctypes.c_int64(dcpl.id), ctypes.c_uint(32), ctypes.c_uint(8)))
        case.odd(f"nbit_of_{bits}_bits", generator.integers(0, 2**bits, 50), odd, (10,), lambda dcpl: dcpl.set_filter(h5py.h5z.FILTER_NBIT) or 0)
    values = np.concatenate([generator.normal(size=40) * 1000, [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 2.0**-30, 65504.0, 2.0**-31, 1.5]])
    for base in ("IEEE_F32LE", "IEEE_F32BE"):
        odd = getattr(h5py.h5t, base).copy()
        odd.set_fields(26, 20, 6, 7, 13)
        odd.set_offset(7)
        odd.set_precision(20)
        odd.set_ebias(31)
        odd.set_size(4)
        # The library makes another NaN of a NaN.
        known = values[~np.isnan(values)]
        case.odd(f"{base[5:].lower()}_20_bits", known, odd)
        case.odd(f"{base[5:].lower()}_20_bits_nbit", known, odd, (10,), lambda dcpl: dcpl.set_filter(h5py.h5z.FILTER_NBIT) or 0)
    long = np.concatenate([values.astype(np.longdouble), np.array([1, 3], np.longdouble) / 3, np.array([1], np.longdouble) * np.longdouble(2) ** -16400])
    with np.errstate(over="ignore"):
        case.file["long_double"] = long
        case.objects["long_double"] = truth(long.astype("<f8"))
    odd = h5py.h5t.IEEE_F64LE.copy()
    odd.set_size(16)
    odd.set_precision(128)
    odd.set_fields(127, 112, 15, 0, 112)
    odd.set_ebias(16383)
    case.odd("binary128", values, odd)
    case.objects["binary128"] = truth(values)
    case.file.attrs.create("odd", np.arange(3), dtype=h5py.Datatype(h5py.h5t.STD_I32LE.copy()))
    case.attributes["odd"] = [0, 1, 2]
    case.warnings = ["rounded"] * 2

# ---- Messages that objects share.

SHARED = {"dataspaces": 1 << 1, "datatypes": 1 << 3, "fills": 1 << 5, "filters": 1 << 11, "attributes": 1 << 12}
fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
fcpl_id = ctypes.c_int64(fcpl.id)
assert HDF5.H5Pset_shared_mesg_nindexes(fcpl_id, ctypes.c_uint(3)) >= 0
for index, kinds in enumerate((SHARED["dataspaces"] | SHARED["datatypes"], SHARED["fills"] | SHARED["filters"], SHARED["attributes"])):
    assert HDF5.H5Pset_shared_mesg_index(fcpl_id, ctypes.c_uint(index), ctypes.c_uint(kinds), ctypes.c_uint(1)) >= 0
with Case("shared_messages", "shapes, types, fill values, filters and attributes in heaps of shared messages, more than a list has", fcpl=fcpl) as case:
    for at in range(60):
        shape = (3, at % 7 + 1)
        made = case.dataset(f"w{at:02}", numbers(*shape, dtype="<f4"), chunks=(2, 1), compression="gzip", compression_opts=at % 3 + 1, only=[0], fillvalue=at % 5)
        made.attrs["same"] = np.arange(9)
        made.attrs["own"] = at
    for at in range(40):
        case.file.attrs[f"a{at:02}"] = np.arange(at % 4, dtype="<i2")
        case.attributes[f"a{at:02}"] = list(range(at % 4))
    case.dataset("scalar", np.float64(1.5))

with Case("virtual_chain", "virtual datasets each within the next: more of them than may be nested, named in either order", libver="earliest") as case:
    case.file["a"] = numbers(3, dtype="<i4")
    for names in ("bcdefghijklm", "zyxwvutsrqpo"):
        below = "a"
        for at, name in enumerate(names):
            layout = h5py.VirtualLayout((3,), "<i4")
            layout[:] = h5py.VirtualSource(".", below, (3,))
            case.file.create_virtual_dataset(name, layout)
            below = name
            if at < 8:
                case.objects[name] = truth(numbers(3, dtype="<i4"))
            else:
                case.refused[name] = "nested too deep"
    case.same("a", "b")

# ---- Filters of hdf5plugin 7.1.0, with h5py 3.16.0.

import hdf5plugin  # noqa: E402

DTYPES = ("<f4", "<f8", "<i2", "u1")


def runs(shape, dtype):
    """Values that compress, with a part that does not and a run of zeros."""
    generator, count = np.random.default_rng(5), int(np.prod(shape))
    values = np.arange(count) // 7 % 100
    values[: count // 8 + 1] = generator.integers(0, 120, count // 8 + 1)
    values[count // 3 : count // 2] = 0
    return values.astype(dtype).reshape(shape)


def noise(count, dtype):
    bits = np.random.default_rng(6).integers(0, 256, count * np.dtype(dtype).itemsize, dtype="u1")
    return bits.view(dtype)


SHUFFLES = ("none", "bytes", "bits")
for name, made in (("blosc", lambda codec, shuffle: hdf5plugin.Blosc(cname=codec, shuffle=shuffle)), ("blosc2", lambda codec, shuffle: hdf5plugin.Blosc2(cname=codec, filters=shuffle))):
    with Case(name, f"{name}: every codec with every shuffle, split blocks, chunks on the edge, one element, noise and runs") as case:
        for at, (codec, shuffle) in enumerate(itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), range(3))):
            options, place, dtype = made(codec, shuffle), f"{codec}/{SHUFFLES[shuffle]}", DTYPES[at % 4]
            case.dataset(f"{place}/row", runs((530,), dtype), chunks=(520,), **options)
            case.dataset(f"{place}/plane", runs((21, 13), DTYPES[(at + 1) % 4]), chunks=(8, 5), **options)
        options = made("lz4", 1)
        case.dataset("one", np.array([7], "<f4"), chunks=(1,), **options)
        case.dataset("noise", noise(200, "<f8"), chunks=(130,), **options)
        case.dataset("zeros", np.zeros((40, 50), "<i2"), chunks=(40, 50), **options)
        case.dataset("many_zeros", np.zeros(1 << 20, "<f4"), chunks=(1 << 20,), **options)
        case.dataset("equal", np.full(900, 3, "<f4"), chunks=(900,), **options)
        case.dataset("space", runs((9, 10, 11), "<f4"), chunks=(5, 7, 11), **options)
        case.dataset("checked", runs((21, 13), "<f4"), chunks=(8, 5), fletcher32=True, **options)

with Case("plugin_filters", "zstd, lz4, bzip2 and bitshuffle, each with other filters too; zfp, which is refused") as case:
    filters = {
        "zstd": hdf5plugin.Zstd(),
        "lz4": hdf5plugin.LZ4(),
        "lz4_blocks": hdf5plugin.LZ4(nbytes=104),
        "bzip2": hdf5plugin.BZip2(),
        "bits": hdf5plugin.Bitshuffle(cname="none"),
        "bits_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bits_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "bits_blocks": hdf5plugin.Bitshuffle(nelems=16, cname="lz4"),
    }
    for name, options in filters.items():
        for dtype in DTYPES:
            case.dataset(f"{name}/{np.dtype(dtype).name}", runs((21, 13), dtype), chunks=(8, 5), **options)
        case.dataset(f"{name}/one", np.array([7], "<f4"), chunks=(1,), **options)
        case.dataset(f"{name}/noise", noise(100, "<i2"), chunks=(60,), **options)
        case.dataset(f"{name}/row", runs((700,), "<f4"), chunks=(600,), **options)
        case.dataset(f"{name}/with_others", runs((21, 13), "<f4"), chunks=(8, 5), shuffle=True, fletcher32=True, **options)
    for name in ("bzip2", "zstd"):
        case.dataset(f"{name}/many_zeros", np.zeros(1 << 20, "<f4"), chunks=(1 << 20,), **filters[name])
    case.file.create_dataset("zfp", data=runs((21, 13), "<f4"), chunks=(8, 5), **hdf5plugin.Zfp(reversible=True))
    case.refused["zfp"] = "the filter zfp"
