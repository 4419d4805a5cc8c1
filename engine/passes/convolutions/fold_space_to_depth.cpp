// Removes the copy in the first layer ("focus") of a YOLOv5 or YOLOX. That layer moves each block
// of pixels into the channels, by slices with steps and a concat or by SpaceToDepth, and a
// convolution follows. A larger kernel that strides over the picture by blocks computes the same.
#include <algorithm>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

namespace {

// The origin of a channel of the convolution's input: a channel, and a pixel of each block.
struct ChannelOrigin {
  int64_t channel, y, x;
};

// A picture whose blocks became channels.
struct Blocks {
  Edge picture;
  int64_t height = 0, width = 0;      // of a block
  std::vector<ChannelOrigin> places;  // of all channels
};

// Follows views back to their source. Returns it, and how its row-major elements are seen through
// the views.
std::optional<std::pair<Edge, TensorDesc>> seen(const Edge& edge) {
  constexpr size_t kMostViews = 16;  // in a row; two of them take every other row and column
  std::vector<Edge> views{edge};     // from the last view to the first
  while (views.back().node->def && views.back().node->def->view) {
    if (views.size() > kMostViews) return {};
    views.push_back(views.back().node->inputs[0]);
  }
  const Edge root = views.back();
  const NodeOutput& output = root.node->outputs[root.port];
  TensorDesc desc = TensorDesc::row_major(output.type, output.shape);
  for (views.pop_back(); !views.empty(); views.pop_back()) {
    OpDesc view = describe(*views.back().node);
    view.inputs[0] = desc;
    const auto found = views.back().node->def->view(view);
    if (!found) return {};
    desc = found->at(static_cast<size_t>(views.back().port));
  }
  return {{root, desc}};
}

std::optional<Blocks> of_slices(const Node& concat) {
  const int64_t axis = concat.attributes.get_int("axis");
  if (axis != 1 && axis != -3) return {};
  Blocks blocks;
  for (const Edge& input : concat.inputs) {
    const auto from = seen(input);
    if (!from || from->first == input) return {};
    const auto& [picture, view] = *from;
    if (!blocks.picture.node) blocks.picture = picture;
    const Shape& whole = picture.node->shape(picture.port);
    if (!(picture == blocks.picture) || whole.size() != 4 || view.shape[0] != whole[0]) return {};
    const Shape rows = row_major_strides(whole);
    const int64_t height = view.strides[2] / rows[2], width = view.strides[3];
    if (blocks.places.empty()) blocks.height = height, blocks.width = width;
    if (height < 1 || width < 1 || height != blocks.height || width != blocks.width ||
        view.strides[2] % rows[2] != 0 || view.shape[2] * height != whole[2] ||
        view.shape[3] * width != whole[3] || view.offset < 0 ||
        (view.strides[0] != rows[0] && whole[0] > 1) ||
        (view.strides[1] % rows[1] != 0 && view.shape[1] > 1))
      return {};
    for (int64_t c = 0; c < view.shape[1]; ++c) {
      const int64_t at = view.offset + c * view.strides[1];
      blocks.places.push_back({at / rows[1], at % rows[1] / rows[2], at % rows[2]});
    }
  }
  return blocks;
}

std::optional<Blocks> of_space_to_depth(const Node& node) {
  const Edge picture = node.inputs[0];
  const Shape& whole = picture.node->shape(picture.port);
  if (whole.size() != 4) return {};
  const int64_t size = node.attributes.get_int("block_size", 1);
  Blocks blocks{picture, size, size, {}};
  const bool depth_first = node.attributes.get_string("mode") == "depth_first";
  const int64_t channels = whole[1], all = size * size;
  for (int64_t i = 0; i < channels * all; ++i) {
    const int64_t channel = depth_first ? i / all : i % channels,
                  block = depth_first ? i % all : i / channels;
    blocks.places.push_back({channel, block / size, block % size});
  }
  return blocks;
}

// Returns whether each pixel of each block occurs once.
bool covers(const Blocks& blocks) {
  const Shape& whole = blocks.picture.node->shape(blocks.picture.port);
  if (static_cast<int64_t>(blocks.places.size()) != whole[1] * blocks.height * blocks.width)
    return false;
  std::vector<bool> found(blocks.places.size(), false);
  for (const auto& [channel, y, x] : blocks.places) {
    if (channel >= whole[1] || y >= blocks.height || x >= blocks.width) return false;
    found[static_cast<size_t>((channel * blocks.height + y) * blocks.width + x)] = true;
  }
  return std::find(found.begin(), found.end(), false) == found.end();
}

// Spreads weights [O, I, kh, kw] over blocks to [O, channels, kh * height, kw * width] over pixels.
Tensor spread(const Tensor& weights, const Blocks& blocks) {
  const Shape from = weights.shape();
  const Shape to{from[0], blocks.picture.node->shape(blocks.picture.port)[1],
                 from[2] * blocks.height, from[3] * blocks.width};
  Tensor result = Tensor::allocate(weights.type(), to);
  const Shape in = row_major_strides(from), out = row_major_strides(to);
  const Shape taps{from[0], from[2], from[3]};  // of one input channel
  for (size_t i = 0; i < blocks.places.size(); ++i) {
    const auto& [channel, y, x] = blocks.places[i];
    const TensorDesc read{
        weights.type(), taps, {in[0], in[2], in[3]}, static_cast<int64_t>(i) * in[1]};
    const TensorDesc written{weights.type(),
                             taps,
                             {out[0], out[2] * blocks.height, out[3] * blocks.width},
                             channel * out[1] + y * out[2] + x};
    scatter_to(gather_from(read, weights.raw(), weights.type()), written, result.raw_mutable());
  }
  return result;
}

void fold(Graph& graph, Node& convolution, const Blocks& blocks) {
  const Tensor& weights = *constant_value(convolution.inputs[1]);
  const ConvShape s = resolve_convolution(convolution.type, convolution.attributes,
                                          convolution.inputs[0].node->shape(), weights.shape());
  const Shape& whole = blocks.picture.node->shape(blocks.picture.port);
  std::vector<int64_t> strides, begin, end;
  for (size_t d : {1, 2}) {
    const int64_t size = d == 1 ? blocks.height : blocks.width;
    strides.push_back(s.stride[d] * size);
    begin.push_back(s.pad[d] * size);
    // The distance that the last window reaches beyond the picture; negative if it ends before the
    // border.
    end.push_back((s.out[d] - 1) * strides.back() + s.kernel[d] * size - whole[d + 1] -
                  begin.back());
  }
  const Tensor larger = spread(weights, blocks);
  convolution.inputs = {blocks.picture, Insertion(graph, &convolution).constant(larger)};
  for (const auto& [name, value] :
       {std::pair{"strides", strides}, {"pads_begin", begin}, {"pads_end", end}})
    convolution.attributes.set(name, list_text(value));
  convolution.attributes.set("dilations", "1,1");
  convolution.attributes.set("auto_pad", "explicit");
}

}  // namespace

void fold_space_to_depth(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (!node->is("Convolution") || node->shape().size() != 4 || !node->tail.empty()) continue;
    const Node& before = *node->inputs[0].node;
    const Tensor* weights = constant_value(node->inputs[1]);
    if (!weights || !before.tail.empty() || before.outputs.size() != 1 ||
        graph.use_count(node->inputs[0]) != 1)
      continue;
    const auto blocks = before.is("Concat")         ? of_slices(before)
                        : before.is("SpaceToDepth") ? of_space_to_depth(before)
                                                    : std::nullopt;
    const auto dilations = spatial_steps(node->attributes, "dilations", 2, 1, 1);
    if (!blocks || !covers(*blocks) || dilations != std::vector<int64_t>{1, 1}) continue;
    fold(graph, *node, *blocks);
  }
  graph.remove_dead();
}

}  // namespace clinfer
