// Ending a call with a line in the log: message, file and line.
#include <stdarg.h>
#include <stdio.h>

#include "call.h"

#undef abort

// Takes no memory: it may be why the call ends.
static _Noreturn void end_call(const char *text, int length) {
#ifdef __wasm__
    imports_string_t message = {(uint8_t *)text, (size_t)length};
    gristmill_plugin_log_list_field_t fields = {NULL, 0};
    gm_flush_output();
    gristmill_plugin_log_write(GRISTMILL_PLUGIN_LOG_LEVEL_ERROR, &message, &fields);
    __builtin_trap();
#else
    fprintf(stderr, "%.*s\n", length, text);
    abort();
#endif
}

void gm_panic_at(const char *file, int line, const char *format, ...) {
    static char text[1024];
    int length = file ? snprintf(text, sizeof text, "panicked at %s:%d: ", file, line)
                      : snprintf(text, sizeof text, "panicked: ");
    if (length < 0 || length >= (int)sizeof text) length = 0;
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    if (more > 0) length += more;
    end_call(text, length < (int)sizeof text ? length : (int)sizeof text - 1);
}

#ifdef __wasm__
// assert of wasi-libc calls this. Its own would write to a standard error that is not there.
_Noreturn void __assert_fail(const char *condition, const char *file, int line,
                             const char *function) {
    gm_panic_at(file, line, "assertion `%s` failed in %s", condition, function);
}

// For libc, and for files that do not include the header.
_Noreturn void abort(void) {
    gm_panic_at(NULL, 0, "abort() was called");
}
#endif
