//! Written from `spec/errors.md` and `spec/warnings.md` by `tests/codes.rs`.

use super::{Blame, CodeInfo, WarningInfo};

/// Every code of errors, in alphabetical order.
pub const ALL: &[CodeInfo] = &[
    CodeInfo { code: "alignment", fault: Blame::File, meaning: "A component begins at an offset that is not a multiple of 64.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "allocation", fault: Blame::System, meaning: "The system had no memory for bytes that exist or are allowed, or for zstd's working memory.", remedy: "Free memory, read by slices or streams, compress less, or use a larger machine." },
    CodeInfo { code: "attribute", fault: Blame::File, meaning: "An attribute that the format needs is missing, of the wrong type or out of range.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "bool-value", fault: Blame::File, meaning: "A byte of a `bool` component is neither 0 nor 1.", remedy: "Report it to the file's writer. The component can still be read as bytes." },
    CodeInfo { code: "bounds", fault: Blame::File, meaning: "A component's bytes begin in the header, end beyond the data region, or their end overflows.", remedy: "It was cut and framed again, or forged: fetch it again. Do not guess a shorter length." },
    CodeInfo { code: "cbor", fault: Blame::File, meaning: "The manifest is not one well-formed CBOR item with unique keys.", remedy: "Its writer is broken, or bytes changed: do not trust anything in it. Fetch or write it again." },
    CodeInfo { code: "changed", fault: Blame::System, meaning: "A remote file was replaced while it was open.", remedy: "Open the file again. Give every version of a file a name of its own, or keep versions in the store." },
    CodeInfo { code: "chunk-digests", fault: Blame::File, meaning: "The table of a component's chunk digests cannot be used: its place, its length or its digest is wrong.", remedy: "The values are read correctly, slices unverified. `zt convert` to `.zt` writes a new table." },
    CodeInfo { code: "decompression-limit", fault: Blame::Limits, meaning: "A component would decode to more bytes than the limit allows, or claims more than its stored bytes can hold.", remedy: "If the tensor is really that large, raise `Limits::decoded_len`. No limit admits a claim beyond what zstd can reach." },
    CodeInfo { code: "deflate", fault: Blame::File, meaning: "Compressed bytes of an archive or of an HDF5 file cannot be decoded, or not to exactly the declared length.", remedy: "Fetch it again, or report it to the file's writer." },
    CodeInfo { code: "digest-format", fault: Blame::File, meaning: "A digest has no `algorithm:`, or a known algorithm has the wrong number of hexadecimal digits.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "digest-mismatch", fault: Blame::File, meaning: "The stored bytes of a component, or of a chunk of it, do not match their checksum.", remedy: "The data is damaged: fetch the file again, or restore it from a copy. `Verify::Never` reads the damaged bytes." },
    CodeInfo { code: "dtype", fault: Blame::File, meaning: "A component's dtype is not one of the 13 storage types, or the format does not allow it in this role.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "duplicate-name", fault: Blame::Caller, meaning: "A writer or a merge was given a name, or a role, for the second time.", remedy: "Rename one of them." },
    CodeInfo { code: "encoding", fault: Blame::File, meaning: "A component's encoding is neither `raw` nor `zstd` in exactly this spelling.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "header", fault: Blame::File, meaning: "The header of a file of another kind than `.zt` breaks a rule of that kind.", remedy: "Download or copy it again, or report it to the file's writer." },
    CodeInfo { code: "index-dtype", fault: Blame::File, meaning: "The indices of a sparse object are not integers.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "index-value", fault: Blame::File, meaning: "An index is negative or not below its bound; or a row pointer decreases, does not start at 0, or does not end at the number of values.", remedy: "Fetch it again, or report it to the file's writer." },
    CodeInfo { code: "interrupted", fault: Blame::Caller, meaning: "The user or a cancelled progress callback stopped the work.", remedy: "Start it again." },
    CodeInfo { code: "io", fault: Blame::System, meaning: "The system could not open, read, write, sync or rename: no such file, no permission, a full disk.", remedy: "Check free space, permissions and cables, then try again. The output's name exists only if writing finished." },
    CodeInfo { code: "locked", fault: Blame::System, meaning: "Another program is editing or compacting the file, or is writing the set.", remedy: "Try again once that program has ended, or wait for it with `--wait`. Its lock ends with it, even after a crash. `zt` exits with 6." },
    CodeInfo { code: "logical-type", fault: Blame::File, meaning: "A known logical type is on a dtype other than its own.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "lossy", fault: Blame::Caller, meaning: "The result cannot represent values of the source. One error lists all such objects.", remedy: "Choose another target, or write dense values with `--dense`. `--drop-unsupported` drops what the target cannot represent, and `--allow-inf` accepts infinite values." },
    CodeInfo { code: "manifest-size", fault: Blame::File, meaning: "The declared size of the manifest is zero, larger than the file has room for, or above the limit.", remedy: "Download or copy it again, or write it again if its writer was killed. `zt repair` finds what can be saved." },
    CodeInfo { code: "missing-component", fault: Blame::File, meaning: "An object lacks a component that its format requires.", remedy: "Report it to the file's writer." },
    CodeInfo { code: "misuse", fault: Blame::Caller, meaning: "The call is wrong in a way that no file can cause.", remedy: "Correct it." },
    CodeInfo { code: "names", fault: Blame::Caller, meaning: "A list of names is not UTF-8, is too long, or does not fit the file.", remedy: "`zt ls` shows the tensors. Write one name per line, in that order." },
    CodeInfo { code: "no-locks", fault: Blame::System, meaning: "The file system has no locks, so the file cannot be edited in place.", remedy: "Mount it with locks, or edit a copy on another disk and move it back." },
    CodeInfo { code: "not-found", fault: Blame::Caller, meaning: "There is no object of that name, no component of that role, or no attribute of that key.", remedy: "`zt ls` lists the names, and `zt meta get` the attributes." },
    CodeInfo { code: "not-zt", fault: Blame::File, meaning: "The file was opened as `.zt` and does not begin like a `.zt` file.", remedy: "Check the path. The program and `zt_convert::open` detect the kind of a file; `zt::File::open` takes only `.zt`." },
    CodeInfo { code: "overlap", fault: Blame::File, meaning: "Two components share some but not all of their bytes.", remedy: "Read single components, write the file again with its writer, or raise the limit (`Limits::overlap`)." },
    CodeInfo { code: "overwrite", fault: Blame::Caller, meaning: "The output exists, is one of the inputs, or is not a file.", remedy: "Choose another name; `--force` replaces a file that is not an input." },
    CodeInfo { code: "padding", fault: Blame::File, meaning: "A byte between components is not zero.", remedy: "The byte is left over from a removed object, or hidden there. A rewrite (`convert` to `.zt`) drops it." },
    CodeInfo { code: "path", fault: Blame::File, meaning: "A sharded set or an ONNX model names a missing file, or one outside its own folder.", remedy: "Fetch the whole set. Never follow such a path by hand." },
    CodeInfo { code: "pickle", fault: Blame::File, meaning: "The pickle of a PyTorch file ends early, has an instruction that no data needs, acts on a missing value, or contains itself.", remedy: "Download or copy it again, or report it to the file's writer." },
    CodeInfo { code: "pickle-global", fault: Blame::File, meaning: "A PyTorch file has nothing but objects of functions or classes that data does not need; or such a function makes a tensor. Nothing was called: the reader never calls anything.", remedy: "If you trust it, load it with torch and save its `state_dict()`. If you do not, it may be an attack: delete it." },
    CodeInfo { code: "replaced", fault: Blame::System, meaning: "Another file took the file's name while it was edited.", remedy: "Edit the file that has the name now." },
    CodeInfo { code: "schema", fault: Blame::File, meaning: "A key of the manifest is missing, has the wrong type or is out of range.", remedy: "Report it to the file's writer. Other objects of the file can be read." },
    CodeInfo { code: "shape-size-mismatch", fault: Blame::File, meaning: "The lengths of an object's components contradict its shape or each other.", remedy: "Report it to the file's writer. Never pad or cut: either of the two numbers may be wrong." },
    CodeInfo { code: "structure-limit", fault: Blame::Limits, meaning: "In a file of another kind, the structures (groups, links, attributes) refer to each other too often or nest too deeply. Listing them would take more than the file's length justifies.", remedy: "Write the file again with fewer links." },
    CodeInfo { code: "truncated", fault: Blame::File, meaning: "The file ends before its framing, its header or its data is complete.", remedy: "Download or copy it again, or write it again if its writer was killed. `zt repair` finds what can be saved." },
    CodeInfo { code: "unknown-kind", fault: Blame::File, meaning: "The file's bytes are not a known kind of tensor file.", remedy: "Check the path; `--from` forces a kind. If this build lacks the kind, build with its feature." },
    CodeInfo { code: "unsupported", fault: Blame::Build, meaning: "The file is sound, but this build or this operation does not support it.", remedy: "The message states what would help, often a feature. The components' bytes can be read in any case." },
    CodeInfo { code: "value", fault: Blame::File, meaning: "A number is one that the file's kind forbids to writers: a weight or a scale that is not finite, or a scale that is not positive.", remedy: "Report it to the file's writer. The values are read correctly, but the model will not work with them." },
    CodeInfo { code: "version", fault: Blame::File, meaning: "The manifest's version is invalid or has another major version; or a file of another kind has a version that its kind does not have.", remedy: "Use a program for that version." },
    CodeInfo { code: "zstd", fault: Blame::File, meaning: "The stored bytes are not Zstandard frames that decode to exactly the declared length.", remedy: "Fetch it again, or report it to the file's writer." },
];

/// Every code of warnings alone, in the order of `spec/warnings.md`.
pub const WARNINGS: &[WarningInfo] = &[
    WarningInfo { code: "newer-minor", from: "`.zt`", meaning: "the version's minor is newer than 1.2; unknown fields that matter to the writer may be ignored (zt-1.2 §11)" },
    WarningInfo { code: "version-suffix", from: "`.zt`", meaning: "the version has a suffix after its numbers, as in `1.2.0+build.5`; the suffix is ignored" },
    WarningInfo { code: "alignment", from: "`.zt` 0.1, 1.0", meaning: "a blob's offset is not a multiple of 64; an error from layout 1.1 on, and to `verify --strict`" },
    WarningInfo { code: "unfinished-edit", from: "`.zt`", meaning: "an edit of the file was cut short or is still running; the file is read as it was before, and the next edit or `zt repair` removes the rest (zt-1.2 §16)" },
    WarningInfo { code: "unknown-digest", from: "`.zt`, SLM1, ONNX, zTensor 2", meaning: "the digest's algorithm is unknown; the component counts as unverified" },
    WarningInfo { code: "chunk-digests", from: "`.zt`", meaning: "the table of a component's chunk digests cannot be used, so its slices are not verified; the component reads without it. A problem to `verify --strict` (zt-1.2 §6.1)" },
    WarningInfo { code: "unlisted", from: "sharded sets", meaning: "a shard holds a tensor that the index does not list; the tensor is kept" },
    WarningInfo { code: "shadowed", from: "sharded sets", meaning: "two shards hold a tensor of one name; the index decides which one counts" },
    WarningInfo { code: "attribute-conflict", from: "sharded sets, ONNX, HDF5", meaning: "one key has two values, and the first is kept: in two shards, in a shard and the index, in two entries of one model, or in HDF5 for `g@x` of the root and `x` of `g`" },
    WarningInfo { code: "attribute", from: "HDF5", meaning: "an attribute is left out: it is damaged, or not a number, a text or an array of them. At most eight per object are listed, with a count of the rest, as for the other warnings about attributes" },
    WarningInfo { code: "not-tensor", from: "HDF5", meaning: "something in the file is not a tensor and is left out: strings, records, references, opaque bytes, or no elements at all; the file is sound" },
    WarningInfo { code: "missing-source", from: "HDF5", meaning: "a file or a dataset that a virtual dataset names does not exist; the values there are the fill value" },
    WarningInfo { code: "rounded", from: "HDF5", meaning: "the floats have more bits than f64, such as long doubles; each value is rounded to the nearest f64" },
    WarningInfo { code: "unknown-type", from: "GGUF", meaning: "the type of a tensor is unknown or retired; its bytes are kept, up to the next tensor" },
    WarningInfo { code: "split", from: "GGUF", meaning: "the file is one of a split set; the other files are not read" },
    WarningInfo { code: "ambiguous", from: "SQUIZD, SLM1", meaning: "the format leaves this open; the message states how it was read" },
    WarningInfo { code: "name", from: "SQUIZD, HDF5", meaning: "SQUIZD: a name given by the user does not hash to the tensor's id, although others do; HDF5: the name of a dataset, a group or an attribute is not UTF-8, and its other bytes are written as `\\xE9`" },
    WarningInfo { code: "unknown-class", from: "PyTorch", meaning: "an object of a class that is not on the list of allowed ones is left out, and nothing was run; the tensors in it are listed under its path. There is one warning per class, about its first object" },
    WarningInfo { code: "torchscript", from: "PyTorch", meaning: "an archive of TorchScript; the tensors of its objects and of its code's constants are read, the code is not" },
    WarningInfo { code: "hard-links", from: "conversion, compacting", meaning: "the replaced file has other names (hard links), which keep the old file; the message has the number of names" },
    WarningInfo { code: "left-over", from: "`split --force`", meaning: "a file of the replaced set cannot be removed; the new set is complete, and the next split to that name tries again" },
    WarningInfo { code: "experimental", from: "conversion", meaning: "a SQUIZD file was written; no other program is known to read such files, so no other program has checked ours" },
    WarningInfo { code: "shard", from: "zTensor 2", meaning: "a file without a manifest: a shard, whose bytes another file describes" },
    WarningInfo { code: "lossy", from: "conversion", meaning: "metadata that the target cannot represent: an attribute, a field, a name, a type that a wider one represents. With `--drop-unsupported`, values that the target cannot represent; with `--skip-damaged`, objects that are damaged, each with the code of its fault; with `--allow-inf`, values that became infinite" },
];

pub const ALIGNMENT: &str = "alignment";
pub const ALLOCATION: &str = "allocation";
pub const ATTRIBUTE: &str = "attribute";
pub const BOOL_VALUE: &str = "bool-value";
pub const BOUNDS: &str = "bounds";
pub const CBOR: &str = "cbor";
pub const CHANGED: &str = "changed";
pub const CHUNK_DIGESTS: &str = "chunk-digests";
pub const DECOMPRESSION_LIMIT: &str = "decompression-limit";
pub const DEFLATE: &str = "deflate";
pub const DIGEST_FORMAT: &str = "digest-format";
pub const DIGEST_MISMATCH: &str = "digest-mismatch";
pub const DTYPE: &str = "dtype";
pub const DUPLICATE_NAME: &str = "duplicate-name";
pub const ENCODING: &str = "encoding";
pub const HEADER: &str = "header";
pub const INDEX_DTYPE: &str = "index-dtype";
pub const INDEX_VALUE: &str = "index-value";
pub const INTERRUPTED: &str = "interrupted";
pub const IO: &str = "io";
pub const LOCKED: &str = "locked";
pub const LOGICAL_TYPE: &str = "logical-type";
pub const LOSSY: &str = "lossy";
pub const MANIFEST_SIZE: &str = "manifest-size";
pub const MISSING_COMPONENT: &str = "missing-component";
pub const MISUSE: &str = "misuse";
pub const NAMES: &str = "names";
pub const NO_LOCKS: &str = "no-locks";
pub const NOT_FOUND: &str = "not-found";
pub const NOT_ZT: &str = "not-zt";
pub const OVERLAP: &str = "overlap";
pub const OVERWRITE: &str = "overwrite";
pub const PADDING: &str = "padding";
pub const PATH: &str = "path";
pub const PICKLE: &str = "pickle";
pub const PICKLE_GLOBAL: &str = "pickle-global";
pub const REPLACED: &str = "replaced";
pub const SCHEMA: &str = "schema";
pub const SHAPE_SIZE_MISMATCH: &str = "shape-size-mismatch";
pub const STRUCTURE_LIMIT: &str = "structure-limit";
pub const TRUNCATED: &str = "truncated";
pub const UNKNOWN_KIND: &str = "unknown-kind";
pub const UNSUPPORTED: &str = "unsupported";
pub const VALUE: &str = "value";
pub const VERSION: &str = "version";
pub const ZSTD: &str = "zstd";

/// A warning with the code of an error.
pub(super) const TOLERATED: WarningInfo = WarningInfo { code: "the code of an error", from: "npy, npz, PyTorch, SQUIZD, SLM1", meaning: "a fault that the format forbids to writers, in data that still reads; a problem to `verify --strict` and `OpenOptions::strict`" };
