#!/usr/bin/env python3
"""Writes `numpy_headers.json`: what NumPy 2.4.6 on 64-bit Linux makes of headers of arrays, by `numpy.lib.format` itself.

Each header is followed by enough zeros. NumPy's answer is the dtype and the shape of the array, or null for an error.
Run `python3 numpy_headers.py` with that NumPy installed.
"""
import io, json, pathlib, struct, warnings

import numpy as np

warnings.simplefilter("ignore")
NAMES = """bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 byte ubyte short ushort
intc uintc int uint int_ intp uintp long ulong longlong ulonglong half single double float complex csingle cdouble longdouble clongdouble
float128 complex256 object object_ str str_ bytes bytes_ void unicode datetime64 timedelta64 datetime64[ns] timedelta64[s]
float_ Float32 bool8 int0 float8 float33 bfloat16 string number""".split()
CHARACTERS = "?bBhHiIlLqQpPnNefdgFDGSUVOMmacTxX"
CODES = [order + code for order in ("", "<", ">", "=", "|") for code in [*CHARACTERS, "f4", "i8", "b1", "c16"]]
CODES += ["f04", "f+4", "f 4", "f-4", "f4 ", " f4", "<<f4", "<float32", "l8", "d8", "?1", "b2", "f1", "f3", "i16", "c4", "V2", "S5", "U3", "a5", "f4,",
          "f4,i4", "3f4", "(2,)f4", "M8[ns]", "m8", "", "<", "4", "f4;", "float32 "]
DICT = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"


def shape(text):
    return DICT.replace("(2, 3)", text)


HEADERS = [DICT.replace("'<f4'", repr(code)) for code in NAMES + CODES]
HEADERS += [shape(text) for text in (
    "()", "(2,)", "(2, )", "( 2 , 3 )", "(+2,)", "(+ 2, 3)", "(-2,)", "(--2,)", "(+-2,)", "(2L,)", "(2L, 3L)", "(2l,)", "(0x2,)", "(0X1f, 0b11, 0o7)", "(1_0,)",
    "(1__0,)", "(_1,)", "(1_,)", "(02,)", "(00,)", "(0_0,)", "(2)", "[2]", "2", "(2,,)", "(,)", "(2 3)", "(2.0,)", "(2e0,)", "(2j,)", "(True,)", "(None,)",
    "('2',)", "((2,),)", "(2,3,)", "(2,\n3)", "(2, # two\n3)", "(2\\\n,3)", "(0x,)", "(0b2,)", "(٣,)", "(2,)*2", "(1+1,)", "tuple()")]
HEADERS += [DICT.replace("'<f4'", text) for text in (
    "u'<f4'", "U'<f4'", "r'<f4'", "R'<f4'", "b'<f4'", "f'<f4'", "ur'<f4'", '"<f4"', "'''<f4'''", "'<' 'f4'", "'<f\\x34'", "('<f4',)", "('<f4', (2,))",
    "[('a', '<f4')]", "('<f4')", "None", "4", "float", "[u'<f4']", "{'a': 1}")]
HEADERS += [
    DICT.replace("'descr'", "u'descr'").replace("'shape'", "u'shape'").replace("'fortran_order'", "u'fortran_order'"),
    DICT.replace("'descr'", "b'descr'"), DICT.replace(", }", "}"), DICT.replace(", }", ",}"), DICT.replace(", }", ",, }"), DICT.replace(": ", ":"),
    DICT.replace(": ", " :\t"), DICT.replace(", ", "\n,\n"), "\t " + DICT, "\n" + DICT, "\f" + DICT, "\v" + DICT, "\r\n" + DICT, "\u00a0" + DICT, DICT + "\r\n", DICT + "\n\n",
    DICT + "\0", DICT + " # comment", "# comment\n" + DICT, DICT + ";", "(" + DICT + ")", "[" + DICT + "]", DICT.replace("False", "false"), DICT.replace("False", "0"),
    DICT.replace("False", "not True"), DICT.replace("False", "None"), DICT.replace("False", "(False)"), DICT.replace("{", "dict({", 1) + ")", DICT.replace("'fortran_order': False, ", ""),
    DICT.replace("{", "{'shape': (2, 3), ", 1), DICT.replace("{", "{'more': 1, ", 1)]


def read(header, version):
    text = header.encode("latin1" if version < 3 else "utf8", "replace")
    start = struct.pack("<H" if version == 1 else "<I", len(text))
    file = io.BytesIO(b"\x93NUMPY" + bytes([version, 0]) + start + text + bytes(1 << 14))
    try:
        array = np.lib.format.read_array(file)
    except Exception:
        return None
    return [array.dtype.str if array.dtype.names is None else "|V", list(array.shape)]


said = [[header, read(header, 1)] for header in dict.fromkeys(HEADERS)]
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=True) for row in said) + "\n]\n")
