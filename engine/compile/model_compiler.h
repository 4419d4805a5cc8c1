// Compiles a model for a device: graph, plan, kernels, weights, programs and streams.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/compile/first_tier.h"
#include "engine/compile/graph_cache.h"
#include "engine/compile/graph_launch.h"
#include "engine/compile/weights.h"
#include "engine/runtime/compiled_model.h"

namespace clinfer {

class Tuning;
struct ProblemRecord;

// Options of compilations that the engine starts for its own purposes (layer comparison, A/B
// timing).
struct InternalOptions {
  // Appends the values of all layers to the outputs, in the order of plan().graph->results.
  bool expose_layers = false;
  bool one_stream = false;               // skips measuring the number of streams on AUTO
  FirstTierMaker* first_tier = nullptr;  // starts when programs have to be compiled; may be null
  // The application's context and its queue, used instead of new ones. May be null.
  std::shared_ptr<const ocl::Context> context{};
  cl::CommandQueue queue{};
};

// Compiles for one device as CompiledModel::compile() does; `offer` receives the first tier.
std::shared_ptr<DeviceModel> compile_for_device(std::shared_ptr<const Model> model,
                                                const Config& config, const Progress& progress,
                                                const TuningObserver& observer, const Offer& offer);
// Compiles with the engine's own options. Makes a first tier only if these name a maker.
std::shared_ptr<DeviceModel> compile_model(std::shared_ptr<const Model> model, const Config& config,
                                           const Progress& progress = {},
                                           const TuningObserver& observer = {},
                                           const InternalOptions& options = {});

// Returns the record that applies to each tuning problem of the model on the device, in the order
// of execution. Compiles no kernel. Throws as compile_model() does.
std::vector<ProblemRecord> find_records(std::shared_ptr<const Model> model, const Config& config);

// Compiles one model. To be used once, by one thread.
class ModelCompiler {
 public:
  ModelCompiler(std::shared_ptr<const Model> model, const Config& config,
                const InternalOptions& options);
  // Makes the device get its work from OpenCL's queue, after graphs failed for the reason `why`.
  void launch_by_queue(const cuda::Failure& failure);
  // Returns the finished model. Throws Error, cl::Error and std::bad_alloc, and cuda::Failure if
  // graphs failed; a new compilation may then do without them.
  std::shared_ptr<DeviceModel> compile(const Progress& progress, const TuningObserver& observer);
  // Does what the function find_records() above does, instead of compile().
  std::vector<ProblemRecord> find_records();

 private:
  void warn_once(const std::string& warning);
  void warn_of_host_loops();
  void open_device();
  std::string why_no_graphs() const;
  void open_graphs(std::optional<CudaOpening> opening, std::string why);
  void leave_graphs(const std::string& why);
  bool graphs_ought_to_work(const cuda::Failure& failure) const;
  void open_cache();
  Tuning plan_kernels();
  void describe_states();
  std::unique_ptr<Graph> make_graph();
  PassedGraph pass_graph(int64_t batch, bool expose_layers, const std::string& dumps_dir) const;
  void use_measured_pipeline();
  void use_single_launches(int64_t batch);
  void add_up_work();
  void choose_preprocess(Tuning& tuning);
  HostWeights build_tuned(Tuning& tuning, const Progress& progress, const TuningObserver& observer);
  HostWeights build_for_device(const Progress& progress, bool persistent);
  uint64_t spilled_bytes(const SizedPlan& sized, size_t step) const;
  void build(SizedPlan& sized, const Progress& progress);
  void check_own_kernels(const SizedPlan& sized) const;
  void build_single_launches(const Progress& progress);
  bool cores_share_launches() const;
  std::shared_ptr<DeviceModel> make_untuned(const Progress& progress);
  void add_partial_batches(HostWeights& weights, const Progress& progress);
  std::optional<SizedPlan> plan_partial_batch(int64_t images) const;
  void warm_up(const Progress& progress);
  void wait_for(InferRequest& request, const Progress& progress) const;
  void build_preprocess_of_first_tier();

  const std::shared_ptr<const Model> model_;
  Config config_;
  const InternalOptions options_;
  const std::shared_ptr<DeviceNetwork> network_;
  FirstTierMaker* first_tier_ = nullptr;  // null if no first tier is wanted
  std::optional<GraphCache> graphs_;      // none without a cache
  CompileReport report_;
};

}  // namespace clinfer
