// The failure of the call under way.
#ifndef GM_FAILURE_H
#define GM_FAILURE_H

#include <stdarg.h>

#include "gristmill_plugin.h"

// A formatted text that lives until the call returns, and its length.
char *gm_format_list(const char *format, va_list arguments, size_t *size);

// Makes a failure with this text, which lives until the call returns. Returns its status.
gm_status gm_fail(gm_status status, const char *text);

// Forgets the latest failure.
void gm_clear_failure(void);

#endif
