// Making failures. An instance runs one call at a time, so there is one text.
#include "failure.h"

#include <stdio.h>

static const char *text = "";

char *gm_format_list(const char *format, va_list arguments, size_t *size) {
    va_list copy;
    va_copy(copy, arguments);
    int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    if (length < 0) gm_panic_at(NULL, 0, "the format %s is invalid", format);
    char *formatted = gm_alloc((size_t)length + 1);
    vsnprintf(formatted, (size_t)length + 1, format, arguments);
    if (size) *size = (size_t)length;
    return formatted;
}

char *gm_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *formatted = gm_format_list(format, arguments, NULL);
    va_end(arguments);
    return formatted;
}

#define FAILURE(function, status)                       \
    gm_status function(const char *format, ...) {       \
        va_list arguments;                              \
        va_start(arguments, format);                    \
        text = gm_format_list(format, arguments, NULL); \
        va_end(arguments);                              \
        return status;                                  \
    }

FAILURE(gm_invalid_input, GM_INVALID_INPUT)
FAILURE(gm_unsupported_media_type, GM_UNSUPPORTED_MEDIA_TYPE)
FAILURE(gm_unprocessable, GM_UNPROCESSABLE)
FAILURE(gm_internal, GM_INTERNAL)

gm_status gm_fail(gm_status status, const char *why) {
    text = why;
    return status;
}

const char *gm_failure_text(void) {
    return text;
}

void gm_clear_failure(void) {
    text = "";
}
