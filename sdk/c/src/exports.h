// The functions that the host calls. The results are laid out as the component model's canonical
// ABI says, which for these types is C's own layout.
#ifndef GM_EXPORTS_H
#define GM_EXPORTS_H

#include "../bindings/imports.h"

#ifdef __wasm__
#define GM_EXPORT(name) __attribute__((export_name(name)))
#else
#define GM_EXPORT(name)
#endif

typedef struct {
    bool is_err;
    union {
        gristmill_plugin_prepare_prepared_t ok;
        gristmill_plugin_types_failure_t err;
    };
} gm_preprocess_result;

typedef struct {
    bool is_err;
    union {
        gristmill_plugin_types_response_t ok;
        gristmill_plugin_types_failure_t err;
    };
} gm_postprocess_result;

typedef struct {
    bool is_err;
    union {
        gristmill_plugin_types_response_t ok;
        gristmill_plugin_models_handle_error_t err;
    };
} gm_handle_result;

typedef struct {
    bool is_err;
    imports_string_t err;
} gm_init_result;

gm_preprocess_result *gm_export_preprocess(int32_t context, int32_t request);
void gm_export_preprocess_done(gm_preprocess_result *result);
gm_postprocess_result *gm_export_postprocess(int32_t context,
                                             gristmill_plugin_tensors_named_tensor_t *outputs,
                                             size_t outputs_count, uint8_t *state,
                                             size_t state_size);
void gm_export_postprocess_done(gm_postprocess_result *result);
gm_handle_result *gm_export_handle(int32_t context, int32_t request);
void gm_export_handle_done(gm_handle_result *result);
gm_init_result *gm_export_init(void);
void gm_export_init_done(gm_init_result *result);

#endif
