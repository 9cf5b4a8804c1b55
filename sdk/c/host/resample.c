// Resizing by convolution, as image libraries with antialiasing do it.
#include "resample.h"

#include <math.h>

#include "host.h"

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

// Keys' cubic with a = -0.5.
static double cubic(double x) {
    x = fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static double sinc(double x) {
    return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
}

static double lanczos(double x) {
    return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// One line: `count` values at distance `stride`.
static void resample(const uint8_t *in, size_t from, size_t stride, uint8_t *out, size_t to,
                     gm_filter filter) {
    static double (*const kernels[])(double) = {NULL, triangle, cubic, lanczos};
    static const double radii[] = {0, 1, 2, 3};
    double ratio = (double)from / (double)to, widening = ratio > 1 ? ratio : 1;
    double radius = radii[filter] * widening;
    for (size_t at = 0; at < to; at++) {
        double center = ((double)at + 0.5) * ratio;
        if (filter == GM_NEAREST) {
            out[at * stride] = in[(size_t)center * stride];
            continue;
        }
        long first = (long)floor(center - radius), last = (long)ceil(center + radius);
        if (first < 0) first = 0;
        if (last > (long)from) last = (long)from;
        double sum = 0, weights = 0;
        for (long source = first; source < last; source++) {
            double weight = kernels[filter](((double)source + 0.5 - center) / widening);
            sum += weight * in[(size_t)source * stride];
            weights += weight;
        }
        double value = floor(sum / weights + 0.5);
        out[at * stride] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

void host_resample_rows(const uint8_t *in, size_t from, size_t rows, size_t channels, uint8_t *out,
                        size_t to, gm_filter filter) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t channel = 0; channel < channels; channel++) {
            resample(in + row * from * channels + channel, from, channels,
                     out + row * to * channels + channel, to, filter);
        }
    }
}

void host_resample_columns(const uint8_t *in, size_t from, size_t width, uint8_t *out, size_t to,
                           gm_filter filter) {
    for (size_t column = 0; column < width; column++) {
        resample(in + column, from, width, out + column, to, filter);
    }
}
