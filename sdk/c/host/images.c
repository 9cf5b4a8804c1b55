// Pictures of the reference host.
#include <math.h>
#include <string.h>

#include "decode.h"
#include "host.h"
#include "resample.h"

typedef gristmill_plugin_image_own_pixels_t own;
typedef gristmill_plugin_image_borrow_pixels_t borrowed;
typedef gristmill_plugin_image_image_error_t error;

static host_pixels get(borrowed self) {
    return host_get(self.__handle, HOST_PIXELS)->pixels;
}

static bool fail(error *error, uint8_t tag, const char *text) {
    error->tag = tag;
    if (text) error->val.invalid_argument = host_give_text(text);
    return false;
}

static bool refuse(error *error, const char *text) {
    return fail(error, GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_INVALID_ARGUMENT, text);
}

static bool hold(host_pixels pixels, own *ret) {
    host_resource resource = {.kind = HOST_PIXELS, .pixels = pixels};
    ret->__handle = host_hold(resource);
    return true;
}

static size_t size_of(uint32_t width, uint32_t height, gm_color color) {
    return (size_t)width * height * host_channels(color);
}

static bool decode(gm_bytes file, gm_color color, own *ret, error *err) {
    host_pixels pixels;
    const char *text = NULL;
    switch (host_decode(file, color == GM_BGR ? GM_RGB : color, &pixels, &text)) {
    case HOST_DECODED:
        return hold(pixels, ret);
    case HOST_UNKNOWN_FORMAT:
        return fail(err, GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_UNKNOWN_FORMAT, NULL);
    case HOST_MALFORMED:
        return fail(err, GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_MALFORMED, text);
    default:
        return refuse(err, text);
    }
}

bool gristmill_plugin_image_static_pixels_decode(gristmill_plugin_image_borrow_blob_t data,
                                                 gristmill_plugin_image_decode_options_t *options,
                                                 own *ret, error *err) {
    return decode(host_get(data.__handle, HOST_BLOB)->blob, (gm_color)options->color, ret, err);
}

bool gristmill_plugin_image_static_pixels_decode_leniently(
    gristmill_plugin_image_borrow_blob_t data, gristmill_plugin_image_decode_options_t *options,
    own *ret, error *err) {
    return gristmill_plugin_image_static_pixels_decode(data, options, ret, err);
}

bool gristmill_plugin_image_static_pixels_from_bytes(uint32_t width, uint32_t height,
                                                     gristmill_plugin_image_color_t color,
                                                     imports_list_u8_t *data, own *ret,
                                                     error *err) {
    if (color == GRISTMILL_PLUGIN_IMAGE_COLOR_BGR)
        return refuse(err, "color is bgr, not rgb or gray");
    size_t size = size_of(width, height, (gm_color)color);
    if (size == 0) return refuse(err, host_format("%u x %u has no pixels", width, height));
    if (data->len != size) {
        return refuse(err, host_format("the picture needs %zu bytes, got %zu", size, data->len));
    }
    return hold((host_pixels){width, height, (gm_color)color, {host_copy(data->ptr, size), size}},
                ret);
}

uint32_t gristmill_plugin_image_method_pixels_width(borrowed self) {
    return get(self).width;
}

uint32_t gristmill_plugin_image_method_pixels_height(borrowed self) {
    return get(self).height;
}

gristmill_plugin_image_color_t gristmill_plugin_image_method_pixels_color(borrowed self) {
    return (gristmill_plugin_image_color_t)get(self).color;
}

void gristmill_plugin_image_method_pixels_data(borrowed self, imports_list_u8_t *ret) {
    *ret = host_give_bytes(get(self).data, 0, UINT64_MAX);
}

void gristmill_plugin_image_method_pixels_statistics(
    borrowed self, gristmill_plugin_image_list_channel_statistics_t *ret) {
    host_pixels pixels = get(self);
    ret->len = host_channels(pixels.color);
    ret->ptr = gm_alloc(ret->len * sizeof *ret->ptr);
    size_t area = (size_t)pixels.width * pixels.height;
    for (size_t channel = 0; channel < ret->len; channel++) {
        uint8_t min = UINT8_MAX, max = 0;
        uint64_t sum = 0;
        for (size_t at = 0; at < area; at++) {
            uint8_t value = pixels.data.data[at * ret->len + channel];
            if (value < min) min = value;
            if (value > max) max = value;
            sum += value;
        }
        float mean = (float)((double)sum / (double)area);
        ret->ptr[channel] = (gristmill_plugin_image_channel_statistics_t){min, max, mean};
    }
}

static host_pixels resized(host_pixels pixels, uint32_t width, uint32_t height, gm_filter filter) {
    size_t channels = host_channels(pixels.color);
    uint8_t *wide = host_alloc(size_of(width, pixels.height, pixels.color));
    host_resample_rows(pixels.data.data, pixels.width, pixels.height, channels, wide, width,
                       filter);
    uint8_t *out = host_alloc(size_of(width, height, pixels.color));
    host_resample_columns(wide, pixels.height, width * channels, out, height, filter);
    return (host_pixels){width, height, pixels.color, {out, size_of(width, height, pixels.color)}};
}

bool gristmill_plugin_image_method_pixels_resize(borrowed self, uint32_t width, uint32_t height,
                                                 gristmill_plugin_image_filter_t filter, own *ret,
                                                 error *err) {
    if (width == 0 || height == 0) {
        return refuse(err, host_format("%u x %u has no pixels", width, height));
    }
    return hold(resized(get(self), width, height, (gm_filter)filter), ret);
}

static uint32_t scaled(uint32_t length, double scale) {
    double rounded = floor(length * scale + 0.5);
    return rounded < 1 ? 1 : (uint32_t)rounded;
}

bool gristmill_plugin_image_method_pixels_resize_shorter(borrowed self, uint32_t size,
                                                         gristmill_plugin_image_filter_t filter,
                                                         own *ret, error *err) {
    if (size == 0) return refuse(err, "size is 0");
    host_pixels pixels = get(self);
    bool is_tall = pixels.height > pixels.width;
    uint32_t shorter = is_tall ? pixels.width : pixels.height;
    uint32_t longer = (uint32_t)((uint64_t)size * (is_tall ? pixels.height : pixels.width) / shorter);
    uint32_t width = is_tall ? size : longer, height = is_tall ? longer : size;
    return hold(resized(pixels, width, height, (gm_filter)filter), ret);
}

// A picture of one color with another one in it.
static host_pixels pasted(host_pixels pixels, uint32_t left, uint32_t top, uint32_t width,
                          uint32_t height, const imports_list_u8_t *fill) {
    size_t channels = host_channels(pixels.color), size = size_of(width, height, pixels.color);
    uint8_t *out = host_alloc(size);
    for (size_t at = 0; at < size; at++) out[at] = fill->len ? fill->ptr[at % channels] : 0;
    for (uint32_t row = 0; row < pixels.height; row++) {
        memcpy(out + ((size_t)(row + top) * width + left) * channels,
               pixels.data.data + (size_t)row * pixels.width * channels, pixels.width * channels);
    }
    return (host_pixels){width, height, pixels.color, {out, size}};
}

static bool fill_fits(host_pixels pixels, const imports_list_u8_t *fill, error *err) {
    size_t channels = host_channels(pixels.color);
    if (fill->len == 0 || fill->len == channels) return true;
    return refuse(err, host_format("fill has %zu values for %zu channels", fill->len, channels));
}

bool gristmill_plugin_image_method_pixels_pad(borrowed self,
                                              gristmill_plugin_image_border_t *border,
                                              imports_list_u8_t *fill, own *ret, error *err) {
    host_pixels pixels = get(self);
    if (!fill_fits(pixels, fill, err)) return false;
    return hold(pasted(pixels, border->left, border->top,
                       pixels.width + border->left + border->right,
                       pixels.height + border->top + border->bottom, fill),
                ret);
}

bool gristmill_plugin_image_method_pixels_letterbox(borrowed self, uint32_t width, uint32_t height,
                                                    gristmill_plugin_image_filter_t filter,
                                                    imports_list_u8_t *fill,
                                                    gristmill_plugin_image_letterboxed_t *ret,
                                                    error *err) {
    host_pixels pixels = get(self);
    if (!fill_fits(pixels, fill, err)) return false;
    if (width == 0 || height == 0) {
        return refuse(err, host_format("%u x %u has no pixels", width, height));
    }
    double by_width = (double)width / pixels.width, by_height = (double)height / pixels.height;
    bool is_wide = by_width < by_height;
    uint32_t inner_width = is_wide ? width : scaled(pixels.width, by_height);
    uint32_t inner_height = is_wide ? scaled(pixels.height, by_width) : height;
    if (inner_width > width) inner_width = width;
    if (inner_height > height) inner_height = height;
    host_pixels inner = resized(pixels, inner_width, inner_height, (gm_filter)filter);
    uint32_t left = (width - inner_width) / 2, top = (height - inner_height) / 2;
    ret->placement =
        (gristmill_plugin_image_placement_t){(float)inner_width / (float)pixels.width,
                                             (float)inner_height / (float)pixels.height,
                                             left,
                                             top,
                                             pixels.width,
                                             pixels.height};
    return hold(pasted(inner, left, top, width, height, fill), &ret->pixels);
}

bool gristmill_plugin_image_method_pixels_crop(borrowed self, uint32_t x, uint32_t y,
                                               uint32_t width, uint32_t height, own *ret,
                                               error *err) {
    host_pixels pixels = get(self);
    if (width == 0 || height == 0 || (uint64_t)x + width > pixels.width ||
        (uint64_t)y + height > pixels.height) {
        return refuse(err, host_format("%u x %u at (%u, %u) is not within %u x %u", width, height,
                                       x, y, pixels.width, pixels.height));
    }
    size_t channels = host_channels(pixels.color), row_size = width * channels;
    uint8_t *out = host_alloc(row_size * height);
    for (uint32_t row = 0; row < height; row++) {
        memcpy(out + row * row_size,
               pixels.data.data + ((size_t)(row + y) * pixels.width + x) * channels, row_size);
    }
    return hold((host_pixels){width, height, pixels.color, {out, row_size * height}}, ret);
}

// The start of the middle part. Half a pixel is rounded to the even number.
static uint32_t start_of(uint32_t length, uint32_t part) {
    uint32_t margin = length > part ? length - part : 0, half = margin / 2;
    return half + (margin & half & 1);
}

bool gristmill_plugin_image_method_pixels_center_crop(borrowed self, uint32_t width,
                                                      uint32_t height, own *ret, error *err) {
    host_pixels pixels = get(self);
    uint32_t x = start_of(pixels.width, width), y = start_of(pixels.height, height);
    return gristmill_plugin_image_method_pixels_crop(self, x, y, width, height, ret, err);
}

static bool options_fit(const gristmill_plugin_image_tensor_options_t *options, gm_color color,
                        error *err) {
    size_t channels = host_channels((gm_color)options->color);
    if (color == GM_GRAY && channels == 3) {
        return refuse(err, "a gray picture cannot become a coloured tensor");
    }
    bool counts_fit = (options->mean.len == 0 || options->mean.len == channels) &&
                      (options->std.len == 0 || options->std.len == channels);
    if (!counts_fit) return refuse(err, "mean and std need a value per channel");
    if (options->dtype == GRISTMILL_PLUGIN_TENSORS_DTYPE_FLOAT32) return true;
    if (options->dtype != GRISTMILL_PLUGIN_TENSORS_DTYPE_UINT8) {
        return refuse(err, "dtype is not float32 or uint8");
    }
    if (options->scale == 1 && options->mean.len == 0 && options->std.len == 0) return true;
    return refuse(err, "a uint8 tensor needs scale 1, mean 0 and std 1");
}

// The value of a tensor's channel before it is scaled.
static float value_at(host_pixels pixels, size_t at, gm_color color, size_t channel) {
    const uint8_t *pixel = pixels.data.data + at * host_channels(pixels.color);
    if (pixels.color == GM_GRAY) return pixel[0];
    if (color == GM_RGB) return pixel[channel];
    if (color == GM_BGR) return pixel[2 - channel];
    return floorf(0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2] + 0.5f);
}

bool gristmill_plugin_image_method_pixels_to_tensor(
    borrowed self, gristmill_plugin_image_tensor_options_t *options,
    gristmill_plugin_image_own_tensor_t *ret, error *err) {
    host_pixels pixels = get(self);
    if (!options_fit(options, pixels.color, err)) return false;
    size_t channels = host_channels((gm_color)options->color);
    size_t area = (size_t)pixels.width * pixels.height;
    bool is_float = options->dtype == GRISTMILL_PLUGIN_TENSORS_DTYPE_FLOAT32;
    bool is_nchw = options->layout == GRISTMILL_PLUGIN_IMAGE_LAYOUT_NCHW;
    size_t size = area * channels * (is_float ? sizeof(float) : 1);
    uint8_t *data = host_alloc(size);
    for (size_t channel = 0; channel < channels; channel++) {
        float mean = options->mean.len ? options->mean.ptr[channel] : 0;
        float std = options->std.len ? options->std.ptr[channel] : 1;
        for (size_t at = 0; at < area; at++) {
            size_t to = is_nchw ? channel * area + at : at * channels + channel;
            float value = value_at(pixels, at, (gm_color)options->color, channel);
            if (is_float) {
                ((float *)data)[to] = (value * options->scale - mean) / std;
            } else {
                data[to] = (uint8_t)value;
            }
        }
    }
    uint32_t count = (uint32_t)channels;
    uint32_t nchw[] = {1, count, pixels.height, pixels.width};
    uint32_t nhwc[] = {1, pixels.height, pixels.width, count};
    host_tensor tensor = {
        (gm_dtype)options->dtype, {host_copy(is_nchw ? nchw : nhwc, sizeof nchw), 4}, {data, size}};
    host_resource resource = {.kind = HOST_TENSOR, .tensor = tensor};
    ret->__handle = host_hold(resource);
    return true;
}
