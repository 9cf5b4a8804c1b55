// Tensors over the generated bindings.
#include <string.h>

#include "handle.h"
#include "memory.h"

typedef gristmill_plugin_tensors_own_tensor_t own;
typedef gristmill_plugin_tensors_borrow_tensor_t borrowed;
typedef gristmill_plugin_tensors_tensor_error_t error;

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [GM_BOOL] = {"bool", 1},       [GM_UINT8] = {"uint8", 1},       [GM_INT8] = {"int8", 1},
    [GM_UINT16] = {"uint16", 2},   [GM_INT16] = {"int16", 2},       [GM_UINT32] = {"uint32", 4},
    [GM_INT32] = {"int32", 4},     [GM_UINT64] = {"uint64", 8},     [GM_INT64] = {"int64", 8},
    [GM_FLOAT16] = {"float16", 2}, [GM_BFLOAT16] = {"bfloat16", 2}, [GM_FLOAT32] = {"float32", 4},
    [GM_FLOAT64] = {"float64", 8}, [GM_STRING] = {"string", 0},
};

static borrowed borrow(const gm_tensor *tensor) {
    return (borrowed){gm_number_of(&tensor->handle)};
}

// A tensor that cannot be made is the plugin's fault.
static gm_status failure_of(const error *error) {
    if (error->tag == GRISTMILL_PLUGIN_TENSORS_TENSOR_ERROR_LENGTH_MISMATCH) {
        return gm_internal("tensor data is %llu bytes long, but dtype and shape need %llu",
                           (unsigned long long)error->val.length_mismatch.actual,
                           (unsigned long long)error->val.length_mismatch.expected);
    }
    return gm_internal("%s", gm_text_of(error->val.too_large)); // the others have a text, too
}

static gm_status made(bool is_made, own tensor, const error *error, gm_tensor **out) {
    if (!is_made) return failure_of(error);
    *out = gm_hold(GM_HANDLE_TENSOR, tensor.__handle);
    return GM_OK;
}

const char *gm_dtype_name(gm_dtype dtype) {
    return (unsigned)dtype <= GM_STRING ? dtypes[dtype].name : "an unknown dtype";
}

size_t gm_dtype_size(gm_dtype dtype) {
    return (unsigned)dtype <= GM_STRING ? dtypes[dtype].size : 0;
}

size_t gm_shape_elements(gm_shape shape) {
    size_t elements = 1;
    for (size_t axis = 0; axis < shape.rank; axis++) elements *= shape.dims[axis];
    return elements;
}

gm_status gm_tensor_create(gm_dtype dtype, gm_shape shape, const void *data, size_t size,
                           gm_tensor **out) {
    if ((unsigned)dtype > GM_STRING) return gm_internal("dtype %d is unknown", (int)dtype);
    imports_list_u32_t dims = {(uint32_t *)shape.dims, shape.rank};
    imports_list_u8_t bytes = {(uint8_t *)data, size};
    own tensor;
    error fault;
    bool is_made = gristmill_plugin_tensors_static_tensor_create(
        (gristmill_plugin_tensors_dtype_t)dtype, &dims, &bytes, &tensor, &fault);
    return made(is_made, tensor, &fault, out);
}

gm_status gm_blob_tensor(const gm_blob *blob, gm_dtype dtype, gm_shape shape, gm_tensor **out) {
    if ((unsigned)dtype > GM_STRING) return gm_internal("dtype %d is unknown", (int)dtype);
    imports_list_u32_t dims = {(uint32_t *)shape.dims, shape.rank};
    gristmill_plugin_types_borrow_blob_t bytes = {gm_number_of(&blob->handle)};
    own tensor;
    error fault;
    bool is_made = gristmill_plugin_types_method_blob_tensor(
        bytes, (gristmill_plugin_tensors_dtype_t)dtype, &dims, &tensor, &fault);
    return made(is_made, tensor, &fault, out);
}

gm_status gm_tensor_from_strings(gm_shape shape, const char *const *texts, size_t count,
                                 gm_tensor **out) {
    if (gm_shape_elements(shape) != count) {
        return gm_internal("%zu texts do not fit a shape of %zu elements", count,
                           gm_shape_elements(shape));
    }
    size_t size = 0;
    for (size_t index = 0; index < count; index++) size += sizeof(uint32_t) + strlen(texts[index]);
    char *data = gm_alloc(size), *at = data;
    for (size_t index = 0; index < count; index++) {
        uint32_t length = (uint32_t)strlen(texts[index]);
        memcpy(at, &length, sizeof length);
        memcpy(at + sizeof length, texts[index], length);
        at += sizeof length + length;
    }
    return gm_tensor_create(GM_STRING, shape, data, size, out);
}

gm_dtype gm_tensor_dtype(const gm_tensor *tensor) {
    return (gm_dtype)gristmill_plugin_tensors_method_tensor_dtype(borrow(tensor));
}

gm_shape gm_tensor_shape(const gm_tensor *tensor) {
    imports_list_u32_t dims;
    gristmill_plugin_tensors_method_tensor_shape(borrow(tensor), &dims);
    return (gm_shape){dims.ptr, dims.len};
}

gm_status gm_tensor_view(const gm_tensor *tensor, gm_dtype dtype, gm_view *out) {
    gm_dtype actual = gm_tensor_dtype(tensor);
    if (actual != dtype) {
        return gm_internal("tensor is %s, wanted %s", gm_dtype_name(actual), gm_dtype_name(dtype));
    }
    imports_list_u8_t bytes;
    gristmill_plugin_tensors_method_tensor_data(borrow(tensor), &bytes);
    gm_shape shape = gm_tensor_shape(tensor);
    *out = (gm_view){.dtype = dtype,
                     .shape = shape,
                     .count = gm_shape_elements(shape),
                     .size = bytes.len,
                     .data = bytes.ptr};
    return GM_OK;
}

gm_bytes gm_tensor_read(const gm_tensor *tensor, uint64_t offset, uint64_t length) {
    imports_list_u8_t bytes;
    gristmill_plugin_tensors_method_tensor_read(borrow(tensor), offset, length, &bytes);
    return (gm_bytes){bytes.ptr, bytes.len};
}

gm_scores gm_tensor_argmax(const gm_tensor *tensor) {
    gristmill_plugin_tensors_list_scored_t list;
    gristmill_plugin_tensors_method_tensor_argmax(borrow(tensor), &list);
    return (gm_scores){(const gm_scored *)list.ptr, list.len};
}

gm_scores gm_tensor_top_k(const gm_tensor *tensor, uint32_t row, uint32_t k) {
    gristmill_plugin_tensors_list_scored_t list;
    gristmill_plugin_tensors_method_tensor_top_k(borrow(tensor), row, k, &list);
    return (gm_scores){(const gm_scored *)list.ptr, list.len};
}

gm_status gm_tensor_softmax(const gm_tensor *tensor, gm_tensor **out) {
    own result;
    if (!gristmill_plugin_tensors_method_tensor_softmax(borrow(tensor), &result)) {
        return gm_internal("softmax needs a float32 tensor, got %s",
                           gm_dtype_name(gm_tensor_dtype(tensor)));
    }
    *out = gm_hold(GM_HANDLE_TENSOR, result.__handle);
    return GM_OK;
}

static gristmill_plugin_tensors_list_borrow_tensor_t list_of(gm_tensor *const *tensors,
                                                             size_t count) {
    borrowed *list = gm_alloc(count * sizeof *list);
    for (size_t index = 0; index < count; index++) list[index] = borrow(tensors[index]);
    return (gristmill_plugin_tensors_list_borrow_tensor_t){list, count};
}

gm_status gm_tensor_concat(gm_tensor *const *tensors, size_t count, uint32_t axis,
                           gm_tensor **out) {
    gristmill_plugin_tensors_list_borrow_tensor_t list = list_of(tensors, count);
    own tensor;
    error fault;
    bool is_made = gristmill_plugin_tensors_static_tensor_concat(&list, axis, &tensor, &fault);
    return made(is_made, tensor, &fault, out);
}

gm_status gm_tensor_stack(gm_tensor *const *tensors, size_t count, uint32_t axis, gm_tensor **out) {
    gristmill_plugin_tensors_list_borrow_tensor_t list = list_of(tensors, count);
    own tensor;
    error fault;
    bool is_made = gristmill_plugin_tensors_static_tensor_stack(&list, axis, &tensor, &fault);
    return made(is_made, tensor, &fault, out);
}

gm_status gm_tensor_slice(const gm_tensor *tensor, uint32_t axis, uint32_t start, uint32_t end,
                          gm_tensor **out) {
    own part;
    error fault;
    bool is_made = gristmill_plugin_tensors_method_tensor_slice(borrow(tensor), axis, start, end,
                                                                &part, &fault);
    return made(is_made, part, &fault, out);
}

gm_status gm_tensor_cast(const gm_tensor *tensor, gm_dtype dtype, gm_tensor **out) {
    if ((unsigned)dtype > GM_STRING) return gm_internal("dtype %d is unknown", (int)dtype);
    own cast;
    error fault;
    bool is_made = gristmill_plugin_tensors_method_tensor_cast(
        borrow(tensor), (gristmill_plugin_tensors_dtype_t)dtype, &cast, &fault);
    return made(is_made, cast, &fault, out);
}

void gm_tensor_drop(gm_tensor *tensor) {
    gm_drop(&tensor->handle);
}
