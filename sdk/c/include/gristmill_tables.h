// Rows of numbers by key, in files: prices, features of products, embeddings.
//
//     gm_keys keys = {.tensor = ids}; // of gm_request_json_tensor(.., GM_INT64, &ids)
//     gm_tensor *features;
//     GM_TRY(gm_gather("products.csv", &keys, 16, 0, &features)); // [keys, 16]
//     GM_TRY(gm_prepared_input(prepared, "input", features));
//
// The file is among the assets of the plugin or of its pipeline, under this name. It is CSV or
// Parquet, with a column of keys and columns of numbers, or an .npy of two dimensions, whose keys
// are the numbers of its rows, from 0. The host reads it once for each version. Neither the numbers
// nor keys in a tensor pass through the plugin.
//
// Each function fails with GM_UNPROCESSABLE for more than 4096 keys, or a key of more than 1024
// bytes. A file or an argument that is wrong is GM_INTERNAL.
#ifndef GRISTMILL_TABLES_H
#define GRISTMILL_TABLES_H

#include "gristmill_plugin.h"

// Keys: a tensor of int64 or of strings of one dimension, or else a list of texts that are each
// ended by NUL. A number is found by its decimal text.
typedef struct {
    const gm_tensor *tensor;
    const char *const *items;
    size_t count;
} gm_keys;

// The rows of keys, as a float32 tensor of the shape [keys, width]. `width` is the number of
// columns that the file has besides its keys. The row of a key that the file does not have is
// filled with `missing`.
gm_status gm_gather(const char *asset, const gm_keys *keys, uint32_t width, float missing,
                    gm_tensor **out);

// The columns with these names, in this order: [keys, columns_count].
gm_status gm_gather_columns(const char *asset, const gm_keys *keys, const char *const *columns,
                            size_t columns_count, float missing, gm_tensor **out);

#endif
