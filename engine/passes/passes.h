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
  // f32 or f16: the type in which float tensors are stored.
  ElementType activations = ElementType::f32;
  bool unroll_loops = true;
  bool loops_on_device =
      true;  // loops that are not unrolled become operations of the device, where it can run them
  // True if the graph is the body of such a loop: its parameters and results are row-major and have
  // the type `activations`.
  bool is_body = false;
  bool expose_layers = false;  // makes every layer's value a further Result, for comparisons
  bool integers = true;        // quantised models compute in integers on devices that can
  bool bf16_products = false;  // convolutions and products with constants multiply in bf16
  bool half_outputs = false;   // f16 results leave the device unconverted
};

// Returns whether float tensors of this model are stored in f16, which does not require that the
// device computes f16. Models that sum up products of integers always store f32.
bool half_activations(const Config& config, const Graph& graph, bool device_has_fp16);

struct Pass {
  std::string name;
  void (*run)(Graph&, const PassContext&);
};

const std::vector<Pass>& passes();

// Runs the passes in order, up to and including `until` ("": all). `after` sees the graph after
// each pass. Throws Error{bad_argument}, which lists the names, for an unknown `until`.
void run_passes(
    Graph& graph, const PassContext& context, const std::string& until = "",
    const std::function<void(size_t index, const std::string& name, const Graph&)>& after = {});

inline const Shape& shape_of(const Edge& edge) { return edge.node->shape(edge.port); }

// Each pass is in the file of its name. Keeps weights of few bits as they are stored.
void keep_compressed(Graph&, const PassContext&);
// Computes operations that need no input of the network.
void fold_constants(Graph&, const PassContext&);
// Turns loops of one recurrent cell into sequences.
void find_sequences(Graph&, const PassContext&);
// Replaces loops by their bodies, once per iteration.
void unroll_loops(Graph&, const PassContext&);
// Turns loops into operations that the device runs, body and all. Others get the reason as the
// attribute kOnHost.
void place_loops(Graph&, const PassContext&);
// Gives tensors of custom layers the formats that their kernels expect.
void place_custom_layers(Graph&, const PassContext&);
// Computes once what several nodes compute alike.
void share_results(Graph&, const PassContext&);
// Groups operations whose shapes depend on values, for the host.
void group_by_values(Graph&, const PassContext&);
// Replaces operations that are combinations of others by these.
void expand_operations(Graph&, const PassContext&);
// Removes operations that change nothing.
void simplify(Graph&, const PassContext&);
// Gives operations that can be stated in several ways one form.
void unify_forms(Graph&, const PassContext&);
// Replaces slices, transposes and concats that reorder rows of channels by one Gather.
void gather_rows(Graph&, const PassContext&);
// Lets operations on rows compute those alone that a Gather chooses of them.
void choose_rows(Graph&, const PassContext&);
// Replaces x * sigmoid(x) by Swish, and the like.
void fuse_activations(Graph&, const PassContext&);
// Replaces (x - mean) / deviation by MVN, and the like.
void fuse_normalizations(Graph&, const PassContext&);
// Replaces SoftMax and the mean by its probabilities by SoftMaxMean.
void fuse_distributions(Graph&, const PassContext&);
// Moves factors and transposes around products of matrices.
void simplify_products(Graph&, const PassContext&);
// Replaces softmax(scale * q k^T + bias) v by Attention.
void fuse_attention(Graph&, const PassContext&);
// Folds a Pad into the convolution or pooling that follows.
void fold_padding(Graph&, const PassContext&);
// Lets pools whose windows contain each other read each other.
void cascade_pools(Graph&, const PassContext&);
// Folds moves of blocks into channels into larger kernels of convolutions.
void fold_space_to_depth(Graph&, const PassContext&);
// Moves FakeQuantize's ranges into multiplications.
void scale_quantization(Graph&, const PassContext&);
// Folds multiplications and additions by constants around convolutions into their weights.
void fold_into_weights(Graph&, const PassContext&);
// Makes products of matrices of convolutions over the patches of a picture.
void copy_patches(Graph&, const PassContext&);
// Folds half of each channel shuffle into the weights around it.
void fold_shuffles(Graph&, const PassContext&);
// Replaces split, convolutions and concat by a grouped convolution.
void fuse_groups(Graph&, const PassContext&);
// Lets concats of all parts of a split read the split's input.
void join_splits(Graph&, const PassContext&);
// Makes FakeQuantize models compute in integers.
void quantize(Graph&, const PassContext&);
// Moves element functions from after reshapes, crops and concats to the operations before.
void move_functions(Graph&, const PassContext&);
// Orders weights as flattened activations lie in memory.
void order_flattened(Graph&, const PassContext&);
// Fuses element functions into their producers, where these have kernels for them.
void fuse_tails(Graph&, const PassContext&);
// Adds results for all layers, if `expose_layers`.
void expose_layers(Graph&, const PassContext&);
// Sets the storage types of all tensors.
void set_precision(Graph&, const PassContext&);
// Makes convolutions store maxima of their outputs alone, where a kernel does so.
void fuse_pools(Graph&, const PassContext&);
// Makes convolutions quantise what they read, where a kernel does so.
void fuse_quantization(Graph&, const PassContext&);
// Sets memory layouts and views, inserts reorders, and places concats' inputs.
void assign_layouts(Graph&, const PassContext&);

// Attribute with the reason why a TensorIterator or Loop runs on the host.
inline constexpr const char* kOnHost = "on_host";
// Returns the body of a DeviceLoop after all passes. Each of its outputs fills memory of its own;
// the results that become states may share one with an output. `aligned`: parts of sliced tensors
// begin at addresses from which kernels may read vectors. Throws Error{unsupported} if a layer has
// no kernel.
std::unique_ptr<Graph> compiled_body(const GraphBody& body, const PassContext& context,
                                     bool aligned);

// Returns the families that take the node as it is, or sets the reasons if none does. With
// traits.ordered_sums it is the first one without an order of its own, since others may round
// otherwise after the sum. Sums of bytes are exact in any order.
std::vector<const KernelFamily*> accepting_families(const OpDef& def, const OpDesc& desc,
                                                    const DeviceTraits& traits,
                                                    std::string* reasons = nullptr);

// Returns a FusedConvolution that computes what the convolution does so far.
Node as_fused_convolution(const Node& convolution);

// Formats numbers as an attribute lists them.
std::string list_text(const std::vector<int64_t>& values);

}  // namespace clinfer
