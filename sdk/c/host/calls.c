// What a plugin reads of its call, and what it logs.
#include "../src/handle.h"
#include "../src/memory.h"
#include "host.h"

void host_free_all(void);

static gm_host_line *lines;
static size_t lines_count;

// ---- What a plugin reads ----

uint64_t gristmill_plugin_types_method_blob_len(gristmill_plugin_types_borrow_blob_t self) {
    return host_get(self.__handle, HOST_BLOB)->blob.size;
}

void gristmill_plugin_types_method_blob_read(gristmill_plugin_types_borrow_blob_t self,
                                             uint64_t offset, uint64_t length,
                                             imports_list_u8_t *ret) {
    *ret = host_give_bytes(host_get(self.__handle, HOST_BLOB)->blob, offset, length);
}

static gristmill_plugin_types_own_blob_t give_blob(gm_bytes bytes) {
    host_resource blob = {.kind = HOST_BLOB, .blob = bytes};
    return (gristmill_plugin_types_own_blob_t){host_hold(blob)};
}

gristmill_plugin_types_own_blob_t
gristmill_plugin_types_method_blob_slice(gristmill_plugin_types_borrow_blob_t self, uint64_t offset,
                                         uint64_t length) {
    gm_bytes whole = host_get(self.__handle, HOST_BLOB)->blob;
    if (offset > whole.size) offset = whole.size;
    if (length > whole.size - offset) length = whole.size - offset;
    return give_blob((gm_bytes){whole.data + offset, length});
}

bool gristmill_plugin_types_method_blob_tensor(gristmill_plugin_types_borrow_blob_t self,
                                               gristmill_plugin_types_dtype_t dtype,
                                               imports_list_u32_t *shape,
                                               gristmill_plugin_types_own_tensor_t *ret,
                                               gristmill_plugin_types_tensor_error_t *err) {
    gm_bytes bytes = host_get(self.__handle, HOST_BLOB)->blob;
    imports_list_u8_t data = {(uint8_t *)bytes.data, bytes.size};
    return gristmill_plugin_tensors_static_tensor_create(dtype, shape, &data, ret, err);
}

gristmill_plugin_types_own_blob_t
gristmill_plugin_types_static_blob_from_bytes(imports_list_u8_t *data) {
    return give_blob((gm_bytes){host_copy(data->ptr, data->len), data->len});
}

bool gristmill_plugin_types_static_blob_from_base64(imports_string_t *text,
                                                    gristmill_plugin_types_own_blob_t *ret,
                                                    gristmill_plugin_types_blob_error_t *err) {
    gm_bytes bytes;
    const char *why = host_base64(host_copy(text->ptr, text->len), &bytes);
    if (why) {
        err->tag = GRISTMILL_PLUGIN_TYPES_BLOB_ERROR_INVALID_BASE64;
        err->val.invalid_base64 = host_give_text(why);
        return false;
    }
    *ret = give_blob(bytes);
    return true;
}

#define CONTEXT_TEXT(name, fallback)                                                     \
    void gristmill_plugin_types_method_context_##name(                                   \
        gristmill_plugin_types_borrow_context_t self, imports_string_t *ret) {           \
        const gm_host_request *request = host_get(self.__handle, HOST_CONTEXT)->request; \
        *ret = host_give_text(request->name ? request->name : fallback);                 \
    }

CONTEXT_TEXT(tenant, "tenant")
CONTEXT_TEXT(pipeline, "pipeline")
CONTEXT_TEXT(model, "model")
CONTEXT_TEXT(request_id, "request")
CONTEXT_TEXT(settings, "{}")

uint64_t
gristmill_plugin_types_method_context_time_left(gristmill_plugin_types_borrow_context_t self) {
    const gm_host_request *request = host_get(self.__handle, HOST_CONTEXT)->request;
    return request->time_left ? request->time_left : 10000;
}

static const gm_host_request *request_of(gristmill_plugin_types_borrow_request_t self) {
    return host_get(self.__handle, HOST_REQUEST)->request;
}

bool gristmill_plugin_types_method_request_content_type(
    gristmill_plugin_types_borrow_request_t self, imports_string_t *ret) {
    const char *content_type = request_of(self)->content_type;
    if (content_type) *ret = host_give_text(content_type);
    return content_type != NULL;
}

static gristmill_plugin_types_list_field_t give_fields(gm_fields fields) {
    gristmill_plugin_types_list_field_t list = {gm_alloc(fields.count * sizeof *list.ptr),
                                                fields.count};
    for (size_t index = 0; index < fields.count; index++) {
        list.ptr[index].name = host_give_text(fields.items[index].name);
        list.ptr[index].value = host_give_text(fields.items[index].value);
    }
    return list;
}

void gristmill_plugin_types_method_request_headers(gristmill_plugin_types_borrow_request_t self,
                                                   gristmill_plugin_types_list_field_t *ret) {
    *ret = give_fields(request_of(self)->headers);
}

void gristmill_plugin_types_method_request_query(gristmill_plugin_types_borrow_request_t self,
                                                 gristmill_plugin_types_list_field_t *ret) {
    *ret = give_fields(request_of(self)->query);
}

gristmill_plugin_types_own_blob_t
gristmill_plugin_types_method_request_body(gristmill_plugin_types_borrow_request_t self) {
    return give_blob(request_of(self)->body);
}

static imports_option_string_t give_option(const char *text) {
    imports_option_string_t option = {.is_some = text != NULL};
    if (text) option.val = host_give_text(text);
    return option;
}

void gristmill_plugin_types_method_request_parts(gristmill_plugin_types_borrow_request_t self,
                                                 gristmill_plugin_types_list_part_t *ret) {
    const gm_host_request *request = request_of(self);
    ret->len = request->parts_count;
    ret->ptr = gm_alloc(ret->len * sizeof *ret->ptr);
    for (size_t index = 0; index < ret->len; index++) {
        const gm_host_part *part = &request->parts[index];
        ret->ptr[index] = (gristmill_plugin_types_part_t){
            .name = host_give_text(part->name ? part->name : ""),
            .filename = give_option(part->filename),
            .content_type = give_option(part->content_type),
            .body = give_blob(part->body),
        };
    }
}

// ---- The log ----

void gristmill_plugin_log_write(gristmill_plugin_log_level_t level, imports_string_t *message,
                                gristmill_plugin_log_list_field_t *fields) {
    gm_field *copies = host_alloc(fields->len * sizeof *copies);
    for (size_t index = 0; index < fields->len; index++) {
        copies[index].name = host_copy(fields->ptr[index].name.ptr, fields->ptr[index].name.len);
        copies[index].value = host_copy(fields->ptr[index].value.ptr, fields->ptr[index].value.len);
    }
    lines = realloc(lines, (lines_count + 1) * sizeof *lines);
    if (!lines) gm_panic("out of memory");
    lines[lines_count++] = (gm_host_line){
        (gm_level)level, host_copy(message->ptr, message->len), {copies, fields->len}};
}

size_t gm_host_lines_count(void) {
    return lines_count;
}

gm_host_line gm_host_line_at(size_t index) {
    if (index >= lines_count) gm_panic("there is no log line %zu", index);
    return lines[index];
}

void gm_host_reset(void) {
    gm_drop_all();
    gm_release_memory();
    host_forget_kept();
    host_forget_models();
    host_forget_services();
    host_forget_tokenizers();
    host_forget_tables();
    host_free_all();
    free(lines);
    lines = NULL;
    lines_count = 0;
}
