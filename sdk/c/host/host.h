// The reference host's resources. It implements the functions of bindings/imports.h.
#ifndef GM_HOST_INTERNAL_H
#define GM_HOST_INTERNAL_H

#include "../bindings/imports.h"
#include "gristmill_host.h"

typedef enum {
    HOST_FREE,
    HOST_TENSOR,
    HOST_PIXELS,
    HOST_BLOB,
    HOST_CONTEXT,
    HOST_REQUEST
} host_kind;

typedef struct {
    gm_dtype dtype;
    gm_shape shape;
    gm_bytes data;
} host_tensor;

typedef struct {
    uint32_t width;
    uint32_t height;
    gm_color color;
    gm_bytes data;
} host_pixels;

typedef struct {
    host_kind kind;
    union {
        host_tensor tensor;
        host_pixels pixels;
        gm_bytes blob;
        const gm_host_request *request; // of HOST_CONTEXT, too
    };
} host_resource;

// Memory until gm_host_reset.
void *host_alloc(size_t size);
void *host_copy(const void *data, size_t size);
char *host_format(const char *format, ...) GM_PRINTF(1, 2);

// A new resource's handle.
int32_t host_hold(host_resource resource);

// The resource of a handle. A wrong handle ends the test.
host_resource *host_get(int32_t handle, host_kind kind);

void host_drop(int32_t handle, host_kind kind);

// A text or a list for the plugin: copied into the call's memory.
imports_string_t host_give_text(const char *text);
imports_list_u8_t host_give_bytes(gm_bytes bytes, uint64_t offset, uint64_t length);

// The bytes of a text in base64 or a data URL. Returns what is wrong with it, or NULL.
const char *host_base64(const char *text, gm_bytes *out);

// Forget what a test has kept, its models, services, tokenizers and tables, before their memory is
// freed.
void host_forget_kept(void);
void host_forget_models(void);
void host_forget_services(void);
void host_forget_tokenizers(void);
void host_forget_tables(void);

// Tensors of a test as a model's outputs.
gristmill_plugin_tensors_named_tensor_t *host_give_outputs(const gm_host_tensor *outputs,
                                                           size_t outputs_count);

static inline size_t host_channels(gm_color color) {
    return color == GM_GRAY ? 1 : 3;
}

// Why bytes are not a valid tensor, NULL if they are. The lengths are set if these are why.
bool host_tensor_is_valid(gm_dtype dtype, gm_shape shape, gm_bytes data,
                          gristmill_plugin_tensors_tensor_error_t *error);

#endif
