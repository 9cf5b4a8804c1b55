// Write Gristmill plugins in C: pre- and postprocessing that runs sandboxed around a model.
//
// A plugin defines gm_preprocess, gm_postprocess or both, or gm_handle (see "What a plugin defines").
//
// Ownership. Everything that the SDK makes belongs to the call and is freed when the call returns:
// texts, bytes, views, JSON, tensors, pictures and gm_alloc's memory. A plugin frees nothing, also
// not on an error's path. malloc and static variables live as long as the instance; unless the
// pipeline reuses instances, that is one call.
//
// Errors. Functions that can fail return gm_status; the text is kept until the call returns. Write
// GM_TRY(function(...)) to pass a failure on, or return gm_invalid_input("...", ...) to make one.
#ifndef GRISTMILL_PLUGIN_H
#define GRISTMILL_PLUGIN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define GM_PRINTF(text_, first_) __attribute__((format(printf, text_, first_)))

// ---- Status and failures ------------------------------------------------------------------------

// How a call ends. Each but GM_OK is a failure, and a text belongs to it.
typedef enum {
    GM_OK = 0,
    GM_INVALID_INPUT,          // The request cannot be understood: 400 with the text.
    GM_UNSUPPORTED_MEDIA_TYPE, // The plugin does not take this media type: 415 with the text.
    GM_UNPROCESSABLE, // The request is understood, but cannot be served: 422 with the text.
    GM_INTERNAL,      // The plugin's own fault: 500. The text goes to the log only.
    // Why a model gave no outputs (gm_infer). If gm_handle returns one, the client gets:
    GM_MODEL_NOT_GRANTED,   // The pipeline's document does not name the model: 500.
    GM_MODEL_INVALID_INPUT, // The inputs are not what the model takes: 500.
    GM_MODEL_OVERLOADED,    // The model is too busy, or the tenant has too much under way: 503 or 429.
    GM_MODEL_UNAVAILABLE,   // The model cannot run now: 503.
    GM_MODEL_FAILED,        // The model failed on these inputs: 500.
    // Why a service gave no answer (gm_http_send): 500. The text goes to the log only.
    GM_HTTP_NOT_GRANTED,        // Nothing grants it, or a trial wanted to change something.
    GM_HTTP_INVALID_ARGUMENT,   // The method, the URL or a header cannot be sent.
    GM_HTTP_PROHIBITED_ADDRESS, // The host has no public address, and no grant names the one it has.
    GM_HTTP_CONNECTION, // It cannot be reached, or the connection ended before the answer did.
    GM_HTTP_TIMED_OUT,  // There was no whole answer in time.
    GM_HTTP_TOO_LARGE,  // A body or headers are over a limit, or the call has sent 64 requests.
} gm_status;

// Each makes a failure with a text formatted as by printf, and returns its status:
//     return gm_invalid_input("items[%zu] is empty", index);
gm_status gm_invalid_input(const char *format, ...) GM_PRINTF(1, 2);
gm_status gm_unsupported_media_type(const char *format, ...) GM_PRINTF(1, 2);
gm_status gm_unprocessable(const char *format, ...) GM_PRINTF(1, 2);
gm_status gm_internal(const char *format, ...) GM_PRINTF(1, 2);

// The text of the latest failure, "" if there is none.
const char *gm_failure_text(void);

// Returns from the calling function if the expression is a failure.
#define GM_TRY(expression)                          \
    do {                                            \
        gm_status gm_status_ = (expression);        \
        if (gm_status_ != GM_OK) return gm_status_; \
    } while (0)

// Logs a message with file and line as an error, and ends the call: 500 plugin_trapped. A failed
// assert does the same, and so does abort in a file that includes this header. A NULL for the file
// means that it is unknown.
_Noreturn void gm_panic_at(const char *file, int line, const char *format, ...) GM_PRINTF(3, 4);
#define gm_panic(...) gm_panic_at(__FILE__, __LINE__, __VA_ARGS__)
#define abort() gm_panic_at(__FILE__, __LINE__, "abort() was called")

// ---- Memory -------------------------------------------------------------------------------------

// `size` bytes, aligned to 16, not cleared, that live until the call returns. Never NULL: without
// memory the call ends as by gm_panic.
void *gm_alloc(size_t size);

// A formatted text that lives until the call returns.
char *gm_format(const char *format, ...) GM_PRINTF(1, 2);

// Bytes that somebody else holds.
typedef struct {
    const uint8_t *data;
    size_t size;
} gm_bytes;

// One named value: a header (name in lower case), a query parameter or a field of a log line.
typedef struct {
    const char *name;
    const char *value;
} gm_field;

typedef struct {
    const gm_field *items;
    size_t count;
} gm_fields;

// ---- Tensors ------------------------------------------------------------------------------------

// Element types: those of ONNX. Data are little-endian, row-major and without gaps.
typedef enum {
    GM_BOOL, // one byte, 0 or 1
    GM_UINT8,
    GM_INT8,
    GM_UINT16,
    GM_INT16,
    GM_UINT32,
    GM_INT32,
    GM_UINT64,
    GM_INT64,
    GM_FLOAT16,  // IEEE 754 binary16, as uint16_t
    GM_BFLOAT16, // the upper half of a float, as uint16_t
    GM_FLOAT32,
    GM_FLOAT64,
    GM_STRING, // each element is its length in bytes, a uint32_t, and its text in UTF-8
} gm_dtype;

// The name of a dtype: "float32".
const char *gm_dtype_name(gm_dtype dtype);

// The bytes of one element, 0 for GM_STRING.
size_t gm_dtype_size(gm_dtype dtype);

typedef struct {
    const uint32_t *dims; // dims[0] is rows
    size_t rank;          // the number of dimensions, at most 32
} gm_shape;

// A shape from its dimensions: GM_SHAPE(1, 3, 224, 224).
#define GM_SHAPE(...)                            \
    ((gm_shape){(const uint32_t[]){__VA_ARGS__}, \
                sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)})

// In a wanted shape: any size.
#define GM_ANY UINT32_MAX

// The product of the dimensions.
size_t gm_shape_elements(gm_shape shape);

// A tensor, held by the host.
typedef struct gm_tensor gm_tensor;

// A tensor's elements, copied into the plugin's memory.
typedef struct {
    gm_dtype dtype;
    gm_shape shape;
    size_t count; // of elements
    size_t size;  // in bytes
    union {
        const void *data;
        const uint8_t *u8;
        const int8_t *i8;
        const uint16_t *u16; // float16 and bfloat16, too
        const int16_t *i16;
        const uint32_t *u32;
        const int32_t *i32;
        const uint64_t *u64;
        const int64_t *i64;
        const float *f32;
        const double *f64;
    };
} gm_view;

// One element found by gm_tensor_argmax or gm_tensor_top_k.
typedef struct {
    uint32_t index; // position in the row
    float value;
} gm_scored;

typedef struct {
    const gm_scored *items;
    size_t count;
} gm_scores;

// A tensor from an array of `size` bytes, which is copied once, to the host. GM_INTERNAL if the
// shape needs another number of bytes, an element is invalid, or the tensor is over the host's
// limit.
gm_status gm_tensor_create(gm_dtype dtype, gm_shape shape, const void *data, size_t size,
                           gm_tensor **out);

// A tensor of texts, each ended by NUL. The shape needs `count` elements.
gm_status gm_tensor_from_strings(gm_shape shape, const char *const *texts, size_t count,
                                 gm_tensor **out);

gm_dtype gm_tensor_dtype(const gm_tensor *tensor);
gm_shape gm_tensor_shape(const gm_tensor *tensor);

// All elements, copied once. GM_INTERNAL if the tensor has another dtype.
gm_status gm_tensor_view(const gm_tensor *tensor, gm_dtype dtype, gm_view *out);

// Up to `length` bytes from byte `offset` on. Shorter at the end, empty past it.
gm_bytes gm_tensor_read(const gm_tensor *tensor, uint64_t offset, uint64_t length);

// The largest element of each row, the first one of equal elements. A row is everything after the
// first dimension. Empty if the dtype is not float32 or a row has no elements.
gm_scores gm_tensor_argmax(const gm_tensor *tensor);

// The `k` largest elements of a row, largest first. Empty if the dtype is not float32 or there is
// no such row.
gm_scores gm_tensor_top_k(const gm_tensor *tensor, uint32_t row, uint32_t k);

// The softmax over each row, a new tensor. GM_INTERNAL if the dtype is not float32.
gm_status gm_tensor_softmax(const gm_tensor *tensor, gm_tensor **out);

// The tensors one after another along dimension `axis`. They agree in dtype and in the other
// dimensions.
gm_status gm_tensor_concat(gm_tensor *const *tensors, size_t count, uint32_t axis, gm_tensor **out);

// The tensors along a new dimension `axis`. They agree in dtype and shape.
gm_status gm_tensor_stack(gm_tensor *const *tensors, size_t count, uint32_t axis, gm_tensor **out);

// The part from `start` up to, not including, `end` along dimension `axis`.
gm_status gm_tensor_slice(const gm_tensor *tensor, uint32_t axis, uint32_t start, uint32_t end,
                          gm_tensor **out);

// The same values in another dtype. See wit/tensors.wit for values out of range.
gm_status gm_tensor_cast(const gm_tensor *tensor, gm_dtype dtype, gm_tensor **out);

// Gives the tensor back to the host before the call returns. It cannot be used afterwards. Only a
// plugin that makes very many tensors needs this.
void gm_tensor_drop(gm_tensor *tensor);

// ---- The request --------------------------------------------------------------------------------

// Bytes held by the host: a request body, one part of it, or bytes of the plugin.
typedef struct gm_blob gm_blob;

uint64_t gm_blob_size(const gm_blob *blob);

// Up to `length` bytes from `offset` on, copied. Shorter at the end of the blob, empty past it.
gm_bytes gm_blob_read(const gm_blob *blob, uint64_t offset, uint64_t length);

// All bytes, copied. A NUL follows them.
gm_bytes gm_blob_bytes(const gm_blob *blob);

// Up to `length` bytes from `offset` on, as a blob of the same memory.
const gm_blob *gm_blob_slice(const gm_blob *blob, uint64_t offset, uint64_t length);

// A blob of these bytes, which are copied to the host.
const gm_blob *gm_blob_from_bytes(const void *data, size_t size);

// The bytes as a tensor, as gm_tensor_create makes one, without a copy in the plugin's memory.
gm_status gm_blob_tensor(const gm_blob *blob, gm_dtype dtype, gm_shape shape, gm_tensor **out);

// The bytes that a text in base64 stands for, decoded by the host. The text may be a data URL. Both
// alphabets are read, white space is left out, and padding may be missing. NULL is no text.
// GM_INVALID_INPUT says what is wrong.
gm_status gm_blob_from_base64(const char *text, const gm_blob **out);

// One part of a multipart/form-data body.
typedef struct {
    const char *name;         // "" if the part has none
    const char *filename;     // NULL if the part has none
    const char *content_type; // NULL if the part has none
    const gm_blob *body;
} gm_part;

typedef struct {
    const gm_part *items;
    size_t count;
} gm_parts;

// The request, read from the host when it is asked for.
typedef struct gm_request gm_request;

// The media type in lower case, without its parameters. NULL if the client sent none.
const char *gm_request_content_type(const gm_request *request);

// The headers that a plugin may see: accept, accept-language, user-agent and all that begin with
// x-.
gm_fields gm_request_headers(const gm_request *request);

// The value of the first header of this name, which is in lower case. NULL if there is none.
const char *gm_request_header(const gm_request *request, const char *name);

// The query string's parameters, in order.
gm_fields gm_request_query(const gm_request *request);

// The value of the first query parameter of this name. NULL if there is none.
const char *gm_request_query_value(const gm_request *request, const char *name);

// The whole body. Empty for a multipart request.
const gm_blob *gm_request_body(const gm_request *request);

// The parts of a multipart/form-data body, in order. None if the request is not multipart.
gm_parts gm_request_parts(const gm_request *request);

// The first part of this name. GM_INVALID_INPUT if there is none.
gm_status gm_request_part(const gm_request *request, const char *name, const gm_part **out);

// The uploaded file: the body of the first part, or the whole body if there are no parts.
const gm_blob *gm_request_file(const gm_request *request);

// ---- The context --------------------------------------------------------------------------------

// The circumstances of a call. Both calls of a request get one.
typedef struct gm_context gm_context;

const char *gm_context_tenant(const gm_context *context);
const char *gm_context_pipeline(const gm_context *context);
const char *gm_context_model(const gm_context *context);
const char *gm_context_request_id(const gm_context *context);

// The pipeline's settings: a JSON document, "{}" if it has none.
const char *gm_context_settings(const gm_context *context);

// The time until the request's deadline in milliseconds, 0 if it has passed.
uint64_t gm_context_time_left(const gm_context *context);

// ---- Pictures -----------------------------------------------------------------------------------

// A picture, 8 bits a channel, held by the host and worked on at native speed.
typedef struct gm_pixels gm_pixels;

typedef enum { GM_RGB, GM_BGR, GM_GRAY } gm_color;
typedef enum { GM_NCHW, GM_NHWC } gm_layout;
typedef enum { GM_NEAREST, GM_BILINEAR, GM_BICUBIC, GM_LANCZOS3 } gm_filter;

typedef struct {
    gm_dtype dtype; // GM_FLOAT32, or GM_UINT8 with scale 1 and neither mean nor std
    gm_layout layout;
    gm_color color;
    float scale;   // multiplies each 8-bit value first; 0 means 1
    float mean[3]; // per channel in tensor order
    float std[3];  // per channel in tensor order; 0 means 1
} gm_tensor_options;

// A float32 tensor [1, channels, height, width] of values from 0 to 1.
#define GM_NCHW_0_TO_1(color_) \
    ((gm_tensor_options){      \
        .dtype = GM_FLOAT32, .layout = GM_NCHW, .color = (color_), .scale = 1.0f / 255})

// The same with ImageNet's mean and standard deviation.
#define GM_NCHW_IMAGENET                                   \
    ((gm_tensor_options){.dtype = GM_FLOAT32,              \
                         .layout = GM_NCHW,                \
                         .color = GM_RGB,                  \
                         .scale = 1.0f / 255,              \
                         .mean = {0.485f, 0.456f, 0.406f}, \
                         .std = {0.229f, 0.224f, 0.225f}})

// Where gm_pixels_letterbox put a picture. A point (x, y) of the result is the point
// ((x - left) / scale_x, (y - top) / scale_y) of the picture.
typedef struct {
    float scale_x;
    float scale_y;
    uint32_t left;
    uint32_t top;
    uint32_t width;  // before
    uint32_t height; // before
} gm_placement;

// Widths of a border, in pixels.
typedef struct {
    uint32_t left;
    uint32_t top;
    uint32_t right;
    uint32_t bottom;
} gm_border;

// Functions of pictures fail with GM_UNSUPPORTED_MEDIA_TYPE (no JPEG, PNG, WebP, BMP or GIF),
// GM_INVALID_INPUT (a damaged picture), GM_UNPROCESSABLE (too large) and GM_INTERNAL (an argument).

// Decodes to GM_RGB or GM_GRAY, upright. A damaged or incomplete picture is refused.
gm_status gm_pixels_decode(const gm_blob *blob, gm_color color, gm_pixels **out);

// Decodes also the readable part of a damaged JPEG, PNG or GIF.
gm_status gm_pixels_decode_leniently(const gm_blob *blob, gm_color color, gm_pixels **out);

// A picture from width * height * channels bytes, row-major, channels interleaved.
gm_status gm_pixels_from_bytes(uint32_t width, uint32_t height, gm_color color, const void *data,
                               size_t size, gm_pixels **out);

uint32_t gm_pixels_width(const gm_pixels *pixels);
uint32_t gm_pixels_height(const gm_pixels *pixels);
gm_color gm_pixels_color(const gm_pixels *pixels);

// The values of one channel.
typedef struct {
    uint8_t min;
    uint8_t max;
    float mean;
} gm_channel_statistics;

// Writes one value per channel of the picture: 1 if it is gray, otherwise 3.
void gm_pixels_statistics(const gm_pixels *pixels, gm_channel_statistics out[]);

// The bytes, row-major, channels interleaved, copied.
gm_bytes gm_pixels_data(const gm_pixels *pixels);

// The picture stretched to another size.
gm_status gm_pixels_resize(const gm_pixels *pixels, uint32_t width, uint32_t height,
                           gm_filter filter, gm_pixels **out);

// The picture resized so that its shorter side has `size` pixels. The longer side is rounded down,
// as by torchvision's Resize.
gm_status gm_pixels_resize_shorter(const gm_pixels *pixels, uint32_t size, gm_filter filter,
                                   gm_pixels **out);

// The picture with a border. `fill` has a value per channel; NULL means 0.
gm_status gm_pixels_pad(const gm_pixels *pixels, gm_border border, const uint8_t *fill,
                        gm_pixels **out);

// The picture resized to fit, in the middle of a picture of that size. `placement` may be NULL.
gm_status gm_pixels_letterbox(const gm_pixels *pixels, uint32_t width, uint32_t height,
                              gm_filter filter, const uint8_t *fill, gm_pixels **out,
                              gm_placement *placement);

// The rectangle whose upper left corner is (x, y); it lies within the picture.
gm_status gm_pixels_crop(const gm_pixels *pixels, uint32_t x, uint32_t y, uint32_t width,
                         uint32_t height, gm_pixels **out);

// The middle of the picture. Half a pixel is rounded to the even number, as by torchvision's
// CenterCrop.
gm_status gm_pixels_center_crop(const gm_pixels *pixels, uint32_t width, uint32_t height,
                                gm_pixels **out);

// The picture as a tensor of one row: [1, c, h, w] or [1, h, w, c].
gm_status gm_pixels_to_tensor(const gm_pixels *pixels, gm_tensor_options options, gm_tensor **out);

// As gm_tensor_drop.
void gm_pixels_drop(gm_pixels *pixels);

// ---- JSON: reading ------------------------------------------------------------------------------

typedef enum {
    GM_JSON_NULL,
    GM_JSON_BOOL,
    GM_JSON_NUMBER,
    GM_JSON_STRING,
    GM_JSON_ARRAY,
    GM_JSON_OBJECT,
} gm_json_type;

// A value in a document. The document is read as a whole and lives until the call returns.
typedef struct gm_json gm_json;

// Each reads a document. GM_INVALID_INPUT with line and column if it is not JSON in UTF-8.
gm_status gm_json_read(const void *text, size_t size, const gm_json **out);
gm_status gm_blob_json(const gm_blob *blob, const gm_json **out);
gm_status gm_request_json(const gm_request *request, const gm_json **out);

// The value at a JSON Pointer (RFC 6901) of a JSON body, as "/threshold". Only it is copied into the
// plugin. NULL if there is no such value.
gm_status gm_request_json_at(const gm_request *request, const char *pointer, const gm_json **out);

// The values at `pointer` of a JSON body as a tensor, read by the host: nothing is copied into the
// plugin. Lists of lists are dimensions. With keys the value is a list of objects, and each makes a
// row of its values at these keys, in their order; a value may be a flat list. See json-tensor in
// wit/types.wit. GM_INVALID_INPUT if the body is something else: it says where and what is there.
gm_status gm_request_json_tensor(const gm_request *request, const char *pointer, gm_dtype dtype,
                                 gm_tensor **out);
gm_status gm_request_json_rows(const gm_request *request, const char *pointer,
                               const char *const *keys, size_t keys_count, gm_dtype dtype,
                               gm_tensor **out);

// The bytes of the text in base64 at `pointer` of a JSON body, as gm_blob_from_base64 reads it.
gm_status gm_request_json_blob(const gm_request *request, const char *pointer, const gm_blob **out);

// The pipeline's settings. Failures of theirs are GM_INTERNAL.
gm_status gm_context_settings_json(const gm_context *context, const gm_json **out);

gm_json_type gm_json_type_of(const gm_json *value);

// The number of elements of an array, of members of an object, of bytes of a string; otherwise 0.
size_t gm_json_size(const gm_json *value);

// The member of this name, NULL if there is none or `object` is NULL or no object.
const gm_json *gm_json_get(const gm_json *object, const char *name);

// Its first element or member's value, and the one after it; NULL at the end.
const gm_json *gm_json_first(const gm_json *parent);
const gm_json *gm_json_next(const gm_json *parent, const gm_json *child);

// for each element of an array, or each member's value of an object
#define GM_JSON_EACH(child, parent)                                   \
    for (const gm_json *child = gm_json_first(parent); child != NULL; \
         child = gm_json_next(parent, child))

// The name of a member, from its value within GM_JSON_EACH over an object.
const char *gm_json_name(const gm_json *object, const gm_json *value);

// The value, or the fallback if `value` is NULL or of another type.
bool gm_json_bool(const gm_json *value, bool fallback);
double gm_json_number(const gm_json *value, double fallback);
int64_t gm_json_integer(const gm_json *value, int64_t fallback); // also if it is not an integer
const char *gm_json_string(const gm_json *value, const char *fallback);

// The member of this name. GM_INVALID_INPUT if it is absent or of another type.
gm_status gm_json_member(const gm_json *object, const char *name, gm_json_type type,
                         const gm_json **out);

// The text of the member of this name. Its size is gm_json_size of the member.
gm_status gm_json_member_string(const gm_json *object, const char *name, const char **out);

// The numbers of an array of `count` elements. GM_INVALID_INPUT if it has another number of
// elements or one is not a number.
gm_status gm_json_floats(const gm_json *array, float *out, size_t count);

// ---- JSON: writing ------------------------------------------------------------------------------

// A document that is being written. Begin with GM_JSON_WRITER; commas come by themselves.
typedef struct {
    char *data;
    size_t size;
    size_t capacity;
    bool needs_comma;
} gm_json_writer;

#define GM_JSON_WRITER ((gm_json_writer){NULL, 0, 0, false})

void gm_json_begin_object(gm_json_writer *writer);
void gm_json_end_object(gm_json_writer *writer);
void gm_json_begin_array(gm_json_writer *writer);
void gm_json_end_array(gm_json_writer *writer);
void gm_json_key(gm_json_writer *writer, const char *name);
void gm_json_put_null(gm_json_writer *writer);
void gm_json_put_bool(gm_json_writer *writer, bool value);
void gm_json_put_integer(gm_json_writer *writer, int64_t value);
// The shortest digits that give the same float or double again; null if it is not finite.
void gm_json_put_float(gm_json_writer *writer, float value);
void gm_json_put_double(gm_json_writer *writer, double value);
void gm_json_put_string(gm_json_writer *writer, const char *text);
void gm_json_put_text(gm_json_writer *writer, const char *text, size_t size);
// A tensor's elements as arrays of its shape, and a blob's bytes as a text in base64: the host writes
// them. GM_INTERNAL for NaN and infinity.
gm_status gm_json_put_tensor(gm_json_writer *writer, const gm_tensor *tensor);
gm_status gm_json_put_blob(gm_json_writer *writer, const gm_blob *blob);
// Any value that was read.
void gm_json_put(gm_json_writer *writer, const gm_json *value);

// ---- What preprocess returns --------------------------------------------------------------------

typedef struct gm_prepared gm_prepared;

// Gives the model its input `name`. The tensor moves to the host and cannot be used afterwards.
gm_status gm_prepared_input(gm_prepared *prepared, const char *name, gm_tensor *tensor);

// Hands bytes on to gm_postprocess of the same request. They are copied. The last call counts.
void gm_prepared_state(gm_prepared *prepared, const void *data, size_t size);

// The same with a document; no copy.
void gm_prepared_state_json(gm_prepared *prepared, const gm_json_writer *document);

// ---- What preprocess keeps for postprocess ------------------------------------------------------

// Each keeps a thing for gm_postprocess of the same request. Nothing is copied: the thing moves to
// the host, and cannot be used afterwards. A request keeps at most 256, with names of at most 1024
// bytes. GM_INTERNAL says why nothing was kept.
gm_status gm_keep_pixels(const char *name, gm_pixels *pixels);
gm_status gm_keep_tensor(const char *name, gm_tensor *tensor);
gm_status gm_keep_blob(const char *name, const gm_blob *blob);

// What gm_preprocess of this request kept under this name, as if this call had made it.
// GM_INTERNAL if it is not there, was taken before, or is something else.
gm_status gm_kept_pixels(const char *name, gm_pixels **out);
gm_status gm_kept_tensor(const char *name, gm_tensor **out);
gm_status gm_kept_blob(const char *name, const gm_blob **out);

// ---- What postprocess gets and returns ----------------------------------------------------------

// This request's rows of the model's outputs.
typedef struct gm_outputs gm_outputs;

size_t gm_outputs_count(const gm_outputs *outputs);

// An output by its position in the model's order.
const char *gm_outputs_name(const gm_outputs *outputs, size_t index);
gm_tensor *gm_outputs_at(const gm_outputs *outputs, size_t index);

// The output of this name. GM_INTERNAL if the model has none; the text lists those that it has.
gm_status gm_outputs_get(const gm_outputs *outputs, const char *name, gm_tensor **out);

// Its elements. GM_INTERNAL if the output's dtype or shape differs; GM_ANY fits any size.
gm_status gm_outputs_view(const gm_outputs *outputs, const char *name, gm_dtype dtype,
                          gm_shape shape, gm_view *out);

typedef struct gm_response gm_response;

// The status, 200 to 599. It is 200 if this is not called.
void gm_response_status(gm_response *response, uint16_t status);

// Adds a header. The client gets only some headers: see `response.headers` in wit/types.wit.
void gm_response_header(gm_response *response, const char *name, const char *value);

// The body, which is copied, and its media type.
void gm_response_body(gm_response *response, const char *content_type, const void *data,
                      size_t size);

// A document as application/json; no copy.
void gm_response_json(gm_response *response, const gm_json_writer *document);

// A formatted text as text/plain.
void gm_response_text(gm_response *response, const char *format, ...) GM_PRINTF(2, 3);

// ---- The log ------------------------------------------------------------------------------------

typedef enum { GM_TRACE, GM_DEBUG, GM_INFO, GM_WARN, GM_ERROR } gm_level;

// Logs a formatted message. What printf writes to stdout and stderr is logged, too, line by line.
void gm_log(gm_level level, const char *format, ...) GM_PRINTF(2, 3);

// Logs a message with fields: GM_LOG(GM_INFO, "resized", {"width", "224"}, {"height", "224"}).
void gm_log_fields(gm_level level, const char *message, const gm_field *fields, size_t count);
#define GM_LOG(level, message, ...)                                \
    gm_log_fields(level, message, (const gm_field[]){__VA_ARGS__}, \
                  sizeof((gm_field[]){__VA_ARGS__}) / sizeof(gm_field))

// ---- Models, for gm_handle ----------------------------------------------------------------------

// An input of a model. The plugin keeps the tensor.
typedef struct {
    const char *name;
    const gm_tensor *tensor;
} gm_model_input;

// Runs a model, named as in the pipeline's document under `models`. Inputs stand in any order;
// dimension 0 is rows, and all have the same number of them. While the call waits, it holds no
// thread. The status says why there are no outputs.
gm_status gm_infer(const char *model, const gm_model_input *inputs, size_t count,
                   const gm_outputs **out);

// The same: GM_TRY(GM_INFER("detect", &outputs, {"image", image}, {"size", size}));
#define GM_INFER(model, out, ...)                          \
    gm_infer(model, (const gm_model_input[]){__VA_ARGS__}, \
             sizeof((const gm_model_input[]){__VA_ARGS__}) / sizeof(gm_model_input), out)

// One of several runs.
typedef struct {
    const char *model;
    const gm_model_input *inputs;
    size_t inputs_count;
} gm_run;

typedef struct gm_outcomes gm_outcomes;

// Runs models side by side, or one model several times: the runs may share batches. Returns when
// all have ended.
const gm_outcomes *gm_infer_all(const gm_run *runs, size_t count);

// The outputs of the run at `index`, or why it has none, as gm_infer gives them.
gm_status gm_outcomes_get(const gm_outcomes *outcomes, size_t index, const gm_outputs **out);

// ---- What a plugin defines ----------------------------------------------------------------------

// Worlds `preprocessor` and `processor`. Fills `prepared` with one tensor for each of the model's
// inputs.
gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared);

// Worlds `postprocessor` and `processor`. Fills `response` from the outputs and the bytes that
// gm_preprocess handed on.
gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response);

// World `handler`. Fills `response`, with the runs of models that it needs.
gm_status gm_handle(const gm_context *context, const gm_request *request, gm_response *response);

// If the plugin is built with an initializer: called once, when it is uploaded. Every instance
// begins with the memory that this call leaves in static variables and in malloc's blocks. It can
// only write to the log.
gm_status gm_init(void);

#endif
