/*
 * zt.h - tensor files of every kind from C: safetensors, GGUF, PyTorch, ONNX, HDF5, NumPy, .zt and others.
 *
 *   zt_file *file = NULL;
 *   zt_error *error = NULL;
 *   if (zt_file_open("model.gguf", NULL, &file, &error) != ZT_OK) {
 *       fprintf(stderr, "%s\n", zt_error_message(error));
 *   }
 *   for (size_t i = 0; i < zt_file_tensor_count(file); i++) {
 *       const zt_tensor *tensor = zt_file_tensor_at(file, i);
 *       printf("%s %s\n", zt_tensor_name(tensor), zt_tensor_type(tensor));
 *   }
 *   zt_error_free(&error);
 *   zt_file_close(&file);
 *
 * Rules for every function:
 *
 *   Errors      A call that can fail returns a zt_status, and ZT_OK is 0. With another status it writes a new handle to
 *               *error, which zt_error_free frees. With ZT_OK *error stays as it was. `error` may be NULL.
 *   Handles     The caller frees handles that it got by a pointer to a pointer; a failed call sets them to NULL. Freeing
 *               sets the caller's pointer to NULL, and a NULL is not freed again. `const zt_tensor *`, texts and shapes
 *               are lent by the handle that gave them, and live as long as it does.
 *   NULL        A NULL where a handle, a text or memory is needed is ZT_MISUSE. Calls that cannot fail return 0 or NULL
 *               for it. Options may be NULL: that is their defaults.
 *   Structs     `struct_size` is the size of the struct: `zt_open_options options = {.struct_size = sizeof options};`
 *               Zero is the default of every other field.
 *   Texts       UTF-8 that ends with a NUL. Paths on Unix are any bytes. If a name in a file has a NUL within, U+2400 is
 *               in its place; zt_file_tensor_at reaches it.
 *   Threads     Any number of threads may use one zt_file, its tensors, a zt_report and a zt_error at a time. Calls on
 *               one zt_writer wait for each other. Freeing a handle is the last use of it.
 *   Border      Nothing is printed, no signal is handled, no state is global, and no panic or exception leaves a call.
 *               A bug of the library is ZT_PANIC.
 */
#ifndef ZT_H
#define ZT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ZT_API
#define ZT_API extern
#endif

/* What a call did. The numbers are stable; 1 to 6 are the exit codes of the program `zt`. */
typedef uint32_t zt_status;
enum {
    ZT_OK = 0,
    ZT_DIGEST_MISMATCH = 1, /* stored bytes are not those that were written */
    ZT_MISUSE = 2,          /* the call itself is wrong */
    ZT_MALFORMED = 3,       /* the file breaks a rule of its format */
    ZT_IO = 4,              /* the system could not read or write */
    ZT_UNSUPPORTED = 5,     /* this build or this call does not support it */
    ZT_LOCKED = 6,          /* another program is editing the file */
    ZT_LIMIT = 7,           /* the file needs more than the limits allow, or there is no memory */
    ZT_INTERRUPTED = 8,     /* the work was stopped */
    ZT_NOT_FOUND = 9,       /* there is no tensor or component of that name */
    ZT_PANIC = 10           /* a bug of this library */
};

/* How elements are stored. */
typedef uint32_t zt_dtype;
enum {
    ZT_NONE = 0, /* not known; or: as it is stored */
    ZT_F64 = 1,
    ZT_F32 = 2,
    ZT_F16 = 3,
    ZT_BF16 = 4,
    ZT_I64 = 5,
    ZT_I32 = 6,
    ZT_I16 = 7,
    ZT_I8 = 8,
    ZT_U64 = 9,
    ZT_U32 = 10,
    ZT_U16 = 11,
    ZT_U8 = 12,
    ZT_BOOL = 13 /* a byte: read it as uint8_t, because a file may have others than 0 and 1 */
};

typedef struct zt_file zt_file;
typedef struct zt_tensor zt_tensor;
typedef struct zt_writer zt_writer;
typedef struct zt_report zt_report;
typedef struct zt_error zt_error;

/* ---- The library --------------------------------------------------------------------------------------------- */

/* Its version, such as "0.1.0". Static. */
ZT_API const char *zt_version(void);

/* The name of a status, such as "malformed". Static. */
ZT_API const char *zt_status_name(zt_status status);

/* The name of a type, such as "bf16". Static. */
ZT_API const char *zt_dtype_name(zt_dtype dtype);

/* Bytes of one element; 0 for ZT_NONE. */
ZT_API size_t zt_dtype_byte_len(zt_dtype dtype);

/* ---- Errors -------------------------------------------------------------------------------------------------- */

/* Its status. ZT_OK for NULL, and for a warning in a report. */
ZT_API zt_status zt_error_status(const zt_error *error);

/* Its stable code, such as "not-zt" or "bounds": spec/errors.md lists all. Compare this, and not the message. */
ZT_API const char *zt_error_code(const zt_error *error);

/* A line for people: the place, and what is wrong. */
ZT_API const char *zt_error_message(const zt_error *error);

/* The name of the tensor at fault; NULL if there is not just one. */
ZT_API const char *zt_error_object(const zt_error *error);

/* The role of the component at fault; NULL if there is not just one. */
ZT_API const char *zt_error_component(const zt_error *error);

/* The path of the file at fault; NULL if it is not known. */
ZT_API const char *zt_error_path(const zt_error *error);

/* Whether the bytes at fault are known, and where they are: from *begin to before *end. */
ZT_API bool zt_error_place(const zt_error *error, uint64_t *begin, uint64_t *end);

/* Frees an error that a call has made, and not one of a report. */
ZT_API void zt_error_free(zt_error **error);

/* ---- Reading files ------------------------------------------------------------------------------------------- */

typedef uint32_t zt_verify;
enum {
    ZT_VERIFY_ON_READ = 0, /* a digest is compared when its bytes are first read as a whole */
    ZT_VERIFY_ALWAYS = 1,  /* at every such read; bytes that are lent are compared the first time */
    ZT_VERIFY_NEVER = 2
};

typedef struct zt_open_options {
    size_t struct_size;
    const char *kind; /* such as "gguf"; NULL: the bytes decide */
    zt_verify verify;
    int32_t map;       /* 1: zt_tensor_borrow lends from a map of the file. By that you promise that no program changes
                          the file while it is open: values would change, and a cut file ends the process (SIGBUS). */
    int32_t strict;    /* 1: one faulty tensor refuses the file */
    int32_t truncated; /* 1: a file whose end is missing opens with the tensors that are there */
    int32_t logical;   /* 1: quantized checkpoints open as the weights that their codes and scales mean */
    int32_t reserved;
    uint64_t max_decoded_len;  /* of a component; 0: 64 GiB */
    uint64_t max_manifest_len; /* of the manifest or the header; 0: 1 GiB */
} zt_open_options;

/* Bytes that functions of the caller read. Both functions may be called from any thread. `read_at` may be called from
 * several at once, and is never called beyond `byte_len`. They may call functions of this header, on other files. They
 * return: an exception or a longjmp out of them ends the process. */
typedef struct zt_source {
    size_t struct_size;
    void *user_data;
    uint64_t byte_len;
    int32_t (*read_at)(void *user_data, uint64_t offset, void *buffer, size_t byte_len); /* fills all; 0: done */
    void (*close)(void *user_data); /* called once, also if the file does not open; NULL: nothing to do */
} zt_source;

/* Opens what a user typed: a file, the index of a sharded set, a folder with one model, or a URL (s3, gs, az, https, hf)
 * in a build with the feature `remote`. Tensors are not read yet. The file is read by position. */
ZT_API zt_status zt_file_open(const char *location, const zt_open_options *options, zt_file **file, zt_error **error);

/* Opens a file that is in memory. Without `copy` the memory is lent: it stays and does not change until the file is
 * closed and every DLPack tensor of it is given back. */
ZT_API zt_status zt_file_open_memory(const void *data, size_t byte_len, bool copy, const zt_open_options *options,
                zt_file **file, zt_error **error);

/* Opens a file that functions of the caller read. The struct is copied. */
ZT_API zt_status zt_file_open_source(const zt_source *source, const zt_open_options *options, zt_file **file,
                zt_error **error);

/* Closes a file. Its tensors, texts and lent values are gone; DLPack tensors stay. */
ZT_API void zt_file_close(zt_file **file);

/* The kind of the file, such as "safetensors". */
ZT_API const char *zt_file_kind(const zt_file *file);

/* The attributes of the file as a JSON object; "{}" if it has none. Bytes are {"$bytes": "AQI="}. */
ZT_API zt_status zt_file_attributes(const zt_file *file, const char **json, zt_error **error);

/* How many tensors there are, faulty ones included. */
ZT_API size_t zt_file_tensor_count(const zt_file *file);

/* The tensor at a place, in the order of the file's index; NULL behind the last one. */
ZT_API const zt_tensor *zt_file_tensor_at(const zt_file *file, size_t index);

/* The tensor of that name; NULL if there is none. */
ZT_API const zt_tensor *zt_file_tensor(const zt_file *file, const char *name);

/* What a user should know and that is no error, such as contents that are no tensors. */
ZT_API zt_status zt_file_warnings(const zt_file *file, zt_report **report, zt_error **error);

/* Reads all of the file: formats, digests, contents. ZT_OK says that all was looked at: the report has the problems.
 * `strict` also reports what readers tolerate. Cost: all of the file, on all cores. */
ZT_API zt_status zt_file_verify(const zt_file *file, bool strict, zt_report **report, zt_error **error);

/* The identity of the tensors as `zt hash` prints it: "sha256:" and 64 digits. `text` has at least 72 bytes. Two files
 * of any kinds with equal tensors have one identity. Cost: all of the file. */
ZT_API zt_status zt_file_hash(const zt_file *file, char *text, size_t text_len, zt_error **error);

/* The number of problems or warnings. */
ZT_API size_t zt_report_count(const zt_report *report);

/* One of them, lent by the report; NULL behind the last one. */
ZT_API const zt_error *zt_report_at(const zt_report *report, size_t index);

/* Frees a report. */
ZT_API void zt_report_free(zt_report **report);

/* ---- Tensors ------------------------------------------------------------------------------------------------- */

/* Places of one dimension: `start`, `start + step`, ..., `count` of them. A step of 0 is 1. */
typedef struct zt_range {
    uint64_t start;
    uint64_t count;
    uint64_t step;
} zt_range;

/* Its name. */
ZT_API const char *zt_tensor_name(const zt_tensor *tensor);

/* The number of its dimensions; *shape are the dimensions, outermost first. */
ZT_API size_t zt_tensor_shape(const zt_tensor *tensor, const uint64_t **shape);

/* How its values are stored if they are dense, and otherwise the type of its dense values: ZT_F32 for q4_k. ZT_NONE
 * if it has no dense values. */
ZT_API zt_dtype zt_tensor_dtype(const zt_tensor *tensor);

/* The name of the type of its values, such as "f32", "f8_e4m3fn" or "q4_k"; NULL if the file does not record it. */
ZT_API const char *zt_tensor_type(const zt_tensor *tensor);

/* How its components make its value, such as "dense" or "sparse_csr"; "" for a tensor that cannot be read at all. */
ZT_API const char *zt_tensor_format(const zt_tensor *tensor);

/* The attributes of the tensor as a JSON object; "{}" if it has none. */
ZT_API zt_status zt_tensor_attributes(const zt_tensor *tensor, const char **json, zt_error **error);

/* ZT_OK, or why the tensor has no value. Its components may be readable all the same. */
ZT_API zt_status zt_tensor_fault(const zt_tensor *tensor, zt_error **error);

/* Bytes of its values, in `dtype` or, for ZT_NONE, in the type of zt_tensor_dtype. */
ZT_API zt_status zt_tensor_byte_len(const zt_tensor *tensor, zt_dtype dtype, uint64_t *byte_len, zt_error **error);

/* Lends the values without a copy, until the file is closed: of dense, uncompressed tensors whose file is in memory or
 * was opened with `map`, if they are aligned there. Otherwise ZT_UNSUPPORTED: read them. The first call compares the
 * digest. The memory is read-only. */
ZT_API zt_status zt_tensor_borrow(const zt_tensor *tensor, const void **data, size_t *byte_len, zt_error **error);

/* Copies the values, row by row, in the byte order of this machine. `byte_len` is exactly zt_tensor_byte_len. With
 * `dtype` floating-point values are rounded to another type; ZT_F32 takes integers, too. Sparse tensors are filled in,
 * and quantized ones are dequantized. After an error the memory has unspecified values. */
ZT_API zt_status zt_tensor_read(const zt_tensor *tensor, zt_dtype dtype, void *data, size_t byte_len, zt_error **error);

/* Copies `count` places of the first dimension from `first` on. Only these are read and decoded. */
ZT_API zt_status zt_tensor_rows(const zt_tensor *tensor, uint64_t first, uint64_t count, zt_dtype dtype, void *data,
                size_t byte_len, zt_error **error);

/* Copies a part: a range for each of the first dimensions, and all of the others. */
ZT_API zt_status zt_tensor_slice(const zt_tensor *tensor, const zt_range *ranges, size_t range_count, zt_dtype dtype,
                void *data, size_t byte_len, zt_error **error);

/* From <dlpack/dlpack.h> 1.0 or later. */
struct DLManagedTensorVersioned;

/* The values for a library with DLPack: lent as by zt_tensor_borrow and read-only, otherwise a copy if `copy` is true.
 * The consumer calls its deleter once, from any thread, also after the file was closed. */
ZT_API zt_status zt_tensor_dlpack(const zt_tensor *tensor, bool copy, struct DLManagedTensorVersioned **managed,
                zt_error **error);

/* Stored parts of a tensor: one with the role "data" if it is dense; "values" and "indices" of sparse ones. */
typedef struct zt_component {
    size_t struct_size;
    const char *role;
    const char *logical_type; /* what elements mean; NULL if that is their dtype */
    const char *encoding;     /* "raw" or "zstd" */
    zt_dtype dtype;           /* ZT_NONE if the file does not record it */
    int32_t has_digest;
    uint64_t byte_len;        /* decoded */
    uint64_t stored_len;      /* in the file */
} zt_component;

/* How many components it has. */
ZT_API size_t zt_tensor_component_count(const zt_tensor *tensor);

/* Fills the struct, whose `struct_size` the caller has set. Its texts live as long as the file. */
ZT_API zt_status zt_tensor_component(const zt_tensor *tensor, size_t index, zt_component *component, zt_error **error);

/* Lends the bytes of a component, little-endian, as zt_tensor_borrow does. */
ZT_API zt_status zt_tensor_component_borrow(const zt_tensor *tensor, size_t index, const void **data, size_t *byte_len,
                zt_error **error);

/* Copies a component, decoded, in the byte order of this machine. `byte_len` is exactly that of zt_tensor_component. */
ZT_API zt_status zt_tensor_component_read(const zt_tensor *tensor, size_t index, void *data, size_t byte_len,
                zt_error **error);

/* A tensor or a part of one, and the memory for its values. */
typedef struct zt_part {
    const zt_tensor *tensor;
    const zt_range *ranges; /* as for zt_tensor_slice; NULL with 0 ranges for all of it */
    size_t range_count;
    void *data;
    size_t byte_len;
    zt_dtype dtype;
    zt_status status; /* out: what became of the part */
} zt_part;

typedef struct zt_read_options {
    size_t struct_size;
    uint64_t memory;    /* the most bytes that are read ahead; 0: 256 MiB */
    uint32_t threads;   /* for reading and decoding; 0: all cores */
    int32_t past_cache; /* 1: large values are read past the system's cache, on Linux */
} zt_read_options;

/* Reads many parts, of any files, in the order of the files and on all cores. Whole raw tensors go straight into the
 * caller's memory. No two parts share memory. A part that fails does not stop the others: its status says so, and the
 * call returns the error of the first. */
ZT_API zt_status zt_parts_read(zt_part *parts, size_t count, const zt_read_options *options, zt_error **error);

/* ---- Writing ------------------------------------------------------------------------------------------------- */

typedef uint32_t zt_compression;
enum {
    ZT_RAW = 0,
    ZT_ZSTD = 1,
    ZT_PLANES = 2 /* byte planes: bf16 takes a third less, without loss. An experiment. */
};

typedef uint32_t zt_digest;
enum { ZT_CRC32C = 0, ZT_SHA256 = 1, ZT_NO_DIGEST = 2 };

typedef struct zt_write_options {
    size_t struct_size;
    zt_compression compression;
    int32_t level; /* of zstd, -7 to 22; 0: 3 */
    zt_digest digest;
    uint32_t threads;   /* 0: all cores */
    int32_t create_new; /* 1: an existing file is an error, and not replaced */
    int32_t reserved;
} zt_write_options;

typedef struct zt_object {
    size_t struct_size;
    const char *name;
    zt_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;    /* outermost first */
    const char *logical_type; /* such as "f8_e4m3fn" over ZT_U8; NULL: values of the dtype */
    const char *attributes;   /* a JSON object; NULL: none */
} zt_object;

/* Begins a .zt file. It appears under its name when the writer finishes, complete, or never. */
ZT_API zt_status zt_writer_create(const char *path, const zt_write_options *options, zt_writer **writer,
                zt_error **error);

/* Sets the attributes of the file: a JSON object. */
ZT_API zt_status zt_writer_set_attributes(zt_writer *writer, const char *json, zt_error **error);

/* Adds a dense tensor: its values row by row. They may change once the call returns. A tensor that is refused leaves
 * the writer as it was; after ZT_IO every call fails. */
ZT_API zt_status zt_writer_add(zt_writer *writer, const zt_object *object, const void *data, size_t byte_len,
                zt_error **error);

/* Begins a dense tensor whose bytes come in pieces. Until zt_writer_end the writer takes nothing else. */
ZT_API zt_status zt_writer_begin(zt_writer *writer, const zt_object *object, zt_error **error);

/* The next bytes of that tensor. An error ends the writer. */
ZT_API zt_status zt_writer_write(zt_writer *writer, const void *data, size_t byte_len, zt_error **error);

/* The tensor is whole. It is an error if bytes are missing. */
ZT_API zt_status zt_writer_end(zt_writer *writer, zt_error **error);

/* Adds a tensor of an open file under a name, with its format and its attributes. */
ZT_API zt_status zt_writer_copy(zt_writer *writer, const char *name, const zt_tensor *tensor, zt_error **error);

/* Writes the rest, waits for the disk, and gives the file its name. Later calls are ZT_MISUSE. */
ZT_API zt_status zt_writer_finish(zt_writer *writer, zt_error **error);

/* Frees a writer. If it has not finished, nothing is left of its file. */
ZT_API void zt_writer_free(zt_writer **writer);

typedef struct zt_convert_options {
    size_t struct_size;
    const char *kind;              /* such as "safetensors"; NULL: the extension of `to` decides */
    const char *dtype;             /* floating-point values are rounded to it, such as "bf16"; NULL: none */
    const zt_write_options *write; /* of a .zt; NULL: components keep their compression and digest. `create_new` is
                                      not used. */
    int32_t dense;                 /* 1: sparse and quantized tensors become dense */
    int32_t lossy;                 /* 1: what the kind cannot represent is left out, with a warning for each */
    int32_t overwrite;             /* 1: an existing file is replaced */
    int32_t reserved;
} zt_convert_options;

/* Writes a file, a set, a folder or a URL of any kind as one file of any kind that is written (zt, safetensors, gguf,
 * npy, npz, squizd), all of it or nothing. Memory is bounded. *warnings, unless NULL, gets a report. */
ZT_API zt_status zt_convert(const char *from, const char *to, const zt_convert_options *options, zt_report **warnings,
                zt_error **error);

#ifdef __cplusplus
}
#endif

#endif
