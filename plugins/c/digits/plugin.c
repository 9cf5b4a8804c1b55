// A photo of a handwritten digit in, its label out. The photo is the body, the first part of a form,
// or base64 or a data URL in JSON: {"image": ".."}.
//
// The model takes 28x28 values from 0 to 1, with bright ink on black (models/digits/README.md).
#include <gristmill_plugin.h>
#include <math.h>
#include <string.h>

enum { SIZE = 28, DIGITS = 10, TOP = 3 };

// Bright ink on black, stretched to 0 to 1. A bright picture shows dark ink on paper and is
// inverted. The loops over bytes and floats are such that the compiler vectorises them.
static void to_ink(const uint8_t *luma, float *ink, size_t count) {
    uint32_t sum = 0;
    uint8_t lowest = UINT8_MAX, highest = 0;
    for (size_t at = 0; at < count; at++) {
        sum += luma[at];
        lowest = luma[at] < lowest ? luma[at] : lowest;
        highest = luma[at] > highest ? luma[at] : highest;
    }
    bool is_inverted = 2 * sum > count * UINT8_MAX;
    float sign = is_inverted ? -1 : 1, offset = is_inverted ? 1 : 0;
    float darkest = (float)(is_inverted ? highest : lowest) / 255.0f * sign + offset;
    float range = (float)(is_inverted ? lowest : highest) / 255.0f * sign + offset - darkest;
    if (range == 0) darkest = 0, range = 1;
    for (size_t at = 0; at < count; at++) {
        ink[at] = ((float)luma[at] / 255.0f * sign + offset - darkest) / range;
    }
}

// The file of the photo.
static gm_status photo_of(const gm_request *request, const gm_blob **out) {
    const char *content_type = gm_request_content_type(request);
    if (content_type && strcmp(content_type, "application/json") == 0) {
        return gm_request_json_blob(request, "/image", out);
    }
    *out = gm_request_file(request);
    return GM_OK;
}

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    const gm_blob *file;
    gm_pixels *photo, *small;
    GM_TRY(photo_of(request, &file));
    GM_TRY(gm_pixels_decode(file, GM_GRAY, &photo));
    GM_TRY(gm_pixels_resize(photo, SIZE, SIZE, GM_BILINEAR, &small));
    gm_bytes luma = gm_pixels_data(small);
    float ink[SIZE * SIZE];
    to_ink(luma.data, ink, luma.size);
    gm_tensor *input;
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1, 1, SIZE, SIZE), ink, sizeof ink, &input));
    return gm_prepared_input(prepared, "input", input);
}

static void softmax(const float *logits, float *powers, size_t count) {
    float largest = -INFINITY, sum = 0;
    for (size_t at = 0; at < count; at++) largest = logits[at] > largest ? logits[at] : largest;
    for (size_t at = 0; at < count; at++) sum += powers[at] = expf(logits[at] - largest);
    for (size_t at = 0; at < count; at++) powers[at] /= sum;
}

static void put_candidate(gm_json_writer *answer, int label, float probability) {
    gm_json_key(answer, "label");
    gm_json_put_integer(answer, label);
    gm_json_key(answer, "probability");
    gm_json_put_float(answer, probability);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context, (void)state;
    gm_view logits;
    GM_TRY(gm_outputs_view(outputs, "output", GM_FLOAT32, GM_SHAPE(1, DIGITS), &logits));
    float probabilities[DIGITS];
    softmax(logits.f32, probabilities, DIGITS);

    // The best labels, the first one of equal probabilities first.
    int labels[DIGITS];
    for (int label = 0; label < DIGITS; label++) {
        int at = label;
        for (; at > 0 && probabilities[label] > probabilities[labels[at - 1]]; at--) {
            labels[at] = labels[at - 1];
        }
        labels[at] = label;
    }

    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_object(&answer);
    put_candidate(&answer, labels[0], probabilities[labels[0]]);
    gm_json_key(&answer, "top");
    gm_json_begin_array(&answer);
    for (int place = 0; place < TOP; place++) {
        gm_json_begin_object(&answer);
        put_candidate(&answer, labels[place], probabilities[labels[place]]);
        gm_json_end_object(&answer);
    }
    gm_json_end_array(&answer);
    gm_json_end_object(&answer);
    gm_response_json(response, &answer);
    return GM_OK;
}
