// Splits a graph into parts and compiles them.
#include "engine/compile/hetero.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "engine/compile/first_tier.h"
#include "engine/compile/layer_devices.h"
#include "engine/compile/model_compiler.h"
#include "engine/devices/hetero_drawing.h"
#include "engine/devices/hetero_model.h"
#include "engine/passes/passes.h"
#include "engine/runtime/model.h"
#include "kernels/base/system/files.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

// Compiles the models of the parts, several at a time.
std::vector<std::shared_ptr<CompiledModel>> compile_parts(const Model& model, const Config& config,
                                                          const std::vector<std::string>& devices,
                                                          Partition& partition,
                                                          const Progress& progress) {
  std::vector<std::shared_ptr<CompiledModel>> compiled(partition.parts.size());
  std::set<size_t> with_outputs;
  for (const Partition::Output& output : partition.outputs) with_outputs.insert(output.part);
  std::mutex mutex;
  const Progress one_at_a_time = [&](const std::string& what, size_t done, size_t of) {
    const std::lock_guard lock(mutex);
    return !progress || progress(what, done, of);
  };
  parallel_for(compiled.size(), static_cast<unsigned>(devices.size()), [&](size_t p) {
    Subgraph& part = partition.parts[p];
    Config mine = config_for(config, devices[part.device]);
    mine.batch = 0;  // the graph already has the batch size
    mine.partial_batches = false;
    mine.va_display = {};
    // Tensors between parts keep the type in which they are stored.
    if (!with_outputs.contains(p)) mine.half_outputs = true;
    compiled[p] = compile_model(std::make_shared<ReadModel>(model, std::move(part.graph)), mine,
                                one_at_a_time);
  });
  return compiled;
}

void draw(const Model& model, const Graph& graph, const Config& config,
          const std::vector<std::string>& devices, const Affinities* affinities,
          const Partition& partition) {
  if (!config.hetero_dump_graph_dot) return;
  const std::string name = drawing_name(model, config.graph_dumps_dir);
  std::string folder;
  if (!config.graph_dumps_dir.empty()) {
    make_folders(config.graph_dumps_dir);
    folder = config.graph_dumps_dir + "/";
  }
  const auto write = [&](const std::string& what, const std::string& dot) {
    write_named_file(folder + "hetero_" + what + "_" + name + ".dot",
                     std::array{std::string_view(dot)});
  };
  if (affinities != nullptr) write("affinity", draw_affinities(graph, *affinities, devices));
  write("subgraphs", draw_parts(graph, partition, devices));
}

}  // namespace

std::shared_ptr<CompiledModel> compile_hetero(const std::shared_ptr<const Model>& model,
                                              const Config& config, DeviceChoice choice,
                                              const Progress& progress, const Offer& offer) {
  if (config.nv12_two_inputs)
    throw Error(ErrorCode::bad_argument,
                "device=" + config.device +
                    ": GPU_NV12_TWO_INPUTS is for one device; frames of NV12 need no such inputs");
  const auto whole = model->graph().clone();
  if (config.batch) set_batch(*whole, config.batch);
  const LayerDevices asked(config, *whole, choice.devices);
  const std::vector<Port> inputs = input_ports(*whole), outputs = output_ports(*whole);
  run_passes(*whole, asked.context(0), "fold_constants");
  const bool stated = states_affinities(*whole);
  Affinities affinities = asked.affinities(*whole, progress);
  const auto inseparable = inseparable_layers(*whole);
  if (std::string moved = put_together(*whole, inseparable, affinities, choice.devices);
      !moved.empty())
    choice.warnings.push_back(std::move(moved));
  Partition partition = split(*whole, affinities, inseparable);
  draw(*model, *whole, config, choice.devices, stated ? nullptr : &affinities, partition);
  if (partition.parts.size() == 1) {
    auto compiled = compile_for_device(
        model, config_for(config, choice.devices[partition.parts[0].device]), progress, {}, offer);
    for (std::string& warning : choice.warnings) compiled->add_problem(std::move(warning));
    return compiled;
  }
  FirstTierMaker maker(model, config, offer);
  maker.begin();
  auto parts = compile_parts(*model, config, choice.devices, partition, progress);
  maker.stop();
  return std::make_shared<HeteroModel>(model, config.device, std::move(parts), std::move(partition),
                                       inputs, outputs, config, std::move(choice.warnings));
}

}  // namespace clinfer
