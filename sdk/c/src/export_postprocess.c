// The export `postprocess`.
#include "call.h"
#include "exports.h"
#include "memory.h"

GM_EXPORT("postprocess")
gm_postprocess_result *gm_export_postprocess(int32_t context,
                                             gristmill_plugin_tensors_named_tensor_t *outputs,
                                             size_t outputs_count, uint8_t *state,
                                             size_t state_size) {
    static gm_postprocess_result result;
    gm_begin_call();
    const gm_context own_context = {{context}};
    const gm_outputs own_outputs = gm_hold_outputs(outputs, outputs_count);
    gm_response response = {.wire = {.status = 200}};
    gm_status status =
        gm_postprocess(&own_context, &own_outputs, (gm_bytes){state, state_size}, &response);
    result.is_err = status != GM_OK;
    if (result.is_err) {
        result.err = gm_failure_on_wire(status);
    } else {
        result.ok = response.wire;
    }
    gm_end_call();
    gristmill_plugin_types_context_drop_borrow(own_context.handle);
    return &result;
}

GM_EXPORT("cabi_post_postprocess")
void gm_export_postprocess_done(gm_postprocess_result *result) {
    (void)result;
    gm_release_memory();
}
