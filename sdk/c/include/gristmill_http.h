// Requests over HTTP to other services, which the tenant's document grants under "http".
//
//     gm_http_request request = {.url = "https://api.example.com/rates", .timeout_ms = 500};
//     gm_http_response rates;
//     GM_TRY(gm_http_send(&request, &rates));
//     if (rates.status != 200) return gm_internal("the service answered %d", rates.status);
//     const gm_json *document;
//     GM_TRY(gm_blob_json(rates.body, &document));
//
// A call sends at most 64 requests; bodies have at most 16 MiB each way. A redirect is an answer as
// any other. While a call waits for an answer it uses no CPU time. Write a handler for it: a call of
// a pair keeps its place among the tenant's calls meanwhile. In a trial, such as a sample or a
// shadow, only GET and HEAD are sent.
#ifndef GRISTMILL_HTTP_H
#define GRISTMILL_HTTP_H

#include "gristmill_plugin.h"

typedef struct {
    const char *method; // NULL means "GET"
    const char *url;
    gm_fields headers;
    const gm_blob *body; // NULL if there is none; gm_blob_from_bytes makes one
    uint64_t timeout_ms; // for all of it; 0: until the deadline of the plugin's own request
} gm_http_request;

typedef struct {
    uint16_t status; // those of errors, such as 404, are answers, too
    gm_fields headers;
    const gm_blob *body;
} gm_http_response;

// Sends a request, and waits for the whole answer. Without one it fails with a status from
// GM_HTTP_NOT_GRANTED to GM_HTTP_TOO_LARGE.
gm_status gm_http_send(const gm_http_request *request, gm_http_response *out);

// The value of a header, whose name is in lower case. NULL if there is none.
const char *gm_http_header(const gm_http_response *response, const char *name);

#endif
