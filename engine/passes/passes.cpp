// The ordered list of passes.
#include "engine/passes/passes.h"

#include "kernels/base/log.h"

namespace clinfer {

const std::vector<Pass>& passes() {
  static const auto& all = *new const std::vector<Pass>{
      {"keep_compressed", keep_compressed},
      {"fold_constants", fold_constants},
      {"find_sequences", find_sequences},
      {"unroll_loops", unroll_loops},
      {"place_loops", place_loops},
      {"place_custom_layers", place_custom_layers},
      {"share_results", share_results},
      {"group_by_values", group_by_values},
      {"expand_operations", expand_operations},
      {"simplify", simplify},
      {"unify_forms", unify_forms},
      {"gather_rows", gather_rows},
      {"choose_rows", choose_rows},
      {"fuse_activations", fuse_activations},
      {"fuse_normalizations", fuse_normalizations},
      {"fuse_distributions", fuse_distributions},
      {"simplify_products", simplify_products},
      {"fuse_attention", fuse_attention},
      {"fold_padding", fold_padding},
      {"cascade_pools", cascade_pools},
      {"fold_space_to_depth", fold_space_to_depth},
      {"scale_quantization", scale_quantization},
      {"fold_into_weights", fold_into_weights},
      {"copy_patches", copy_patches},
      {"fold_shuffles", fold_shuffles},
      {"fuse_groups", fuse_groups},
      {"join_splits", join_splits},
      {"quantize", quantize},
      {"move_functions", move_functions},
      {"order_flattened", order_flattened},
      {"fuse_tails", fuse_tails},
      {"expose_layers", expose_layers},
      {"set_precision", set_precision},
      {"fuse_pools", fuse_pools},
      {"fuse_quantization", fuse_quantization},
      {"assign_layouts", assign_layouts},
  };
  return all;
}

void run_passes(Graph& graph, const PassContext& context, const std::string& until,
                const std::function<void(size_t, const std::string&, const Graph&)>& after) {
  if (!until.empty()) {
    std::string names;
    bool known = false;
    for (const Pass& pass : passes()) {
      known |= pass.name == until;
      names += (names.empty() ? "" : ", ") + pass.name;
    }
    if (!known)
      throw Error(ErrorCode::bad_argument, "no pass \"" + until + "\"; there are " + names);
  }
  for (size_t i = 0; i < passes().size(); ++i) {
    passes()[i].run(graph, context);
    log(LogArea::graph, LogLevel::debug,
        [&] { return passes()[i].name + ": " + std::to_string(graph.nodes().size()) + " nodes"; });
    if (after) after(i, passes()[i].name, graph);
    if (passes()[i].name == until) return;
  }
}

namespace {

bool sums_are_exact(const OpDesc& desc) {
  return !desc.inputs.empty() && desc.inputs[0].type == ElementType::u8;
}

}  // namespace

std::vector<const KernelFamily*> accepting_families(const OpDef& def, const OpDesc& desc,
                                                    const DeviceTraits& traits,
                                                    std::string* reasons) {
  std::vector<const KernelFamily*> accepting;
  for (const KernelFamily* family : def.families) {
    std::string why = family->reject(desc, traits);
    if (why.empty() && traits.ordered_sums && !sums_are_exact(desc)) why = family->own_order;
    if (why.empty())
      accepting.push_back(family);
    else if (reasons)
      *reasons += (reasons->empty() ? "" : "; ") + family->name + ": " + why;
  }
  if (traits.ordered_sums && accepting.size() > 1) accepting.resize(1);
  return accepting;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::string list;
  for (int64_t value : values) list += (list.empty() ? "" : ",") + std::to_string(value);
  return list;
}

}  // namespace clinfer
