/* Prints the tensors of MODEL, compresses WEIGHTS to FOLDER/weights.zt, reads ten rows of a matrix in it, and writes them to
 * FOLDER/rows.safetensors.
 *
 *     cc list.c $(pkg-config --cflags --libs zt) -o list && ./list model.gguf weights.safetensors folder
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <zt.h>

enum { ROWS = 10 };

static int failed(zt_error *error) {
    fprintf(stderr, "%s [%s]\n", zt_error_message(error), zt_error_code(error));
    zt_error_free(&error);
    return EXIT_FAILURE;
}

static int print_tensors(const char *path) {
    zt_file *file = NULL;
    zt_error *error = NULL;
    if (zt_file_open(path, NULL, &file, &error) != ZT_OK) return failed(error);
    printf("%s: %zu tensors\n", zt_file_kind(file), zt_file_tensor_count(file));
    for (size_t i = 0; i < zt_file_tensor_count(file); i++) {
        const zt_tensor *tensor = zt_file_tensor_at(file, i);
        const char *type = zt_tensor_type(tensor);
        const uint64_t *shape;
        size_t rank = zt_tensor_shape(tensor, &shape);
        printf("%s %s [", zt_tensor_name(tensor), type ? type : "?");
        for (size_t j = 0; j < rank; j++) printf("%s%" PRIu64, j ? ", " : "", shape[j]);
        printf("]\n");
    }
    zt_file_close(&file);
    return EXIT_SUCCESS;
}

/* The first matrix with enough rows. */
static const zt_tensor *find_matrix(const zt_file *file, uint64_t *width) {
    for (size_t i = 0; i < zt_file_tensor_count(file); i++) {
        const zt_tensor *tensor = zt_file_tensor_at(file, i);
        const uint64_t *shape;
        if (zt_tensor_shape(tensor, &shape) == 2 && shape[0] >= ROWS) {
            *width = shape[1];
            return tensor;
        }
    }
    return NULL;
}

static int write_rows(const char *path, const char *name, const float *rows, uint64_t width) {
    zt_writer *writer = NULL;
    zt_error *error = NULL;
    uint64_t shape[2] = {ROWS, width};
    zt_object object = {.struct_size = sizeof object, .name = name, .dtype = ZT_F32, .rank = 2, .shape = shape};
    size_t byte_len = (size_t)(ROWS * width) * sizeof *rows;
    if (zt_writer_create(path, NULL, &writer, &error) == ZT_OK &&
        zt_writer_add(writer, &object, rows, byte_len, &error) == ZT_OK) {
        zt_writer_finish(writer, &error);
    }
    zt_writer_free(&writer); /* nothing is left of a file that has not finished */
    return error ? failed(error) : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    char weights[4096], rows_zt[4096], rows_safetensors[4096];
    zt_error *error = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL WEIGHTS FOLDER\n", argv[0]);
        return EXIT_FAILURE;
    }
    snprintf(weights, sizeof weights, "%s/weights.zt", argv[3]);
    snprintf(rows_zt, sizeof rows_zt, "%s/rows.zt", argv[3]);
    snprintf(rows_safetensors, sizeof rows_safetensors, "%s/rows.safetensors", argv[3]);
    if (print_tensors(argv[1])) return EXIT_FAILURE;

    zt_write_options write = {.struct_size = sizeof write, .compression = ZT_ZSTD};
    zt_convert_options convert = {.struct_size = sizeof convert, .write = &write, .overwrite = 1};
    if (zt_convert(argv[2], weights, &convert, NULL, &error)) return failed(error);

    zt_file *file = NULL;
    if (zt_file_open(weights, NULL, &file, &error)) return failed(error);
    uint64_t width = 0;
    const zt_tensor *matrix = find_matrix(file, &width);
    if (!matrix) {
        fprintf(stderr, "%s has no matrix of %d rows\n", weights, ROWS);
        zt_file_close(&file);
        return EXIT_FAILURE;
    }
    size_t byte_len = (size_t)(ROWS * width) * sizeof(float);
    float *rows = malloc(byte_len);
    int status = EXIT_FAILURE;
    /* The file is compressed: only the frames of these rows are decoded. */
    if (!rows || zt_tensor_rows(matrix, 0, ROWS, ZT_F32, rows, byte_len, &error)) {
        status = failed(error);
    } else {
        printf("%s: %d rows of %" PRIu64 ", the first begins with %.4f\n", zt_tensor_name(matrix), ROWS, width, rows[0]);
        status = write_rows(rows_zt, zt_tensor_name(matrix), rows, width);
    }
    free(rows);
    zt_file_close(&file);
    if (status) return status;

    zt_convert_options plain = {.struct_size = sizeof plain, .overwrite = 1};
    if (zt_convert(rows_zt, rows_safetensors, &plain, NULL, &error)) return failed(error);
    return EXIT_SUCCESS;
}
