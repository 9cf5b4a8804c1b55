// Calling gm_preprocess.
#include "results.h"

gm_host_prepared gm_host_preprocess(const gm_host_request *request) {
    request = host_request_or_default(request);
    int32_t context = host_hold((host_resource){.kind = HOST_CONTEXT, .request = request});
    int32_t handle = host_hold((host_resource){.kind = HOST_REQUEST, .request = request});
    gm_preprocess_result *result = gm_export_preprocess(context, handle);
    gm_host_prepared prepared = {.failure = ""};
    if (result->is_err) {
        prepared.status = host_status_of(result->err);
        prepared.failure = host_text_of(result->err.val.internal);
    } else {
        prepared.inputs_count = result->ok.inputs.len;
        gm_host_tensor *inputs = host_alloc(prepared.inputs_count * sizeof *inputs);
        for (size_t index = 0; index < prepared.inputs_count; index++) {
            int32_t tensor = result->ok.inputs.ptr[index].tensor.__handle;
            host_tensor held = host_get(tensor, HOST_TENSOR)->tensor;
            inputs[index] = (gm_host_tensor){host_text_of(result->ok.inputs.ptr[index].name),
                                             held.dtype, held.shape, held.data};
            host_drop(tensor, HOST_TENSOR);
        }
        prepared.inputs = inputs;
        prepared.state = host_bytes_of(result->ok.state);
    }
    gm_export_preprocess_done(result);
    return prepared;
}
