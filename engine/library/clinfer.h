// clinfer's engine for C, and for languages that call C: devices, models, requests, tensors.
// Objects are opaque; an object that was made is destroyed by its own function, which takes NULL,
// too. Names, numbers and structures here do not change within a soname of the library; later
// versions add to them.
//
// Functions that can fail return CLINFER_OK or a status; clinfer_last_error() then has one line
// about it: what, where and what to do. Results are written to the last arguments, unless a call
// fails. NULL for an object or a result is CLINFER_BAD_ARGUMENT. Text is UTF-8; pointers that
// functions return belong to the object.
//
// Threads: devices, models and compiled models are shared by any of them; a configuration and a
// request belong to one thread at a time, but clinfer_request_cancel() may come from any.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Marks the functions that the library exports to C.
#define CLINFER_API __attribute__((visibility("default")))

// Grows with each function or constant that is added.
#define CLINFER_API_VERSION 3

CLINFER_API const char* clinfer_version(void);   // version of the library: "0.2.0"
CLINFER_API unsigned clinfer_api_version(void);  // CLINFER_API_VERSION of the library

// ---- errors ---------------------------------------------------------------------------------

typedef enum clinfer_status {
  CLINFER_OK = 0,
  CLINFER_BAD_MODEL = 1,     // the model's bytes are malformed or contradict themselves
  CLINFER_NOT_FOUND = 2,     // a named file does not exist or cannot be read
  CLINFER_UNSUPPORTED = 3,   // well-formed, but this software cannot run it
  CLINFER_BAD_ARGUMENT = 4,  // the caller asked for something impossible
  CLINFER_NO_DEVICE = 5,     // no OpenCL device fits
  CLINFER_OUT_OF_MEMORY = 6,
  CLINFER_DEVICE_FAILED = 7,  // the device or its driver reported a failure
  CLINFER_IO = 8,             // reading or writing a file failed half-way
  CLINFER_CANCELLED = 9,
  CLINFER_NO_ANSWER = 10  // the device takes too long (key DEVICE_TIMEOUT) and may still be at work
} clinfer_status;

// Describes the last call of this thread that failed; "" if none has. Valid until this thread's
// next call that fails.
CLINFER_API const char* clinfer_last_error(void);

// ---- tensors --------------------------------------------------------------------------------

typedef enum clinfer_type {
  CLINFER_F32 = 0,
  CLINFER_F16 = 1,
  CLINFER_F64 = 2,
  CLINFER_I8 = 3,
  CLINFER_U8 = 4,
  CLINFER_I16 = 5,
  CLINFER_U16 = 6,
  CLINFER_I32 = 7,
  CLINFER_U32 = 8,
  CLINFER_I64 = 9,
  CLINFER_U64 = 10,
  CLINFER_BOOLEAN = 11  // a byte
} clinfer_type;

CLINFER_API size_t
clinfer_type_size(clinfer_type type);  // bytes of an element; 0 where there is no such type
// Returns the type's name, as "f32"; NULL if there is no such type.
CLINFER_API const char* clinfer_type_name(clinfer_type type);

// Elements in host memory, dense, the last dimension innermost. A scalar has rank 0.
typedef struct clinfer_tensor {
  const void* data;
  size_t bytes;
  const int64_t* shape;
  size_t rank;
  clinfer_type type;
} clinfer_tensor;

// ---- devices --------------------------------------------------------------------------------

typedef struct clinfer_devices clinfer_devices;

typedef enum clinfer_device_text {
  CLINFER_DEVICE_ID = 0,  // "GPU.0", "CPU.0": what clinfer_compile() takes
  CLINFER_DEVICE_NAME = 1,
  CLINFER_DEVICE_VENDOR = 2,
  CLINFER_DEVICE_PLATFORM = 3,
  CLINFER_DEVICE_DRIVER = 4,
  CLINFER_DEVICE_VERSION = 5
} clinfer_device_text;

CLINFER_API clinfer_status clinfer_devices_list(clinfer_devices** devices);
CLINFER_API void clinfer_devices_destroy(clinfer_devices* devices);
CLINFER_API size_t clinfer_devices_count(const clinfer_devices* devices);
// Returns NULL if there is no such device or text.
CLINFER_API const char* clinfer_devices_text(const clinfer_devices* devices, size_t index,
                                             clinfer_device_text text);
CLINFER_API uint64_t clinfer_devices_memory(const clinfer_devices* devices, size_t index);  // bytes

// ---- models ---------------------------------------------------------------------------------

typedef struct clinfer_model clinfer_model;

// Reads an OpenVINO IR (.xml, and the .bin beside it) or an ONNX model. `shapes` sets shapes of
// inputs that the file leaves open, or replaces those that it states: "640x480", or
// "INPUT=1,3,480,640" by number or name; several are separated by ';'. NULL: the file's own shapes.
CLINFER_API clinfer_status clinfer_model_read(const char* path, const char* shapes,
                                              clinfer_model** model);
// Reads a model from memory, which is copied: the text of an IR and its weights, or an ONNX model
// and no weights (NULL, 0). `name` stands for the path in messages. Nothing of the model is written
// to the cache folder unless the key CACHE_MODE is OPTIMIZE_SPEED.
CLINFER_API clinfer_status clinfer_model_read_bytes(const void* bytes, size_t size,
                                                    const void* weights, size_t weights_size,
                                                    const char* name, const char* shapes,
                                                    clinfer_model** model);
CLINFER_API void clinfer_model_destroy(clinfer_model* model);
// Returns a value below <rt_info>, or an ONNX model's metadata, by its key ("model_info/labels");
// NULL if there is none.
CLINFER_API const char* clinfer_model_info(const clinfer_model* model, const char* key);

// ---- configuration --------------------------------------------------------------------------

typedef struct clinfer_config clinfer_config;

CLINFER_API clinfer_status clinfer_config_create(clinfer_config** config);
CLINFER_API void clinfer_config_destroy(clinfer_config* config);
// Sets a key of docs/keys.md to a value: "PERFORMANCE_HINT", "THROUGHPUT".
CLINFER_API clinfer_status clinfer_config_set(clinfer_config* config, const char* key,
                                              const char* value);

// ---- compiled models ------------------------------------------------------------------------

typedef struct clinfer_compiled clinfer_compiled;
struct _cl_context;
struct _cl_device_id;
struct _cl_command_queue;
struct _cl_mem;

// Compiles for a device: "GPU", "GPU.1", "CPU", "MULTI:GPU.0,GPU.1", "AUTO", "HETERO:GPU,CPU"; NULL
// means "GPU". `config` may be NULL; it and the model may be destroyed afterwards.
CLINFER_API clinfer_status clinfer_compile(const clinfer_model* model, const char* device,
                                           const clinfer_config* config,
                                           clinfer_compiled** compiled);
// Compiles in a context of the application, on one of its devices (NULL: the only one), with an
// in-order queue of the application (NULL: the library makes its own). Arguments are a cl_context,
// a cl_device_id and a cl_command_queue.
CLINFER_API clinfer_status clinfer_compile_shared(
    const clinfer_model* model, struct _cl_context* context, struct _cl_device_id* device,
    struct _cl_command_queue* queue, const clinfer_config* config, clinfer_compiled** compiled);
// Destroys the handle; requests of the model keep what they need.
CLINFER_API void clinfer_compiled_destroy(clinfer_compiled* compiled);
CLINFER_API const char* clinfer_compiled_device(const clinfer_compiled* compiled);  // "CPU.0"
CLINFER_API unsigned clinfer_compiled_optimal_requests(const clinfer_compiled* compiled);
// Returns settings without effect, one line for each index; NULL after the last one.
CLINFER_API const char* clinfer_compiled_warning(const clinfer_compiled* compiled, size_t index);
// Returns the cl_context that the model uses, which lives as long as the model. Models for one
// device share a context.
CLINFER_API clinfer_status clinfer_compiled_context(const clinfer_compiled* compiled,
                                                    struct _cl_context** context);

// States are values that the model keeps from one inference of a request to its next (ReadValue and
// Assign of an IR).
typedef enum clinfer_direction {
  CLINFER_INPUT = 0,
  CLINFER_OUTPUT = 1,
  CLINFER_STATE = 2  // from version 2 of the interface on
} clinfer_direction;

typedef struct clinfer_port {
  const char* name;
  const int64_t* shape;
  size_t rank;
  clinfer_type type;
} clinfer_port;

CLINFER_API size_t clinfer_compiled_count(const clinfer_compiled* compiled,
                                          clinfer_direction direction);
// Describes a port. The texts are valid as long as the compiled model.
CLINFER_API clinfer_status clinfer_compiled_port(const clinfer_compiled* compiled,
                                                 clinfer_direction direction, size_t index,
                                                 clinfer_port* port);
// Finds a port by its name, or by a further name that the file gives to its tensor.
CLINFER_API clinfer_status clinfer_compiled_find(const clinfer_compiled* compiled,
                                                 clinfer_direction direction, const char* name,
                                                 size_t* index);

// ---- requests -------------------------------------------------------------------------------

// One inference in flight, with memory of its own: set inputs, start, wait, read outputs. An input
// stays set until it is set again. Several requests in flight keep a device busy
// (clinfer_compiled_optimal_requests()).
typedef struct clinfer_request clinfer_request;

CLINFER_API clinfer_status clinfer_request_create(const clinfer_compiled* compiled,
                                                  clinfer_request** request);
// Waits for the inference in flight, but only briefly if a device does not answer. Must not be
// called inside of the callback.
CLINFER_API void clinfer_request_destroy(clinfer_request* request);

// Copies a tensor of the port's shape; its type is converted if it differs.
CLINFER_API clinfer_status clinfer_request_set_input(clinfer_request* request, size_t index,
                                                     const clinfer_tensor* tensor);
// Returns memory for that input, of the port's type and shape, initially zero. Write it while no
// inference is in flight. Each start reads it, until the input is set in another way. Lives as long
// as the request.
CLINFER_API clinfer_status clinfer_request_input_memory(clinfer_request* request, size_t index,
                                                        void** data, size_t* bytes);
// Sets a cl_mem of the model's context as an input: dense, of the port's type and shape, from byte
// `offset` on. Each start copies its content, until the input is set in another way.
CLINFER_API clinfer_status clinfer_request_set_input_buffer(clinfer_request* request, size_t index,
                                                            struct _cl_mem* buffer, size_t offset);

typedef enum clinfer_format {  // of a picture, 8 bits a sample
  CLINFER_NV12 = 0,
  CLINFER_I420 = 2,
  CLINFER_RGB = 6,
  CLINFER_BGR = 7,
  CLINFER_RGBX = 8,
  CLINFER_BGRX = 9,
  CLINFER_GREY8 = 12
} clinfer_format;

typedef enum clinfer_resize {
  CLINFER_STRETCH = 0,
  CLINFER_LETTERBOX = 1,
  CLINFER_CROP = 2
} clinfer_resize;
typedef enum clinfer_color {
  CLINFER_COLOR_BGR = 0,
  CLINFER_COLOR_RGB = 1,
  CLINFER_COLOR_GREY = 2
} clinfer_color;

// A picture of any size in host memory, and how the network wants it. Members that are not needed
// are zero.
typedef struct clinfer_picture {
  clinfer_format format;
  int width, height;
  const uint8_t* planes[3];
  int strides[3];  // bytes from row to row
  clinfer_resize resize;
  clinfer_color color;
} clinfer_picture;

// Makes image `image` of a batch from a picture, on the device: size, colours, layout and type. The
// picture's memory must stay valid until wait has returned.
CLINFER_API clinfer_status clinfer_request_set_picture(clinfer_request* request, size_t index,
                                                       size_t image,
                                                       const clinfer_picture* picture);

// Sends an output to a cl_mem of the model's context, from byte `offset` on, until this is changed;
// NULL: to host memory again.
CLINFER_API clinfer_status clinfer_request_set_output_buffer(clinfer_request* request, size_t index,
                                                             struct _cl_mem* buffer, size_t offset);
// Sends an output to a cl_mem that the request makes and owns.
CLINFER_API clinfer_status clinfer_request_output_buffer(clinfer_request* request, size_t index,
                                                         struct _cl_mem** buffer);

// Called after each inference, with its outcome, by a thread of the request. It may read outputs,
// set inputs and start the next inference; it must not wait for the request or destroy it. The text
// of an error is that of clinfer_last_error() there.
typedef void (*clinfer_callback)(void* user, clinfer_request* request, clinfer_status status);
// Sets the callback; NULL: none. To be called while no inference is in flight.
CLINFER_API clinfer_status clinfer_request_set_callback(clinfer_request* request,
                                                        clinfer_callback callback, void* user);

CLINFER_API clinfer_status clinfer_request_start(clinfer_request* request);  // returns at once
// Sleeps until the inference and its callback are over, or for `milliseconds` (below 0: no limit).
// Sets `*done` (which may be NULL) to 1 if they are over, else to 0. Returns the inference's
// failure.
CLINFER_API clinfer_status clinfer_request_wait(clinfer_request* request, int64_t milliseconds,
                                                int* done);
// Ends the inference in flight soon, with CLINFER_CANCELLED.
CLINFER_API clinfer_status clinfer_request_cancel(clinfer_request* request);
CLINFER_API clinfer_status clinfer_request_infer(clinfer_request* request);  // start and wait

// Returns an output after wait, with the model's shape and type, but floats are f32. Valid until
// the request's next start or its end.
CLINFER_API clinfer_status clinfer_request_output(const clinfer_request* request, size_t index,
                                                  clinfer_tensor* tensor);

// ---- which device computes which layer: from version 2 of the interface on -------------------

typedef struct clinfer_layers clinfer_layers;

// A layer of a model. The texts are valid as long as the clinfer_layers.
typedef struct clinfer_layer {
  const char* name;    // as the model's file has it
  const char* type;    // "Convolution"
  const char* device;  // "GPU.0": the one that HETERO would give the layer
  const char* reason;  // why the device has no kernel for it; "" if it has one
  int on_host;         // 1: the host computes the layer for that device
} clinfer_layer;

// Asks which device of a list ("HETERO:GPU,CPU"; or one device) computes which layer. `config` may
// be NULL. Nothing is compiled.
CLINFER_API clinfer_status clinfer_query(const clinfer_model* model, const char* device,
                                         const clinfer_config* config, clinfer_layers** layers);
CLINFER_API void clinfer_layers_destroy(clinfer_layers* layers);
CLINFER_API size_t clinfer_layers_count(const clinfer_layers* layers);
CLINFER_API clinfer_status clinfer_layers_at(const clinfer_layers* layers, size_t index,
                                             clinfer_layer* layer);
// Returns the model with a device for each of its layers, which HETERO obeys: `devices[i]` for the
// layer `layers[i]`. The layers are those that clinfer_query() lists.
CLINFER_API clinfer_status clinfer_model_with_devices(const clinfer_model* model,
                                                      const char* const* layers,
                                                      const char* const* devices, size_t count,
                                                      clinfer_model** result);

// Returns why inputs and outputs in memory of the application are copied on the device, one line
// for each index: "input 0 (image): copied, since its kernels use f16, the application has f32".
// NULL after the last one, and where an inference is in flight. Valid until the request's next call
// of this function or its end.
CLINFER_API const char* clinfer_request_explanation(clinfer_request* request, size_t index);

// ---- states: from version 2 of the interface on ---------------------------------------------

// Each request has its own states. These functions are called while no inference is in flight.

// Gives all states their initial values, which they have at first, too. To be called where another
// sequence begins.
CLINFER_API clinfer_status clinfer_request_reset_states(clinfer_request* request);
// Returns a state's value, with the model's shape and type, but floats are f32. Valid until the
// request's next call of this function or its end. A state that the next inference computes from
// its inputs, because it is new, is CLINFER_BAD_ARGUMENT.
CLINFER_API clinfer_status clinfer_request_state(clinfer_request* request, size_t index,
                                                 clinfer_tensor* tensor);
// Sets a state, as by an inference; the type is converted if it differs.
CLINFER_API clinfer_status clinfer_request_set_state(clinfer_request* request, size_t index,
                                                     const clinfer_tensor* tensor);

// ---- memory by its address: from version 3 of the interface on -------------------------------

// The origin of memory that an application addresses by a pointer.
typedef enum clinfer_pointer {
  // Any memory of the process. Devices that share the host's memory use it in place, others get and
  // give copies.
  CLINFER_POINTER_HOST = 0,
  // Shared virtual memory of OpenCL 2.0, of clSVMAlloc() on the model's context. Coarse-grain
  // memory must not be mapped while an inference is in flight.
  CLINFER_POINTER_SVM = 1,
  // Unified shared memory (cl_intel_unified_shared_memory) of the model's context: host, shared, or
  // of the model's device.
  CLINFER_POINTER_USM = 2
} clinfer_pointer;

// Sets memory at an address as an input: dense, of the port's type and shape; `bytes` is how many
// there are. Each start reads it, until the input is set in another way. It must stay allocated
// until then or the request's end, and must not be written between start and the end of wait.
// Memory that is too small or, of USM, of another context or freed, is CLINFER_BAD_ARGUMENT; start
// looks again. Few drivers tell this of SVM. CLINFER_UNSUPPORTED if the device lacks such memory.
CLINFER_API clinfer_status clinfer_request_set_input_pointer(clinfer_request* request, size_t index,
                                                             clinfer_pointer kind, const void* data,
                                                             size_t bytes);
// Sends an output to memory at an address, likewise, until this is changed; NULL: to host memory of
// the request again.
CLINFER_API clinfer_status clinfer_request_set_output_pointer(clinfer_request* request,
                                                              size_t index, clinfer_pointer kind,
                                                              void* data, size_t bytes);

#ifdef __cplusplus
}
#endif
