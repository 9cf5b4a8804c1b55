// Decoding pictures with stb_image.h, if it is installed.
#include "decode.h"

#if defined(__has_include)
#if __has_include(<stb/stb_image.h>)
#define HAS_STB_IMAGE
#endif
#endif

#ifdef HAS_STB_IMAGE
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>

// ITU-R BT.601.
static float luma_of(const float *rgb) {
    return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

host_decoding host_decode(gm_bytes file, gm_color color, host_pixels *out, const char **text) {
    int width, height, channels, size = (int)file.size;
    if (!stbi_info_from_memory(file.data, size, &width, &height, &channels)) {
        return HOST_UNKNOWN_FORMAT;
    }
    uint8_t *rgba = stbi_load_from_memory(file.data, size, &width, &height, &channels, 4);
    if (!rgba) {
        *text = stbi_failure_reason();
        return HOST_MALFORMED;
    }
    size_t area = (size_t)width * (size_t)height, out_channels = host_channels(color);
    uint8_t *data = host_alloc(area * out_channels);
    for (size_t at = 0; at < area; at++) {
        float rgb[3];
        for (int channel = 0; channel < 3; channel++) rgb[channel] = rgba[4 * at + channel];
        if (color == GM_GRAY) rgb[0] = luma_of(rgb);
        for (size_t channel = 0; channel < out_channels; channel++) {
            data[at * out_channels + channel] = (uint8_t)(rgb[channel] + 0.5f);
        }
    }
    stbi_image_free(rgba);
    *out = (host_pixels){(uint32_t)width, (uint32_t)height, color, {data, area * out_channels}};
    return HOST_DECODED;
}
#else
host_decoding host_decode(gm_bytes file, gm_color color, host_pixels *out, const char **text) {
    (void)file, (void)color, (void)out;
    *text = "this reference host was built without a decoder: install libstb-dev, or make pictures "
            "with gm_pixels_from_bytes";
    return HOST_NO_DECODER;
}
#endif
