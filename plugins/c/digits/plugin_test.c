// The digits plugin on the reference host.
#include <gristmill_host.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static gm_host_prepared decoded(const char *file) {
    gm_host_request request = {.body = gm_host_file(file), .content_type = "image/png"};
    assert(request.body.size > 0);
    return gm_host_preprocess(&request);
}

static void logits_become_an_answer(void) {
    const float logits[] = {0.1f, -3, 2.5f, 9, 0, 1, -7, 14.5f, 3, 2};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(1, 10), GM_HOST_ARRAY(logits)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(response.status == GM_OK && response.http_status == 200);
    assert(strcmp(response.content_type, "application/json") == 0);
    const char *expected =
        "{\"label\":7,\"probability\":0.99590766,\"top\":[{\"label\":7,\"probability\":0.99590766},"
        "{\"label\":3,\"probability\":0.0040700473},{\"label\":8,\"probability\":0.000010088638}]}";
    assert(strcmp((const char *)response.body.data, expected) == 0);
}

static void equal_probabilities_keep_their_order(void) {
    const float logits[10] = {0};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(1, 10), GM_HOST_ARRAY(logits)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    const char *expected =
        "{\"label\":0,\"probability\":0.1,\"top\":[{\"label\":0,\"probability\":0.1},"
        "{\"label\":1,\"probability\":0.1},{\"label\":2,\"probability\":0.1}]}";
    assert(strcmp((const char *)response.body.data, expected) == 0);
}

static void another_shape_is_refused(void) {
    const float logits[10] = {0};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(2, 5), GM_HOST_ARRAY(logits)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(response.status == GM_INTERNAL);
    assert(strcmp(response.failure, "output \"output\" has shape [2, 5], wanted [1, 10]") == 0);
}

static void a_photo_becomes_ink(const char *samples) {
    gm_host_prepared prepared = decoded(gm_format("%s/seven.png", samples));
    if (prepared.status != GM_OK && strstr(prepared.failure, "without a decoder")) {
        puts("digits: the photo is not tested: libstb-dev is not installed");
        return;
    }
    assert(prepared.status == GM_OK && prepared.inputs_count == 1 && prepared.state.size == 0);
    gm_host_tensor input = prepared.inputs[0];
    assert(strcmp(input.name, "input") == 0 && input.dtype == GM_FLOAT32);
    assert(input.shape.rank == 4 && input.shape.dims[2] == 28 && input.shape.dims[3] == 28);
    const float *ink = (const float *)input.data.data;
    float lowest = INFINITY, highest = -INFINITY, sum = 0;
    for (size_t at = 0; at < 28 * 28; at++) {
        lowest = fminf(lowest, ink[at]);
        highest = fmaxf(highest, ink[at]);
        sum += ink[at];
    }
    // Bright ink on black, over the whole range.
    assert(lowest == 0 && highest == 1 && sum / (28 * 28) < 0.5f);
}

static void other_bytes_are_refused(void) {
    gm_host_request request = {.body = GM_HOST_TEXT("no picture")};
    gm_host_prepared prepared = gm_host_preprocess(&request);
    if (strstr(prepared.failure, "without a decoder")) return;
    assert(prepared.status == GM_UNSUPPORTED_MEDIA_TYPE);
    assert(strcmp(prepared.failure, "not a JPEG, PNG, WebP, BMP or GIF") == 0);
}

int main(void) {
    logits_become_an_answer();
    equal_probabilities_keep_their_order();
    another_shape_is_refused();
    a_photo_becomes_ink(SAMPLES);
    other_bytes_are_refused();
    assert(gm_host_handles() == 0);
    gm_host_reset();
    puts("digits: passed");
}
