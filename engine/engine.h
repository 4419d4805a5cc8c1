// The engine's public interface: devices, models, compiled models, infer requests. It is the only
// engine header that gst/ and programs include. Everything here throws Error
// (kernels/base/error.h). No OpenCL type appears; engine/opencl.h is for applications that share
// contexts, queues and memory.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/no_answer.h"
#include "kernels/base/tensor.h"
#include "kernels/frames/frame.h"

namespace clinfer {

// ---- devices ------------------------------------------------------------------------------------

struct DeviceInfo {
  // "GPU.0", "GPU.1", "CPU.0". Integrated GPUs come before discrete ones, and each kind is in the
  // order of the platforms.
  std::string id;
  std::string name;  // CL_DEVICE_NAME
  std::string vendor, platform, driver, version;
  bool is_cpu = false, is_integrated = false;
  bool fp16 = false;  // activations are f16 unless configured otherwise
  unsigned compute_units = 0;
  uint64_t memory = 0;  // bytes of global memory
};

struct DeviceList {
  std::vector<DeviceInfo> devices;
  // "name (platform): reason" for each unusable device, and platforms without devices.
  std::vector<std::string> refused;
};

DeviceList list_devices();

// ---- configuration ------------------------------------------------------------------------------

// Types for computing. bf16: values between layers are f32; convolutions and fully connected layers
// multiply in bf16 on devices with instructions for that.
enum class Precision { automatic, f32, f16, bf16 };
// The value of INFERENCE_PRECISION: "auto", "f32", "f16" or "bf16".
const char* name_of(Precision precision);
enum class QueueHint { automatic, low, medium, high };

// A VA-API display (VADisplay) whose surfaces requests read without a copy. It must outlive every
// model compiled for it.
struct VaDisplay {
  void* handle = nullptr;  // null: none
  std::string name;        // for messages
};

// How kernels are chosen, by the GPU plug-in's names:
//   disabled      the engine's own choice, helped by the records shipped with it
//   use_existing  the records of a tuning file, which must exist
//   update        as use_existing; removes lapsed records from the file
//   create        as use_existing; measures kernels without a record and adds them to the file
//   retune        measures all kernels, whether the file has a record or not
enum class TuningMode { disabled, create, use_existing, update, retune };

// The programs and data that the cache folder stores. optimize_speed: programs and the compiled
// graph, which holds constants of the model. optimize_size: programs alone, which reveal shapes but
// no weights.
enum class CacheMode { optimize_speed, optimize_size };

// Value of Config::batch for the best batch size that `clinfer tune --pipeline` wrote to the tuning
// file; without such a record the model's own size.
inline constexpr unsigned kAutoBatch = ~0u;

struct Config {
  // "GPU" (which is "GPU.0", or a CPU device with a warning if there is no GPU), "GPU.N", "CPU"
  // (which is "CPU.0") or "CPU.N". Several devices are given as one of:
  //   MULTI:A,B   requests are spread over the devices; a free one takes the next inference
  //   AUTO:A,B    the first one, or any that is ready before; AUTO alone means GPU, CPU
  //   HETERO:A,B  each layer runs on the first device that has kernels for it
  //   BATCH:A(N)  requests of one image each share inferences of up to N images; without (N) of 8
  std::string device = "GPU";
  // Settings for one device of several, applied after all others. set() appends to them for keys
  // with a device's name in front ("GPU.1.THROUGHPUT_STREAMS").
  struct DeviceSetting {
    std::string device, key, value;
  };
  std::vector<DeviceSetting> device_settings;
  // With HETERO, draws hetero_affinity_NAME.dot and hetero_subgraphs_NAME.dot into graph_dumps_dir,
  // or into the working folder if that is not set.
  bool hetero_dump_graph_dot = false;
  // Number of streams. 0 (AUTO): as the tuning file says, else by a short measurement, whose result
  // is kept in the cache folder. More than kMostStreams are refused, because each has an arena and
  // a queue of its own.
  unsigned streams = 1;
  static constexpr unsigned kMostStreams = 64;
  // True if set() was given these, so that PERFORMANCE_HINT leaves `streams` and
  // EXECUTION_MODE_HINT leaves `precision` alone.
  bool streams_stated = false, precision_stated = false;
  unsigned batch = 0;  // images per inference; 0: the model's own number; or kAutoBatch
  // With BATCH, how long a request that was started waits for others to fill the batch.
  std::chrono::milliseconds auto_batch_timeout{1000};
  // How many plans for other shapes of open inputs (Port::open_shape) a model keeps; the one that
  // was unused longest goes first. 0: inputs have the shapes for which the model was compiled.
  unsigned shape_plans = 8;
  Precision precision = Precision::automatic;
  // True if kernels add up floats in one order, the same on every device (EXECUTION_MODE=accuracy;
  // DeviceTraits::ordered_sums). There is then no first tier, which adds up otherwise.
  bool ordered_sums = false;
  // false: the floats of a quantised model are f32 unless `precision` says f16.
  bool fp16_for_quantized_models = true;
  // false: FakeQuantize and the layers around it compute in floats, as the model states them.
  bool quantized_in_integers = true;
  // Unrolls loops whose number of iterations is known and not too large. The device launches others
  // once an iteration, where it can.
  bool unroll_loops = true;
  // Joins many kernels into one launch (a persistent kernel), on CPUs. automatic: where launches
  // cost more than the kernels' work. yes: also where it does not pay; a warning tells where it is
  // impossible.
  enum class Persistent { automatic, yes, no } persistent = Persistent::automatic;
  // The way in which the device gets an inference: as graphs of CUDA's driver interface, or launch
  // by launch in an OpenCL queue. automatic: as graphs if device and model support them. graph:
  // also warns if they do not.
  enum class Launch { automatic, graph, queue } launch = Launch::automatic;
  bool perf_count = false;  // measures the time of every step by events
  // Also plans half a batch, a quarter and so on down to one image, for InferRequest::start().
  // These plans share memory, kernels and weights with the whole batch. Not available with
  // perf_count, which measures whole batches.
  bool partial_batches = false;
  // Leaves outputs that are stored in f16 in that type, which saves converting elements that nobody
  // reads.
  bool half_outputs = false;
  // Priority among the work of the device (cl_khr_priority_hints).
  QueueHint priority = QueueHint::automatic;
  // The share of the host that the driver may use (cl_khr_throttle_hints). low: wait() sleeps.
  QueueHint throttle = QueueHint::automatic;
  // Never computes at the same time as another exclusive model of this process on this device. Has
  // one stream.
  bool exclusive = false;
  // How long the device may take for one inference, counted from when it has the work and has
  // finished everything before it. After that wait() throws NoAnswer, and so does compile() for its
  // first inference. A layer that the host computes has the same time of its own; the first tier
  // and compilers have no limit. 0: no limit.
  std::chrono::milliseconds device_timeout{10000};
  // True if begin() makes a first tier (CompileTask), unless sums are ordered. Its results differ
  // from those of the device by rounding.
  bool first_tier = true;
  bool has_first_tier() const { return first_tier && !ordered_sums; }
  unsigned max_num_threads = 0;  // for compilers and for layers on the host; 0: one for each core
  std::optional<std::string> cache_dir;  // unset: the user's cache folder; "": no cache
  // The limit of the cache folder in MiB; the files that were not used for the longest time are
  // removed. 0: no limit.
  unsigned cache_size = 2048;
  // Unset: optimize_speed; optimize_size for models that were read from memory.
  std::optional<CacheMode> cache_mode;
  // Turns the picture input into two inputs: see CompiledModel::inputs().
  bool nv12_two_inputs = false;
  VaDisplay va_display;  // makes the model use this display's device and a context on it
  // XML files, separated by spaces, that describe operations with kernels of the user. A name with
  // spaces is in double quotes. Model::read() takes it (see config_files()). "": none.
  std::string config_file;
  bool dump_kernels = false;      // writes the sources of those kernels into the working folder
  std::string graph_dumps_dir;    // Graphviz files after each pass; "": none
  std::string sources_dumps_dir;  // program sources with their build logs; "": none
  // Unset: use_existing if there is a tuning_file; a name of a missing file is then only a warning.
  std::optional<TuningMode> tuning_mode;
  std::string tuning_file;    // required by all stated modes except disabled
  bool tuning_db = true;      // uses the records shipped with the engine
  double tuning_seconds = 0;  // rough limit for measuring kernels; 0: until the search is complete
  bool tuning_exhaustive = false;  // measures every point of every kernel that can win

  // Sets a value by the key of OpenVINO's GPU plug-in ("GPU_THROUGHPUT_STREAMS", with or without
  // the prefix "KEY_", CLDNN_ spellings, "INFERENCE_PRECISION"). Throws Error{bad_argument}, which
  // lists the keys or the values that are allowed.
  void set(const std::string& key, const std::string& value);
  // Sets "KEY=VALUE,KEY=VALUE"; spaces around the parts are ignored. Throws as set() does, and
  // Error{bad_argument} for a part without '='.
  void set_all(const std::string& settings);

  // Returns all files to give Model::read(): config_file, and those for one device of HETERO
  // ("GPU.1.CONFIG_FILE"), whose kernels only that device then has.
  std::string config_files() const {
    std::string files = config_file;
    for (const DeviceSetting& setting : device_settings)
      if (setting.key == "CONFIG_FILE") files += (files.empty() ? "" : " ") + setting.value;
    return files;
  }

  // Returns the stated mode, or the one that follows from the tuning file.
  TuningMode tuning_mode_in_force() const;
};

// ---- models -------------------------------------------------------------------------------------

// An input or output. Shapes and types are those of the model's file (mostly NCHW).
struct Port {
  // The name of the Parameter, or of the layer that feeds the Result. If that layer has several
  // outputs or feeds several Results, the name of the tensor.
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<std::string> tensor_names;  // further names that the file gives to this tensor
  bool any_size = false;                  // the last two dimensions may have any size
  bool open_width = false;  // the width was open and comes from InputShapes::open_width
  // For an input whose shape the model's file leaves open: that shape, with -1 for each open
  // dimension, which may differ in each inference (InferRequest::set_input()). Else empty.
  Shape open_shape = {};
};

// Shapes for inputs whose shapes the model's file leaves open, or to be used instead of those that
// it states.
struct InputShapes {
  int width = 0, height = 0;  // of the first input that takes a picture; 0: the model's own
  std::vector<std::pair<std::string, Shape>> inputs;  // full shapes, by number, name or tensor name
  // Gives a picture whose width is still open that of a line of text, about 7 times its height.
  bool open_width = false;

  // Adds "640x480", "?x48" (an open width), or "INDEX_OR_NAME=D,D,...". Throws Error{bad_argument}
  // for anything else.
  void add(const std::string& text);
  bool empty() const { return width == 0 && height == 0 && inputs.empty(); }
};

class Graph;  // internal to the engine

// A model as read: immutable, shareable between threads.
class Model {
 public:
  // Reads an OpenVINO IR (.xml, and the .bin beside it) or an ONNX model (.onnx, and the weights
  // that it names). Returns the same model again while it is alive and its files have not changed.
  // Shapes of other tensors follow from those of the inputs. `config_file`: see
  // Config::config_file. Throws Error{not_found, bad_model, unsupported}, and Error{bad_argument}
  // for shapes that name no input.
  static std::shared_ptr<const Model> read(const std::string& path, const InputShapes& shapes = {},
                                           const std::string& config_file = {});
  // Reads a model from memory, which is copied: the text of an OpenVINO IR and the bytes of its
  // weights, or an ONNX model without external data. `name` stands for the path in messages;
  // nothing is looked for beside it. Throws as the function above.
  static std::shared_ptr<const Model> read_bytes(std::span<const std::byte> model,
                                                 std::span<const std::byte> weights,
                                                 const std::string& name,
                                                 const InputShapes& shapes = {},
                                                 const std::string& config_file = {});
  // If the graph begins with a conversion of planes to a picture (NV12toRGB and the like, as
  // OpenVINO's preprocessing adds them), returns a model that takes that picture [N,H,W,3] (or
  // [1,...] for a picture without a batch axis), with its colours ("RGB", "BGR") in rt_info under
  // kColorsOfPlanes. Otherwise returns `model`.
  static std::shared_ptr<const Model> with_picture(const std::shared_ptr<const Model>& model);
  static constexpr const char* kColorsOfPlanes = "colors_of_planes";
  // The key in rt_info of the largest value that the graph expects of a pixel ("1", "255"), if its
  // first operations tell.
  static constexpr const char* kRangeOfPicture = "range_of_picture";
  virtual ~Model() = default;

  virtual const std::string& path() const = 0;
  // Made by read_bytes(); path() is then a name.
  virtual bool is_from_memory() const { return false; }
  virtual const std::string& name() const = 0;
  // Inputs and outputs in the order of the Parameter and Result layers in the file.
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  // Values that the model keeps from one inference of a request to its next (ReadValue and Assign
  // of an IR): the variables' names, types and shapes. They are no inputs and outputs.
  virtual const std::vector<Port>& states() const {
    static const auto& none = *new const std::vector<Port>;
    return none;
  }
  // The values of the leaves below <rt_info>, with keys joined by '/': "model_info/labels" ->
  // "background face". For an ONNX model, "metadata_props/KEY" and the model_info that follows from
  // these.
  virtual const std::map<std::string, std::string>& rt_info() const = 0;
  // Returns one line for each choice that the reader made where the file leaves something open, and
  // how to set it.
  virtual const std::vector<std::string>& notes() const = 0;
  // Returns the type of the operation that produces output i ("DetectionOutput"), for choosing a
  // decoder.
  virtual const std::string& output_op(size_t i) const = 0;
  // Returns that operation's attributes.
  virtual const std::map<std::string, std::string>& output_op_attributes(size_t i) const = 0;
  virtual const Graph& graph() const = 0;  // for the engine itself
};

// ---- compiled models ----------------------------------------------------------------------------

// Called while a model compiles, with the current activity, the number of parts that are done and
// of all parts. Returns false to cancel; compile() then throws Error{cancelled}.
using Progress = std::function<bool(const std::string& what, size_t done, size_t of)>;

// A layer of the model, or a copy that the engine has added, with mean times per inference. Rows of
// type "Transfer" are no layers: "(upload)", "(preprocess)", "(download)", and "(gaps)", during
// which the device waits. Without overlap the rows add up to the time of one inference.
struct StepProfile {
  enum class Status { executed, optimized_out, not_run };
  // kernel: family and point; or "host" and the largest number of threads ("host, 4 threads").
  std::string layer, type, kernel;
  double device_us = 0;
  double host_us = 0;  // for steps that run on the host
  Status status = Status::executed;
  // For layers that are not executed: the layer that they were fused into, or "" and the reason.
  std::string fused_into = {}, reason = {};
};

std::string name_of(StepProfile::Status status);  // "EXECUTED", "OPTIMIZED_OUT", "NOT_RUN"

// The progress of measuring. Times are of one execution of the layer.
struct TuningStatus {
  std::string layer;
  // Index of this layer, and the number of layers to measure. index == layers means that all are
  // measured, and that the whole network is compared with the untuned one.
  size_t index = 0, layers = 0;
  size_t tried = 0;                    // kernels measured for this layer
  double default_ns = 0, best_ns = 0;  // 0: not known yet
  double seconds = 0;                  // since the start
  double seconds_left = 0;             // an estimate; 0 while there is none
};
// Called several times a second while kernels are measured. Returns false to stop; the file then
// keeps the results so far, and compile() throws Error{cancelled}.
using TuningObserver = std::function<bool(const TuningStatus&)>;

// The kernel of a layer that has several kernels to choose from.
struct LayerTuning {
  enum class Source { untuned, file, shipped, measured };
  std::string layer, type;
  std::string op;  // the key of the record
  Source source = Source::untuned;
  std::string kernel, default_kernel;  // family and point, in use and without tuning
  double ns = 0, default_ns = 0;       // of both, measured alternately; 0 if not known
  size_t tried = 0;                    // kernels measured by this run
  // Why a record in the file no longer applies; "" if it does, or there is none.
  std::string lapsed;
  std::vector<std::string> failed;  // kernels that did not build, run or verify, and why
};

std::string name_of(LayerTuning::Source source);  // "untuned", "file", "shipped", "measured"

struct TuningReport {
  TuningMode mode = TuningMode::disabled;
  std::string file;
  size_t hits = 0, misses = 0;  // layers whose record was in the file, and other layers
  size_t lapsed = 0;            // misses with a record that no longer applies
  size_t shipped = 0;           // misses with a shipped record
  size_t measured = 0;          // layers measured by this run
  // Untuned layers whose kernels a cost model chose, because no record for such a device is
  // shipped. Its estimates were not compared with measurements on this device.
  size_t modelled = 0;
  // Layers that became untuned again, because their measured kernels were faster alone but not in
  // the network.
  size_t taken_back = 0;
  // Time of the untuned network divided by the tuned one's, measured alternately; 0 if no kernel
  // changed.
  double gain = 0;
  double seconds = 0;               // spent on measuring
  std::vector<LayerTuning> layers;  // in the order of execution
};

class InferRequest;

// A VA-API surface as OpenCL images, read without a copy. Does not keep the surface alive: it must
// not be used once the surface is destroyed. Thread-safe.
class ImportedSurface {
 public:
  virtual ~ImportedSurface() = default;
  // The size in pixels of the picture that both planes hold. (Some drivers round the chroma planes
  // of odd sizes down.)
  virtual int width() const = 0;
  virtual int height() const = 0;
  virtual void wait() = 0;  // sleeps until no request reads it
};

// The kind of memory that a file descriptor stands for: a DMA-BUF, or memory that another interface
// of the device's own driver exports (CUDA, Vulkan).
enum class MemoryHandle { dmabuf, opaque };

// Memory of another interface as an OpenCL buffer, read without a copy. Keeps the memory alive.
// Thread-safe.
class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;
  virtual size_t bytes() const = 0;
  virtual void wait() = 0;  // sleeps until no request reads it
};

// The planes of a picture in imported memory: plane p begins at byte offsets[p] of memories[p]. One
// memory may hold several planes; planes that the format lacks have none.
struct ImportedPlanes {
  std::array<std::shared_ptr<ImportedMemory>, 3> memories;
  std::array<size_t, 3> offsets{};
};

// Host memory from which the device fetches frames while it does other work; frames in other memory
// are copied first. Does not keep the model alive. Thread-safe.
class FrameMemory {
 public:
  virtual ~FrameMemory() = default;
  virtual std::byte* data() const = 0;  // not initialised
  virtual size_t bytes() const = 0;
};

// The processor that computes a model: the device (full), or the host until the device's kernels
// are compiled (first).
enum class Tier { first, full };

// A device that computes a model, or a part of it.
struct DeviceUse {
  DeviceInfo device;
  // Number of inferences that the device has finished for this model. Outlives the model.
  std::shared_ptr<const std::atomic<uint64_t>> inferences;
};

// The progress of a compilation.
struct CompileProgress {
  std::string what;  // "building kernels"; "" at first
  size_t step = 0, of = 0;
  std::optional<TuningStatus> tuning;  // set while kernels are measured
};

// A compilation on a thread of its own. Thread-safe. The destructor cancels the compilation and
// waits for its end, which takes less than a second.
class CompileTask {
 public:
  virtual ~CompileTask() = default;

  // Returns the best model so far, null at first. Before the wanted model there may be others,
  // which stay usable as long as somebody holds them:
  // - the first tier, where kernels have to be compiled (what the cache holds is there as soon), but not
  //   for models that are tuned or whose layers are timed. It is a model of its own with the same inputs
  //   and outputs (but see compile_first_tier()), in f32; it imports no surfaces.
  // - with MULTI and AUTO, the model of a device that is ready before those that are wanted more.
  // Throws the error with which the compilation failed.
  virtual std::shared_ptr<class CompiledModel> newest() const = 0;
  // Returns whether newest() is final: the wanted model, or a failure.
  virtual bool is_over() const = 0;
  // Blocks until newest() is another model than `known`, the task is over, or `timeout` has passed.
  virtual void wait_for_change(const std::shared_ptr<class CompiledModel>& known,
                               std::optional<std::chrono::milliseconds> timeout = {}) const = 0;
  // Blocks until the task is over and returns the wanted model. Throws as newest() does.
  virtual std::shared_ptr<class CompiledModel> wait() const = 0;
  virtual CompileProgress progress() const = 0;
  // Ends the compilation soon, by Error{cancelled}. Does not block.
  virtual void cancel() = 0;
};

// A model compiled for a device. Immutable; may be shared between threads. Its requests keep it
// alive.
class CompiledModel {
 public:
  // Compiles on the calling thread. With AUTO, returns the model of the device that is ready first.
  // A device that cannot be used is only a warning if others are left.
  static std::shared_ptr<CompiledModel> compile(std::shared_ptr<const Model> model,
                                                const Config& config, const Progress& progress = {},
                                                const TuningObserver& observer = {});
  // Compiles on a thread of its own. With AUTO, the first device's model is the last of several.
  // Throws Error{out_of_memory} if no thread can be started; all other errors are thrown by the
  // task.
  static std::unique_ptr<CompileTask> begin(std::shared_ptr<const Model> model,
                                            const Config& config);
  // Makes the first tier alone, which takes milliseconds. With `partial_batches` it computes one
  // image if the model allows that. Throws Error{unsupported} if inferences would take too long or
  // an operation has no version for the host.
  static std::shared_ptr<CompiledModel> compile_first_tier(std::shared_ptr<const Model> model,
                                                           const Config& config);
  virtual ~CompiledModel() = default;

  virtual Tier tier() const { return Tier::full; }
  virtual const Model& model() const = 0;
  // For several devices: all their names joined by " + ", and what they have in common.
  virtual const DeviceInfo& device() const = 0;
  virtual std::vector<DeviceUse> devices() const = 0;
  // Inputs and outputs, with the batch applied to their shapes. With Config::nv12_two_inputs the
  // picture input NAME becomes two inputs of u8: NAME_Y [N,1,H,W] and NAME_UV [N,2,H/2,W/2] (planes
  // U and V; halves are rounded up). Their height and width are arbitrary (Port::any_size): the
  // device resizes the picture and converts it to BGR or grey (BT.601, 16..235).
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  virtual unsigned streams() const = 0;
  // Two for each stream, or the number in the tuning file.
  virtual unsigned optimal_requests() const = 0;
  // f32 or f16: the type in which activations are stored. bf16: activations are f32, products are
  // computed in bf16.
  virtual Precision precision() const = 0;
  // The way in which the device gets an inference (Config::launch): "graph", or "queue", with the
  // reason in brackets if graphs were wanted. Single inferences of a model with graphs may use the
  // queue.
  virtual std::string launch() const { return "queue"; }
  // The hints in force; automatic if the device does not support the hint.
  virtual QueueHint priority() const = 0;
  virtual QueueHint throttle() const = 0;
  // Settings that have no effect on this device, one line each.
  virtual const std::vector<std::string>& warnings() const = 0;
  // Returns failures since the last call that do not stop inferences, such as a device of several
  // that is left out. Each is returned once. Cheap enough to be called after each inference.
  virtual std::vector<std::string> take_problems() { return {}; }
  virtual size_t kernel_count() const = 0;  // launches of one inference
  virtual double load_ms() const = 0;       // duration of compile()
  virtual const TuningReport& tuning() const = 0;
  virtual size_t cached_programs() const = 0;  // number of programs found in the cache
  virtual size_t built_programs() const = 0;   // number of programs compiled
  // Returns the shapes of all inputs for each plan that set_input() has led to and that is still
  // kept, the one that was used last first. Thread-safe.
  virtual std::vector<std::vector<Shape>> shape_plans() const { return {}; }
  // Makes a request. Request i is bound to stream i mod streams(). Streams of several devices take
  // turns.
  virtual std::unique_ptr<InferRequest> create_request() = 0;
  // Returns whether start() and wait() do work on the calling thread: copy frames to the device, or
  // pass tensors from one device to the next. If so, each request should have a thread.
  virtual bool wants_thread_per_request() const { return !device().is_cpu; }
  // Returns why surfaces of Config::va_display cannot be imported; "" if they can, or if there is
  // no display.
  virtual const std::string& sharing_problem() const = 0;
  // Imports an NV12 surface of that display, by its VASurfaceID, for requests of this model. The
  // images live until the last holder releases them, and at most as long as the model. Throws
  // Error{device_failed, bad_argument}.
  virtual std::shared_ptr<ImportedSurface> import_surface(unsigned id) = 0;
  // Reads the picture as a network would, and compares it with `expected`, the same picture in host
  // memory. Returns "" if they agree within 1 of 255, else a description of the first difference.
  virtual std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                                    const Frame& expected) = 0;
  // Returns why memory of this kind cannot be imported; "" if it can.
  virtual const std::string& import_problem(MemoryHandle kind) const = 0;
  // Imports the first `bytes` bytes of the memory behind `fd`, which stays the caller's, for
  // requests of this model. The buffer lives until the last holder releases it, and at most as long
  // as the model. Throws Error{device_failed, bad_argument}.
  virtual std::shared_ptr<ImportedMemory> import_memory(MemoryHandle kind, int fd,
                                                        size_t bytes) = 0;
  // Compares as check_surface() does. The strides of `picture` describe the memory; `expected` may
  // have others.
  virtual std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                                   const Frame& expected) = 0;
  // Returns whether the device fetches frames faster from frame memory than from other host memory.
  virtual bool wants_frame_memory() const = 0;
  // Allocates frame memory, uninitialised. Throws Error{out_of_memory, device_failed}.
  virtual std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) = 0;
  // Returns whether requests of this model can read frames in that memory. They can if a model on a
  // device of the same driver allocated it.
  virtual bool fetches_from(const FrameMemory& memory) const = 0;
  // Returns all layers: those that are executed in order, each followed by the layers fused into
  // it, then the others. Throws Error{bad_argument} unless perf_count was set.
  virtual std::vector<StepProfile> profile() const = 0;
};

// ---- infer requests -----------------------------------------------------------------------------

// One inference in flight, with buffers of its own, for one thread at a time. The cycle is: set
// inputs, start(), wait(), read outputs. An input, or an image of it, stays set until it is set
// again. Tensors are copied by set_input(); frames in host memory are read until wait() returns.
// Memory of the device, and that of input_memory(), is read by each start(). A function that throws
// leaves the earlier value. start() throws Error{bad_argument} if a frame is lost, because the
// inference that it was set for did not begin or its memory on the device was released.
class InferRequest {
 public:
  // Waits for the inference in flight, but only briefly: memory that a device which does not answer
  // still uses stays allocated until the end of the process.
  virtual ~InferRequest() = default;

  // Copies a value for input `index`, of the model's shape; its type is converted if it differs. To
  // be called while idle. Open dimensions (Port::open_shape) may have another size: the next
  // start() then runs a plan for the shapes of all inputs, which it compiles first if there is none
  // (Config::shape_plans), while other requests go on. Outputs have the shapes that follow.
  virtual void set_input(size_t index, const Tensor& value) = 0;
  // Returns host memory for input `index`: dense and row-major, of the port's type and shape,
  // initially zero. It may be written while the request is idle; each later start() reads it, until
  // another function sets that input. If the input is stored as the port states it, the device
  // fetches from this memory without a copy on the host. Lives as long as the request. Throws
  // Error{unsupported} for a plane of Config::nv12_two_inputs, whose size is open.
  virtual std::span<std::byte> input_memory(size_t index) = 0;
  // Ends the inference in flight as soon as the device has finished what it has begun; wait() then
  // throws Error{cancelled}. Any thread may call this at any time. start() begins anew.
  virtual void cancel() = 0;

  // Converts a video frame in host memory into image `image` of the batch of input `index`, on the
  // device: crop, resize, colours, mean and scale, layout and type in one kernel. The frame's
  // memory must stay valid until wait() has returned. `memory`: the frame memory that holds all
  // planes, or nullptr. Returns the frame's position in the network's input, for mapping results
  // back. Throws Error{bad_argument} if `memory` does not hold the planes or the model does not
  // fetch from it.
  virtual Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                              size_t image = 0, const FrameMemory* memory = nullptr) = 0;

  // Sets a frame as set_frame() does, from a surface that the request's own model imported.
  // `picture` gives format (NV12), size, colours and region; its planes are ignored. Enqueues the
  // kernel at once, with the surface acquired for it alone; start() does so again for each later
  // inference. The request keeps no reference: callers who start again must hold `surface` until
  // then. The surface must not be destroyed before ImportedSurface::wait() has returned. Also
  // throws the driver's errors about the surface.
  virtual Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                const Frame& picture, const FrameTransform& transform,
                                size_t image = 0) = 0;

  // Sets a frame as set_surface() does, from memory that the request's own model imported; the
  // pointers of `picture` are ignored. The memory must not be written or released before
  // ImportedMemory::wait() has returned. Throws Error{bad_argument} if the picture exceeds the
  // memory.
  virtual Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                               const FrameTransform& transform, size_t image = 0) = 0;

  // Enqueues the inference and returns at once. `images`: how many images of the batch are wanted,
  // from the first on; 0: all. With Config::partial_batches no more than the next power of two are
  // computed, and the outputs have that many images; else all images are computed.
  virtual void start(size_t images = 0) = 0;
  // Sleeps until the inference has finished. Returns true then (results can be read), false after
  // `timeout`. Throws the error with which the inference failed; the request is idle and usable
  // again afterwards. After NoAnswer (kernels/base/no_answer.h), however, the inference is still in
  // flight, and its frames must stay valid; wait() returns true, without results, once the device
  // is done.
  virtual bool wait(std::optional<std::chrono::milliseconds> timeout = {}) = 0;
  // Returns, after wait(), whether a device that did not answer may still read the frames of this
  // inference, which another device of MULTI has repeated. The frames must then stay valid until
  // the end of the process.
  virtual bool keeps_frames() const { return false; }

  // Returns output `index` after wait(): dense, row-major, with the model's shape and type, but
  // floats are f32 (with Config::half_outputs f32 or f16). The reference is valid until the next
  // start(); a copy, which shares the elements, stays valid.
  virtual const Tensor& output(size_t index) const = 0;

  // ---- states (Model::states()), each with a value for every request. To be called while idle.

  // Gives all states their initial values, which the model states; they have them at first, too. To
  // be called where another sequence begins, such as a cut in a video.
  virtual void reset_states() {}
  // Returns a copy of the state's value, which the last inference that succeeded has left: dense,
  // with the model's shape and type, but floats are f32. Throws Error{bad_argument} for a state
  // that the next inference computes from its inputs, because it is new.
  virtual Tensor state(size_t index) const { throw no_state(index); }
  // Sets a state, as by an inference; the type is converted if it differs.
  virtual void set_state(size_t index, const Tensor&) { throw no_state(index); }

 protected:
  static Error no_state(size_t index) {
    return {ErrorCode::bad_argument, "there is no state " + std::to_string(index)};
  }
};

}  // namespace clinfer
