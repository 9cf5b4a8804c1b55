// Services of a test, in the reference host: functions that stand in for them.
#include <string.h>

#include "host.h"

typedef struct service {
    struct service *older;
    const char *origin;
    gm_host_service *answer;
} service;

static service *newest;

void gm_host_add_service(const char *origin, gm_host_service *answer) {
    service *added = host_alloc(sizeof *added);
    *added = (service){newest, host_copy(origin, strlen(origin)), answer};
    newest = added;
}

void host_forget_services(void) {
    newest = NULL;
}

static bool is_of(const char *url, const char *origin) {
    size_t size = strlen(origin);
    return strncmp(url, origin, size) == 0 && (url[size] == 0 || strchr("/?#", url[size]));
}

bool gristmill_plugin_http_send(gristmill_plugin_http_http_request_t *request,
                                gristmill_plugin_http_http_response_t *ret,
                                gristmill_plugin_http_http_error_t *err) {
    gm_host_sent sent = {
        .method = host_copy(request->method.ptr, request->method.len),
        .url = host_copy(request->url.ptr, request->url.len),
        .timeout_ms = request->timeout_ms.is_some ? request->timeout_ms.val : 0,
    };
    gm_field *headers = host_alloc(request->headers.len * sizeof *headers);
    for (size_t index = 0; index < request->headers.len; index++) {
        gristmill_plugin_types_field_t own = request->headers.ptr[index];
        headers[index] = (gm_field){host_copy(own.name.ptr, own.name.len),
                                    host_copy(own.value.ptr, own.value.len)};
    }
    sent.headers = (gm_fields){headers, request->headers.len};
    if (request->body.is_some) sent.body = host_get(request->body.val.__handle, HOST_BLOB)->blob;
    service *found = newest;
    while (found && !is_of(sent.url, found->origin)) found = found->older;
    gm_host_answer answer = {.failure = GM_HTTP_NOT_GRANTED};
    answer.text = host_format("the test has no service for \"%s\" (gm_host_add_service)", sent.url);
    if (found) answer = found->answer(&sent);
    if (answer.failure != GM_OK) {
        if (answer.failure < GM_HTTP_NOT_GRANTED || answer.failure > GM_HTTP_TOO_LARGE) {
            gm_panic("a service of the test fails with %d, which is not a service's",
                     (int)answer.failure);
        }
        err->tag = (uint8_t)(answer.failure - GM_HTTP_NOT_GRANTED);
        err->val.not_granted = host_give_text(answer.text ? answer.text : "");
        return false;
    }
    ret->status = answer.status ? answer.status : 200;
    ret->headers.len = answer.headers.count;
    ret->headers.ptr = gm_alloc(answer.headers.count * sizeof *ret->headers.ptr);
    for (size_t index = 0; index < answer.headers.count; index++) {
        ret->headers.ptr[index] =
            (gristmill_plugin_types_field_t){host_give_text(answer.headers.items[index].name),
                                             host_give_text(answer.headers.items[index].value)};
    }
    gm_bytes body = {host_copy(answer.body.data, answer.body.size), answer.body.size};
    ret->body.__handle = host_hold((host_resource){.kind = HOST_BLOB, .blob = body});
    return true;
}
