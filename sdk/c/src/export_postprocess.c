// The export `postprocess`, and what a plugin gets and makes in it.
#include <stdarg.h>
#include <string.h>

#include "call.h"
#include "exports.h"
#include "failure.h"
#include "memory.h"

GM_EXPORT("postprocess")
gm_postprocess_result *gm_export_postprocess(int32_t context,
                                             gristmill_plugin_tensors_named_tensor_t *outputs,
                                             size_t outputs_count, uint8_t *state,
                                             size_t state_size) {
    static gm_postprocess_result result;
    gm_begin_call();
    gm_output *items = gm_alloc(outputs_count * sizeof *items);
    for (size_t index = 0; index < outputs_count; index++) {
        items[index].name = gm_text_of(outputs[index].name);
        items[index].tensor = gm_hold(GM_HANDLE_TENSOR, outputs[index].tensor.__handle);
    }
    const gm_context own_context = {{context}};
    const gm_outputs own_outputs = {items, outputs_count};
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

static imports_string_t copy_of(const char *text) {
    size_t size = strlen(text);
    return (imports_string_t){(uint8_t *)gm_copy(text, size), size};
}

void gm_response_status(gm_response *response, uint16_t status) {
    response->wire.status = status;
}

void gm_response_header(gm_response *response, const char *name, const char *value) {
    gristmill_plugin_types_list_field_t *headers = &response->wire.headers;
    if (headers->len == response->capacity) {
        size_t capacity = response->capacity ? response->capacity * 2 : 4;
        headers->ptr = gm_resize(headers->ptr, response->capacity * sizeof *headers->ptr,
                                 capacity * sizeof *headers->ptr);
        response->capacity = capacity;
    }
    headers->ptr[headers->len++] = (gristmill_plugin_types_field_t){copy_of(name), copy_of(value)};
}

void gm_response_body(gm_response *response, const char *content_type, const void *data,
                      size_t size) {
    response->wire.content_type = copy_of(content_type);
    response->wire.body = (imports_list_u8_t){(uint8_t *)gm_copy(data, size), size};
}

void gm_response_json(gm_response *response, const gm_json_writer *document) {
    response->wire.content_type = gm_text("application/json");
    response->wire.body = (imports_list_u8_t){(uint8_t *)document->data, document->size};
}

void gm_response_text(gm_response *response, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t size;
    char *text = gm_format_list(format, arguments, &size);
    va_end(arguments);
    response->wire.content_type = gm_text("text/plain");
    response->wire.body = (imports_list_u8_t){(uint8_t *)text, size};
}
