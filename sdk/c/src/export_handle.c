// The export `handle`.
#include "call.h"
#include "exports.h"
#include "memory.h"

static gristmill_plugin_models_handle_error_t error_of(gm_status status) {
    gristmill_plugin_models_handle_error_t error = {0};
    if (status >= GM_MODEL_NOT_GRANTED && status <= GM_MODEL_FAILED) {
        error.tag = GRISTMILL_PLUGIN_MODELS_HANDLE_ERROR_INFER;
        error.val.infer.tag = (uint8_t)(status - GM_MODEL_NOT_GRANTED);
        error.val.infer.val.failed = gm_text(gm_failure_text());
    } else {
        error.tag = GRISTMILL_PLUGIN_MODELS_HANDLE_ERROR_FAILURE;
        error.val.failure = gm_failure_on_wire(status);
    }
    return error;
}

GM_EXPORT("handle")
gm_handle_result *gm_export_handle(int32_t context, int32_t request) {
    static gm_handle_result result;
    gm_begin_call();
    gm_request_parts_read read = {0};
    const gm_context own_context = {{context}};
    const gm_request own_request = {{request}, &read};
    gm_response response = {.wire = {.status = 200}};
    gm_status status = gm_handle(&own_context, &own_request, &response);
    result.is_err = status != GM_OK;
    if (result.is_err) {
        result.err = error_of(status);
    } else {
        result.ok = response.wire;
    }
    gm_end_call();
    gristmill_plugin_types_request_drop_borrow(own_request.handle);
    gristmill_plugin_types_context_drop_borrow(own_context.handle);
    return &result;
}

GM_EXPORT("cabi_post_handle")
void gm_export_handle_done(gm_handle_result *result) {
    (void)result;
    gm_release_memory();
}
