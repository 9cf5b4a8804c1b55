// Requests to other services, over the generated bindings.
#include "gristmill_http.h"

#include <string.h>

#include "call.h"
#include "failure.h"

// The tags are in the order of the statuses, and each has a text.
static gm_status failed(const gristmill_plugin_http_http_error_t *error) {
    return gm_fail(GM_HTTP_NOT_GRANTED + error->tag, gm_text_of(error->val.not_granted));
}

gm_status gm_http_send(const gm_http_request *request, gm_http_response *out) {
    gristmill_plugin_http_http_request_t asked = {
        .method = gm_text(request->method ? request->method : "GET"),
        .url = gm_text(request->url),
        .headers = {gm_alloc(request->headers.count * sizeof *asked.headers.ptr),
                    request->headers.count},
        .timeout_ms = {request->timeout_ms != 0, request->timeout_ms},
    };
    for (size_t index = 0; index < request->headers.count; index++) {
        const gm_field *header = &request->headers.items[index];
        asked.headers.ptr[index] =
            (gristmill_plugin_types_field_t){gm_text(header->name), gm_text(header->value)};
    }
    if (request->body) {
        asked.body.is_some = true;
        asked.body.val.__handle = gm_number_of(&request->body->handle);
    }
    gristmill_plugin_http_http_response_t answer;
    gristmill_plugin_http_http_error_t error;
    if (!gristmill_plugin_http_send(&asked, &answer, &error)) return failed(&error);
    *out = (gm_http_response){answer.status,
                              gm_fields_of(answer.headers.ptr, answer.headers.len),
                              gm_hold(GM_HANDLE_BLOB, answer.body.__handle)};
    return GM_OK;
}

const char *gm_http_header(const gm_http_response *response, const char *name) {
    return gm_find_field(response->headers, name);
}
