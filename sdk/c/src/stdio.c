// The operating system for a plugin without one: what libc asks of WASI preview 1.
//
// Lines written to stdout and stderr become lines of the log. There are no files, no clock, no
// random numbers and no environment: libc's functions for them return their errors. These functions
// take the place of the imports, so that the host needs no WASI to run the plugin.
#include <stdio.h>

#include "call.h"

#if defined(__wasm__) && !defined(GM_WASI)

enum { SUCCESS = 0, BAD_DESCRIPTOR = 8, NOT_SUPPORTED = 58, NO_SYSTEM_CALL = 52 };

#define SYSTEM_CALL(name) __imported_wasi_snapshot_preview1_##name

#define LINE_MAX 1024

typedef struct {
    char text[LINE_MAX];
    size_t size;
} line;

static line lines[2];

static void write_line(int descriptor) {
    line *line = &lines[descriptor - 1];
    imports_string_t message = {(uint8_t *)line->text, line->size};
    gristmill_plugin_log_list_field_t fields = {NULL, 0};
    gristmill_plugin_log_write(descriptor == 1 ? GRISTMILL_PLUGIN_LOG_LEVEL_INFO
                                               : GRISTMILL_PLUGIN_LOG_LEVEL_WARN,
                               &message, &fields);
    line->size = 0;
}

static void put(int descriptor, char character) {
    line *line = &lines[descriptor - 1];
    // A long line is cut before a character of UTF-8, not within.
    if (character == '\n' || (line->size >= LINE_MAX - 4 && (character & 0xc0) != 0x80)) {
        write_line(descriptor);
        if (character == '\n') return;
    }
    if (line->size < LINE_MAX) line->text[line->size++] = character;
}

int32_t SYSTEM_CALL(fd_write)(int32_t descriptor, int32_t vectors, int32_t count, int32_t written) {
    if (descriptor != 1 && descriptor != 2) return BAD_DESCRIPTOR;
    const struct {
        const char *data;
        size_t size;
    } *vector = (const void *)vectors;
    size_t total = 0;
    for (int32_t index = 0; index < count; index++) {
        for (size_t at = 0; at < vector[index].size; at++) put(descriptor, vector[index].data[at]);
        total += vector[index].size;
    }
    *(size_t *)written = total;
    return SUCCESS;
}

int32_t SYSTEM_CALL(fd_fdstat_get)(int32_t descriptor, int32_t out) {
    if (descriptor < 0 || descriptor > 2) return BAD_DESCRIPTOR;
    __builtin_memset((void *)out, 0, 24);
    *(uint8_t *)out = 2;           // a character device,
    *(uint64_t *)(out + 8) = 0x40; // that can be written: libc then keeps no more than a line
    return SUCCESS;
}

int32_t SYSTEM_CALL(fd_close)(int32_t descriptor) {
    return descriptor >= 0 && descriptor <= 2 ? SUCCESS : BAD_DESCRIPTOR;
}

int32_t SYSTEM_CALL(fd_seek)(int32_t descriptor, int64_t offset, int32_t whence, int32_t out) {
    (void)offset, (void)whence, (void)out;
    return descriptor >= 0 && descriptor <= 2 ? 70 /* not seekable */ : BAD_DESCRIPTOR;
}

int32_t SYSTEM_CALL(fd_read)(int32_t descriptor, int32_t vectors, int32_t count, int32_t out) {
    (void)vectors, (void)count;
    if (descriptor != 0) return BAD_DESCRIPTOR;
    *(size_t *)out = 0;
    return SUCCESS;
}

int32_t SYSTEM_CALL(fd_prestat_get)(int32_t descriptor, int32_t out) {
    (void)descriptor, (void)out;
    return BAD_DESCRIPTOR;
}

int32_t SYSTEM_CALL(fd_prestat_dir_name)(int32_t descriptor, int32_t out, int32_t size) {
    (void)descriptor, (void)out, (void)size;
    return BAD_DESCRIPTOR;
}

int32_t SYSTEM_CALL(path_open)(int32_t descriptor, int32_t flags, int32_t path, int32_t size,
                               int32_t open, int64_t base, int64_t inherited, int32_t more,
                               int32_t out) {
    (void)descriptor, (void)flags, (void)path, (void)size, (void)open, (void)base;
    (void)inherited, (void)more, (void)out;
    return NOT_SUPPORTED;
}

int32_t SYSTEM_CALL(environ_sizes_get)(int32_t count, int32_t size) {
    *(size_t *)count = 0;
    *(size_t *)size = 0;
    return SUCCESS;
}

int32_t SYSTEM_CALL(environ_get)(int32_t variables, int32_t buffer) {
    (void)variables, (void)buffer;
    return SUCCESS;
}

int32_t SYSTEM_CALL(clock_time_get)(int32_t clock, int64_t precision, int32_t out) {
    (void)clock, (void)precision, (void)out;
    return NO_SYSTEM_CALL;
}

int32_t SYSTEM_CALL(clock_res_get)(int32_t clock, int32_t out) {
    (void)clock, (void)out;
    return NO_SYSTEM_CALL;
}

int32_t SYSTEM_CALL(random_get)(int32_t buffer, int32_t size) {
    (void)buffer, (void)size;
    return NO_SYSTEM_CALL;
}

int32_t SYSTEM_CALL(poll_oneoff)(int32_t in, int32_t out, int32_t count, int32_t events) {
    (void)in, (void)out, (void)count, (void)events;
    return NO_SYSTEM_CALL;
}

int32_t SYSTEM_CALL(sched_yield)(void) {
    return SUCCESS;
}

_Noreturn void SYSTEM_CALL(proc_exit)(int32_t status) {
    gm_panic_at(NULL, 0, "exit(%d) was called", (int)status);
}

// All that needs a file, a folder or an argument of the command line.
#define REFUSED(name, ...)                   \
    int32_t SYSTEM_CALL(name)(__VA_ARGS__) { \
        return NOT_SUPPORTED;                \
    }

REFUSED(args_get, int32_t a, int32_t b)
REFUSED(args_sizes_get, int32_t a, int32_t b)
REFUSED(fd_fdstat_set_flags, int32_t a, int32_t b)
REFUSED(fd_filestat_get, int32_t a, int32_t b)
REFUSED(fd_filestat_set_size, int32_t a, int64_t b)
REFUSED(fd_readdir, int32_t a, int32_t b, int32_t c, int64_t d, int32_t e)
REFUSED(fd_renumber, int32_t a, int32_t b)
REFUSED(fd_sync, int32_t a)
REFUSED(fd_tell, int32_t a, int32_t b)
REFUSED(path_create_directory, int32_t a, int32_t b, int32_t c)
REFUSED(path_filestat_get, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e)
REFUSED(path_remove_directory, int32_t a, int32_t b, int32_t c)
REFUSED(path_rename, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f)
REFUSED(path_unlink_file, int32_t a, int32_t b, int32_t c)

void gm_flush_output(void) {
    fflush(NULL);
    for (int descriptor = 1; descriptor <= 2; descriptor++) {
        if (lines[descriptor - 1].size) write_line(descriptor);
    }
}
#else
void gm_flush_output(void) {
    fflush(NULL);
}
#endif
