// A model's outputs, for the plugin.
#include "../src/memory.h"
#include "host.h"

gristmill_plugin_tensors_named_tensor_t *host_give_outputs(const gm_host_tensor *outputs,
                                                           size_t outputs_count) {
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
    return given;
}
