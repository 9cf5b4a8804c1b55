// The export `preprocess`, and what a plugin makes in it.
#include "call.h"
#include "exports.h"
#include "memory.h"

GM_EXPORT("preprocess")
gm_preprocess_result *gm_export_preprocess(int32_t context, int32_t request) {
    static gm_preprocess_result result;
    gm_begin_call();
    gm_request_parts_read read = {0};
    const gm_context own_context = {{context}};
    const gm_request own_request = {{request}, &read};
    gm_prepared prepared = {0};
    gm_status status = gm_preprocess(&own_context, &own_request, &prepared);
    result.is_err = status != GM_OK;
    if (result.is_err) {
        for (size_t index = 0; index < prepared.wire.inputs.len; index++) {
            gristmill_plugin_tensors_tensor_drop_own(prepared.wire.inputs.ptr[index].tensor);
        }
        result.err = gm_failure_on_wire(status);
    } else {
        result.ok = prepared.wire;
    }
    gm_end_call();
    gristmill_plugin_types_request_drop_borrow(own_request.handle);
    gristmill_plugin_types_context_drop_borrow(own_context.handle);
    return &result;
}

GM_EXPORT("cabi_post_preprocess")
void gm_export_preprocess_done(gm_preprocess_result *result) {
    (void)result;
    gm_release_memory();
}

gm_status gm_prepared_input(gm_prepared *prepared, const char *name, gm_tensor *tensor) {
    gristmill_plugin_prepare_list_named_tensor_t *inputs = &prepared->wire.inputs;
    if (inputs->len == prepared->capacity) {
        size_t capacity = prepared->capacity ? prepared->capacity * 2 : 4;
        inputs->ptr = gm_resize(inputs->ptr, prepared->capacity * sizeof *inputs->ptr,
                                capacity * sizeof *inputs->ptr);
        prepared->capacity = capacity;
    }
    if (!tensor->handle.is_held) {
        return gm_internal("input \"%s\": the tensor was given away or dropped before", name);
    }
    imports_string_t own_name = gm_text(name);
    own_name.ptr = (uint8_t *)gm_copy(name, own_name.len);
    inputs->ptr[inputs->len++] =
        (gristmill_plugin_tensors_named_tensor_t){own_name, {gm_give(&tensor->handle)}};
    return GM_OK;
}

void gm_prepared_state(gm_prepared *prepared, const void *data, size_t size) {
    prepared->wire.state = (imports_list_u8_t){(uint8_t *)gm_copy(data, size), size};
}

void gm_prepared_state_json(gm_prepared *prepared, const gm_json_writer *document) {
    prepared->wire.state = (imports_list_u8_t){(uint8_t *)document->data, document->size};
}
