// The graph passes, in order. Each is a function that rewrites the graph towards what the device
// runs.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"
#include "kernels/kernel.h"

namespace clinfer {

struct PassContext {
  DeviceTraits traits;
  ElementType activations = ElementType::f32;  // f32 or f16: what float tensors are stored in
  bool unroll_loops = true;
  bool loops_on_device =
      true;  // other loops become operations of the device, where it can run them
  // The graph is the body of such a loop: its parameters and results are row-major, and of the type
  // that activations have.
  bool is_body = false;
  bool expose_layers = false;  // every layer's value becomes a further Result, for comparisons
  bool integers = true;        // quantised models compute in integers where the device can
  bool bf16_products = false;  // convolutions and products with constants multiply in bf16
  bool half_outputs = false;   // results in f16 leave the device as they are
};

// Returns whether float tensors of this model are stored in f16, on a device that computes f16 or
// not. They never are where products of integers are summed up, whatever the configuration says.
bool half_activations(const Config& config, const Graph& graph, bool device_has_fp16);

struct Pass {
  std::string name;
  void (*run)(Graph&, const PassContext&);
};

const std::vector<Pass>& passes();

// Runs them in order up to and including `until` ("": all; unknown: Error{bad_argument} that lists
// the names). `after` sees the graph after each pass.
void run_passes(
    Graph& graph, const PassContext& context, const std::string& until = "",
    const std::function<void(size_t index, const std::string& name, const Graph&)>& after = {});

// One file each:
// Computes operations that need no input of the network.
void fold_constants(Graph&, const PassContext&);
// Loops of one recurrent cell -> sequences.
void find_sequences(Graph&, const PassContext&);
// Puts loop bodies in place, once per iteration.
void unroll_loops(Graph&, const PassContext&);
// Loops that the device runs, body and all. Others get the reason as the attribute kOnHost.
void place_loops(Graph&, const PassContext&);
// Gives tensors of custom layers the formats that their kernels expect.
void place_custom_layers(Graph&, const PassContext&);
// Computes once what several nodes compute alike.
void share_results(Graph&, const PassContext&);
// Groups operations whose shapes depend on values, for the host.
void group_by_values(Graph&, const PassContext&);
// Replaces combinations of other operations by these.
void expand_operations(Graph&, const PassContext&);
// Removes operations that change nothing.
void simplify(Graph&, const PassContext&);
// One form for what readers and converters state in several.
void unify_forms(Graph&, const PassContext&);
// x * sigmoid(x) -> Swish, and the like.
void fuse_activations(Graph&, const PassContext&);
// (x - mean) / deviation -> MVN, and the like.
void fuse_normalizations(Graph&, const PassContext&);
// SoftMax and the mean by its probabilities -> SoftMaxMean.
void fuse_distributions(Graph&, const PassContext&);
// Factors and transposes around products of matrices.
void simplify_products(Graph&, const PassContext&);
// softmax(scale * q k^T + bias) v -> Attention.
void fuse_attention(Graph&, const PassContext&);
// Pad into the following convolution or pooling.
void fold_padding(Graph&, const PassContext&);
// Pools by windows that contain each other read each other.
void cascade_pools(Graph&, const PassContext&);
// Blocks as channels into larger kernels.
void fold_space_to_depth(Graph&, const PassContext&);
// FakeQuantize's ranges into multiplications.
void scale_quantization(Graph&, const PassContext&);
// Multiplications and additions by constants around convolutions into their weights.
void fold_into_weights(Graph&, const PassContext&);
// Half of a channel shuffle into the weights around it.
void fold_shuffles(Graph&, const PassContext&);
// Split, convolutions and concat -> a grouped convolution.
void fuse_groups(Graph&, const PassContext&);
// Concats of all parts of a split read its input.
void join_splits(Graph&, const PassContext&);
// FakeQuantize models in integers.
void quantize(Graph&, const PassContext&);
// Element functions from after reshapes, crops and concats to the operations before these.
void move_functions(Graph&, const PassContext&);
// Weights in the order of flattened activations in memory.
void order_flattened(Graph&, const PassContext&);
// Element functions into their producers, where its kernels take them.
void fuse_tails(Graph&, const PassContext&);
// Results for all layers, where asked for.
void expose_layers(Graph&, const PassContext&);
// Storage types of all tensors.
void set_precision(Graph&, const PassContext&);
// Memory layouts, views, reorders, concats in place.
void assign_layouts(Graph&, const PassContext&);

// Says why a TensorIterator or Loop runs on the host.
inline constexpr const char* kOnHost = "on_host";
// The body of a DeviceLoop after all passes. Each of its outputs fills memory of its own; the results
// that become states may share one with an output. `aligned`: parts of sliced tensors begin at
// addresses that kernels may read vectors from. Throws Error{unsupported} where a layer has no kernel.
std::unique_ptr<Graph> compiled_body(const GraphBody& body, const PassContext& context,
                                     bool aligned);

// Families that take the node as it stands; their reasons where none does.
std::vector<const KernelFamily*> accepting_families(const OpDef& def, const OpDesc& desc,
                                                    const DeviceTraits& traits,
                                                    std::string* reasons = nullptr);

// Numbers as an attribute lists them.
std::string list_text(const std::vector<int64_t>& values);

}  // namespace clinfer
