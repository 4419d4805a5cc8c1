// The engine's public face, the only engine header that gst/ and programs include: devices, models,
// compiled models, infer requests. Everything here throws Error (kernels/base/error.h). No OpenCL
// type appears: engine/opencl.h is for applications that share contexts, queues and memory.
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
  // "GPU.0", "GPU.1", "CPU.0": integrated GPUs first, then discrete ones, in the platforms' order.
  std::string id;
  std::string name;  // CL_DEVICE_NAME
  std::string vendor, platform, driver, version;
  bool is_cpu = false, is_integrated = false;
  bool fp16 = false;  // activations are f16 by default
  unsigned compute_units = 0;
  uint64_t memory = 0;  // bytes of global memory
};

struct DeviceList {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> refused;  // "name (platform): reason", and platforms without devices
};

DeviceList list_devices();

// ---- configuration ------------------------------------------------------------------------------

// bf16: values between layers are f32, products in convolutions and fully connected layers are of
// bf16, where the device has instructions for them.
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

// The cache folder gets programs and the compiled graph, which holds constants of the model, or
// programs alone, which tell shapes and no weights.
enum class CacheMode { optimize_speed, optimize_size };

// Config::batch: the best batch size that `clinfer tune --pipeline` found and kept in the tuning
// file, else the one that the model states.
inline constexpr unsigned kAutoBatch = ~0u;

struct Config {
  // "GPU" (which is "GPU.0", or a CPU device with a warning if there is no GPU), "GPU.N", "CPU"
  // (which is "CPU.0") or "CPU.N". Or several of them:
  //   MULTI:A,B   each request belongs to a device; whichever is free takes the next inference
  //   AUTO:A,B    the first one, and until it is ready, whichever is; AUTO alone: GPU, CPU
  //   HETERO:A,B  parts of the network on each: what the first one has no kernels for on the next
  std::string device = "GPU";
  // Settings of one device of several, which take effect after the others. set() adds to them what
  // has a device's name in front ("GPU.1.THROUGHPUT_STREAMS").
  struct DeviceSetting {
    std::string device, key, value;
  };
  std::vector<DeviceSetting> device_settings;
  // HETERO: draws hetero_affinity_NAME.dot and hetero_subgraphs_NAME.dot into graph_dumps_dir, or
  // where that is not set into the working folder.
  bool hetero_dump_graph_dot = false;
  // 0: AUTO: as the tuning file says, else by a short measurement, kept in the cache folder. More
  // than kMostStreams of a device are refused: each has an arena and a queue of its own.
  unsigned streams = 1;
  static constexpr unsigned kMostStreams = 64;
  // Whether set() was told these, so that PERFORMANCE_HINT leaves `streams` and EXECUTION_MODE_HINT leaves
  // `precision` alone.
  bool streams_stated = false, precision_stated = false;
  unsigned batch = 0;  // images per inference; 0: as the model states; or kAutoBatch
  Precision precision = Precision::automatic;
  // false: the floats of a quantised model are f32 unless `precision` says f16.
  bool fp16_for_quantized_models = true;
  // false: FakeQuantize and what is around it compute in floats, as the model states them
  bool quantized_in_integers = true;
  // Unrolls loops whose number of iterations is known and not too large. The device launches others
  // once an iteration, where it can.
  bool unroll_loops = true;
  // One launch for many kernels (a persistent kernel). automatic: where the device can and launches
  // cost more than what they compute. yes: also where it does not pay; a device whose work-groups
  // cannot wait for each other computes in a single one.
  enum class Persistent { automatic, yes, no } persistent = Persistent::automatic;
  // How the device gets an inference: as graphs of CUDA's driver interface, or launch by launch in an OpenCL
  // queue. automatic: as graphs where device and model have them. graph: warns where they have not.
  enum class Launch { automatic, graph, queue } launch = Launch::automatic;
  bool perf_count = false;  // event timing of every step
  // Also plans half a batch, a quarter and so on down to one image, for InferRequest::start(). They
  // share memory, kernels and weights with the whole one. Not with perf_count, whose times are of
  // whole batches.
  bool partial_batches = false;
  // Outputs stored in f16 are given in f16, which saves converting all elements where few are read.
  bool half_outputs = false;
  // Priority among the work of the device (cl_khr_priority_hints).
  QueueHint priority = QueueHint::automatic;
  // The driver's use of the host (cl_khr_throttle_hints); low: wait() sleeps.
  QueueHint throttle = QueueHint::automatic;
  // Never runs beside another exclusive model of the process on this device; one stream.
  bool exclusive = false;
  // How long the device may take for one inference, counted from when it has the work and is done
  // with what was before it; then wait() throws NoAnswer, as does compile() of the first one. A layer
  // that the host computes has as long for itself; the first tier and compilers have no limit. 0:
  // for ever.
  std::chrono::milliseconds device_timeout{10000};
  // Whether begin() gives a first tier (CompileTask). Its results differ from those of the device
  // by rounding.
  bool first_tier = true;
  unsigned max_num_threads = 0;          // of compilers and of layers on the host; 0: all cores
  std::optional<std::string> cache_dir;  // unset: the user's cache folder; "": no cache
  // MiB that the cache folder may hold; what was not used for the longest time goes first. 0: no
  // limit.
  unsigned cache_size = 2048;
  // Unset: optimize_speed; optimize_size for models that were read from memory.
  std::optional<CacheMode> cache_mode;
  bool nv12_two_inputs = false;  // the picture input is two: see CompiledModel::inputs()
  VaDisplay va_display;          // the device is the display's, the context is on it
  // XML files that describe operations with kernels of the user's own, separated by spaces; a name
  // with spaces in double quotes. Model::read() takes it. "": none.
  std::string config_file;
  bool dump_kernels = false;      // the sources of those kernels, into the working folder
  std::string graph_dumps_dir;    // Graphviz files after each pass; "": none
  std::string sources_dumps_dir;  // program sources with their build logs; "": none
  // Unset: use_existing where there is a tuning_file. A name of a file that does not exist is a
  // warning then.
  std::optional<TuningMode> tuning_mode;
  std::string tuning_file;    // needed by all stated modes but disabled
  bool tuning_db = true;      // records shipped with the engine count
  double tuning_seconds = 0;  // about how long kernels are measured; 0: until the search is through
  bool tuning_exhaustive = false;  // measure every point of every kernel that can win

  // Sets a value by the GPU plug-in's key ("GPU_THROUGHPUT_STREAMS", "KEY_" prefix allowed, CLDNN_
  // spellings too, "INFERENCE_PRECISION"). Throws Error{bad_argument} that lists the keys or the
  // values allowed.
  void set(const std::string& key, const std::string& value);
  // Sets "KEY=VALUE,KEY=VALUE"; spaces around the parts do not count. Throws as set(), and
  // Error{bad_argument} on a part without '='.
  void set_all(const std::string& settings);

  // The stated mode; unless one is stated, what follows from the file.
  TuningMode tuning_mode_in_force() const;
};

// ---- models -------------------------------------------------------------------------------------

// One input or output. Shapes and types are as the model's file states them (NCHW mostly).
struct Port {
  // The name of the Parameter, or of the layer that feeds the Result; where that layer feeds several
  // or has several outputs, the name of the tensor.
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<std::string> tensor_names;  // further names that the file gives to this tensor
  bool any_size = false;                  // the last two dimensions may be others
  bool open_width = false;                // what InputShapes::open_width has filled in
};

// Shapes that inputs get where the model's file leaves them open, or instead of those that it
// states.
struct InputShapes {
  int width = 0, height = 0;  // of the first input that takes a picture; 0: as the model states
  std::vector<std::pair<std::string, Shape>> inputs;  // by number, name or tensor name: in full
  // A picture whose width is still open then gets that of a line of text, about 7 times its height.
  bool open_width = false;

  // "640x480", "?x48" (an open width), or "INDEX_OR_NAME=D,D,...". Throws Error{bad_argument}.
  void add(const std::string& text);
  bool empty() const { return width == 0 && height == 0 && inputs.empty(); }
};

class Graph;  // the engine's own

// A model as read: immutable, shareable between threads.
class Model {
 public:
  // Reads an OpenVINO IR (.xml, and the .bin beside it) or an ONNX model (.onnx, and the weights
  // that it names). Returns the same model again while it is alive and its files have not changed.
  // Other shapes follow from those of the inputs. Throws Error{not_found, bad_model, unsupported},
  // and Error{bad_argument} for shapes that name no input.
  // `config_file`: as Config::config_file.
  static std::shared_ptr<const Model> read(const std::string& path, const InputShapes& shapes = {},
                                           const std::string& config_file = {});
  // Reads a model from memory, which is copied: the text of an OpenVINO IR and the bytes of its weights, or an
  // ONNX model without external data. `name` stands for the path in messages; nothing is looked for beside
  // it. Throws as the function above.
  static std::shared_ptr<const Model> read_bytes(std::span<const std::byte> model,
                                                 std::span<const std::byte> weights,
                                                 const std::string& name,
                                                 const InputShapes& shapes = {},
                                                 const std::string& config_file = {});
  // Where the graph begins with the conversion of planes to a picture (NV12toRGB and its kin, as OpenVINO's
  // preprocessing writes them): the model that takes that picture [N,H,W,3] itself, with its colours ("RGB",
  // "BGR") in rt_info under kColorsOfPlanes; for a picture without batch axis, [1,...]. Else the model itself.
  static std::shared_ptr<const Model> with_picture(const std::shared_ptr<const Model>& model);
  static constexpr const char* kColorsOfPlanes = "colors_of_planes";
  virtual ~Model() = default;

  virtual const std::string& path() const = 0;
  virtual bool is_from_memory() const { return false; }  // by read_bytes(); path() is a name then
  virtual const std::string& name() const = 0;
  // In the order of the Parameter and Result layers in the file.
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  // The leaf values below <rt_info>, keys joined by '/': "model_info/labels" -> "background face".
  // Of an ONNX model its "metadata_props/KEY", and the model_info that follows from them.
  virtual const std::map<std::string, std::string>& rt_info() const = 0;
  // Choices of the reader where the file leaves something open, and how to set it: one line each.
  virtual const std::vector<std::string>& notes() const = 0;
  // Type of the operation that produces output i ("DetectionOutput"), for choosing a decoder.
  virtual const std::string& output_op(size_t i) const = 0;
  // Attributes of that operation.
  virtual const std::map<std::string, std::string>& output_op_attributes(size_t i) const = 0;
  virtual const Graph& graph() const = 0;  // for the engine itself
};

// ---- compiled models ----------------------------------------------------------------------------

// Called while a model compiles, with the current activity, the number of parts done and of all
// parts. Return false to cancel: compile throws Error{cancelled}.
using Progress = std::function<bool(const std::string& what, size_t done, size_t of)>;

// A layer of the model, or a copy that the engine has added, with mean times per inference. Rows of
// type "Transfer" are not layers: "(upload)", "(preprocess)", "(download)", and "(gaps)", in which
// the device waits. All rows add up to the time of one inference where none overlap.
struct StepProfile {
  enum class Status { executed, optimized_out, not_run };
  // kernel: family and point, or "host" with the largest number of threads: "host, 4 threads"
  std::string layer, type, kernel;
  double device_us = 0;
  double host_us = 0;  // of steps that run on the host
  Status status = Status::executed;
  // Of layers that are not executed: the layer that they were fused into, else "" and the reason.
  std::string fused_into = {}, reason = {};
};

std::string name_of(StepProfile::Status status);  // "EXECUTED", "OPTIMIZED_OUT", "NOT_RUN"

// The progress of a tuning run. Times are of one execution of the layer.
struct TuningStatus {
  std::string layer;
  // Number of this layer, from 0, and the number of layers to be measured. index == layers: all are
  // measured, and the whole network is compared with the untuned one.
  size_t index = 0, layers = 0;
  size_t tried = 0;                    // kernels timed for this layer
  double default_ns = 0, best_ns = 0;  // 0: not known yet
  double seconds = 0;                  // since the start
  double seconds_left = 0;             // an estimate; 0 while there is none
};
// Called several times a second while kernels are measured. Returning false ends that: the file
// keeps the results so far, and compile throws Error{cancelled}.
using TuningObserver = std::function<bool(const TuningStatus&)>;

// The kernel of one layer that has a choice of kernels.
struct LayerTuning {
  enum class Source { untuned, file, shipped, measured };
  std::string layer, type;
  std::string op;  // the key of the record
  Source source = Source::untuned;
  std::string kernel, default_kernel;  // family and point: in use, and without tuning
  double ns = 0, default_ns = 0;       // of both, as measured side by side; 0 where not known
  size_t tried = 0;                    // kernels timed, by this run
  // Why a record in the file no longer counts; "" where none lapsed.
  std::string lapsed;
  std::vector<std::string> failed;  // kernels that did not build, run or verify, and why
};

std::string name_of(LayerTuning::Source source);  // "untuned", "file", "shipped", "measured"

struct TuningReport {
  TuningMode mode = TuningMode::disabled;
  std::string file;
  size_t hits = 0, misses = 0;  // layers whose record was in the file, and others
  size_t lapsed = 0;            // misses with a record that no longer counts
  size_t shipped = 0;           // misses with a shipped record
  size_t measured = 0;          // layers measured by this run
  // Untuned layers, where no shipped record is of such a device: a model of times chose their kernels,
  // which was not compared with measurements there.
  size_t modelled = 0;
  // Measured layers that are untuned again: their kernels are faster alone, but not in the network.
  size_t taken_back = 0;
  // Time of the untuned network over the tuned one's, measured alternately; 0: no kernel changed.
  double gain = 0;
  double seconds = 0;               // spent on measuring
  std::vector<LayerTuning> layers;  // in the order of execution
};

class InferRequest;

// A VA-API surface as OpenCL images, read without a copy. Holds nothing of VA-API: it must not be
// used once its surface is destroyed. Thread-safe.
class ImportedSurface {
 public:
  virtual ~ImportedSurface() = default;
  // The picture that both planes hold, in pixels: chroma planes of odd sizes are rounded down by
  // some drivers.
  virtual int width() const = 0;
  virtual int height() const = 0;
  virtual void wait() = 0;  // until no request reads it; sleeps
};

// The kind of a file descriptor of memory: a DMA-BUF, or memory that another interface of the device's
// own driver exports (CUDA, Vulkan).
enum class MemoryHandle { dmabuf, opaque };

// Memory of others as an OpenCL buffer, read without a copy. Holds a reference to the memory.
// Thread-safe.
class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;
  virtual size_t bytes() const = 0;
  virtual void wait() = 0;  // until no request reads it; sleeps
};

// The planes of a picture in imported memory: plane p begins at byte offsets[p] of memories[p]. One
// memory may hold several planes; planes that the format lacks have none.
struct ImportedPlanes {
  std::array<std::shared_ptr<ImportedMemory>, 3> memories;
  std::array<size_t, 3> offsets{};
};

// Host memory from which the device fetches frames while it does other work; frames elsewhere are
// copied first. Holds nothing of the model. Thread-safe.
class FrameMemory {
 public:
  virtual ~FrameMemory() = default;
  virtual std::byte* data() const = 0;  // not initialised
  virtual size_t bytes() const = 0;
};

// The processor that computes a compiled model: the device (full), or the host until the device's
// kernels are compiled (first).
enum class Tier { first, full };

// A device that computes a model, or a part of it.
struct DeviceUse {
  DeviceInfo device;
  // Inferences that it has finished for this model. Counts on after the model's end.
  std::shared_ptr<const std::atomic<uint64_t>> inferences;
};

// How far a compilation is.
struct CompileProgress {
  std::string what;  // "building kernels"; "" at first
  size_t step = 0, of = 0;
  std::optional<TuningStatus> tuning;  // while kernels are measured
};

// A compilation under way on a thread of its own. Any thread may call each function. The destructor
// cancels what is under way and waits for its end, which takes less than a second.
class CompileTask {
 public:
  virtual ~CompileTask() = default;

  // The best model so far, null at first. Before the one that was asked for there may be others, which
  // stay usable for as long as somebody holds them:
  // - the first tier, where kernels have to be compiled (what the cache holds is there as soon), but not
  //   for models that are tuned or whose layers are timed. It is a model of its own with the same inputs
  //   and outputs (but see compile_first_tier()), in f32; it imports no surfaces.
  // - with MULTI and AUTO, the model of a device that is ready before those that are wanted more.
  // Throws what compiling failed with.
  virtual std::shared_ptr<class CompiledModel> newest() const = 0;
  // Whether newest() stays what it is: the model that was asked for, or the failure.
  virtual bool is_over() const = 0;
  // Blocks until newest() is another model than `known`, or the task is over, or `timeout` is.
  virtual void wait_for_change(const std::shared_ptr<class CompiledModel>& known,
                               std::optional<std::chrono::milliseconds> timeout = {}) const = 0;
  // Blocks until the task is over and gives the model that was asked for. Throws as newest().
  virtual std::shared_ptr<class CompiledModel> wait() const = 0;
  virtual CompileProgress progress() const = 0;
  // Ends what is under way soon, by Error{cancelled}. Does not block.
  virtual void cancel() = 0;
};

// The immutable result of compilation for one device; shareable between threads. Its requests keep
// it alive.
class CompiledModel {
 public:
  // Compiles on the calling thread. With AUTO, the model of whichever device is ready first. A device
  // that cannot be used is a warning where others are left.
  static std::shared_ptr<CompiledModel> compile(std::shared_ptr<const Model> model,
                                                const Config& config, const Progress& progress = {},
                                                const TuningObserver& observer = {});
  // As above, on a thread of its own; with AUTO, the model of the first device is the last of several.
  // Throws Error{out_of_memory} where no thread can be started; all else is thrown by the task.
  static std::unique_ptr<CompileTask> begin(std::shared_ptr<const Model> model,
                                            const Config& config);
  // The first tier alone, ready in milliseconds. With `partial_batches` it is of one image where the
  // model allows that. Throws Error{unsupported} where there is none: inferences would take too long,
  // or an operation has no version for the host.
  static std::shared_ptr<CompiledModel> compile_first_tier(std::shared_ptr<const Model> model,
                                                           const Config& config);
  virtual ~CompiledModel() = default;

  virtual Tier tier() const { return Tier::full; }
  virtual const Model& model() const = 0;
  // Of several devices: all their names joined by " + ", and what they have in common.
  virtual const DeviceInfo& device() const = 0;
  virtual std::vector<DeviceUse> devices() const = 0;
  // Shapes with the batch applied. With Config::nv12_two_inputs the picture input NAME is two, each
  // u8: NAME_Y [N,1,H,W] and NAME_UV [N,2,H/2,W/2] (planes U and V; halves rounded up). Their
  // height and width may be any (Port::any_size): the picture is resized, and converted to BGR or
  // grey (BT.601, 16..235), by the device.
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  virtual unsigned streams() const = 0;
  virtual unsigned optimal_requests() const = 0;  // 2 x streams, or what the tuning file says
  // f32 or f16, as activations are stored; bf16: they are f32, and products are of bf16.
  virtual Precision precision() const = 0;
  // How the device gets an inference (Config::launch): "graph", or "queue", with the reason in brackets
  // where that is not what was wanted. Single inferences of a model with graphs may go to the queue.
  virtual std::string launch() const { return "queue"; }
  // The hints in force; automatic where the device has no such hint.
  virtual QueueHint priority() const = 0;
  virtual QueueHint throttle() const = 0;
  // Settings that have no effect on this device, one line each.
  virtual const std::vector<std::string>& warnings() const = 0;
  // Failures since the last call after which inferences go on: a device of several that is left out.
  // Each is given once. Cheap enough to be asked after each inference.
  virtual std::vector<std::string> take_problems() { return {}; }
  virtual size_t kernel_count() const = 0;  // launches of one inference
  virtual double load_ms() const = 0;       // time compile() took
  virtual const TuningReport& tuning() const = 0;
  virtual size_t cached_programs() const = 0;  // programs found in the cache, and
  virtual size_t built_programs() const = 0;   // programs built anew
  // Request i is bound to stream i mod streams(). The streams of several devices take turns.
  virtual std::unique_ptr<InferRequest> create_request() = 0;
  // Whether a thread does work of its own between start() and the end of wait(): copies frames to
  // the device, or hands tensors from one device to the next. Then each request wants a thread.
  virtual bool wants_thread_per_request() const { return !device().is_cpu; }
  // Why surfaces of Config::va_display cannot be imported; "" when they can, or when there is none.
  virtual const std::string& sharing_problem() const = 0;
  // Imports an NV12 surface of that display, by VASurfaceID, for requests of this model. Its images
  // live until the last holder releases them, at most as long as the model. Throws
  // Error{device_failed, bad_argument}.
  virtual std::shared_ptr<ImportedSurface> import_surface(unsigned id) = 0;
  // Reads the picture as a network would and compares it with `expected`, the same picture in host
  // memory. "" if they agree within 1 of 255, else the first difference.
  virtual std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                                    const Frame& expected) = 0;
  // Why memory of this kind cannot be imported; "" when it can.
  virtual const std::string& import_problem(MemoryHandle kind) const = 0;
  // Imports the first `bytes` of such memory for requests of this model. `fd` remains the caller's.
  // The buffer lives until the last holder releases it, at most as long as the model. Throws
  // Error{device_failed, bad_argument}.
  virtual std::shared_ptr<ImportedMemory> import_memory(MemoryHandle kind, int fd,
                                                        size_t bytes) = 0;
  // As check_surface(), with the strides of `picture`; `expected` may have others.
  virtual std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                                   const Frame& expected) = 0;
  // Whether the device fetches frames faster from frame memory than from other host memory.
  virtual bool wants_frame_memory() const = 0;
  // Throws Error{out_of_memory, device_failed}.
  virtual std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) = 0;
  // Whether requests of this model take frames in that memory: a model on a device of the same
  // driver allocated it.
  virtual bool fetches_from(const FrameMemory& memory) const = 0;
  // All layers, in the order of execution, each followed by those fused into it, then the others.
  // Throws Error{bad_argument} unless perf_count was set.
  virtual std::vector<StepProfile> profile() const = 0;
};

// ---- infer requests -----------------------------------------------------------------------------

// One inference in flight, with buffers of its own. Used by one thread at a time. Cycle: inputs,
// start(), wait(), outputs. An input stays as it was set until it is set anew; image by image where
// frames are set. Tensors and frames of the host count by their values: they are copied, by set_input() at
// once, of frames until wait() returns. Memory of the device, and that of input_memory(), counts by
// its content: each start() reads it again. A function that throws leaves the value of before. start()
// throws Error{bad_argument} where a frame is not there any more, since the inference that it was set for
// did not begin, or memory of the device was released.
class InferRequest {
 public:
  // Waits for what is in flight, but not for long: what a device that does not answer still uses
  // stays in memory until the end of the process.
  virtual ~InferRequest() = default;

  // Input `index` as the model states it (type converted where it differs). Copies; may be called
  // while idle only.
  virtual void set_input(size_t index, const Tensor& value) = 0;
  // Host memory for input `index`, dense and row-major, of the port's type and shape, zero at first.
  // To be written while the request is idle; counts for each later start(), until another function
  // sets that input. The device fetches from it without a copy on the host where it stores the input
  // as the port states it. Lives as long as the request. Throws Error{unsupported} for a plane of
  // Config::nv12_two_inputs, whose size is open.
  virtual std::span<std::byte> input_memory(size_t index) = 0;
  // Makes the inference in flight end as soon as the device is through with what it has begun:
  // wait() then throws Error{cancelled}. Any thread, at any time; start() begins anew.
  virtual void cancel() = 0;

  // Converts a video frame in host memory into image `image` of the batch of input `index`, on the
  // device: crop, resize, colours, mean and scale, layout and type in one kernel. The frame's
  // memory must stay valid until wait() has returned. `memory`: the frame memory that holds all
  // planes, or nullptr; throws Error{bad_argument} if it does not hold them or the model does not
  // fetch from it. Returns the frame's position in the network's input, for mapping results back.
  virtual Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                              size_t image = 0, const FrameMemory* memory = nullptr) = 0;

  // As set_frame(), from a surface that the request's own model imported. `picture` gives format
  // (NV12), size, colours and region; its planes are ignored. Enqueues the kernel at once, with the
  // surface acquired for it alone, and start() does so for each inference after that one. The request
  // keeps no reference: who starts again holds `surface` until then. The surface must not be destroyed
  // before ImportedSurface::wait() has returned. Also throws the driver's errors about the surface.
  virtual Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                const Frame& picture, const FrameTransform& transform,
                                size_t image = 0) = 0;

  // As set_surface(), from memory that the request's own model imported; the pointers of `picture`
  // are ignored. The memory must not be written or released before ImportedMemory::wait() has
  // returned. Throws Error{bad_argument} if the picture exceeds the memory.
  virtual Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                               const FrameTransform& transform, size_t image = 0) = 0;

  // Enqueues the inference and returns at once. `images`: the number of images of the batch that
  // are wanted, from the first on; 0: all. With Config::partial_batches no more than the next power
  // of two is computed, and the outputs are of that many images; else all images are computed.
  virtual void start(size_t images = 0) = 0;
  // True when finished (results are readable), false after `timeout`. Sleeps. Throws what the
  // inference failed with; the request is idle and usable again afterwards. But after NoAnswer
  // (kernels/base/no_answer.h) it is still in flight, frames must stay valid, and wait() is true,
  // without results, once the device is done.
  virtual bool wait(std::optional<std::chrono::milliseconds> timeout = {}) = 0;
  // After wait(): whether a device that did not answer, and whose inference another one of MULTI has
  // repeated, may still read the frames of it. They must stay valid until the end of the process then.
  virtual bool keeps_frames() const { return false; }

  // Output `index` after wait(): dense row-major, as the model states it but floats always f32, or
  // with Config::half_outputs f32 or f16. The reference is valid until the next start(); a copy,
  // which shares the elements, stays as it is.
  virtual const Tensor& output(size_t index) const = 0;
};

}  // namespace clinfer
