// The request and the context, read from the host when they are asked for.
#include <string.h>

#include "call.h"
#include "json.h"

uint64_t gm_blob_size(const gm_blob *blob) {
    gristmill_plugin_types_borrow_blob_t handle = {gm_number_of(&blob->handle)};
    return gristmill_plugin_types_method_blob_len(handle);
}

gm_bytes gm_blob_read(const gm_blob *blob, uint64_t offset, uint64_t length) {
    gristmill_plugin_types_borrow_blob_t handle = {gm_number_of(&blob->handle)};
    imports_list_u8_t bytes;
    gristmill_plugin_types_method_blob_read(handle, offset, length, &bytes);
    // The host gives an address without memory for an empty list.
    if (bytes.len == 0) return (gm_bytes){(const uint8_t *)"", 0};
    return (gm_bytes){bytes.ptr, bytes.len};
}

gm_bytes gm_blob_bytes(const gm_blob *blob) {
    return gm_blob_read(blob, 0, UINT64_MAX);
}

static const gm_blob *held(gristmill_plugin_types_own_blob_t blob) {
    return gm_hold(GM_HANDLE_BLOB, blob.__handle);
}

const gm_blob *gm_blob_slice(const gm_blob *blob, uint64_t offset, uint64_t length) {
    gristmill_plugin_types_borrow_blob_t handle = {gm_number_of(&blob->handle)};
    return held(gristmill_plugin_types_method_blob_slice(handle, offset, length));
}

const gm_blob *gm_blob_from_bytes(const void *data, size_t size) {
    imports_list_u8_t bytes = {(uint8_t *)data, size};
    return held(gristmill_plugin_types_static_blob_from_bytes(&bytes));
}

gm_status gm_blob_from_base64(const char *text, const gm_blob **out) {
    if (!text) return gm_invalid_input("base64 is a text, and there is none");
    imports_string_t encoded = gm_text(text);
    gristmill_plugin_types_own_blob_t blob;
    gristmill_plugin_types_blob_error_t error;
    if (!gristmill_plugin_types_static_blob_from_base64(&encoded, &blob, &error)) {
        return gm_invalid_input("%s", gm_text_of(error.val.invalid_base64));
    }
    *out = held(blob);
    return GM_OK;
}

gm_status gm_blob_json(const gm_blob *blob, const gm_json **out) {
    gm_bytes bytes = gm_blob_bytes(blob);
    return gm_json_read_in_place((char *)bytes.data, bytes.size, out);
}

const char *gm_request_content_type(const gm_request *request) {
    imports_string_t text;
    bool is_some = gristmill_plugin_types_method_request_content_type(request->handle, &text);
    return is_some ? gm_text_of(text) : NULL;
}

gm_fields gm_fields_of(const gristmill_plugin_types_field_t *list, size_t count) {
    gm_field *items = gm_alloc(count * sizeof *items);
    for (size_t index = 0; index < count; index++) {
        items[index] = (gm_field){gm_text_of(list[index].name), gm_text_of(list[index].value)};
    }
    return (gm_fields){items, count};
}

const char *gm_find_field(gm_fields fields, const char *name) {
    for (size_t index = 0; index < fields.count; index++) {
        if (strcmp(fields.items[index].name, name) == 0) return fields.items[index].value;
    }
    return NULL;
}

gm_fields gm_request_headers(const gm_request *request) {
    if (!request->read->has_headers) {
        gristmill_plugin_types_list_field_t list;
        gristmill_plugin_types_method_request_headers(request->handle, &list);
        request->read->headers = gm_fields_of(list.ptr, list.len);
        request->read->has_headers = true;
    }
    return request->read->headers;
}

const char *gm_request_header(const gm_request *request, const char *name) {
    return gm_find_field(gm_request_headers(request), name);
}

gm_fields gm_request_query(const gm_request *request) {
    if (!request->read->has_query) {
        gristmill_plugin_types_list_field_t list;
        gristmill_plugin_types_method_request_query(request->handle, &list);
        request->read->query = gm_fields_of(list.ptr, list.len);
        request->read->has_query = true;
    }
    return request->read->query;
}

const char *gm_request_query_value(const gm_request *request, const char *name) {
    return gm_find_field(gm_request_query(request), name);
}

const gm_blob *gm_request_body(const gm_request *request) {
    if (!request->read->body) {
        gristmill_plugin_types_own_blob_t body =
            gristmill_plugin_types_method_request_body(request->handle);
        request->read->body = gm_hold(GM_HANDLE_BLOB, body.__handle);
    }
    return request->read->body;
}

gm_parts gm_request_parts(const gm_request *request) {
    if (request->read->has_parts) return request->read->parts;
    gristmill_plugin_types_list_part_t list;
    gristmill_plugin_types_method_request_parts(request->handle, &list);
    gm_part *items = gm_alloc(list.len * sizeof *items);
    for (size_t index = 0; index < list.len; index++) {
        const gristmill_plugin_types_part_t *part = &list.ptr[index];
        items[index] = (gm_part){
            .name = gm_text_of(part->name),
            .filename = part->filename.is_some ? gm_text_of(part->filename.val) : NULL,
            .content_type = part->content_type.is_some ? gm_text_of(part->content_type.val) : NULL,
            .body = gm_hold(GM_HANDLE_BLOB, part->body.__handle),
        };
    }
    request->read->parts = (gm_parts){items, list.len};
    request->read->has_parts = true;
    return request->read->parts;
}

const gm_blob *gm_request_file(const gm_request *request) {
    gm_parts parts = gm_request_parts(request);
    return parts.count ? parts.items[0].body : gm_request_body(request);
}

gm_status gm_request_part(const gm_request *request, const char *name, const gm_part **out) {
    gm_parts parts = gm_request_parts(request);
    for (size_t index = 0; index < parts.count; index++) {
        *out = &parts.items[index];
        if (strcmp((*out)->name, name) == 0) return GM_OK;
    }
    if (!parts.count) return gm_invalid_input("the body is not a form with a part '%s'", name);
    return gm_invalid_input("the form has no part '%s': its first one is '%s'", name,
                            parts.items[0].name);
}

gm_status gm_request_json(const gm_request *request, const gm_json **out) {
    return gm_blob_json(gm_request_body(request), out);
}

// A body that is not the JSON that was asked for is the client's fault; a wrong pointer is the
// plugin's.
static gm_status json_fault(const gristmill_plugin_types_json_error_t *error) {
    if (error->tag == GRISTMILL_PLUGIN_TYPES_JSON_ERROR_INVALID_JSON) {
        return gm_invalid_input("%s", gm_text_of(error->val.invalid_json));
    }
    return gm_internal("%s", gm_text_of(error->val.invalid_argument));
}

gm_status gm_request_json_at(const gm_request *request, const char *pointer, const gm_json **out) {
    imports_string_t at = gm_text(pointer);
    imports_option_list_u8_t found;
    gristmill_plugin_types_json_error_t error;
    *out = NULL;
    if (!gristmill_plugin_types_method_request_json_value(request->handle, &at, &found, &error)) {
        return json_fault(&error);
    }
    if (!found.is_some) return GM_OK;
    return gm_json_read_in_place((char *)found.val.ptr, found.val.len, out);
}

gm_status gm_request_json_rows(const gm_request *request, const char *pointer,
                               const char *const *keys, size_t keys_count, gm_dtype dtype,
                               gm_tensor **out) {
    if ((unsigned)dtype > GM_STRING) return gm_internal("dtype %d is unknown", (int)dtype);
    imports_string_t at = gm_text(pointer);
    imports_list_string_t names = {gm_alloc(keys_count * sizeof *names.ptr), keys_count};
    for (size_t key = 0; key < keys_count; key++) names.ptr[key] = gm_text(keys[key]);
    gristmill_plugin_types_own_tensor_t tensor;
    gristmill_plugin_types_json_error_t error;
    if (!gristmill_plugin_types_method_request_json_tensor(
            request->handle, &at, &names, (gristmill_plugin_types_dtype_t)dtype, &tensor, &error)) {
        return json_fault(&error);
    }
    *out = gm_hold(GM_HANDLE_TENSOR, tensor.__handle);
    return GM_OK;
}

gm_status gm_request_json_tensor(const gm_request *request, const char *pointer, gm_dtype dtype,
                                 gm_tensor **out) {
    return gm_request_json_rows(request, pointer, NULL, 0, dtype, out);
}

gm_status gm_request_json_blob(const gm_request *request, const char *pointer,
                               const gm_blob **out) {
    imports_string_t at = gm_text(pointer);
    gristmill_plugin_types_own_blob_t blob;
    gristmill_plugin_types_json_error_t error;
    if (!gristmill_plugin_types_method_request_json_blob(request->handle, &at, &blob, &error)) {
        return json_fault(&error);
    }
    *out = held(blob);
    return GM_OK;
}

#define CONTEXT_TEXT(name)                                                    \
    const char *gm_context_##name(const gm_context *context) {                \
        imports_string_t text;                                                \
        gristmill_plugin_types_method_context_##name(context->handle, &text); \
        return gm_text_of(text);                                              \
    }

CONTEXT_TEXT(tenant)
CONTEXT_TEXT(pipeline)
CONTEXT_TEXT(model)
CONTEXT_TEXT(request_id)
CONTEXT_TEXT(settings)

uint64_t gm_context_time_left(const gm_context *context) {
    return gristmill_plugin_types_method_context_time_left(context->handle);
}

gm_status gm_context_settings_json(const gm_context *context, const gm_json **out) {
    const char *settings = gm_context_settings(context);
    if (gm_json_read(settings, strlen(settings), out) == GM_OK) return GM_OK;
    return gm_internal("the pipeline's settings: %s", gm_failure_text());
}
