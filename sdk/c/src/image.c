// Pictures over the generated bindings.
#include "handle.h"

typedef gristmill_plugin_image_own_pixels_t own;
typedef gristmill_plugin_image_borrow_pixels_t borrowed;
typedef gristmill_plugin_image_image_error_t error;

static borrowed borrow(const gm_pixels *pixels) {
    return (borrowed){gm_number_of(&pixels->handle)};
}

static size_t channels_of(gm_color color) {
    return color == GM_GRAY ? 1 : 3;
}

// A picture that cannot be read is the client's fault; a wrong argument is the plugin's.
static gm_status failure_of(const error *error) {
    const char *text = error->tag ? gm_text_of(error->val.malformed) : ""; // all others have a text
    switch (error->tag) {
    case GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_UNKNOWN_FORMAT:
        return gm_unsupported_media_type("not a JPEG, PNG, WebP, BMP or GIF");
    case GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_MALFORMED:
        return gm_invalid_input("malformed image: %s", text);
    case GRISTMILL_PLUGIN_IMAGE_IMAGE_ERROR_TOO_LARGE:
        return gm_unprocessable("%s", text);
    default:
        return gm_internal("%s", text);
    }
}

static gm_status made(bool is_made, own pixels, const error *error, gm_pixels **out) {
    if (!is_made) return failure_of(error);
    *out = gm_hold(GM_HANDLE_PIXELS, pixels.__handle);
    return GM_OK;
}

gm_status gm_pixels_decode(const gm_blob *blob, gm_color color, gm_pixels **out) {
    gristmill_plugin_image_borrow_blob_t data = {gm_number_of(&blob->handle)};
    gristmill_plugin_image_decode_options_t options = {(gristmill_plugin_image_color_t)color, true};
    own pixels;
    error fault;
    bool is_made = gristmill_plugin_image_static_pixels_decode(data, &options, &pixels, &fault);
    return made(is_made, pixels, &fault, out);
}

gm_status gm_pixels_decode_leniently(const gm_blob *blob, gm_color color, gm_pixels **out) {
    gristmill_plugin_image_borrow_blob_t data = {gm_number_of(&blob->handle)};
    gristmill_plugin_image_decode_options_t options = {(gristmill_plugin_image_color_t)color, true};
    own pixels;
    error fault;
    bool is_made =
        gristmill_plugin_image_static_pixels_decode_leniently(data, &options, &pixels, &fault);
    return made(is_made, pixels, &fault, out);
}

gm_status gm_pixels_from_bytes(uint32_t width, uint32_t height, gm_color color, const void *data,
                               size_t size, gm_pixels **out) {
    imports_list_u8_t bytes = {(uint8_t *)data, size};
    own pixels;
    error fault;
    bool is_made = gristmill_plugin_image_static_pixels_from_bytes(
        width, height, (gristmill_plugin_image_color_t)color, &bytes, &pixels, &fault);
    return made(is_made, pixels, &fault, out);
}

uint32_t gm_pixels_width(const gm_pixels *pixels) {
    return gristmill_plugin_image_method_pixels_width(borrow(pixels));
}

uint32_t gm_pixels_height(const gm_pixels *pixels) {
    return gristmill_plugin_image_method_pixels_height(borrow(pixels));
}

gm_color gm_pixels_color(const gm_pixels *pixels) {
    return (gm_color)gristmill_plugin_image_method_pixels_color(borrow(pixels));
}

void gm_pixels_statistics(const gm_pixels *pixels, gm_channel_statistics out[]) {
    gristmill_plugin_image_list_channel_statistics_t found;
    gristmill_plugin_image_method_pixels_statistics(borrow(pixels), &found);
    for (size_t channel = 0; channel < found.len; channel++) {
        gristmill_plugin_image_channel_statistics_t of = found.ptr[channel];
        out[channel] = (gm_channel_statistics){of.min, of.max, of.mean};
    }
}

gm_bytes gm_pixels_data(const gm_pixels *pixels) {
    imports_list_u8_t bytes;
    gristmill_plugin_image_method_pixels_data(borrow(pixels), &bytes);
    return (gm_bytes){bytes.ptr, bytes.len};
}

gm_status gm_pixels_resize(const gm_pixels *pixels, uint32_t width, uint32_t height,
                           gm_filter filter, gm_pixels **out) {
    own resized;
    error fault;
    bool is_made = gristmill_plugin_image_method_pixels_resize(
        borrow(pixels), width, height, (gristmill_plugin_image_filter_t)filter, &resized, &fault);
    return made(is_made, resized, &fault, out);
}

gm_status gm_pixels_resize_shorter(const gm_pixels *pixels, uint32_t size, gm_filter filter,
                                   gm_pixels **out) {
    own resized;
    error fault;
    bool is_made = gristmill_plugin_image_method_pixels_resize_shorter(
        borrow(pixels), size, (gristmill_plugin_image_filter_t)filter, &resized, &fault);
    return made(is_made, resized, &fault, out);
}

// A value per channel of the picture, or none.
static imports_list_u8_t fill_of(const gm_pixels *pixels, const uint8_t *fill) {
    return (imports_list_u8_t){(uint8_t *)fill, fill ? channels_of(gm_pixels_color(pixels)) : 0};
}

gm_status gm_pixels_pad(const gm_pixels *pixels, gm_border border, const uint8_t *fill,
                        gm_pixels **out) {
    gristmill_plugin_image_border_t widths = {border.left, border.top, border.right, border.bottom};
    imports_list_u8_t values = fill_of(pixels, fill);
    own padded;
    error fault;
    bool is_made =
        gristmill_plugin_image_method_pixels_pad(borrow(pixels), &widths, &values, &padded, &fault);
    return made(is_made, padded, &fault, out);
}

gm_status gm_pixels_letterbox(const gm_pixels *pixels, uint32_t width, uint32_t height,
                              gm_filter filter, const uint8_t *fill, gm_pixels **out,
                              gm_placement *placement) {
    imports_list_u8_t values = fill_of(pixels, fill);
    gristmill_plugin_image_letterboxed_t boxed;
    error fault;
    bool is_made = gristmill_plugin_image_method_pixels_letterbox(
        borrow(pixels), width, height, (gristmill_plugin_image_filter_t)filter, &values, &boxed,
        &fault);
    GM_TRY(made(is_made, boxed.pixels, &fault, out));
    if (placement) {
        *placement = (gm_placement){boxed.placement.scale_x, boxed.placement.scale_y,
                                    boxed.placement.left,    boxed.placement.top,
                                    boxed.placement.width,   boxed.placement.height};
    }
    return GM_OK;
}

gm_status gm_pixels_crop(const gm_pixels *pixels, uint32_t x, uint32_t y, uint32_t width,
                         uint32_t height, gm_pixels **out) {
    own cropped;
    error fault;
    bool is_made = gristmill_plugin_image_method_pixels_crop(borrow(pixels), x, y, width, height,
                                                             &cropped, &fault);
    return made(is_made, cropped, &fault, out);
}

gm_status gm_pixels_center_crop(const gm_pixels *pixels, uint32_t width, uint32_t height,
                                gm_pixels **out) {
    own cropped;
    error fault;
    bool is_made = gristmill_plugin_image_method_pixels_center_crop(borrow(pixels), width, height,
                                                                    &cropped, &fault);
    return made(is_made, cropped, &fault, out);
}

gm_status gm_pixels_to_tensor(const gm_pixels *pixels, gm_tensor_options options, gm_tensor **out) {
    size_t channels = channels_of(options.color);
    bool has_mean = false, has_std = false;
    for (size_t channel = 0; channel < channels; channel++) {
        if (options.std[channel] == 0) options.std[channel] = 1;
        has_mean |= options.mean[channel] != 0;
        has_std |= options.std[channel] != 1;
    }
    gristmill_plugin_image_tensor_options_t wire = {
        .dtype = (gristmill_plugin_image_dtype_t)options.dtype,
        .layout = (gristmill_plugin_image_layout_t)options.layout,
        .color = (gristmill_plugin_image_color_t)options.color,
        .scale = options.scale == 0 ? 1 : options.scale,
        .mean = {options.mean, has_mean ? channels : 0},
        .std = {options.std, has_std ? channels : 0},
    };
    gristmill_plugin_image_own_tensor_t tensor;
    error fault;
    if (!gristmill_plugin_image_method_pixels_to_tensor(borrow(pixels), &wire, &tensor, &fault)) {
        return failure_of(&fault);
    }
    *out = gm_hold(GM_HANDLE_TENSOR, tensor.__handle);
    return GM_OK;
}

void gm_pixels_drop(gm_pixels *pixels) {
    gm_drop(&pixels->handle);
}
