// Tensors and pictures over the reference host.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static gm_tensor *tensor_of(gm_shape shape, const float *values) {
    gm_tensor *tensor;
    assert(gm_tensor_create(GM_FLOAT32, shape, values, gm_shape_elements(shape) * sizeof *values,
                            &tensor) == GM_OK);
    return tensor;
}

static gm_view view_of(const gm_tensor *tensor, gm_dtype dtype) {
    gm_view view;
    assert(gm_tensor_view(tensor, dtype, &view) == GM_OK);
    return view;
}

static bool has_shape(const gm_tensor *tensor, gm_shape wanted) {
    gm_shape shape = gm_tensor_shape(tensor);
    return shape.rank == wanted.rank &&
           memcmp(shape.dims, wanted.dims, shape.rank * sizeof *shape.dims) == 0;
}

static const float six[] = {1, 2, 3, 6, 5, 4};

static void tensors_are_made_and_viewed(void) {
    gm_tensor *tensor = tensor_of(GM_SHAPE(2, 3), six);
    gm_view view = view_of(tensor, GM_FLOAT32);
    assert(view.count == 6 && view.size == sizeof six && view.f32[3] == 6);
    assert(gm_tensor_view(tensor, GM_INT64, &view) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "tensor is float32, wanted int64") == 0);
    assert(gm_tensor_read(tensor, 20, 100).size == 4 && gm_tensor_read(tensor, 99, 1).size == 0);
}

static void wrong_lengths_and_elements_are_refused(void) {
    gm_tensor *tensor;
    assert(gm_tensor_create(GM_FLOAT32, GM_SHAPE(2, 3), six, 8, &tensor) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "tensor data is 8 bytes long, but dtype and shape need 24") ==
           0);
    assert(gm_tensor_create(GM_BOOL, GM_SHAPE(2), "\1\2", 2, &tensor) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "element 1 is 2, not 0 or 1") == 0);
    assert(gm_tensor_create((gm_dtype)99, GM_SHAPE(2), "", 2, &tensor) == GM_INTERNAL);
}

static void rows_are_ranked(void) {
    gm_tensor *tensor = tensor_of(GM_SHAPE(2, 3), six), *soft;
    gm_scores best = gm_tensor_argmax(tensor);
    assert(best.count == 2 && best.items[0].index == 2 && best.items[1].value == 6);
    gm_scores top = gm_tensor_top_k(tensor, 1, 2);
    assert(top.count == 2 && top.items[0].value == 6 && top.items[1].index == 1);
    assert(gm_tensor_top_k(tensor, 2, 2).count == 0 && gm_tensor_top_k(tensor, 0, 9).count == 3);
    assert(gm_tensor_softmax(tensor, &soft) == GM_OK);
    const float *values = view_of(soft, GM_FLOAT32).f32;
    assert(fabsf(values[0] + values[1] + values[2] - 1) < 1e-6f && values[2] > values[1]);
}

static void tensors_are_joined_and_cut(void) {
    gm_tensor *a = tensor_of(GM_SHAPE(2, 3), six), *b = tensor_of(GM_SHAPE(2, 1), six), *out;
    assert(gm_tensor_concat((gm_tensor *[]){a, b}, 2, 1, &out) == GM_OK);
    assert(has_shape(out, GM_SHAPE(2, 4)));
    const float joined[] = {1, 2, 3, 1, 6, 5, 4, 2};
    assert(memcmp(view_of(out, GM_FLOAT32).data, joined, sizeof joined) == 0);
    assert(gm_tensor_slice(out, 1, 1, 3, &out) == GM_OK && has_shape(out, GM_SHAPE(2, 2)));
    const float cut[] = {2, 3, 5, 4};
    assert(memcmp(view_of(out, GM_FLOAT32).data, cut, sizeof cut) == 0);
    assert(gm_tensor_stack((gm_tensor *[]){a, a}, 2, 1, &out) == GM_OK);
    assert(has_shape(out, GM_SHAPE(2, 2, 3)) && view_of(out, GM_FLOAT32).f32[3] == 1);
    assert(gm_tensor_concat((gm_tensor *[]){a, b}, 2, 0, &out) == GM_INTERNAL);
    assert(gm_tensor_slice(a, 1, 2, 4, &out) == GM_INTERNAL);
    assert(gm_tensor_stack(NULL, 0, 0, &out) == GM_INTERNAL);
}

static void strings_are_joined_and_cut(void) {
    gm_tensor *texts, *out;
    assert(gm_tensor_from_strings(GM_SHAPE(2, 2), (const char *[]){"a", "", "bcd", "ef"}, 4,
                                  &texts) == GM_OK);
    assert(gm_tensor_slice(texts, 1, 0, 1, &out) == GM_OK);
    assert(memcmp(view_of(out, GM_STRING).data, "\1\0\0\0a\3\0\0\0bcd", 12) == 0);
    assert(gm_tensor_concat((gm_tensor *[]){out, texts}, 2, 1, &out) == GM_OK);
    assert(has_shape(out, GM_SHAPE(2, 3)) && view_of(out, GM_STRING).size == 34);
}

static void casts_saturate(void) {
    const float values[] = {-1.7f, 300.5f, NAN, 2.9f};
    gm_tensor *tensor = tensor_of(GM_SHAPE(4), values), *cast, *half, *back;
    assert(gm_tensor_cast(tensor, GM_UINT8, &cast) == GM_OK);
    assert(memcmp(view_of(cast, GM_UINT8).data, "\0\xff\0\2", 4) == 0);
    assert(gm_tensor_cast(tensor, GM_BOOL, &cast) == GM_OK && view_of(cast, GM_BOOL).u8[2] == 1);
    assert(gm_tensor_cast(tensor, GM_INT64, &cast) == GM_OK &&
           view_of(cast, GM_INT64).i64[0] == -1);
    assert(gm_tensor_cast(tensor, GM_FLOAT16, &half) == GM_OK);
    assert(gm_tensor_cast(half, GM_FLOAT32, &back) == GM_OK);
    assert(fabsf(view_of(back, GM_FLOAT32).f32[1] - 300.5f) < 0.01f);
    assert(gm_tensor_cast(tensor, GM_BFLOAT16, &half) == GM_OK);
    assert(view_of(half, GM_BFLOAT16).u16[3] == 0x403a);
    assert(gm_tensor_cast(tensor, GM_STRING, &cast) == GM_INTERNAL);
}

static gm_pixels *gradient(void) {
    uint8_t bytes[8 * 4 * 3];
    for (size_t at = 0; at < sizeof bytes; at++) bytes[at] = (uint8_t)(at * 2);
    gm_pixels *pixels;
    assert(gm_pixels_from_bytes(8, 4, GM_RGB, bytes, sizeof bytes, &pixels) == GM_OK);
    return pixels;
}

static void pictures_are_resized_and_cut(void) {
    gm_pixels *pixels = gradient(), *out;
    assert(gm_pixels_crop(pixels, 2, 1, 3, 2, &out) == GM_OK);
    assert(gm_pixels_data(out).size == 18 && gm_pixels_data(out).data[0] == (8 + 2) * 3 * 2);
    assert(gm_pixels_crop(pixels, 6, 0, 3, 1, &out) == GM_INTERNAL);
    assert(gm_pixels_resize_shorter(pixels, 2, GM_BILINEAR, &out) == GM_OK);
    assert(gm_pixels_width(out) == 4 && gm_pixels_height(out) == 2);
    // 8 * 5 / 4, and 3.5 of a margin of 7 rounded to 4, 0.5 of one to 0.
    assert(gm_pixels_resize_shorter(pixels, 5, GM_NEAREST, &out) == GM_OK);
    assert(gm_pixels_width(out) == 10 && gm_pixels_height(out) == 5);
    assert(gm_pixels_center_crop(pixels, 1, 3, &out) == GM_OK);
    assert(gm_pixels_data(out).size == 9 && gm_pixels_data(out).data[0] == 4 * 3 * 2);
    assert(gm_pixels_center_crop(pixels, 9, 1, &out) == GM_INTERNAL);
    for (gm_filter filter = GM_NEAREST; filter <= GM_LANCZOS3; filter++) {
        assert(gm_pixels_resize(pixels, 8, 4, filter, &out) == GM_OK);
        assert(memcmp(gm_pixels_data(out).data, gm_pixels_data(pixels).data, 96) == 0);
        assert(gm_pixels_resize(pixels, 5, 9, filter, &out) == GM_OK);
    }
    assert(gm_pixels_resize(pixels, 0, 4, GM_NEAREST, &out) == GM_INTERNAL);
    assert(gm_pixels_pad(pixels, (gm_border){1, 0, 0, 2}, (uint8_t[]){7, 8, 9}, &out) == GM_OK);
    assert(gm_pixels_width(out) == 9 && gm_pixels_height(out) == 6);
    assert(memcmp(gm_pixels_data(out).data, "\7\10\11\0\2\4", 6) == 0);
}

static void channels_have_statistics(void) {
    gm_channel_statistics found[3];
    gm_pixels_statistics(gradient(), found);
    assert(found[0].min == 0 && found[0].max == 186 && found[0].mean == 93);
    assert(found[2].min == 4 && found[2].max == 190 && found[2].mean == 97);
}

static void a_letterbox_says_where_the_picture_is(void) {
    gm_placement placement;
    gm_pixels *out;
    assert(gm_pixels_letterbox(gradient(), 16, 16, GM_BILINEAR, (uint8_t[]){1, 2, 3}, &out,
                               &placement) == GM_OK);
    assert(placement.scale_x == 2 && placement.scale_y == 2 && placement.left == 0);
    assert(placement.top == 4 && placement.width == 8 && placement.height == 4);
    assert(memcmp(gm_pixels_data(out).data, "\1\2\3\1", 4) == 0);
}

static void pictures_become_tensors(void) {
    gm_tensor *tensor;
    assert(gm_pixels_to_tensor(gradient(), GM_NCHW_0_TO_1(GM_RGB), &tensor) == GM_OK);
    assert(has_shape(tensor, GM_SHAPE(1, 3, 4, 8)));
    assert(fabsf(view_of(tensor, GM_FLOAT32).f32[1] - 6 / 255.0f) < 1e-6f);
    gm_tensor_options bytes = {.dtype = GM_UINT8, .layout = GM_NHWC, .color = GM_BGR};
    assert(gm_pixels_to_tensor(gradient(), bytes, &tensor) == GM_OK);
    assert(has_shape(tensor, GM_SHAPE(1, 4, 8, 3)) && view_of(tensor, GM_UINT8).u8[0] == 4);
    assert(gm_pixels_to_tensor(gradient(), GM_NCHW_IMAGENET, &tensor) == GM_OK);
    assert(fabsf(view_of(tensor, GM_FLOAT32).f32[0] + 0.485f / 0.229f) < 1e-5f);
}

int main(void) {
    tensors_are_made_and_viewed();
    wrong_lengths_and_elements_are_refused();
    rows_are_ranked();
    tensors_are_joined_and_cut();
    strings_are_joined_and_cut();
    casts_saturate();
    pictures_are_resized_and_cut();
    channels_have_statistics();
    a_letterbox_says_where_the_picture_is();
    pictures_become_tensors();
    gm_host_reset();
    assert(gm_host_handles() == 0);
    puts("tensor_test: passed");
}
