// Making a response.
#include <stdarg.h>
#include <string.h>

#include "call.h"
#include "failure.h"
#include "memory.h"

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
