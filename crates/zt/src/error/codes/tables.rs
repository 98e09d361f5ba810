//! Written from `spec/errors.md` and `spec/warnings.md` by `tests/codes.rs`.

use super::{Blame, CodeInfo, WarningInfo};

errors! {
    ALIGNMENT "alignment": File, "A component begins at an offset that is not a multiple of 64.", "Report it to the file's writer.";
    ALLOCATION "allocation": System, "The system had no memory for bytes that exist or are allowed, or for zstd's working memory.", "Free memory, read by slices or streams, compress less, or use a larger machine.";
    ATTRIBUTE "attribute": File, "An attribute that the format needs is missing, of the wrong type or out of range.", "Report it to the file's writer.";
    BOOL_VALUE "bool-value": File, "A byte of a `bool` component is neither 0 nor 1.", "Report it to the file's writer. The component can still be read as bytes.";
    BOUNDS "bounds": File, "A component's bytes begin in the header, end beyond the data region, or their end overflows.", "It was cut and framed again, or forged: fetch it again. Do not guess a shorter length.";
    CBOR "cbor": File, "The manifest is not one well-formed CBOR item with unique keys.", "Its writer is broken, or bytes changed: do not trust anything in it. Fetch or write it again.";
    CHANGED "changed": System, "A remote file was replaced while it was open, or values changed while a delta was made from them.", "Open the file again. Give every version of a file a name of its own, or keep versions in the store.";
    CHUNK_DIGESTS "chunk-digests": File, "The table of a component's chunk digests cannot be used: its place, its length or its digest is wrong.", "The values are read correctly, slices unverified. `zt convert` to `.zt` writes a new table.";
    DECOMPRESSION_LIMIT "decompression-limit": Limits, "A component would decode to more bytes than the limit allows, or claims more than its stored bytes can hold.", "If the tensor is really that large, raise `Limits::decoded_len`. No limit admits a claim beyond what zstd can reach.";
    DEFLATE "deflate": File, "Compressed bytes of an archive or of an HDF5 file cannot be decoded, or not to exactly the declared length.", "Fetch it again, or report it to the file's writer.";
    DELTA "delta": File, "A delta breaks a rule of `zt.delta/1`, or does not fit its base.", "Make the delta again, or fetch it again.";
    DIGEST_FORMAT "digest-format": File, "A digest has no `algorithm:`, or a known algorithm has the wrong number of hexadecimal digits.", "Report it to the file's writer.";
    DIGEST_MISMATCH "digest-mismatch": File, "The stored bytes of a component, of a chunk of it, or of the manifest do not match their checksum.", "The data is damaged: fetch the file again, or restore it from a copy. `Verify::Never` reads damaged bytes of a component. A file with a damaged manifest (§3.6) is refused; `zt repair FILE -o OUT` saves what it has.";
    DTYPE "dtype": File, "A component's dtype is not one of the 13 storage types, or the format does not allow it in this role.", "Report it to the file's writer.";
    DUPLICATE_NAME "duplicate-name": Caller, "A writer or a merge was given a name, or a role, for the second time.", "Rename one of them, or choose one: `--on-duplicate`. `--exclude 2:NAME` leaves out the one of the second input.";
    ENCODING "encoding": File, "A component's encoding is neither `raw` nor `zstd` in exactly this spelling.", "Report it to the file's writer.";
    HEADER "header": File, "The header of a file of another kind than `.zt` breaks a rule of that kind.", "Download or copy it again, or report it to the file's writer.";
    HUFFMAN "huffman": File, "A chunk of codes of `zt.planes/2` is invalid.", "Fetch it again, or report it to the file's writer.";
    INDEX_DTYPE "index-dtype": File, "The indices of a sparse object are not integers.", "Report it to the file's writer.";
    INDEX_VALUE "index-value": File, "An index is negative or not below its bound; or a row pointer decreases, does not start at 0, or does not end at the number of values.", "Fetch it again, or report it to the file's writer.";
    INTERRUPTED "interrupted": Caller, "The user or a cancelled progress callback stopped the work.", "Start it again.";
    IO "io": System, "The system could not open, read, write, sync or rename: no such file, no permission, a full disk.", "Check free space, permissions and cables, then try again. The output's name exists only if writing finished.";
    KEY "key": Caller, "A key is in no form that is read, is encrypted, or is of another algorithm.", "Give a key in PEM (PKCS#8, SEC 1, SPKI) or OpenSSH form. `ssh-keygen -t ed25519` makes one.";
    LOCKED "locked": System, "Another program is editing or compacting the file, or is writing the set.", "Try again once that program has ended, or wait for it with `--wait`. Its lock ends with it, even after a crash. `zt` exits with 6.";
    LOGICAL_TYPE "logical-type": File, "A known logical type is on a dtype other than its own.", "Report it to the file's writer.";
    LOSSY "lossy": Caller, "The result cannot represent values of the source. One error lists all such objects.", "Choose another target, or write dense values with `--dense`. `--drop-unsupported` drops what the target cannot represent, and `--allow-inf` accepts values that are out of range.";
    MANIFEST_SIZE "manifest-size": File, "The declared size of the manifest is zero, larger than the file has room for, or above the limit.", "Download or copy it again, or write it again if its writer was killed. `zt repair` finds what can be saved.";
    MISSING_COMPONENT "missing-component": File, "An object lacks a component that its format requires.", "Report it to the file's writer.";
    MISUSE "misuse": Caller, "The call is wrong in a way that no file can cause.", "Correct it.";
    NAMES "names": Caller, "A list of names is not UTF-8, is too long, or does not fit the file.", "`zt ls` shows the tensors. Write one name per line, in that order.";
    NO_LOCKS "no-locks": System, "The file system has no locks, so the file cannot be edited in place.", "Mount it with locks, or edit a copy on another disk and move it back.";
    NOT_FOUND "not-found": Caller, "There is no object of that name, no component of that role, or no attribute of that key.", "`zt ls` lists the names, and `zt meta get` the attributes.";
    NOT_ZT "not-zt": File, "The file was opened as `.zt` and does not begin like a `.zt` file.", "Check the path. The program and `zt_convert::open` detect the kind of a file; `zt::File::open` takes only `.zt`.";
    OVERLAP "overlap": File, "Two components share some but not all of their bytes.", "Read single components, write the file again with its writer, or raise the limit (`Limits::overlap`).";
    OVERWRITE "overwrite": Caller, "The output exists, is one of the inputs, or is not a file.", "Choose another name; `--force` replaces a file that is not an input.";
    PADDING "padding": File, "A byte between components is not zero.", "The byte is left over from a removed object, or hidden there. A rewrite (`convert` to `.zt`) drops it.";
    PATH "path": File, "A sharded set, a set of GGUF files, an ONNX model or a checkpoint names a missing file, or one outside its own folder.", "Fetch the whole set. Never follow such a path by hand.";
    PICKLE "pickle": File, "The pickle of a PyTorch file or of a checkpoint, or another pickle, ends early, has an instruction that no data needs, acts on a missing value, or contains itself.", "Download or copy it again, or report it to the file's writer.";
    PICKLE_DANGER "pickle-danger": File, "A pickle names or calls a function that runs code, loads code or another pickle, or reaches files, if Python loads it. Nothing was called: the reader never calls anything.", "Do not load it with Python: it may be an attack. If it is yours, save its tensors alone: its `state_dict()`, or safetensors.";
    PICKLE_GLOBAL "pickle-global": File, "A PyTorch file or another pickle has objects of functions or classes that data does not need; or such a function makes a tensor. Nothing was called: the reader never calls anything.", "If you trust it, load it with torch and save its `state_dict()`. If you do not, it may be an attack: delete it.";
    PROOF "proof": File, "A proof is no proof of `zt prove`, or it does not belong to the signature.", "Make it again of the seal that was signed: `zt prove`.";
    QUANTIZATION "quantization": File, "A weight of a quantized checkpoint lacks a part, or its parts do not fit each other.", "Fetch it again, with all shards and the settings beside them. The weight cannot be computed without the part.";
    REPLACED "replaced": System, "Another file took the file's name while it was edited.", "Edit the file that has the name now.";
    SCHEMA "schema": File, "A key of the manifest is missing, has the wrong type or is out of range.", "Report it to the file's writer. Other objects of the file can be read.";
    SEAL "seal": File, "A seal breaks a rule of its format, or the file is no seal.", "Fetch the seal again from its author, or make one of a copy that you trust: `zt seal`.";
    SEAL_MISMATCH "seal-mismatch": File, "A file does not have the bytes that its seal lists: a leaf differs, is zeros or is cut off, or the file is missing, short or long.", "`zt verify --seal` lists all wrong leaves, and `zt repair --seal SEAL --from URL` fetches these alone.";
    SHAPE_SIZE_MISMATCH "shape-size-mismatch": File, "The lengths of an object's components contradict its shape or each other.", "Report it to the file's writer. Never pad or cut: either of the two numbers may be wrong.";
    SIGNATURE "signature": File, "A signature breaks a rule of its format, or the file is no signature of a model.", "Fetch the signature again from its author. Trust nothing in it.";
    SIGNATURE_INVALID "signature-invalid": File, "The key has not signed the bytes in a signature.", "Do not use the model. Fetch the signature again from its author.";
    SIGNATURE_KEY "signature-key": Caller, "A signature names another key than the one that was given.", "Get the public key of the author from a place that you trust. If it is this one, do not use the model.";
    SIGNATURE_MISMATCH "signature-mismatch": File, "A model, a tensor of it, or a seal is not the one that was signed.", "Fetch the model again. `zt verify --signature` lists the files, and with the signed seal `zt verify --seal` lists wrong bytes.";
    STRUCTURE_LIMIT "structure-limit": Limits, "In a file of another kind, the structures (groups, links, attributes) refer to each other too often or nest too deeply. Listing them would take more than the file's length justifies.", "Write the file again with fewer links.";
    TRUNCATED "truncated": File, "The file ends before its framing, its header or its data is complete.", "Fetch the rest: `zt verify` says from which byte on. Of a safetensors, GGUF, npz or PyTorch file, `zt repair -o OUT` saves what is whole. The manifest of a `.zt` file is at its end; without it, only a file that was edited can be repaired.";
    UNKNOWN_KIND "unknown-kind": File, "The file's bytes are not a known kind of tensor file.", "Check the path; `--from` forces a kind. If this build lacks the kind, build with its feature.";
    UNSUPPORTED "unsupported": Build, "The file is sound, but this build or this operation does not support it.", "The message states what would help, often a feature. The components' bytes can be read in any case.";
    VALUE "value": File, "A number is one that the file's kind forbids to writers: a weight or a scale that is not finite, or a scale that is not positive.", "Report it to the file's writer. The values are read correctly, but the model will not work with them.";
    VERSION "version": File, "The manifest's version is invalid or has another major version; or a file of another kind has a version that its kind does not have.", "Use a program for that version.";
    WRONG_BASE "wrong-base": Caller, "A delta is applied to another file than the one that it was made from, or deltas are given in the wrong order.", "Take the file with the content identity that the message names: `zt hash` prints it.";
    ZSTD "zstd": File, "The stored bytes are not Zstandard frames that decode to exactly the declared length.", "Fetch it again, or report it to the file's writer.";
}

/// Every code of warnings alone, in the order of `spec/warnings.md`.
pub const WARNINGS: &[WarningInfo] = &[
    WarningInfo { code: "newer-minor", from: "`.zt`", meaning: "the version's minor is newer than 1.2; unknown fields that matter to the writer may be ignored (zt-1.2 §11)" },
    WarningInfo { code: "version-suffix", from: "`.zt`", meaning: "the version has a suffix after its numbers, as in `1.2.0+build.5`; the suffix is ignored" },
    WarningInfo { code: "alignment", from: "`.zt` 0.1, 1.0", meaning: "a blob's offset is not a multiple of 64; an error from layout 1.1 on, and to `verify --strict`" },
    WarningInfo { code: "unfinished-edit", from: "`.zt`", meaning: "an edit of the file was cut short or is still running; the file is read as it was before, and the next edit or `zt repair` removes the rest (zt-1.2 §16)" },
    WarningInfo { code: "unknown-digest", from: "`.zt`, SLM1, ONNX, zTensor 2", meaning: "the digest's algorithm is unknown; the component counts as unverified" },
    WarningInfo { code: "chunk-digests", from: "`.zt`", meaning: "the table of a component's chunk digests cannot be used, so its slices are not verified; the component reads without it. A problem to `verify --strict` (zt-1.2 §6.1)" },
    WarningInfo { code: "unlisted", from: "sharded sets", meaning: "a shard holds a tensor that the index does not list; the tensor is kept" },
    WarningInfo { code: "shadowed", from: "sharded sets", meaning: "two shards hold a tensor of one name; the index decides which one counts, and the other is not read" },
    WarningInfo { code: "total-size", from: "sharded sets", meaning: "the `total_size` of the index is not the number of bytes that its tensors have, or a total is no number" },
    WarningInfo { code: "zero-tail", from: "`verify`, all kinds but `.zt`", meaning: "a file has only zeros from within a tensor to its end: usually a download that was cut" },
    WarningInfo { code: "old-shards", from: "folders of models", meaning: "a folder has shards of another split than its index, or shards of two splits without an index; or an index names shards of two splits" },
    WarningInfo { code: "unlisted-shards", from: "folders of models", meaning: "the index does not name some shards of its own split" },
    WarningInfo { code: "missing-shards", from: "folders of models", meaning: "shards without an index have a gap in their numbers; a problem to `verify`" },
    WarningInfo { code: "no-index", from: "folders of models", meaning: "all shards of a set are there, and no index names them; `zt index` writes one" },
    WarningInfo { code: "duplicate-tensor", from: "folders of models", meaning: "two shards without an index have a tensor of one name, with equal values or not; a problem to `verify`" },
    WarningInfo { code: "stray-file", from: "folders of models", meaning: "a file beside a set has tensors of the same names: an older one, or a consolidated one" },
    WarningInfo { code: "two-indexes", from: "folders of models", meaning: "two indexes of one folder have the same tensors, and are no variants of each other" },
    WarningInfo { code: "config-dtype", from: "folders of models", meaning: "`config.json` gives another dtype than most weights have" },
    WarningInfo { code: "config-json", from: "folders of models", meaning: "`config.json` is no JSON object, or longer than 16 MiB" },
    WarningInfo { code: "config-shape", from: "folders of models", meaning: "`config.json` gives a vocabulary or a hidden size that no embedding has" },
    WarningInfo { code: "config-layers", from: "folders of models", meaning: "`config.json` gives a number of layers that no part of the model has" },
    WarningInfo { code: "config-quantization", from: "folders of models", meaning: "`config.json` says that the weights are quantized, and they are not; or they are, and it does not say so" },
    WarningInfo { code: "tied-weights", from: "folders of models", meaning: "`config.json` ties the embeddings, and the weights have an output embedding of their own; or it does not, and the weights have none" },
    WarningInfo { code: "adapter", from: "folders of models", meaning: "an adapter of PEFT lacks its configuration or weights, or both contradict each other; a problem to `verify`" },
    WarningInfo { code: "adapter-base", from: "folders of models", meaning: "an adapter does not fit the base that its configuration names, which is below its folder or in the same cache of the Hub; a problem to `verify`" },
    WarningInfo { code: "attribute-conflict", from: "sharded sets, ONNX, HDF5", meaning: "one key has two values, and the first is kept: in two shards, in a shard and the index, in two entries of one model, or in HDF5 for `g@x` of the root and `x` of `g`" },
    WarningInfo { code: "attribute", from: "HDF5", meaning: "an attribute is left out: it is damaged, or not a number, a text or an array of them. At most eight per object are listed, with a count of the rest, as for the other warnings about attributes" },
    WarningInfo { code: "not-tensor", from: "HDF5, NumPy, ONNX, PyTorch, pickles, checkpoints", meaning: "something in the file is not a tensor and is left out: strings, records, dates, references, Python objects, an object that only holds tensors, opaque bytes, no elements at all, or another file in an archive; the file is sound" },
    WarningInfo { code: "pickle-unread", from: "PyTorch", meaning: "other members of the archive may be pickles, and were not looked into: they are too many, or too long together" },
    WarningInfo { code: "missing-source", from: "HDF5", meaning: "a file or a dataset that a virtual dataset names does not exist; the values there are the fill value" },
    WarningInfo { code: "dangling-link", from: "HDF5", meaning: "a link leads to an object or a file that does not exist; such a link is legal, and nothing is listed for it" },
    WarningInfo { code: "rounded", from: "HDF5", meaning: "the floats have more bits than f64, such as long doubles; each value is rounded to the nearest f64" },
    WarningInfo { code: "unknown-type", from: "GGUF", meaning: "the type of a tensor is unknown or retired; its bytes are kept, up to the next tensor" },
    WarningInfo { code: "split", from: "GGUF", meaning: "the file is one of a set, and its name does not show where the others are; they are not read" },
    WarningInfo { code: "slices", from: "safetensors", meaning: "the file has slices of tensors, as one process of a training program saves them; the files of the other processes are not read" },
    WarningInfo { code: "truncated", from: "safetensors, GGUF, npz, PyTorch", meaning: "the end of the file is missing, and the reader was asked for what is there; objects that are cut have faults, and others may be missing. A problem to `verify`" },
    WarningInfo { code: "ambiguous", from: "SQUIZD, SLM1", meaning: "the format leaves this open; the message states how it was read" },
    WarningInfo { code: "name", from: "SQUIZD, HDF5", meaning: "SQUIZD: a name given by the user does not hash to the tensor's id, although others do; HDF5: the name of a dataset, a group or an attribute is not UTF-8, and its other bytes are written as `\\xE9`" },
    WarningInfo { code: "unknown-class", from: "PyTorch, pickles", meaning: "an object of a class that is not on the list of allowed ones is left out, and nothing was run; the tensors in it are listed under its path. There is one warning per class, about its first object" },
    WarningInfo { code: "torchscript", from: "PyTorch", meaning: "an archive of TorchScript; the tensors of its objects and of its code's constants are read, the code is not" },
    WarningInfo { code: "hard-links", from: "conversion, compacting", meaning: "the replaced file has other names (hard links), which keep the old file; the message has the number of names" },
    WarningInfo { code: "left-over", from: "`split --force`", meaning: "a file of the replaced set cannot be removed; the new set is complete, and the next split to that name tries again" },
    WarningInfo { code: "first-kept", from: "`average`", meaning: "integers, such as a counter of steps, differ in the inputs and are not averaged; those of the first input are written" },
    WarningInfo { code: "quantized", from: "casts, `stats`, `diff --only-values`, `report`", meaning: "weights are codes whose scales lie beside them; a cast keeps both as they are, other commands show the codes. `--logical` gives the values" },
    WarningInfo { code: "quantized-scale", from: "`--logical`", meaning: "scales of a weight are zero, NaN or infinite; codes or scales are missing, so that the other part is no weight; or ComfyUI's scale is missing, and 1 is taken as ComfyUI does" },
    WarningInfo { code: "is-result", from: "deltas", meaning: "the base is the result of the deltas already; nothing was applied, and the result is the base" },
    WarningInfo { code: "base-unchecked", from: "deltas", meaning: "the values of the base were not compared with the delta's record; names and shapes may be another file's" },
    WarningInfo { code: "sealed-as-bytes", from: "`seal`", meaning: "a file does not open as a model, or objects of it cannot be read; their bytes are sealed, and the seal has no identity of these tensors" },
    WarningInfo { code: "base-unused", from: "deltas", meaning: "a base was given, and the file is no delta; the base was not used" },
    WarningInfo { code: "architecture", from: "conversion", meaning: "the GGUF file has no `general.architecture`, and llama.cpp does not load it; the input is of another kind" },
    WarningInfo { code: "experimental", from: "conversion", meaning: "a SQUIZD file was written; no other program is known to read such files, so no other program has checked ours" },
    WarningInfo { code: "shard", from: "zTensor 2", meaning: "a file without a manifest: a shard, whose bytes another file describes" },
    WarningInfo { code: "lossy", from: "conversion", meaning: "metadata that the target cannot represent: an attribute, a field, a name, a type that a wider one represents. With `--drop-unsupported`, values that the target cannot represent; with `--skip-damaged`, objects that are damaged, each with the code of its fault; with `--allow-inf`, values that are out of range for a cast" },
];

/// A warning with the code of an error.
pub(super) const TOLERATED: WarningInfo = WarningInfo { code: "the code of an error", from: "npy, npz, PyTorch, pickles, checkpoints, SQUIZD, SLM1", meaning: "a fault that the format forbids to writers, in data that still reads; a problem to `verify --strict` and `OpenOptions::strict`" };
