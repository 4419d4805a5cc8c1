// Turns a convolution whose windows are the patches of a picture, as vision transformers begin,
// into a copy of each patch into the channels and a convolution of 1 x 1, which is a product of
// matrices. Windows of few channels have no runs that matrix instructions take as they lie.
#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

namespace {

constexpr int64_t kMostChannels = 4;  // of a picture; tensors of more have runs
constexpr int64_t kLeastPixels = 64;  // of a patch
constexpr int64_t kWords = 4;         // values that matrix instructions read at once, at least

// Returns the side of the patches, or 0 for a convolution of another kind.
int64_t side_of_patches(const Node& node) {
  if (!node.is("Convolution") || node.shape().size() != 4 || !node.tail.empty()) return 0;
  const Tensor* const weights = constant_value(node.inputs[1]);
  const Shape& picture = node.inputs[0].node->shape(node.inputs[0].port);
  if (!weights || node.inputs[0].node->is("FakeQuantize")) return 0;
  const ConvShape s = resolve_convolution(node.type, node.attributes, picture, weights->shape());
  const int64_t side = weights->shape()[2], pixels = side * weights->shape()[3];
  if (picture[1] > kMostChannels || pixels < kLeastPixels || picture[1] * pixels % kWords != 0)
    return 0;
  for (const size_t d : {1, 2})
    if (s.kernel[d] != side || s.stride[d] != side || s.pad[d] != 0 || s.dilation[d] != 1 ||
        picture[d + 1] != s.out[d] * side)
      return 0;
  return side;
}

}  // namespace

void copy_patches(Graph& graph, const PassContext& context) {
  if (context.traits.matrix != MatrixUnit::ptx || context.activations != ElementType::f16) return;
  for (Node* node : nodes_of(graph)) {
    const int64_t side = side_of_patches(*node);
    if (side == 0) continue;
    const Tensor& weights = *constant_value(node->inputs[1]);
    const Shape shape = weights.shape(), steps = row_major_strides(shape);
    // A pixel's channels stay neighbours, and so do the pixels of a row.
    const TensorDesc pixels{weights.type(),
                            {shape[0], side, side, shape[1]},
                            {steps[0], steps[2], steps[3], steps[1]},
                            0};
    Insertion add(graph, node);
    node->inputs = {add.op("SpaceToDepth", 1, {node->inputs[0]},
                           {{"block_size", std::to_string(side)}, {"mode", "blocks_first"}}),
                    add.constant(gather_from(pixels, weights.raw(), weights.type())
                                     .reshaped({shape[0], shape[1] * side * side, 1, 1}))};
    node->attributes.set("strides", "1,1");
  }
  graph.remove_dead();
}

}  // namespace clinfer
