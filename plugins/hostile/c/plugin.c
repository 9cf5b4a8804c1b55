// Misbehaves through wasi-libc, and as only C can. `?do=` names the deed, as for the plugin
// `hostile`.
//
// It is for the model `digits`, which gets a blank picture if nothing ends the deed. The answer is
// the number of calls that this instance has begun: 1 in a fresh one.
#include <gristmill_plugin.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wasi/api.h>

enum { MEBIBYTE = 1 << 20, SIDE = 28, PAGE_BYTES = 1 << 16 };

typedef gm_status deed(void);

static uint32_t calls;

static gm_status loop(void) {
    for (volatile int round = 0;; round++) continue;
}

static gm_status memory(void) {
    // Volatile, or the compiler leaves out what nobody reads.
    static void *volatile taken;
    for (;;) {
        taken = malloc(MEBIBYTE);
        if (!taken) abort();
        memset(taken, 1, MEBIBYTE);
    }
}

// The SDK's own memory, which ends the call where there is none.
static gm_status arena(void) {
    for (;;) memset(gm_alloc(MEBIBYTE), 1, MEBIBYTE);
}

static int deeper(int depth) {
    volatile char frame[256];
    frame[depth % 256] = (char)depth;
    return depth == INT32_MAX ? 0 : deeper(depth + 1) + frame[(depth + 1) % 256];
}

static gm_status recurse(void) {
    return deeper(0) ? GM_OK : GM_INTERNAL;
}

static gm_status print(void) {
    for (int line = 0; line < 100000; line++) printf("%01000d\n", line);
    return GM_OK;
}

static gm_status write_log(void) {
    for (int line = 0; line < 100000; line++) gm_log(GM_INFO, "%01000d", line);
    return GM_OK;
}

static gm_status wait(void) {
    for (;;) (void)sleep(3600);
}

static gm_status random_bytes(void) {
    static uint8_t bytes[MEBIBYTE];
    for (;;) (void)__wasi_random_get(bytes, sizeof bytes);
}

static gm_status fail(void) {
    return gm_internal("as told");
}

static gm_status panic(void) {
    gm_panic("as told");
}

static gm_status call_abort(void) {
    abort();
}

static gm_status call_exit(void) {
    exit(3);
}

// Far beyond the end of memory.
static gm_status wild_write(void) {
    *(volatile int *)0xfffffff0u = 1;
    return GM_OK;
}

static gm_status null_call(void) {
    deed *volatile nothing = NULL;
    return nothing();
}

static gm_status divide(void) {
    volatile int number = 1, zero = 0;
    number = number / zero;
    return GM_OK;
}

// Everything that it has: its stack, its variables and its heap.
static gm_status overwrite(void) {
    unsigned char *volatile begin = NULL;
    memset(begin, 0xff, (size_t)__builtin_wasm_memory_size(0) * PAGE_BYTES);
    return GM_OK;
}

static const struct {
    const char *name;
    deed *does;
} deeds[] = {
    {"loop", loop},
    {"memory", memory},
    {"arena", arena},
    {"recurse", recurse},
    {"print", print},
    {"log", write_log},
    {"sleep", wait},
    {"random", random_bytes},
    {"fail", fail},
    {"panic", panic},
    {"abort", call_abort},
    {"exit", call_exit},
    {"wild-write", wild_write},
    {"null-call", null_call},
    {"divide", divide},
    {"overwrite", overwrite},
    // These are done below.
    {"wrong-dtype", NULL},
    {"wrong-shape", NULL},
    {"huge-answer", NULL},
    {"answer-loop", NULL},
};

static gm_status do_deed(const char *name) {
    for (size_t at = 0; at < sizeof deeds / sizeof *deeds; at++) {
        if (strcmp(name, deeds[at].name) == 0) return deeds[at].does ? deeds[at].does() : GM_OK;
    }
    return *name ? gm_internal("there is no deed \"%s\"", name) : GM_OK;
}

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    calls++;
    const char *name = gm_request_query_value(request, "do");
    if (!name) name = "";
    GM_TRY(do_deed(name));
    // Long enough for both dtypes.
    static const int64_t zeros[SIDE * SIDE];
    bool is_wrong = strcmp(name, "wrong-dtype") == 0;
    gm_dtype dtype = is_wrong ? GM_INT64 : GM_FLOAT32;
    gm_shape shape = strcmp(name, "wrong-shape") == 0 ? GM_SHAPE(1, SIDE *SIDE)
                                                      : GM_SHAPE(1, 1, SIDE, SIDE);
    gm_tensor *input;
    size_t size = SIDE * SIDE * gm_dtype_size(dtype);
    GM_TRY(gm_tensor_create(dtype, shape, zeros, size, &input));
    char *state = gm_format("%s %u", name, (unsigned)calls);
    gm_prepared_state(prepared, state, strlen(state));
    return gm_prepared_input(prepared, "input", input);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context, (void)outputs;
    const char *space = memchr(state.data, ' ', state.size);
    if (!space) return gm_internal("the state has no space");
    char *name = gm_format("%.*s", (int)(space - (const char *)state.data), state.data);
    if (strcmp(name, "answer-loop") == 0) return loop();
    if (strcmp(name, "huge-answer") == 0) {
        size_t size = 20 * MEBIBYTE;
        gm_response_body(response, "application/octet-stream", gm_alloc(size), size);
        return GM_OK;
    }
    size_t digits = state.size - (size_t)(space + 1 - (const char *)state.data);
    gm_response_text(response, "%.*s", (int)digits, space + 1);
    return GM_OK;
}
