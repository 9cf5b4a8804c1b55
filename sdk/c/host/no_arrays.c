// The reference host computes no arrays.
#include "host.h"

static bool refuse(gristmill_plugin_arrays_fault_t *fault) {
    fault->kind = GRISTMILL_PLUGIN_ARRAYS_FAULT_KIND_INVALID_PROGRAM;
    fault->step = 0;
    fault->message = host_give_text("the host computes arrays, but not that of unit tests: "
                                    "`gristmill plugin test` runs the plugin with it");
    return false;
}

bool gristmill_plugin_arrays_evaluate(gristmill_plugin_arrays_list_borrow_tensor_t *tensors,
                                      imports_string_t *program, imports_list_u32_t *results,
                                      gristmill_plugin_arrays_list_made_t *ret,
                                      gristmill_plugin_arrays_fault_t *err) {
    (void)tensors, (void)program, (void)results, (void)ret;
    return refuse(err);
}

bool gristmill_plugin_arrays_read(gristmill_plugin_arrays_list_borrow_tensor_t *tensors,
                                  imports_string_t *program, uint32_t result,
                                  gristmill_plugin_arrays_elements_t *ret,
                                  gristmill_plugin_arrays_fault_t *err) {
    (void)tensors, (void)program, (void)result, (void)ret;
    return refuse(err);
}
