// Calling gm_postprocess.
#include "../src/memory.h"
#include "results.h"

gm_host_response gm_host_postprocess(const gm_host_request *request, const gm_host_tensor *outputs,
                                     size_t outputs_count, gm_bytes state) {
    request = host_request_or_default(request);
    int32_t context = host_hold((host_resource){.kind = HOST_CONTEXT, .request = request});
    gristmill_plugin_tensors_named_tensor_t *given = gm_alloc(outputs_count * sizeof *given);
    for (size_t index = 0; index < outputs_count; index++) {
        const gm_host_tensor *output = &outputs[index];
        gristmill_plugin_tensors_tensor_error_t error;
        if (!host_tensor_is_valid(output->dtype, output->shape, output->data, &error)) {
            gm_panic("output \"%s\": the data do not fit dtype and shape", output->name);
        }
        host_resource tensor = {.kind = HOST_TENSOR,
                                .tensor = {output->dtype, output->shape, output->data}};
        given[index] = (gristmill_plugin_tensors_named_tensor_t){host_give_text(output->name),
                                                                 {host_hold(tensor)}};
    }
    imports_list_u8_t bytes = host_give_bytes(state, 0, state.size);
    gm_postprocess_result *result =
        gm_export_postprocess(context, given, outputs_count, bytes.ptr, bytes.len);
    gm_host_response response = {.failure = "", .content_type = ""};
    if (result->is_err) {
        response.status = host_status_of(result->err);
        response.failure = host_text_of(result->err.val.internal);
    } else {
        gm_field *headers = host_alloc(result->ok.headers.len * sizeof *headers);
        for (size_t index = 0; index < result->ok.headers.len; index++) {
            headers[index].name = host_text_of(result->ok.headers.ptr[index].name);
            headers[index].value = host_text_of(result->ok.headers.ptr[index].value);
        }
        response.http_status = result->ok.status;
        response.content_type = host_text_of(result->ok.content_type);
        response.headers = (gm_fields){headers, result->ok.headers.len};
        response.body = host_bytes_of(result->ok.body);
    }
    gm_export_postprocess_done(result);
    return response;
}
