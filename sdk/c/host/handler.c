// Calling gm_handle.
#include "results.h"

gm_host_response gm_host_handle(const gm_host_request *request) {
    request = host_request_or_default(request);
    int32_t context = host_hold((host_resource){.kind = HOST_CONTEXT, .request = request});
    int32_t handle = host_hold((host_resource){.kind = HOST_REQUEST, .request = request});
    gm_handle_result *result = gm_export_handle(context, handle);
    gm_host_response response = {.failure = "", .content_type = ""};
    if (!result->is_err) {
        response = host_response_of(&result->ok);
    } else if (result->err.tag == GRISTMILL_PLUGIN_MODELS_HANDLE_ERROR_INFER) {
        response.status = GM_MODEL_NOT_GRANTED + result->err.val.infer.tag;
        response.failure = host_text_of(result->err.val.infer.val.failed);
    } else {
        response.status = host_status_of(result->err.val.failure);
        response.failure = host_text_of(result->err.val.failure.val.internal);
    }
    gm_export_handle_done(result);
    return response;
}
