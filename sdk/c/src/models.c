// Runs of the pipeline's models, over the generated bindings.
#include "call.h"
#include "failure.h"

typedef gristmill_plugin_models_tuple2_string_borrow_tensor_t input;
typedef gristmill_plugin_models_list_tuple2_string_borrow_tensor_t inputs_on_wire;

struct gm_outcomes {
    const gristmill_plugin_models_result_list_named_tensor_infer_error_t *items;
    gm_outputs *outputs; // of the runs that have any
    size_t count;
};

static inputs_on_wire lowered(const gm_model_input *inputs, size_t count) {
    inputs_on_wire list = {gm_alloc(count * sizeof(input)), count};
    for (size_t index = 0; index < count; index++) {
        list.ptr[index] =
            (input){gm_text(inputs[index].name), {gm_number_of(&inputs[index].tensor->handle)}};
    }
    return list;
}

// The tags are in the order of the statuses, and each has a text.
static gm_status failed(const gristmill_plugin_models_infer_error_t *error) {
    return gm_fail(GM_MODEL_NOT_GRANTED + error->tag, gm_text_of(error->val.not_granted));
}

gm_status gm_infer(const char *model, const gm_model_input *inputs, size_t count,
                   const gm_outputs **out) {
    imports_string_t name = gm_text(model);
    inputs_on_wire given = lowered(inputs, count);
    gristmill_plugin_models_list_named_tensor_t found;
    gristmill_plugin_models_infer_error_t error;
    if (!gristmill_plugin_models_infer(&name, &given, &found, &error)) return failed(&error);
    gm_outputs *outputs = gm_alloc(sizeof *outputs);
    *outputs = gm_hold_outputs(found.ptr, found.len);
    *out = outputs;
    return GM_OK;
}

const gm_outcomes *gm_infer_all(const gm_run *runs, size_t count) {
    gristmill_plugin_models_list_run_t given = {gm_alloc(count * sizeof *given.ptr), count};
    for (size_t index = 0; index < count; index++) {
        given.ptr[index] = (gristmill_plugin_models_run_t){
            gm_text(runs[index].model), lowered(runs[index].inputs, runs[index].inputs_count)};
    }
    gristmill_plugin_models_list_result_list_named_tensor_infer_error_t found;
    gristmill_plugin_models_infer_all(&given, &found);
    gm_outputs *outputs = gm_alloc(found.len * sizeof *outputs);
    for (size_t index = 0; index < found.len; index++) {
        if (found.ptr[index].is_err) continue;
        gristmill_plugin_models_list_named_tensor_t list = found.ptr[index].val.ok;
        outputs[index] = gm_hold_outputs(list.ptr, list.len);
    }
    gm_outcomes *outcomes = gm_alloc(sizeof *outcomes);
    *outcomes = (gm_outcomes){found.ptr, outputs, found.len};
    return outcomes;
}

gm_status gm_outcomes_get(const gm_outcomes *outcomes, size_t index, const gm_outputs **out) {
    if (index >= outcomes->count) {
        return gm_internal("there is no run %zu: there were %zu", index, outcomes->count);
    }
    if (outcomes->items[index].is_err) return failed(&outcomes->items[index].val.err);
    *out = &outcomes->outputs[index];
    return GM_OK;
}
