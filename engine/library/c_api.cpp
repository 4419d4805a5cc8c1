// Implements clinfer.h by the C++ headers, with opaque handles and status codes.
#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/async.h"
#include "engine/library/clinfer.h"
#include "engine/opencl.h"
#include "engine/query.h"
#include "kernels/base/default_floats.h"

using clinfer::Error;
using clinfer::ErrorCode;

struct clinfer_devices {
  std::vector<clinfer::DeviceInfo> all;
};
struct clinfer_model {
  std::shared_ptr<const clinfer::Model> model;
};
struct clinfer_config {
  clinfer::Config config;
};
struct clinfer_compiled {
  std::shared_ptr<clinfer::CompiledModel> model;
};
struct clinfer_request {
  explicit clinfer_request(const std::shared_ptr<clinfer::CompiledModel>& of)
      : model(of), request(of->create_request()) {}
  const std::shared_ptr<clinfer::CompiledModel> model;
  clinfer::AsyncRequest request;
  clinfer::Tensor state;  // the one that clinfer_request_state() returned last
  std::vector<std::string> explanations;
};
struct clinfer_layers {
  std::vector<clinfer::LayerQuery> all;
};

namespace {

thread_local std::string last_error;

clinfer_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_model:
      return CLINFER_BAD_MODEL;
    case ErrorCode::not_found:
      return CLINFER_NOT_FOUND;
    case ErrorCode::unsupported:
      return CLINFER_UNSUPPORTED;
    case ErrorCode::bad_argument:
      return CLINFER_BAD_ARGUMENT;
    case ErrorCode::no_device:
      return CLINFER_NO_DEVICE;
    case ErrorCode::out_of_memory:
      return CLINFER_OUT_OF_MEMORY;
    case ErrorCode::device_failed:
      return CLINFER_DEVICE_FAILED;
    case ErrorCode::io:
      return CLINFER_IO;
    case ErrorCode::cancelled:
      return CLINFER_CANCELLED;
  }
  return CLINFER_DEVICE_FAILED;
}

static_assert(static_cast<int>(clinfer::ElementType::boolean) == CLINFER_BOOLEAN);
static_assert(static_cast<int>(clinfer::PixelFormat::i420) == CLINFER_I420);
static_assert(static_cast<int>(clinfer::PixelFormat::rgb) == CLINFER_RGB);
static_assert(static_cast<int>(clinfer::PixelFormat::bgrx) == CLINFER_BGRX);
static_assert(static_cast<int>(clinfer::PixelFormat::gray8) == CLINFER_GREY8);
static_assert(static_cast<int>(clinfer::ResizeMode::crop) == CLINFER_CROP);
static_assert(static_cast<int>(clinfer::ColorOrder::gray) == CLINFER_COLOR_GREY);

// Returns the status for the exception that is being handled. To be called within a handler.
clinfer_status failure() {
  try {
    throw;
  } catch (const clinfer::NoAnswer& error) {
    last_error = error.what();
    return CLINFER_NO_ANSWER;
  } catch (const Error& error) {
    last_error = error.what();
    return status_of(error.code());
  } catch (const std::bad_alloc&) {
    last_error = "not enough memory";
    return CLINFER_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error = error.what();
    return CLINFER_DEVICE_FAILED;
  }
}

template <typename Function>
clinfer_status guarded(const Function& function) noexcept {
  const clinfer::DefaultFloats floats;
  try {
    function();
    return CLINFER_OK;
  } catch (...) {
    return failure();
  }
}

// Throws for an argument that must not be NULL.
template <typename T>
T& given(T* argument, const char* name) {
  if (argument == nullptr) throw Error(ErrorCode::bad_argument, std::string(name) + " is NULL");
  return *argument;
}

template <typename T>
T enumerator(T value, T last, const char* name) {
  if (value < T{} || value > last)
    throw Error(ErrorCode::bad_argument,
                "there is no " + std::string(name) + " " + std::to_string(static_cast<int>(value)));
  return value;
}

clinfer::ElementType element_type(clinfer_type type) {
  return static_cast<clinfer::ElementType>(enumerator(type, CLINFER_BOOLEAN, "element type"));
}

clinfer::InputShapes shapes_of(const char* text) {
  clinfer::InputShapes shapes;
  for (std::string rest = text ? text : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(';'), rest.size());
    if (end != 0) shapes.add(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return shapes;
}

clinfer::InferRequest& idle(clinfer_request* request) {
  return given(request, "the request").request.request();
}

const std::vector<clinfer::Port>& ports_of(const clinfer_compiled& compiled,
                                           clinfer_direction direction) {
  switch (enumerator(direction, CLINFER_STATE, "direction")) {
    case CLINFER_INPUT:
      return compiled.model->inputs();
    case CLINFER_OUTPUT:
      return compiled.model->outputs();
    default:
      return compiled.model->model().states();
  }
}

// Throws unless there is such an input, output or state.
std::string name_of_direction(clinfer_direction direction) {
  static constexpr const char* kNames[] = {"input", "output", "state"};
  return kNames[enumerator(direction, CLINFER_STATE, "direction")];
}

std::span<const std::byte> bytes_at(const void* data, size_t size, const char* name) {
  if (size != 0) given(static_cast<const std::byte*>(data), name);
  return {static_cast<const std::byte*>(data), size};
}

// Returns the tensor as the application describes it; it refers to the application's memory.
clinfer::Tensor tensor_at(const clinfer_tensor* tensor, const std::string& what) {
  const clinfer_tensor& from = given(tensor, "the tensor");
  if (from.rank != 0) given(from.shape, "the tensor's shape");
  const clinfer::ElementType type = element_type(from.type);
  clinfer::Shape shape(from.shape, from.shape + from.rank);
  size_t bytes = clinfer::size_of(type);
  bool possible = true;
  for (const int64_t dim : shape)
    possible = possible && dim >= 0 && !__builtin_mul_overflow(bytes, dim, &bytes);
  if (!possible || bytes != from.bytes)
    throw Error(ErrorCode::bad_argument, what + ": " + std::to_string(from.bytes) +
                                             " bytes are no tensor " + clinfer::to_string(shape) +
                                             " of " + std::string(clinfer::name_of(type)));
  bytes_at(from.data, from.bytes, "the tensor's data");
  return clinfer::Tensor::view(type, std::move(shape), from.data, nullptr);
}

clinfer_tensor described(const clinfer::Tensor& value) {
  return {value.raw(), value.bytes(), value.shape().data(), value.shape().size(),
          static_cast<clinfer_type>(value.type())};
}

const clinfer::Config& config_of(const clinfer_config* config) {
  static const auto& none = *new const clinfer::Config;
  return config == nullptr ? none : config->config;
}

void hand_out(const clinfer_model* model, const char* device, const clinfer_config* config,
              const clinfer::opencl::Shared* shared, clinfer_compiled** compiled) {
  given(model, "the model");
  given(compiled, "the place of the result");
  clinfer::Config settings = config_of(config);
  if (device != nullptr) settings.device = device;
  auto made = std::make_unique<clinfer_compiled>();
  made->model = shared != nullptr ? clinfer::opencl::compile(model->model, settings, *shared)
                                  : clinfer::CompiledModel::compile(model->model, settings);
  *compiled = made.release();
}

}  // namespace

const char* clinfer_version() { return CLINFER_VERSION; }
unsigned clinfer_api_version() { return CLINFER_API_VERSION; }
const char* clinfer_last_error() { return last_error.c_str(); }

// ---- tensors ------------------------------------------------------------------------------------

size_t clinfer_type_size(clinfer_type type) {
  return type < CLINFER_F32 || type > CLINFER_BOOLEAN
             ? 0
             : clinfer::size_of(static_cast<clinfer::ElementType>(type));
}

const char* clinfer_type_name(clinfer_type type) {
  return type < CLINFER_F32 || type > CLINFER_BOOLEAN
             ? nullptr
             : clinfer::name_of(static_cast<clinfer::ElementType>(type)).data();
}

// ---- devices ------------------------------------------------------------------------------------

clinfer_status clinfer_devices_list(clinfer_devices** devices) {
  return guarded([&] {
    given(devices, "the place of the result");
    *devices = new clinfer_devices{clinfer::list_devices().devices};
  });
}

void clinfer_devices_destroy(clinfer_devices* devices) { delete devices; }

size_t clinfer_devices_count(const clinfer_devices* devices) {
  return devices == nullptr ? 0 : devices->all.size();
}

const char* clinfer_devices_text(const clinfer_devices* devices, size_t index,
                                 clinfer_device_text text) {
  if (index >= clinfer_devices_count(devices)) return nullptr;
  const clinfer::DeviceInfo& device = devices->all[index];
  switch (text) {
    case CLINFER_DEVICE_ID:
      return device.id.c_str();
    case CLINFER_DEVICE_NAME:
      return device.name.c_str();
    case CLINFER_DEVICE_VENDOR:
      return device.vendor.c_str();
    case CLINFER_DEVICE_PLATFORM:
      return device.platform.c_str();
    case CLINFER_DEVICE_DRIVER:
      return device.driver.c_str();
    case CLINFER_DEVICE_VERSION:
      return device.version.c_str();
  }
  return nullptr;
}

uint64_t clinfer_devices_memory(const clinfer_devices* devices, size_t index) {
  return index >= clinfer_devices_count(devices) ? 0 : devices->all[index].memory;
}

// ---- models -------------------------------------------------------------------------------------

clinfer_status clinfer_model_read(const char* path, const char* shapes, clinfer_model** model) {
  return guarded([&] {
    given(path, "the path");
    given(model, "the place of the result");
    *model = new clinfer_model{clinfer::Model::read(path, shapes_of(shapes))};
  });
}

clinfer_status clinfer_model_read_bytes(const void* bytes, size_t size, const void* weights,
                                        size_t weights_size, const char* name, const char* shapes,
                                        clinfer_model** model) {
  return guarded([&] {
    given(model, "the place of the result");
    *model = new clinfer_model{clinfer::Model::read_bytes(
        bytes_at(bytes, size, "the model"), bytes_at(weights, weights_size, "the weights"),
        name == nullptr ? "a model in memory" : name, shapes_of(shapes))};
  });
}

void clinfer_model_destroy(clinfer_model* model) { delete model; }

const char* clinfer_model_info(const clinfer_model* model, const char* key) {
  if (model == nullptr || key == nullptr) return nullptr;
  const auto& info = model->model->rt_info();
  const auto found = info.find(key);
  return found == info.end() ? nullptr : found->second.c_str();
}

// ---- configuration ------------------------------------------------------------------------------

clinfer_status clinfer_config_create(clinfer_config** config) {
  return guarded([&] {
    given(config, "the place of the result");
    *config = new clinfer_config;
  });
}

void clinfer_config_destroy(clinfer_config* config) { delete config; }

clinfer_status clinfer_config_set(clinfer_config* config, const char* key, const char* value) {
  return guarded([&] {
    given(config, "the configuration")
        .config.set(&given(key, "the key"), &given(value, "the value"));
  });
}

// ---- compiled models ----------------------------------------------------------------------------

clinfer_status clinfer_compile(const clinfer_model* model, const char* device,
                               const clinfer_config* config, clinfer_compiled** compiled) {
  return guarded([&] { hand_out(model, device, config, nullptr, compiled); });
}

clinfer_status clinfer_compile_shared(const clinfer_model* model, struct _cl_context* context,
                                      struct _cl_device_id* device, struct _cl_command_queue* queue,
                                      const clinfer_config* config, clinfer_compiled** compiled) {
  const clinfer::opencl::Shared shared{context, device, queue};
  return guarded([&] { hand_out(model, nullptr, config, &shared, compiled); });
}

void clinfer_compiled_destroy(clinfer_compiled* compiled) { delete compiled; }

const char* clinfer_compiled_device(const clinfer_compiled* compiled) {
  return compiled == nullptr ? nullptr : compiled->model->device().id.c_str();
}

unsigned clinfer_compiled_optimal_requests(const clinfer_compiled* compiled) {
  return compiled == nullptr ? 0 : compiled->model->optimal_requests();
}

const char* clinfer_compiled_warning(const clinfer_compiled* compiled, size_t index) {
  if (compiled == nullptr || index >= compiled->model->warnings().size()) return nullptr;
  return compiled->model->warnings()[index].c_str();
}

clinfer_status clinfer_compiled_context(const clinfer_compiled* compiled,
                                        struct _cl_context** context) {
  return guarded([&] {
    given(context, "the place of the result") =
        clinfer::opencl::context_of(*given(compiled, "the compiled model").model);
  });
}

size_t clinfer_compiled_count(const clinfer_compiled* compiled, clinfer_direction direction) {
  if (compiled == nullptr || direction < CLINFER_INPUT || direction > CLINFER_STATE) return 0;
  return ports_of(*compiled, direction).size();
}

clinfer_status clinfer_compiled_port(const clinfer_compiled* compiled, clinfer_direction direction,
                                     size_t index, clinfer_port* port) {
  return guarded([&] {
    const auto& ports = ports_of(given(compiled, "the compiled model"), direction);
    given(port, "the place of the result");
    if (index >= ports.size())
      throw Error(ErrorCode::bad_argument, "there is no " + name_of_direction(direction) + " " +
                                               std::to_string(index) + "; the model has " +
                                               std::to_string(ports.size()));
    *port = {ports[index].name.c_str(), ports[index].shape.data(), ports[index].shape.size(),
             static_cast<clinfer_type>(ports[index].type)};
  });
}

clinfer_status clinfer_compiled_find(const clinfer_compiled* compiled, clinfer_direction direction,
                                     const char* name, size_t* index) {
  return guarded([&] {
    const auto& ports = ports_of(given(compiled, "the compiled model"), direction);
    given(name, "the name");
    given(index, "the place of the result");
    const auto has = [&](const clinfer::Port& port) {
      return port.name == name || std::ranges::count(port.tensor_names, name) != 0;
    };
    const auto found = std::ranges::find_if(ports, has);
    if (found == ports.end()) {
      std::string names;
      for (const clinfer::Port& port : ports) names += (names.empty() ? "" : ", ") + port.name;
      throw Error(ErrorCode::bad_argument, "there is no " + name_of_direction(direction) + " \"" +
                                               clinfer::printable(name) + "\"; there are " + names);
    }
    *index = static_cast<size_t>(found - ports.begin());
  });
}

// ---- requests -----------------------------------------------------------------------------------

clinfer_status clinfer_request_create(const clinfer_compiled* compiled, clinfer_request** request) {
  return guarded([&] {
    given(request, "the place of the result");
    *request = new clinfer_request(given(compiled, "the compiled model").model);
  });
}

void clinfer_request_destroy(clinfer_request* request) { delete request; }

clinfer_status clinfer_request_set_input(clinfer_request* request, size_t index,
                                         const clinfer_tensor* tensor) {
  return guarded([&] {
    clinfer::InferRequest& to = idle(request);
    to.set_input(index, tensor_at(tensor, "input " + std::to_string(index)));
  });
}

clinfer_status clinfer_request_input_memory(clinfer_request* request, size_t index, void** data,
                                            size_t* bytes) {
  return guarded([&] {
    clinfer::InferRequest& of = idle(request);
    given(data, "the place of the memory");
    given(bytes, "the place of its size");
    const std::span<std::byte> memory = of.input_memory(index);
    *data = memory.data();
    *bytes = memory.size();
  });
}

clinfer_status clinfer_request_set_input_buffer(clinfer_request* request, size_t index,
                                                struct _cl_mem* buffer, size_t offset) {
  return guarded([&] { clinfer::opencl::set_input(idle(request), index, buffer, offset); });
}

clinfer_status clinfer_request_set_picture(clinfer_request* request, size_t index, size_t image,
                                           const clinfer_picture* picture) {
  return guarded([&] {
    clinfer::InferRequest& to = idle(request);
    const clinfer_picture& from = given(picture, "the picture");
    constexpr std::array kFormats = {CLINFER_NV12, CLINFER_I420, CLINFER_RGB,  CLINFER_BGR,
                                     CLINFER_RGBX, CLINFER_BGRX, CLINFER_GREY8};
    if (std::ranges::count(kFormats, from.format) == 0)
      throw Error(ErrorCode::bad_argument,
                  "there is no picture format " + std::to_string(from.format));
    clinfer::Frame frame;
    frame.format = static_cast<clinfer::PixelFormat>(from.format);
    frame.width = from.width;
    frame.height = from.height;
    std::ranges::copy(from.planes, frame.planes.begin());
    std::ranges::copy(from.strides, frame.strides.begin());
    clinfer::FrameTransform transform;
    transform.resize =
        static_cast<clinfer::ResizeMode>(enumerator(from.resize, CLINFER_CROP, "way to resize"));
    transform.color = static_cast<clinfer::ColorOrder>(
        enumerator(from.color, CLINFER_COLOR_GREY, "order of colours"));
    const std::vector<clinfer::Port>& inputs = request->model->inputs();
    if (index < inputs.size()) {
      const clinfer::Shape& shape = inputs[index].shape;
      transform.nhwc = shape.size() >= 4 && shape[1] != 1 && shape[1] != 3 &&
                       (shape.back() == 1 || shape.back() == 3);
    }
    const auto sizes = clinfer::plane_sizes(frame);
    for (size_t p = 0; from.width > 0 && from.height > 0 && p < sizes.size(); ++p) {
      if (sizes[p].rows == 0) continue;
      given(from.planes[p], "a plane of the picture");
      if (from.strides[p] < sizes[p].row_bytes)
        throw Error(ErrorCode::bad_argument,
                    "plane " + std::to_string(p) + " of the picture has rows of " +
                        std::to_string(sizes[p].row_bytes) + " bytes, its stride is " +
                        std::to_string(from.strides[p]));
    }
    to.set_frame(index, frame, transform, image);
  });
}

clinfer_status clinfer_request_set_output_buffer(clinfer_request* request, size_t index,
                                                 struct _cl_mem* buffer, size_t offset) {
  return guarded([&] { clinfer::opencl::set_output(idle(request), index, buffer, offset); });
}

clinfer_status clinfer_request_output_buffer(clinfer_request* request, size_t index,
                                             struct _cl_mem** buffer) {
  return guarded([&] {
    given(buffer, "the place of the result") = clinfer::opencl::output_buffer(idle(request), index);
  });
}

clinfer_status clinfer_request_set_callback(clinfer_request* request, clinfer_callback callback,
                                            void* user) {
  return guarded([&] {
    clinfer::AsyncRequest& to = given(request, "the request").request;
    if (callback == nullptr) return to.set_completed({});
    to.set_completed([=](clinfer::InferRequest&, const std::exception_ptr& error) {
      callback(user, request, guarded([&] {
                 if (error != nullptr) std::rethrow_exception(error);
               }));
    });
  });
}

clinfer_status clinfer_request_start(clinfer_request* request) {
  return guarded([&] { given(request, "the request").request.start(); });
}

clinfer_status clinfer_request_wait(clinfer_request* request, int64_t milliseconds, int* done) {
  return guarded([&] {
    std::optional<std::chrono::milliseconds> timeout;
    // Longer times overflow when counted in nanoseconds.
    constexpr int64_t kForEver = int64_t{1} << 40;
    if (milliseconds >= 0 && milliseconds < kForEver)
      timeout = std::chrono::milliseconds(milliseconds);
    const bool over = given(request, "the request").request.wait(timeout);
    if (done != nullptr) *done = over;
  });
}

clinfer_status clinfer_request_cancel(clinfer_request* request) {
  return guarded([&] { given(request, "the request").request.cancel(); });
}

clinfer_status clinfer_request_infer(clinfer_request* request) {
  return guarded([&] {
    clinfer::AsyncRequest& of = given(request, "the request").request;
    of.start();
    of.wait();
  });
}

clinfer_status clinfer_request_output(const clinfer_request* request, size_t index,
                                      clinfer_tensor* tensor) {
  return guarded([&] {
    given(tensor, "the place of the result");
    const clinfer::Tensor& output = given(request, "the request").request.request().output(index);
    *tensor = described(output);
  });
}

// ---- layers -------------------------------------------------------------------------------------

clinfer_status clinfer_query(const clinfer_model* model, const char* device,
                             const clinfer_config* config, clinfer_layers** layers) {
  return guarded([&] {
    given(model, "the model");
    given(layers, "the place of the result");
    clinfer::Config settings = config_of(config);
    if (device != nullptr) settings.device = device;
    *layers = new clinfer_layers{clinfer::query_model(model->model, settings)};
  });
}

void clinfer_layers_destroy(clinfer_layers* layers) { delete layers; }

size_t clinfer_layers_count(const clinfer_layers* layers) {
  return layers == nullptr ? 0 : layers->all.size();
}

clinfer_status clinfer_layers_at(const clinfer_layers* layers, size_t index, clinfer_layer* layer) {
  return guarded([&] {
    const auto& all = given(layers, "the layers").all;
    given(layer, "the place of the result");
    if (index >= all.size())
      throw Error(ErrorCode::bad_argument, "there is no layer " + std::to_string(index) +
                                               "; there are " + std::to_string(all.size()));
    const clinfer::LayerQuery& found = all[index];
    *layer = {found.layer.c_str(), found.type.c_str(), found.device.c_str(), found.reason.c_str(),
              found.on_host ? 1 : 0};
  });
}

clinfer_status clinfer_model_with_devices(const clinfer_model* model, const char* const* layers,
                                          const char* const* devices, size_t count,
                                          clinfer_model** result) {
  return guarded([&] {
    given(model, "the model");
    given(result, "the place of the result");
    if (count != 0) given(layers, "the list of layers"), given(devices, "the list of devices");
    clinfer::DeviceByLayer wanted;
    for (size_t i = 0; i < count; ++i)
      wanted[&given(layers[i], "a layer")] = &given(devices[i], "a device");
    *result = new clinfer_model{clinfer::with_devices(model->model, wanted)};
  });
}

const char* clinfer_request_explanation(clinfer_request* request, size_t index) {
  if (guarded([&] { request->explanations = clinfer::opencl::explain(idle(request)); }) !=
      CLINFER_OK)
    return nullptr;
  return index < request->explanations.size() ? request->explanations[index].c_str() : nullptr;
}

// ---- memory by its address ----------------------------------------------------------------------

static_assert(static_cast<int>(clinfer::opencl::PointerKind::usm) == CLINFER_POINTER_USM);

static clinfer::opencl::PointerKind pointer_kind(clinfer_pointer kind) {
  return static_cast<clinfer::opencl::PointerKind>(
      enumerator(kind, CLINFER_POINTER_USM, "kind of pointer"));
}

clinfer_status clinfer_request_set_input_pointer(clinfer_request* request, size_t index,
                                                 clinfer_pointer kind, const void* data,
                                                 size_t bytes) {
  return guarded([&] {
    clinfer::opencl::set_input_pointer(idle(request), index, pointer_kind(kind), data, bytes);
  });
}

clinfer_status clinfer_request_set_output_pointer(clinfer_request* request, size_t index,
                                                  clinfer_pointer kind, void* data, size_t bytes) {
  return guarded([&] {
    clinfer::opencl::set_output_pointer(idle(request), index, pointer_kind(kind), data, bytes);
  });
}

// ---- states -------------------------------------------------------------------------------------

clinfer_status clinfer_request_reset_states(clinfer_request* request) {
  return guarded([&] { idle(request).reset_states(); });
}

clinfer_status clinfer_request_state(clinfer_request* request, size_t index,
                                     clinfer_tensor* tensor) {
  return guarded([&] {
    const clinfer::InferRequest& of = idle(request);
    given(tensor, "the place of the result");
    request->state = of.state(index);
    *tensor = described(request->state);
  });
}

clinfer_status clinfer_request_set_state(clinfer_request* request, size_t index,
                                         const clinfer_tensor* tensor) {
  return guarded(
      [&] { idle(request).set_state(index, tensor_at(tensor, "state " + std::to_string(index))); });
}
