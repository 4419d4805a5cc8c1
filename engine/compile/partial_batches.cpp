// Makes plans for parts of a batch: half of it, a quarter, and so on down to one image.
#include <algorithm>
#include <set>

#include "engine/compile/model_compiler.h"
#include "engine/runtime/model.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

// Returns whether the data of `some` images lie where the same images lie in the whole batch.
bool lie_alike(const TensorDesc& some, const TensorDesc& all) {
  bool alike =
      some.type == all.type && some.offset == all.offset && some.shape.size() == all.shape.size();
  for (size_t d = 0; alike && d < some.shape.size(); ++d)
    alike = (d == 0 || some.shape[d] == all.shape[d]) &&
            (some.shape[d] == 1 || some.strides[d] == all.strides[d]);
  return alike;
}

// Returns whether the operations differ in nothing but the number of images. A family that computes
// the whole batch can then compute some images too, but may refuse to because another family is
// faster for so few.
bool differ_in_images(const OpDesc& some, const OpDesc& all) {
  return std::equal(some.inputs.begin(), some.inputs.end(), all.inputs.begin(), all.inputs.end(),
                    lie_alike) &&
         std::equal(some.outputs.begin(), some.outputs.end(), all.outputs.begin(),
                    all.outputs.end(), lie_alike);
}

}  // namespace

// Plans half the batch, a quarter, and so on down to one image.
void ModelCompiler::add_partial_batches(HostWeights& weights, const Progress& progress) {
  std::vector<int64_t> sizes;
  for (int64_t images = 1; images < batch_of(*network_->whole.plan.graph); images *= 2)
    sizes.push_back(images);
  if (sizes.empty()) return;
  std::vector<std::optional<SizedPlan>> plans(sizes.size());
  parallel_for(sizes.size(), config_.max_num_threads,
               [&](size_t i) { plans[i] = plan_partial_batch(sizes[i]); });
  const size_t known = weights.bytes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!plans[i]) continue;
    SizedPlan& sized = network_->partial.emplace(sizes[i], std::move(*plans[i])).first->second;
    build(sized, progress);
    collect_weights(sized, weights, config_.max_num_threads);
    // The weights are on the device already; the host keeps only those that its own steps read.
    std::set<const Node*> needed;
    for (const Step& step : sized.plan.steps)
      if (step.on_host)
        for (const Edge& input : step.node->inputs) needed.insert(input.node);
    for (const Node* result : sized.plan.graph->results) needed.insert(result->inputs[0].node);
    for (const auto& node : sized.plan.graph->nodes())
      if (!needed.contains(node.get())) node->constant = {};
    for (Step& step : sized.plan.steps)
      if (!step.on_host) step.desc = {};
  }
  if (weights.bytes.size() != known) network_->weights = upload(*network_, weights);
  network_->make_streams(network_->stream_count());
}

// Returns nothing if an image would not lie where a whole batch has it, or if a layer needs another
// family.
std::optional<SizedPlan> ModelCompiler::plan_partial_batch(int64_t images) const try {
  // Takes the kernels of the whole batch where possible: they are compiled already, and an image
  // gets the same bits. A copy step has the name of what it copies.
  std::map<std::pair<std::string, std::string>, const Step*> steps;
  for (const Step& step : network_->whole.plan.steps)
    steps[{step.desc.name, step.desc.type}] = &step;
  const KernelChooser choose = [&](const OpDesc& desc,
                                   std::span<const KernelFamily* const> families) {
    const auto found = steps.find({desc.name, desc.type});
    if (found == steps.end())  // a copy that the whole batch does not need
      return KernelChoice{families.front(), families.front()->heuristic(desc, network_->traits)};
    const Step& step = *found->second;
    const bool accepts = std::count(families.begin(), families.end(), step.family) != 0;
    if (accepts || (step.family != nullptr && differ_in_images(desc, step.desc))) {
      const std::vector<TuningPoint> space = step.family->space(desc, network_->traits);
      if (std::count(space.begin(), space.end(), step.point))
        return KernelChoice{step.family, step.point};
      // Needed for points such as vectors along the images. Rounding may differ then, but the whole
      // batch would take several times as long.
      if (accepts) return KernelChoice{step.family, step.family->heuristic(desc, network_->traits)};
    }
    throw Error(ErrorCode::unsupported, desc.name + " has another kernel in a part of the batch");
  };
  SizedPlan sized;
  sized.plan = make_plan(pass_graph(images, false, "").graph, network_->traits, choose);
  for (size_t i = 0; i < sized.plan.graph->parameters.size(); ++i) {
    const TensorDesc& some = sized.plan.graph->parameters[i]->outputs[0].desc;
    const TensorDesc& all = network_->whole.plan.graph->parameters[i]->outputs[0].desc;
    if (!lie_alike(some, all)) return {};
  }
  plan_memory(sized.plan, &network_->whole.plan);
  return sized;
} catch (const Error& error) {
  if (error.code() != ErrorCode::unsupported) throw;
  return {};
}

}  // namespace clinfer
