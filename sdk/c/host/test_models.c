// Models of a test, in the reference host: functions that stand in for them.
#include <string.h>

#include "host.h"

typedef struct model {
    struct model *older;
    const char *name;
    gm_host_model *run;
} model;

static model *newest;

void gm_host_add_model(const char *name, gm_host_model *run) {
    model *added = host_alloc(sizeof *added);
    *added = (model){newest, host_copy(name, strlen(name)), run};
    newest = added;
}

void host_forget_models(void) {
    newest = NULL;
}

static gm_host_ran run(const gristmill_plugin_models_run_t *asked) {
    const char *name = host_copy(asked->model.ptr, asked->model.len);
    model *found = newest;
    while (found && strcmp(found->name, name) != 0) found = found->older;
    if (!found) {
        const char *text = host_format("the test has no model \"%s\" (gm_host_add_model)", name);
        return (gm_host_ran){.status = GM_MODEL_NOT_GRANTED, .failure = text};
    }
    gm_host_tensor *inputs = host_alloc(asked->inputs.len * sizeof *inputs);
    for (size_t index = 0; index < asked->inputs.len; index++) {
        imports_string_t own_name = asked->inputs.ptr[index].f0;
        host_tensor tensor = host_get(asked->inputs.ptr[index].f1.__handle, HOST_TENSOR)->tensor;
        inputs[index] = (gm_host_tensor){host_copy(own_name.ptr, own_name.len), tensor.dtype,
                                         tensor.shape, tensor.data};
    }
    return found->run(inputs, asked->inputs.len);
}

static bool end(gm_host_ran ran, gristmill_plugin_models_list_named_tensor_t *ret,
                gristmill_plugin_models_infer_error_t *err) {
    if (ran.status == GM_OK) {
        ret->ptr = host_give_outputs(ran.outputs, ran.outputs_count);
        ret->len = ran.outputs_count;
        return true;
    }
    if (ran.status < GM_MODEL_NOT_GRANTED || ran.status > GM_MODEL_FAILED) {
        gm_panic("a model of the test gives status %d, which is not a model's", (int)ran.status);
    }
    err->tag = (uint8_t)(ran.status - GM_MODEL_NOT_GRANTED);
    err->val.failed = host_give_text(ran.failure ? ran.failure : "");
    return false;
}

bool gristmill_plugin_models_infer(
    imports_string_t *model, gristmill_plugin_models_list_tuple2_string_borrow_tensor_t *inputs,
    gristmill_plugin_models_list_named_tensor_t *ret, gristmill_plugin_models_infer_error_t *err) {
    gristmill_plugin_models_run_t asked = {*model, *inputs};
    return end(run(&asked), ret, err);
}

void gristmill_plugin_models_infer_all(
    gristmill_plugin_models_list_run_t *runs,
    gristmill_plugin_models_list_result_list_named_tensor_infer_error_t *ret) {
    ret->len = runs->len;
    ret->ptr = gm_alloc(ret->len * sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index++) {
        gristmill_plugin_models_list_named_tensor_t found = {0};
        gristmill_plugin_models_infer_error_t error = {0};
        ret->ptr[index].is_err = !end(run(&runs->ptr[index]), &found, &error);
        if (ret->ptr[index].is_err) {
            ret->ptr[index].val.err = error;
        } else {
            ret->ptr[index].val.ok = found;
        }
    }
}
