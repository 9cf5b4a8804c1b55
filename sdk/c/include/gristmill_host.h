// A reference host for unit tests: runs a plugin natively, without a server and without a sandbox.
//
//     gm_host_request request = {.body = GM_HOST_TEXT("[1, 2]"), .content_type =
//     "application/json"}; gm_host_prepared prepared = gm_host_preprocess(&request);
//     assert(prepared.status == GM_OK && prepared.inputs[0].shape.dims[1] == 2);
//
// It has no limits, no deadline and no arrays (gristmill_arrays.h). A handler's models are functions
// of the test. Pictures are resized as by the server, but a channel may differ by 2 of 255. They are
// decoded if stb_image.h is installed (Debian's libstb-dev): JPEG, PNG, BMP and GIF, not turned
// upright.
//
// Results and log lines are valid until gm_host_reset.
#ifndef GRISTMILL_HOST_H
#define GRISTMILL_HOST_H

#include "gristmill_http.h"
#include "gristmill_plugin.h"
#include "gristmill_tables.h"
#include "gristmill_text.h"

// The bytes of a text, and of an array.
#define GM_HOST_TEXT(text) ((gm_bytes){(const uint8_t *)(text), __builtin_strlen(text)})
#define GM_HOST_ARRAY(array) ((gm_bytes){(const uint8_t *)(array), sizeof(array)})

typedef struct {
    const char *name;         // NULL means ""
    const char *filename;     // NULL if the part has none
    const char *content_type; // NULL if the part has none
    gm_bytes body;
} gm_host_part;

// A request and its context. Members that are not set have the values that a pipeline without
// settings and a client without headers give.
typedef struct {
    gm_bytes body;
    const char *content_type; // NULL if the client sent none
    gm_fields headers;
    gm_fields query;
    const gm_host_part *parts;
    size_t parts_count;
    const char *tenant;     // NULL means "tenant"
    const char *pipeline;   // NULL means "pipeline"
    const char *model;      // NULL means "model"
    const char *request_id; // NULL means "request"
    const char *settings;   // NULL means "{}"
    uint64_t time_left;     // in milliseconds; 0 means 10000
} gm_host_request;

typedef struct {
    const char *name;
    gm_dtype dtype;
    gm_shape shape;
    gm_bytes data;
} gm_host_tensor;

// What gm_preprocess made.
typedef struct {
    gm_status status;
    const char *failure; // its text, "" for GM_OK
    const gm_host_tensor *inputs;
    size_t inputs_count;
    gm_bytes state;
} gm_host_prepared;

// What gm_postprocess made.
typedef struct {
    gm_status status;
    const char *failure; // its text, "" for GM_OK
    uint16_t http_status;
    const char *content_type;
    gm_fields headers;
    gm_bytes body; // a NUL follows it
} gm_host_response;

// What a model of a test gives: outputs with GM_OK, or one of GM_MODEL_NOT_GRANTED to
// GM_MODEL_FAILED with its text. The outputs are read after the function has returned.
typedef struct {
    gm_status status;
    const char *failure;
    const gm_host_tensor *outputs;
    size_t outputs_count;
} gm_host_ran;

typedef gm_host_ran gm_host_model(const gm_host_tensor *inputs, size_t inputs_count);

// A request that a plugin sends to a service of a test.
typedef struct {
    const char *method;
    const char *url;
    gm_fields headers;
    gm_bytes body;
    uint64_t timeout_ms; // 0 if it has none
} gm_host_sent;

// What a service of a test answers. Members that are not set are 200 and nothing.
typedef struct {
    uint16_t status;
    gm_fields headers;
    gm_bytes body;
    gm_status failure; // in place of an answer: GM_HTTP_NOT_GRANTED to GM_HTTP_TOO_LARGE
    const char *text;  // of the failure
} gm_host_answer;

typedef gm_host_answer gm_host_service(const gm_host_sent *sent);

typedef struct {
    gm_level level;
    const char *message;
    gm_fields fields;
} gm_host_line;

// Calls gm_preprocess.
gm_host_prepared gm_host_preprocess(const gm_host_request *request);

// Calls gm_postprocess with a model's outputs. Of the request it can only see the context.
gm_host_response gm_host_postprocess(const gm_host_request *request, const gm_host_tensor *outputs,
                                     size_t outputs_count, gm_bytes state);

// Lets the functions of gristmill_text.h find the file `asset`, until gm_host_reset. Texts are
// split at blanks. A word's id is its place in `words`; [CLS], [SEP], [PAD] and [UNK] are what BERT
// has them for, if they are there.
void gm_host_tokenizer(const char *asset, const char *const *words, size_t count);

// A row of a table: its numbers, one for each column.
typedef struct {
    const char *key;
    const float *numbers;
} gm_host_row;

// Lets the functions of gristmill_tables.h find the file `asset`, until gm_host_reset. All rows
// have `width` numbers; `columns` are their names, or NULL.
void gm_host_table(const char *asset, const gm_host_row *rows, size_t count,
                   const char *const *columns, size_t width);

// Calls gm_handle. Its runs of models call the functions of gm_host_add_model.
gm_host_response gm_host_handle(const gm_host_request *request);

// Lets a function stand in for the model of this name, until gm_host_reset. Of one name the last
// one counts. Runs of other models are GM_MODEL_NOT_GRANTED.
void gm_host_add_model(const char *name, gm_host_model *model);

// Lets a function answer the requests to URLs of this origin, such as "https://api.example.com",
// until gm_host_reset. Of one origin the last one counts. Others are GM_HTTP_NOT_GRANTED.
void gm_host_add_service(const char *origin, gm_host_service *answer);

// The lines that were logged, the first one first.
size_t gm_host_lines_count(void);
gm_host_line gm_host_line_at(size_t index);

// The tensors, pictures and bodies that the host holds. After a call it is 0.
size_t gm_host_handles(void);

// The bytes of a file; empty if it cannot be read.
gm_bytes gm_host_file(const char *path);

// Frees all results and log lines.
void gm_host_reset(void);

#endif
