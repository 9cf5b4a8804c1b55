// A model's outputs: those of postprocess, and of a handler's runs.
#include <string.h>

#include "call.h"
#include "memory.h"

gm_outputs gm_hold_outputs(const gristmill_plugin_tensors_named_tensor_t *named, size_t count) {
    gm_output *items = gm_alloc(count * sizeof *items);
    for (size_t index = 0; index < count; index++) {
        items[index].name = gm_text_of(named[index].name);
        items[index].tensor = gm_hold(GM_HANDLE_TENSOR, named[index].tensor.__handle);
    }
    return (gm_outputs){items, count};
}

size_t gm_outputs_count(const gm_outputs *outputs) {
    return outputs->count;
}

const char *gm_outputs_name(const gm_outputs *outputs, size_t index) {
    return index < outputs->count ? outputs->items[index].name : NULL;
}

gm_tensor *gm_outputs_at(const gm_outputs *outputs, size_t index) {
    return index < outputs->count ? outputs->items[index].tensor : NULL;
}

gm_status gm_outputs_get(const gm_outputs *outputs, const char *name, gm_tensor **out) {
    for (size_t index = 0; index < outputs->count; index++) {
        if (strcmp(outputs->items[index].name, name) == 0) {
            *out = outputs->items[index].tensor;
            return GM_OK;
        }
    }
    gm_json_writer names = GM_JSON_WRITER;
    gm_json_begin_array(&names);
    for (size_t index = 0; index < outputs->count; index++) {
        gm_json_put_string(&names, outputs->items[index].name);
    }
    gm_json_end_array(&names);
    return gm_internal("the model has no output \"%s\", it has %.*s", name, (int)names.size,
                       names.data);
}

// "[1, any]"
static const char *shape_text(gm_shape shape) {
    char *text = gm_alloc(shape.rank * 12 + 3), *at = text;
    *at++ = '[';
    for (size_t axis = 0; axis < shape.rank; axis++) {
        const char *dim = shape.dims[axis] == GM_ANY ? "any" : gm_format("%u", shape.dims[axis]);
        if (axis) *at++ = ',', *at++ = ' ';
        while (*dim) *at++ = *dim++;
    }
    *at++ = ']';
    *at = 0;
    return text;
}

gm_status gm_outputs_view(const gm_outputs *outputs, const char *name, gm_dtype dtype,
                          gm_shape shape, gm_view *out) {
    gm_tensor *tensor;
    GM_TRY(gm_outputs_get(outputs, name, &tensor));
    gm_view view;
    if (gm_tensor_view(tensor, dtype, &view) != GM_OK) {
        return gm_internal("output \"%s\": %s", name, gm_failure_text());
    }
    bool fits = view.shape.rank == shape.rank;
    for (size_t axis = 0; fits && axis < shape.rank; axis++) {
        fits = shape.dims[axis] == GM_ANY || shape.dims[axis] == view.shape.dims[axis];
    }
    if (!fits) {
        return gm_internal("output \"%s\" has shape %s, wanted %s", name, shape_text(view.shape),
                           shape_text(shape));
    }
    *out = view;
    return GM_OK;
}
