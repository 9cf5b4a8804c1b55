// Handles of the host's resources, dropped when the call returns.
#ifndef GM_HANDLE_H
#define GM_HANDLE_H

#include "../bindings/imports.h"
#include "gristmill_plugin.h"

typedef enum { GM_HANDLE_TENSOR, GM_HANDLE_PIXELS, GM_HANDLE_BLOB } gm_handle_kind;

// A resource that the call owns.
typedef struct gm_held {
    int32_t number;
    bool is_held; // false once it was given away or dropped
    gm_handle_kind kind;
    struct gm_held *older;
} gm_held;

struct gm_tensor {
    gm_held handle;
};

struct gm_pixels {
    gm_held handle;
};

struct gm_blob {
    gm_held handle;
};

// Takes over a resource from the host. It is a gm_tensor, gm_pixels or gm_blob by its kind.
void *gm_hold(gm_handle_kind kind, int32_t number);

// The number to pass to the host. Using a handle that was given away is a fault of the plugin.
int32_t gm_number_of(const gm_held *handle);

// Gives a handle to the host, which owns it from now on.
int32_t gm_give(gm_held *handle);

// Drops a handle now.
void gm_drop(gm_held *handle);

// Drops all that are held.
void gm_drop_all(void);

// A text of the plugin for the host.
static inline imports_string_t gm_text(const char *text) {
    return (imports_string_t){(uint8_t *)text, __builtin_strlen(text)};
}

// A text of the host: gm_alloc's memory, with a NUL behind it.
static inline const char *gm_text_of(imports_string_t text) {
    return text.len ? (const char *)text.ptr : "";
}

#endif
