// Tables over the generated bindings.
#include "gristmill_tables.h"

#include "handle.h"

typedef gristmill_plugin_tables_columns_t columns;

static imports_list_string_t list_of(const char *const *texts, size_t count) {
    imports_string_t *items = gm_alloc(count * sizeof *items);
    for (size_t index = 0; index < count; index++) items[index] = gm_text(texts[index]);
    return (imports_list_string_t){items, count};
}

static gm_status gather(const char *asset, const gm_keys *keys, columns *columns, float missing,
                        gm_tensor **out) {
    imports_string_t name = gm_text(asset);
    gristmill_plugin_tables_keys_t given = {.tag = GRISTMILL_PLUGIN_TABLES_KEYS_LIST};
    if (keys->tensor) {
        given.tag = GRISTMILL_PLUGIN_TABLES_KEYS_TENSOR;
        given.val.tensor.__handle = gm_number_of(&keys->tensor->handle);
    } else {
        given.val.list = list_of(keys->items, keys->count);
    }
    gristmill_plugin_tables_own_tensor_t rows;
    gristmill_plugin_tables_table_error_t error;
    if (gristmill_plugin_tables_gather(&name, &given, columns, missing, &rows, &error)) {
        *out = gm_hold(GM_HANDLE_TENSOR, rows.__handle);
        return GM_OK;
    }
    // Keys that are too many are the client's; a file or an argument is the plugin's.
    const char *text = gm_text_of(error.val.malformed); // the others have a text, too
    if (error.tag == GRISTMILL_PLUGIN_TABLES_TABLE_ERROR_TOO_LARGE)
        return gm_unprocessable("%s", text);
    return gm_internal("%s", text);
}

gm_status gm_gather(const char *asset, const gm_keys *keys, uint32_t width, float missing,
                    gm_tensor **out) {
    columns all = {.tag = GRISTMILL_PLUGIN_TABLES_COLUMNS_WIDTH, .val.width = width};
    return gather(asset, keys, &all, missing, out);
}

gm_status gm_gather_columns(const char *asset, const gm_keys *keys, const char *const *names,
                            size_t names_count, float missing, gm_tensor **out) {
    columns named = {.tag = GRISTMILL_PLUGIN_TABLES_COLUMNS_NAMED,
                     .val.named = list_of(names, names_count)};
    return gather(asset, keys, &named, missing, out);
}
