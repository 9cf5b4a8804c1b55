// Handles of the host's resources, dropped when the call returns.
#include "handle.h"

static gm_held *newest;

void *gm_hold(gm_handle_kind kind, int32_t number) {
    gm_held *handle = gm_alloc(sizeof *handle);
    *handle = (gm_held){number, true, kind, newest};
    newest = handle;
    return handle;
}

int32_t gm_number_of(const gm_held *handle) {
    if (!handle->is_held)
        gm_panic_at(NULL, 0,
                    "a tensor, picture or blob was used after it was given away or dropped");
    return handle->number;
}

int32_t gm_give(gm_held *handle) {
    int32_t number = gm_number_of(handle);
    handle->is_held = false;
    return number;
}

void gm_drop(gm_held *handle) {
    int32_t number = gm_give(handle);
    switch (handle->kind) {
    case GM_HANDLE_TENSOR:
        gristmill_plugin_tensors_tensor_drop_own((gristmill_plugin_tensors_own_tensor_t){number});
        break;
    case GM_HANDLE_PIXELS:
        gristmill_plugin_image_pixels_drop_own((gristmill_plugin_image_own_pixels_t){number});
        break;
    case GM_HANDLE_BLOB:
        gristmill_plugin_types_blob_drop_own((gristmill_plugin_types_own_blob_t){number});
        break;
    }
}

void gm_drop_all(void) {
    for (; newest; newest = newest->older) {
        if (newest->is_held) gm_drop(newest);
    }
}
