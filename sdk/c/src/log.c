// Log lines in the server's log.
#include <stdarg.h>

#include "failure.h"
#include "handle.h"
#include "memory.h"

static void write_line(gm_level level, imports_string_t message,
                       gristmill_plugin_log_list_field_t fields) {
    gristmill_plugin_log_write((gristmill_plugin_log_level_t)level, &message, &fields);
}

void gm_log(gm_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gm_mark mark = gm_mark_memory();
    size_t size;
    char *text = gm_format_list(format, arguments, &size);
    va_end(arguments);
    write_line(level, (imports_string_t){(uint8_t *)text, size},
               (gristmill_plugin_log_list_field_t){NULL, 0});
    gm_release_since(mark);
}

void gm_log_fields(gm_level level, const char *message, const gm_field *fields, size_t count) {
    gm_mark mark = gm_mark_memory();
    gristmill_plugin_log_field_t *list = gm_alloc(count * sizeof *list);
    for (size_t index = 0; index < count; index++) {
        list[index] = (gristmill_plugin_log_field_t){gm_text(fields[index].name),
                                                     gm_text(fields[index].value)};
    }
    write_line(level, gm_text(message), (gristmill_plugin_log_list_field_t){list, count});
    gm_release_since(mark);
}
