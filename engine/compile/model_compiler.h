// Compiles a model for a device: graph, plan, kernels, weights, programs and streams.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/compile/first_tier.h"
#include "engine/compile/graph_cache.h"
#include "engine/compile/weights.h"
#include "engine/runtime/compiled_model.h"

namespace clinfer {

class Tuning;
struct ProblemRecord;

// Options of compilations that the engine does for itself (layer comparison, A/B timing).
struct InternalOptions {
  // All layers' values follow the outputs, in the order of plan().graph->results.
  bool expose_layers = false;
  bool one_stream = false;  // streams on AUTO are not measured
  // A model that never runs at the same time as this one, to compare them: both get the same share
  // of the device for persistent kernels. Or nullptr.
  const DeviceModel* compared_with = nullptr;
  FirstTierMaker* first_tier = nullptr;  // begun when programs have to be compiled; or null
  // The application's context and its one queue, or none: used instead of new ones.
  std::shared_ptr<const ocl::Context> context{};
  cl::CommandQueue queue{};
};

// As CompiledModel::compile(), for one device; `offer` gets the first tier.
std::shared_ptr<DeviceModel> compile_for_device(std::shared_ptr<const Model> model,
                                                const Config& config, const Progress& progress,
                                                const TuningObserver& observer, const Offer& offer);
// With the engine's own options, and without a first tier unless they have one.
std::shared_ptr<DeviceModel> compile_model(std::shared_ptr<const Model> model, const Config& config,
                                           const Progress& progress = {},
                                           const TuningObserver& observer = {},
                                           const InternalOptions& options = {});

// Which record each tuning problem of the model has on the device, in the order of execution; no
// kernel is compiled. Throws as compile_model() does.
std::vector<ProblemRecord> find_records(std::shared_ptr<const Model> model, const Config& config);

// One compilation. Used once, by one thread.
class ModelCompiler {
 public:
  ModelCompiler(std::shared_ptr<const Model> model, const Config& config,
                const InternalOptions& options);
  // Instead of graphs, which failed: the device gets its work from OpenCL's queue.
  void launch_by_queue(const cuda::Failure& failure);
  // The finished model. Throws Error, cl::Error and std::bad_alloc; cuda::Failure where graphs failed, with
  // which a compilation anew may do without.
  std::shared_ptr<DeviceModel> compile(const Progress& progress, const TuningObserver& observer);
  // As find_records() above, instead of compile().
  std::vector<ProblemRecord> find_records();

 private:
  void warn_once(const std::string& warning);
  void warn_of_host_loops();
  void open_device();
  void open_graphs();
  void leave_graphs(const std::string& why);
  bool graphs_ought_to_work(const cuda::Failure& failure) const;
  void open_cache();
  Tuning plan_kernels();
  std::unique_ptr<Graph> make_graph();
  PassedGraph pass_graph(int64_t batch, bool expose_layers, const std::string& dumps_dir) const;
  void use_measured_pipeline();
  void use_single_launches(int64_t batch);
  void add_up_work();
  void choose_preprocess(Tuning& tuning);
  HostWeights build_tuned(Tuning& tuning, const Progress& progress, const TuningObserver& observer);
  HostWeights build_for_device(const Progress& progress, bool persistent,
                               const DeviceNetwork* compared_with);
  void build(SizedPlan& sized, const Progress& progress);
  void check_own_kernels(const SizedPlan& sized) const;
  void build_single_launches(const Progress& progress);
  bool cores_share_launches() const;
  void use_persistent_kernels(const DeviceNetwork* compared_with);
  std::vector<bool> find_parts(const DeviceNetwork* compared_with);
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
  FirstTierMaker* first_tier_ = nullptr;     // null where there is to be none
  std::optional<GraphCache> graphs_;         // none without a cache
  GridBarrier barrier_ = GridBarrier::none;  // of the device, which graphs do without
  CompileReport report_;
};

}  // namespace clinfer
