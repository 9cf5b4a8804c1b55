// Copying a call's result into the reference host's memory.
#ifndef GM_HOST_RESULTS_H
#define GM_HOST_RESULTS_H

#include "../src/exports.h"
#include "host.h"

static inline gm_status host_status_of(gristmill_plugin_types_failure_t failure) {
    return (gm_status)(failure.tag + GM_INVALID_INPUT);
}

static inline const char *host_text_of(imports_string_t text) {
    return host_copy(text.ptr, text.len);
}

static inline gm_bytes host_bytes_of(imports_list_u8_t list) {
    return (gm_bytes){host_copy(list.ptr, list.len), list.len};
}

static inline gm_host_response host_response_of(const gristmill_plugin_types_response_t *made) {
    gm_field *headers = host_alloc(made->headers.len * sizeof *headers);
    for (size_t index = 0; index < made->headers.len; index++) {
        headers[index].name = host_text_of(made->headers.ptr[index].name);
        headers[index].value = host_text_of(made->headers.ptr[index].value);
    }
    return (gm_host_response){
        .status = GM_OK,
        .failure = "",
        .http_status = made->status,
        .content_type = host_text_of(made->content_type),
        .headers = {headers, made->headers.len},
        .body = host_bytes_of(made->body),
    };
}

static inline const gm_host_request *host_request_or_default(const gm_host_request *request) {
    static const gm_host_request none;
    return request ? request : &none;
}

#endif
