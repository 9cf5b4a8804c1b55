// Tensors of the reference host.
#include <math.h>
#include <string.h>

#include "elements.h"
#include "host.h"

typedef gristmill_plugin_tensors_own_tensor_t own;
typedef gristmill_plugin_tensors_borrow_tensor_t borrowed;
typedef gristmill_plugin_tensors_tensor_error_t error;

static host_tensor get(borrowed self) {
    return host_get(self.__handle, HOST_TENSOR)->tensor;
}

static bool fail(error *error, uint8_t tag, const char *text) {
    error->tag = tag;
    error->val.invalid_argument = host_give_text(text);
    return false;
}

static bool refuse(error *error, const char *text) {
    return fail(error, GRISTMILL_PLUGIN_TENSORS_TENSOR_ERROR_INVALID_ARGUMENT, text);
}

static bool hold(gm_dtype dtype, gm_shape shape, gm_bytes data, own *ret) {
    host_resource tensor = {.kind = HOST_TENSOR, .tensor = {dtype, shape, data}};
    tensor.tensor.shape.dims = host_copy(shape.dims, shape.rank * sizeof *shape.dims);
    ret->__handle = host_hold(tensor);
    return true;
}

// The bytes that `count` strings take, SIZE_MAX if they are broken.
static size_t strings_size(gm_bytes data, size_t count) {
    size_t at = 0;
    for (; count > 0; count--) {
        uint32_t length;
        if (data.size - at < sizeof length) return SIZE_MAX;
        memcpy(&length, data.data + at, sizeof length);
        at += sizeof length;
        if (data.size - at < length) return SIZE_MAX;
        at += length;
    }
    return at;
}

bool host_tensor_is_valid(gm_dtype dtype, gm_shape shape, gm_bytes data, error *error) {
    if (shape.rank > 32) return refuse(error, "the shape has more than 32 dimensions");
    size_t count = gm_shape_elements(shape);
    const uint8_t element = GRISTMILL_PLUGIN_TENSORS_TENSOR_ERROR_INVALID_ELEMENT;
    if (dtype == GM_STRING) {
        if (strings_size(data, count) == data.size) return true;
        return fail(error, element, "the strings do not have the lengths that they say");
    }
    if (data.size != count * gm_dtype_size(dtype)) {
        error->tag = GRISTMILL_PLUGIN_TENSORS_TENSOR_ERROR_LENGTH_MISMATCH;
        error->val.length_mismatch.expected = count * gm_dtype_size(dtype);
        error->val.length_mismatch.actual = data.size;
        return false;
    }
    for (size_t index = 0; dtype == GM_BOOL && index < count; index++) {
        if (data.data[index] > 1) {
            return fail(error, element,
                        host_format("element %zu is %u, not 0 or 1", index, data.data[index]));
        }
    }
    return true;
}

bool gristmill_plugin_tensors_static_tensor_create(gristmill_plugin_tensors_dtype_t dtype,
                                                   imports_list_u32_t *shape,
                                                   imports_list_u8_t *data, own *ret, error *err) {
    gm_shape dims = {shape->ptr, shape->len};
    gm_bytes bytes = {data->ptr, data->len};
    if (!host_tensor_is_valid((gm_dtype)dtype, dims, bytes, err)) return false;
    bytes.data = host_copy(bytes.data, bytes.size);
    return hold((gm_dtype)dtype, dims, bytes, ret);
}

gristmill_plugin_tensors_dtype_t gristmill_plugin_tensors_method_tensor_dtype(borrowed self) {
    return (gristmill_plugin_tensors_dtype_t)get(self).dtype;
}

void gristmill_plugin_tensors_method_tensor_shape(borrowed self, imports_list_u32_t *ret) {
    gm_shape shape = get(self).shape;
    ret->len = shape.rank;
    ret->ptr = gm_alloc(shape.rank * sizeof *shape.dims);
    if (shape.rank) memcpy(ret->ptr, shape.dims, shape.rank * sizeof *shape.dims);
}

void gristmill_plugin_tensors_method_tensor_data(borrowed self, imports_list_u8_t *ret) {
    *ret = host_give_bytes(get(self).data, 0, UINT64_MAX);
}

void gristmill_plugin_tensors_method_tensor_read(borrowed self, uint64_t offset, uint64_t length,
                                                 imports_list_u8_t *ret) {
    *ret = host_give_bytes(get(self).data, offset, length);
}

// The number of elements after dimension 0.
static size_t width_of(gm_shape shape) {
    size_t width = 1;
    for (size_t axis = 1; axis < shape.rank; axis++) width *= shape.dims[axis];
    return width;
}

static size_t rows_of(gm_shape shape) {
    return shape.rank ? shape.dims[0] : 1;
}

void gristmill_plugin_tensors_method_tensor_argmax(borrowed self,
                                                   gristmill_plugin_tensors_list_scored_t *ret) {
    host_tensor tensor = get(self);
    size_t width = width_of(tensor.shape), rows = rows_of(tensor.shape);
    if (tensor.dtype != GM_FLOAT32 || width == 0) rows = 0;
    ret->len = rows;
    ret->ptr = gm_alloc(rows * sizeof *ret->ptr);
    for (size_t row = 0; row < rows; row++) {
        const float *values = (const float *)tensor.data.data + row * width;
        uint32_t best = 0;
        for (uint32_t at = 1; at < width; at++) best = values[at] > values[best] ? at : best;
        ret->ptr[row] = (gristmill_plugin_tensors_scored_t){best, values[best]};
    }
}

void gristmill_plugin_tensors_method_tensor_top_k(borrowed self, uint32_t row, uint32_t k,
                                                  gristmill_plugin_tensors_list_scored_t *ret) {
    host_tensor tensor = get(self);
    size_t width = width_of(tensor.shape);
    bool exists = tensor.dtype == GM_FLOAT32 && row < rows_of(tensor.shape);
    ret->len = !exists ? 0 : k < width ? k : width;
    ret->ptr = gm_alloc(ret->len * sizeof *ret->ptr);
    const float *values = (const float *)tensor.data.data + row * width;
    size_t kept = 0;
    for (uint32_t at = 0; ret->len && at < width; at++) {
        size_t place = kept < ret->len ? kept++ : ret->len;
        for (; place > 0 && values[at] > ret->ptr[place - 1].value; place--) {
            if (place < ret->len) ret->ptr[place] = ret->ptr[place - 1];
        }
        if (place < ret->len) ret->ptr[place] = (gristmill_plugin_tensors_scored_t){at, values[at]};
    }
}

bool gristmill_plugin_tensors_method_tensor_softmax(borrowed self, own *ret) {
    host_tensor tensor = get(self);
    if (tensor.dtype != GM_FLOAT32) return false;
    size_t width = width_of(tensor.shape), rows = rows_of(tensor.shape);
    float *results = host_alloc(tensor.data.size);
    for (size_t row = 0; row < rows; row++) {
        const float *values = (const float *)tensor.data.data + row * width;
        float largest = -INFINITY, sum = 0;
        for (size_t at = 0; at < width; at++) largest = fmaxf(largest, values[at]);
        for (size_t at = 0; at < width; at++) {
            sum += results[row * width + at] = expf(values[at] - largest);
        }
        for (size_t at = 0; at < width; at++) results[row * width + at] /= sum;
    }
    return hold(GM_FLOAT32, tensor.shape, (gm_bytes){(uint8_t *)results, tensor.data.size}, ret);
}

// Joins tensors along an axis: of each, `runs` pieces of the same number of elements.
static bool join(const gristmill_plugin_tensors_list_borrow_tensor_t *list, gm_shape shape,
                 size_t runs, own *ret) {
    gm_dtype dtype = get(list->ptr[0]).dtype;
    size_t size = 0, at = 0;
    for (size_t index = 0; index < list->len; index++) size += get(list->ptr[index]).data.size;
    uint8_t *joined = host_alloc(size);
    size_t *read = host_alloc(list->len * sizeof *read);
    memset(read, 0, list->len * sizeof *read);
    for (size_t run = 0; run < runs; run++) {
        for (size_t index = 0; index < list->len; index++) {
            host_tensor tensor = get(list->ptr[index]);
            size_t piece = tensor.data.size / runs;
            if (dtype == GM_STRING) {
                size_t count = gm_shape_elements(tensor.shape) / runs;
                gm_bytes rest = {tensor.data.data + read[index], tensor.data.size - read[index]};
                piece = strings_size(rest, count);
            }
            memcpy(joined + at, tensor.data.data + read[index], piece);
            at += piece;
            read[index] += piece;
        }
    }
    return hold(dtype, shape, (gm_bytes){joined, size}, ret);
}

static size_t product(gm_shape shape, size_t end) {
    return gm_shape_elements((gm_shape){shape.dims, end});
}

// Whether all tensors have the first one's dtype and, apart from dimension `free`, its shape.
static bool agree(const gristmill_plugin_tensors_list_borrow_tensor_t *list, size_t free) {
    host_tensor first = get(list->ptr[0]);
    for (size_t index = 1; index < list->len; index++) {
        host_tensor other = get(list->ptr[index]);
        if (other.dtype != first.dtype || other.shape.rank != first.shape.rank) return false;
        for (size_t axis = 0; axis < first.shape.rank; axis++) {
            if (axis != free && other.shape.dims[axis] != first.shape.dims[axis]) return false;
        }
    }
    return true;
}

bool gristmill_plugin_tensors_static_tensor_concat(
    gristmill_plugin_tensors_list_borrow_tensor_t *tensors, uint32_t axis, own *ret, error *err) {
    if (tensors->len == 0) return refuse(err, "concat needs at least one tensor");
    gm_shape shape = get(tensors->ptr[0]).shape;
    if (axis >= shape.rank)
        return refuse(err, host_format("axis is %u, the rank %zu", axis, shape.rank));
    if (!agree(tensors, axis)) return refuse(err, "the tensors differ in dtype or shape");
    uint32_t *dims = host_copy(shape.dims, shape.rank * sizeof *dims);
    for (size_t index = 1; index < tensors->len; index++) {
        dims[axis] += get(tensors->ptr[index]).shape.dims[axis];
    }
    return join(tensors, (gm_shape){dims, shape.rank}, product(shape, axis), ret);
}

bool gristmill_plugin_tensors_static_tensor_stack(
    gristmill_plugin_tensors_list_borrow_tensor_t *tensors, uint32_t axis, own *ret, error *err) {
    if (tensors->len == 0) return refuse(err, "stack needs at least one tensor");
    gm_shape shape = get(tensors->ptr[0]).shape;
    if (axis > shape.rank)
        return refuse(err, host_format("axis is %u, the rank %zu", axis, shape.rank));
    if (!agree(tensors, SIZE_MAX)) return refuse(err, "the tensors differ in dtype or shape");
    uint32_t *dims = host_alloc((shape.rank + 1) * sizeof *dims);
    for (size_t at = 0; at <= shape.rank; at++) {
        dims[at] = at < axis    ? shape.dims[at]
                   : at == axis ? (uint32_t)tensors->len
                                : shape.dims[at - 1];
    }
    return join(tensors, (gm_shape){dims, shape.rank + 1}, product(shape, axis), ret);
}

bool gristmill_plugin_tensors_method_tensor_slice(borrowed self, uint32_t axis, uint32_t start,
                                                  uint32_t end, own *ret, error *err) {
    host_tensor tensor = get(self);
    gm_shape shape = tensor.shape;
    if (axis >= shape.rank)
        return refuse(err, host_format("axis is %u, the rank %zu", axis, shape.rank));
    if (start > end || end > shape.dims[axis]) {
        return refuse(err,
                      host_format("%u to %u is not within 0 to %u", start, end, shape.dims[axis]));
    }
    uint32_t *dims = host_copy(shape.dims, shape.rank * sizeof *dims);
    dims[axis] = end - start;
    size_t runs = product(shape, axis), after = gm_shape_elements(shape), at = 0, written = 0;
    after = runs && shape.dims[axis] ? after / runs / shape.dims[axis] : 0;
    size_t counts[] = {start * after, (end - start) * after, (shape.dims[axis] - end) * after};
    uint8_t *data = host_alloc(tensor.data.size);
    for (size_t run = 0; run < runs; run++) {
        for (int part = 0; part < 3; part++) {
            gm_bytes rest = {tensor.data.data + at, tensor.data.size - at};
            size_t size = tensor.dtype == GM_STRING ? strings_size(rest, counts[part])
                                                    : counts[part] * gm_dtype_size(tensor.dtype);
            if (part == 1) {
                memcpy(data + written, rest.data, size);
                written += size;
            }
            at += size;
        }
    }
    return hold(tensor.dtype, (gm_shape){dims, shape.rank}, (gm_bytes){data, written}, ret);
}

bool gristmill_plugin_tensors_method_tensor_cast(borrowed self,
                                                 gristmill_plugin_tensors_dtype_t dtype, own *ret,
                                                 error *err) {
    host_tensor tensor = get(self);
    bool is_string = tensor.dtype == GM_STRING || dtype == GM_STRING;
    if (is_string && tensor.dtype != (gm_dtype)dtype) return refuse(err, "strings cannot be cast");
    if (is_string) return hold(tensor.dtype, tensor.shape, tensor.data, ret);
    size_t count = gm_shape_elements(tensor.shape), size = gm_dtype_size((gm_dtype)dtype);
    uint8_t *data = host_alloc(count * size);
    for (size_t index = 0; index < count; index++) {
        const uint8_t *from = tensor.data.data + index * gm_dtype_size(tensor.dtype);
        host_write_element((gm_dtype)dtype, data + index * size,
                           host_read_element(tensor.dtype, from));
    }
    return hold((gm_dtype)dtype, tensor.shape, (gm_bytes){data, count * size}, ret);
}
