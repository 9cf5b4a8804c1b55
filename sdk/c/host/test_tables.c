// Tables of the reference host: rows that a test gives.
#include <string.h>

#include "host.h"

typedef gristmill_plugin_tables_table_error_t error;

typedef struct table {
    struct table *older;
    const char *asset;
    const gm_host_row *rows;
    size_t count;
    const char *const *columns;
    size_t width;
} table;

static table *newest;

void gm_host_table(const char *asset, const gm_host_row *rows, size_t count,
                   const char *const *columns, size_t width) {
    table *added = host_alloc(sizeof *added);
    *added = (table){newest,
                     host_copy(asset, strlen(asset)),
                     host_copy(rows, count * sizeof *rows),
                     count,
                     columns ? host_copy(columns, width * sizeof *columns) : NULL,
                     width};
    newest = added;
}

void host_forget_tables(void) {
    newest = NULL;
}

static bool refuse(error *error, uint8_t tag, const char *text) {
    error->tag = tag;
    error->val.invalid_argument = host_give_text(text);
    return false;
}

static bool invalid(error *error, const char *text) {
    return refuse(error, GRISTMILL_PLUGIN_TABLES_TABLE_ERROR_INVALID_ARGUMENT, text);
}

static const char *text_of(imports_string_t text) {
    return host_copy(text.ptr, text.len);
}

static const table *find(imports_string_t asset, error *error) {
    const char *name = text_of(asset);
    for (const table *at = newest; at; at = at->older) {
        if (strcmp(at->asset, name) == 0) return at;
    }
    refuse(error, GRISTMILL_PLUGIN_TABLES_TABLE_ERROR_NO_ASSET,
           host_format("the test has no table \"%s\": make one with gm_host_table", name));
    return NULL;
}

// The places of the columns.
static bool choose(const table *table, const gristmill_plugin_tables_columns_t *columns,
                   size_t **out, size_t *width, error *error) {
    bool is_named = columns->tag == GRISTMILL_PLUGIN_TABLES_COLUMNS_NAMED;
    *width = is_named ? columns->val.named.len : columns->val.width;
    if (!is_named && *width != table->width) {
        return invalid(error, host_format("asset \"%s\": it has %zu columns besides the key, but "
                                          "the width is %zu",
                                          table->asset, table->width, *width));
    }
    *out = host_alloc(*width * sizeof **out);
    for (size_t index = 0; index < *width; index++) {
        size_t at = index;
        const char *name = is_named ? text_of(columns->val.named.ptr[index]) : NULL;
        if (is_named) {
            size_t names = table->columns ? table->width : 0;
            for (at = 0; at < names && strcmp(table->columns[at], name) != 0;) at++;
            if (at == names) {
                return invalid(error, host_format("asset \"%s\": it has no column \"%s\"",
                                                  table->asset, name));
            }
        }
        (*out)[index] = at;
    }
    return true;
}

// The keys, each as a text.
static bool list_of(const gristmill_plugin_tables_keys_t *keys, const char ***out, size_t *count,
                    error *error) {
    if (keys->tag == GRISTMILL_PLUGIN_TABLES_KEYS_LIST) {
        *count = keys->val.list.len;
        *out = host_alloc(*count * sizeof **out);
        for (size_t at = 0; at < *count; at++) (*out)[at] = text_of(keys->val.list.ptr[at]);
        return true;
    }
    host_tensor tensor = host_get(keys->val.tensor.__handle, HOST_TENSOR)->tensor;
    bool is_text = tensor.dtype == GM_STRING;
    if ((!is_text && tensor.dtype != GM_INT64) || tensor.shape.rank != 1) {
        return invalid(error, "keys must be a tensor of int64 or strings of one dimension");
    }
    *count = tensor.shape.dims[0];
    *out = host_alloc(*count * sizeof **out);
    const uint8_t *next = tensor.data.data;
    for (size_t at = 0; at < *count; at++) {
        uint32_t length;
        int64_t number;
        if (is_text) {
            memcpy(&length, next, sizeof length);
            (*out)[at] = host_copy(next + sizeof length, length);
            next += sizeof length + length;
        } else {
            memcpy(&number, next, sizeof number);
            (*out)[at] = host_format("%lld", (long long)number);
            next += sizeof number;
        }
    }
    return true;
}

static const float *row_of(const table *table, const char *key) {
    for (size_t at = 0; at < table->count; at++) {
        if (strcmp(table->rows[at].key, key) == 0) return table->rows[at].numbers;
    }
    return NULL;
}

bool gristmill_plugin_tables_gather(imports_string_t *asset, gristmill_plugin_tables_keys_t *keys,
                                    gristmill_plugin_tables_columns_t *columns, float missing,
                                    gristmill_plugin_tables_own_tensor_t *ret,
                                    gristmill_plugin_tables_table_error_t *err) {
    const table *table = find(*asset, err);
    size_t *places, width, count;
    const char **listed;
    if (!table || !choose(table, columns, &places, &width, err)) return false;
    if (!list_of(keys, &listed, &count, err)) return false;
    float *rows = host_alloc(count * width * sizeof *rows);
    for (size_t at = 0; at < count; at++) {
        const float *found = row_of(table, listed[at]);
        for (size_t index = 0; index < width; index++) {
            rows[at * width + index] = found ? found[places[index]] : missing;
        }
    }
    const uint32_t dims[] = {(uint32_t)count, (uint32_t)width};
    host_tensor tensor = {.dtype = GM_FLOAT32,
                          .shape = {host_copy(dims, sizeof dims), 2},
                          .data = {(const uint8_t *)rows, count * width * sizeof *rows}};
    ret->__handle = host_hold((host_resource){.kind = HOST_TENSOR, .tensor = tensor});
    return true;
}
