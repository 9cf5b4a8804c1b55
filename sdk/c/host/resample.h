// Resizing rows and columns of bytes by a filter that is widened when it shrinks.
#ifndef GM_HOST_RESAMPLE_H
#define GM_HOST_RESAMPLE_H

#include "gristmill_plugin.h"

// `rows` rows of `from` pixels with interleaved channels become rows of `to` pixels.
void host_resample_rows(const uint8_t *in, size_t from, size_t rows, size_t channels, uint8_t *out,
                        size_t to, gm_filter filter);

// `from` rows of `width` bytes become `to` rows.
void host_resample_columns(const uint8_t *in, size_t from, size_t width, uint8_t *out, size_t to,
                           gm_filter filter);

#endif
