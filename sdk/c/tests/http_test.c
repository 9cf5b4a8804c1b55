// Requests to services over the reference host.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

#define ORIGIN "https://api.example.com"

static gm_host_answer echo(const gm_host_sent *sent) {
    const char *first = sent->headers.count ? sent->headers.items[0].value : "none";
    static char told[200];
    snprintf(told, sizeof told, "%s %s %s %.*s %d", sent->method, sent->url, first,
             (int)sent->body.size, sent->body.size ? (const char *)sent->body.data : "",
             (int)sent->timeout_ms);
    static const gm_field headers[] = {{"x-of", "service"}};
    return (gm_host_answer){.headers = {headers, 1}, .body = GM_HOST_TEXT(told)};
}

static gm_host_answer slow(const gm_host_sent *sent) {
    (void)sent;
    return (gm_host_answer){.failure = GM_HTTP_TIMED_OUT, .text = "no answer in time"};
}

static gm_host_answer missing(const gm_host_sent *sent) {
    (void)sent;
    return (gm_host_answer){.status = 404};
}

static bool is(gm_bytes bytes, const char *text) {
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static void a_service_answers(void) {
    gm_host_add_service(ORIGIN, echo);
    gm_http_response answer;
    assert(gm_http_send(&(gm_http_request){.url = ORIGIN "/a"}, &answer) == GM_OK);
    assert(answer.status == 200 && is(gm_blob_bytes(answer.body), "GET " ORIGIN "/a none  0"));
    assert(strcmp(gm_http_header(&answer, "x-of"), "service") == 0);
    assert(gm_http_header(&answer, "x-other") == NULL);
    const gm_field header = {"x-own", "7"};
    gm_http_request post = {.method = "POST",
                            .url = ORIGIN,
                            .headers = {&header, 1},
                            .body = gm_blob_from_bytes("abc", 3),
                            .timeout_ms = 250};
    assert(gm_http_send(&post, &answer) == GM_OK);
    assert(is(gm_blob_bytes(answer.body), "POST " ORIGIN " 7 abc 250"));
}

static void what_goes_wrong_has_a_status(void) {
    gm_http_response answer;
    gm_http_request request = {.url = ORIGIN "/"};
    assert(gm_http_send(&request, &answer) == GM_HTTP_NOT_GRANTED);
    assert(strstr(gm_failure_text(), "gm_host_add_service"));
    gm_host_add_service(ORIGIN, missing);
    assert(gm_http_send(&request, &answer) == GM_OK);
    assert(answer.status == 404 && gm_blob_size(answer.body) == 0);
    gm_host_add_service(ORIGIN, slow);
    assert(gm_http_send(&request, &answer) == GM_HTTP_TIMED_OUT);
    assert(strcmp(gm_failure_text(), "no answer in time") == 0);
    request.url = ORIGIN ".evil.test/";
    assert(gm_http_send(&request, &answer) == GM_HTTP_NOT_GRANTED);
}

int main(void) {
    a_service_answers();
    gm_host_reset();
    what_goes_wrong_has_a_status();
    gm_host_reset();
    puts("http: passed");
}
