/* Opens a file, reads all of its tensors into fresh memory, and prints seconds and bytes: at once, or one by one.
 *
 *     cc -O2 benches/libzt.c $(pkg-config --cflags --libs zt) -o libzt && ./libzt plan model.gguf
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zt.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int failed(zt_error *error) {
    fprintf(stderr, "%s\n", zt_error_message(error));
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    if (argc != 3) return EXIT_FAILURE;
    zt_file *file = NULL;
    zt_error *error = NULL;
    double start = seconds();
    zt_open_options options = {.struct_size = sizeof options, .verify = ZT_VERIFY_NEVER};
    if (zt_file_open(argv[2], &options, &file, &error)) return failed(error);
    size_t count = zt_file_tensor_count(file);
    uint64_t byte_len = 0;
    zt_part *parts = calloc(count + 1, sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        uint64_t len;
        parts[i].tensor = zt_file_tensor_at(file, i);
        if (zt_tensor_byte_len(parts[i].tensor, ZT_NONE, &len, &error)) return failed(error);
        parts[i].byte_len = (size_t)len;
        parts[i].data = aligned_alloc(64, (parts[i].byte_len + 64) & ~(size_t)63);
        byte_len += len;
    }
    if (!strcmp(argv[1], "plan")) {
        if (zt_parts_read(parts, count, NULL, &error)) return failed(error);
    } else {
        for (size_t i = 0; i < count; i++) {
            if (zt_tensor_read(parts[i].tensor, ZT_NONE, parts[i].data, parts[i].byte_len, &error)) return failed(error);
        }
    }
    printf("%f %" PRIu64 "\n", seconds() - start, byte_len);
    return EXIT_SUCCESS;
}
