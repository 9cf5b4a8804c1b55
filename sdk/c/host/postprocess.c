// Calling gm_postprocess.
#include "results.h"

gm_host_response gm_host_postprocess(const gm_host_request *request, const gm_host_tensor *outputs,
                                     size_t outputs_count, gm_bytes state) {
    request = host_request_or_default(request);
    int32_t context = host_hold((host_resource){.kind = HOST_CONTEXT, .request = request});
    gristmill_plugin_tensors_named_tensor_t *given = host_give_outputs(outputs, outputs_count);
    imports_list_u8_t bytes = host_give_bytes(state, 0, state.size);
    gm_postprocess_result *result =
        gm_export_postprocess(context, given, outputs_count, bytes.ptr, bytes.len);
    gm_host_response response = {.failure = "", .content_type = ""};
    if (result->is_err) {
        response.status = host_status_of(result->err);
        response.failure = host_text_of(result->err.val.internal);
    } else {
        response = host_response_of(&result->ok);
    }
    gm_export_postprocess_done(result);
    return response;
}
