// Attention, the engine's own operation: softmax(scale * query x key^T + bias) x value, without the
// scores in memory. Inputs: query [..., queries, size], key [..., keys, size], value [..., keys,
// value size], whose batch dimensions are broadcast; a bias, if there is one, and a mask, if
// `masked` is stated: both are broadcast to [..., queries, keys]. Attributes:
//   scale   factor of the products
//   masked  the score where the mask is 0
//   causal  a query sees no key after its own number
//   heads   batch dimensions that the output has after its tokens: 1 gives [batch, queries, heads, size],
//           which is [batch, tokens, channels] to the next product
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr size_t kMostBatch = 4;  // the most dimensions through which a kernel steps

// The sizes that follow from shapes and attributes alone.
struct Sizes {
  Shape batch;
  int64_t queries, keys, size, value_size;
  size_t after_tokens;  // batch dimensions
  Shape out_shape() const {
    Shape shape = batch;
    shape.insert(shape.end() - static_cast<std::ptrdiff_t>(after_tokens), queries);
    shape.push_back(value_size);
    return shape;
  }
};

void broadcast(Shape& batch, const Shape& shape) {
  const size_t rank = shape.size() - 2;
  if (rank > batch.size()) batch.insert(batch.begin(), rank - batch.size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    int64_t& size = batch[batch.size() - rank + i];
    if (size != shape[i] && size != 1 && shape[i] != 1)
      fail_model("the batch of " + to_string(shape) + " does not fit");
    if (size == 1) size = shape[i];
  }
}

Sizes sizes_of(const Attributes& attributes, const std::vector<const Shape*>& inputs) {
  if (inputs.size() < 3 || inputs.size() > 5)
    fail_model("it has " + std::to_string(inputs.size()) + " inputs instead of 3 to 5");
  for (size_t i = 0; i < 3; ++i) check_rank(*inputs[i], 2, 6, "query, key or value");
  const Shape &query = *inputs[0], &key = *inputs[1], &value = *inputs[2];
  if (query.back() != key.back() || key[key.size() - 2] != value[value.size() - 2])
    fail_model("query " + to_string(query) + ", key " + to_string(key) + " and value " +
               to_string(value) + " do not fit");
  Sizes s{{}, query[query.size() - 2], key[key.size() - 2], query.back(), value.back(), 0};
  for (size_t i = 0; i < 3; ++i) broadcast(s.batch, *inputs[i]);
  const int64_t after = attributes.get_int("heads", 0);
  if (after < 0 || after > static_cast<int64_t>(s.batch.size()))
    fail_model("heads=" + std::to_string(after) + " does not fit");
  s.after_tokens = static_cast<size_t>(after);
  Shape scores = s.batch;
  scores.insert(scores.end(), {s.queries, s.keys});
  for (size_t i = 3; i < inputs.size(); ++i) {
    const Shape& more = *inputs[i];
    bool fits = more.size() <= scores.size();
    for (size_t d = 0; fits && d < more.size(); ++d)
      fits = more[d] == 1 || more[d] == scores[scores.size() - more.size() + d];
    if (!fits)
      fail_model("the bias or mask " + to_string(more) + " does not fit the scores " +
                 to_string(scores));
  }
  return s;
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  std::vector<const Shape*> shapes;
  for (const ValueInfo& input : context.inputs) shapes.push_back(&input.shape);
  const Sizes sizes = sizes_of(context.attributes, shapes);
  const bool masks = context.attributes.has("masked");
  if (context.inputs.size() < (masks ? 4u : 3u) || context.inputs.size() > (masks ? 5u : 4u))
    fail_model("masked is stated without a mask, or a mask without it");
  const Shape shape = sizes.out_shape();
  checked_count(shape);
  return {{context.inputs[0].type, shape, {}}};
}

// Returns the strides of `shape` as those of [batch..., rows, columns]; 0 where it is broadcast.
AttentionOperand operand(const TensorDesc& desc, size_t batch) {
  AttentionOperand o;
  const size_t rank = desc.shape.size();
  const auto stride = [&](size_t from_end) -> int64_t {
    if (from_end > rank) return 0;
    const size_t d = rank - from_end;
    return desc.shape[d] == 1 ? 0 : desc.strides[d];
  };
  for (size_t i = 0; i < batch; ++i) o.batch.push_back(stride(batch + 2 - i));
  o.row = stride(2), o.column = stride(1);
  return o;
}

}  // namespace

int64_t AttentionProblem::heads() const { return count(batch); }

AttentionProblem attention_problem(const OpDesc& desc) {
  std::vector<const Shape*> shapes;
  for (const TensorDesc& input : desc.inputs) shapes.push_back(&input.shape);
  const Sizes sizes = sizes_of(desc.attributes, shapes);
  AttentionProblem p;
  p.queries = sizes.queries, p.keys = sizes.keys;
  p.size = sizes.size, p.value_size = sizes.value_size;
  p.batch = sizes.batch;
  p.scale = static_cast<float>(desc.attributes.get_float("scale", 1));
  p.causal = desc.attributes.get_bool("causal", false);
  size_t next = 3;
  if (desc.attributes.has("masked")) {
    p.masked = static_cast<float>(desc.attributes.get_float("masked"));
    p.mask_input = desc.inputs.size() - 1;
  }
  if (next < desc.inputs.size() && p.mask_input != next) p.bias_input = next;
  const size_t rank = p.batch.size();
  p.query = operand(desc.inputs[0], rank);
  p.key = operand(desc.inputs[1], rank);
  p.value = operand(desc.inputs[2], rank);
  if (p.bias_input) p.bias = operand(desc.inputs[*p.bias_input], rank);
  if (p.mask_input) p.mask = operand(desc.inputs[*p.mask_input], rank);
  const TensorDesc& out = desc.outputs[0];
  const size_t tokens = rank - sizes.after_tokens;
  for (size_t d = 0; d <= rank; ++d)
    if (d != tokens) p.out.batch.push_back(out.strides[d]);
  p.out.row = out.strides[tokens], p.out.column = out.strides[rank + 1];
  return p;
}

namespace {

// Sums in double.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  OpDesc dense = desc;
  dense.inputs.clear();
  for (const Tensor& input : inputs)
    dense.inputs.push_back(TensorDesc::row_major(input.type(), input.shape()));
  dense.outputs = {TensorDesc::row_major(outputs[0].type(), outputs[0].shape())};
  const AttentionProblem p = attention_problem(dense);
  if (p.heads() * p.queries == 0) return;
  std::vector<std::vector<float>> data;
  for (const Tensor& input : inputs) data.push_back(input.to_floats());
  std::vector<float> out(static_cast<size_t>(outputs[0].elements()));
  const auto at = [&](const AttentionOperand& o, const Shape& index, int64_t row) {
    int64_t place = row * o.row;
    for (size_t i = 0; i < index.size(); ++i) place += index[i] * o.batch[i];
    return place;
  };
  const auto attend = [&](const Shape& index, int64_t row, std::vector<double>& scores,
                          std::vector<double>& sums) {
    const float* query = data[0].data() + at(p.query, index, row);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    const int64_t keys = p.causal ? std::min(p.keys, row + 1) : p.keys;
    for (int64_t j = 0; j < keys; ++j) {
      const float* key = data[1].data() + at(p.key, index, j);
      double score = 0;
      for (int64_t d = 0; d < p.size; ++d)
        score += static_cast<double>(query[d * p.query.column]) * key[d * p.key.column];
      score *= p.scale;
      if (p.bias_input) score += data[*p.bias_input][at(p.bias, index, row) + j * p.bias.column];
      if (p.mask_input && data[*p.mask_input][at(p.mask, index, row) + j * p.mask.column] == 0)
        score = p.masked;
      scores[j] = score;
      largest = std::max(largest, score);
    }
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      const double weight = std::exp(scores[j] - largest);
      const float* value = data[2].data() + at(p.value, index, j);
      total += weight;
      for (int64_t d = 0; d < p.value_size; ++d) sums[d] += weight * value[d * p.value.column];
    }
    float* to = out.data() + at(p.out, index, row);
    for (int64_t d = 0; d < p.value_size; ++d) to[d] = static_cast<float>(sums[d] / total);
  };
  const double work = static_cast<double>(p.keys) * static_cast<double>(p.size + p.value_size + 8);
  WorkLimit::for_ranges(p.heads() * p.queries, work, [&](int64_t begin, int64_t end) {
    std::vector<double> scores(static_cast<size_t>(p.keys)),
        sums(static_cast<size_t>(p.value_size));
    for (int64_t r = begin; r < end; ++r) {
      Shape index(p.batch.size());
      int64_t rest = r / p.queries;
      for (size_t i = index.size(); i-- > 0; rest /= p.batch[i]) index[i] = rest % p.batch[i];
      attend(index, r % p.queries, scores, sums);
    }
  });
  outputs[0] = Tensor::of<float>(outputs[0].type(), outputs[0].shape(), out);
}

struct Args {
#include "kernels/attention/attention_args.cl"
};

// Returns strides of four batch dimensions, aligned to the right.
std::array<int, 4> four(const Shape& values, int64_t none) {
  std::array<int, 4> all;
  all.fill(to_int(none));
  for (size_t i = 0; i < values.size(); ++i) all[4 - values.size() + i] = to_int(values[i]);
  return all;
}

// Returns a bias as [batch..., keys, queries], with padded queries.
std::vector<float> turned_bias(const Tensor& bias, int64_t queries) {
  const Shape& shape = bias.shape();
  const size_t rank = shape.size();
  const int64_t rows = rank > 1 ? shape[rank - 2] : 1, keys = rank > 0 ? shape[rank - 1] : 1;
  const std::vector<float> from = bias.to_floats();
  const int64_t matrices = static_cast<int64_t>(from.size()) / std::max<int64_t>(rows * keys, 1);
  std::vector<float> to(static_cast<size_t>(matrices * keys * queries));
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t i = 0; i < queries; ++i)
        to[(m * keys + j) * queries + i] =
            from[(m * rows + (rows == 1 ? 0 : std::min(i, rows - 1))) * keys + j];
  return to;
}

}  // namespace

std::string reject_attention(const OpDesc& desc) {
  if (!desc.tail.empty()) return "takes no tail";
  if (std::string why = reject_storage(desc, 3); !why.empty()) return why;
  for (size_t i = 0; i < 3; ++i)
    if (!desc.constants[i].empty()) return "query, key or value is constant";
  const AttentionProblem p = attention_problem(desc);
  if (p.size > kMostHeadSize || p.value_size > kMostHeadSize)
    return "heads of more than " + std::to_string(kMostHeadSize) + " channels";
  if (p.size < 1 || p.value_size < 1 || p.keys < 1) return "nothing to attend to";
  if (p.batch.size() > kMostBatch) return "more than four batch dimensions";
  const auto adjacent = [](const AttentionOperand& o, int64_t columns) {
    return o.column == 1 || columns == 1;
  };
  if (!adjacent(p.query, p.size) || !adjacent(p.key, p.size) || !adjacent(p.value, p.value_size) ||
      !adjacent(p.out, p.value_size))
    return "the channels of a head are not adjacent in memory";
  if (p.bias_input) {
    const TensorDesc& bias = desc.inputs[*p.bias_input];
    if (desc.constants[*p.bias_input].empty() && bias.type != ElementType::f16 &&
        bias.type != ElementType::f32)
      return "the bias is not of floats";
    if (bias.elements() > kMaxIndex) return "the bias has more than 2^31 elements";
  }
  if (p.mask_input) {
    if (!desc.constants[*p.mask_input].empty()) return "the mask is constant";
    if (const ElementType type = desc.inputs[*p.mask_input].type;
        type != ElementType::u8 && type != ElementType::boolean)
      return "the mask is not of bytes";
  }
  return "";
}

KernelSpec attention_launch(const char* source, const OpDesc& desc, const AttentionProblem& p,
                            int64_t rows, std::array<size_t, 3> local, int64_t turned,
                            KernelPlan& plan) {
  Args args{};
  args.queries = to_int(p.queries), args.keys = to_int(p.keys);
  args.scale = p.scale, args.masked = p.masked;
  const auto sizes = four(p.batch, 1);
  args.size1 = sizes[1], args.size2 = sizes[2], args.size3 = sizes[3];
  const auto set = [](const AttentionOperand& o, int& s0, int& s1, int& s2, int& s3, int& row) {
    const auto strides = four(o.batch, 0);
    s0 = strides[0], s1 = strides[1], s2 = strides[2], s3 = strides[3];
    row = to_int(o.row);
  };
  set(p.query, args.q0, args.q1, args.q2, args.q3, args.q_row);
  set(p.key, args.k0, args.k1, args.k2, args.k3, args.k_row);
  set(p.value, args.v0, args.v1, args.v2, args.v3, args.v_row);
  set(p.out, args.o0, args.o1, args.o2, args.o3, args.o_row);
  args.rows = to_int(rows);
  args.blocks = to_int(ceil_div(p.queries, rows));

  KernelSpec spec;
  spec.source = source;
  const ElementType type = desc.inputs[0].type;
  const size_t size = size_of(type);
  spec.defines = {{"T", storage_name(type)},
                  {"SIZE", std::to_string(p.size)},
                  {"VALUE_SIZE", std::to_string(p.value_size)},
                  {"CAUSAL", p.causal ? "1" : "0"},
                  {"BIAS", p.bias_input ? "1" : "0"},
                  {"MASK", p.mask_input ? "1" : "0"}};
  spec.arguments = {Argument::input(0, size), Argument::input(1, size), Argument::input(2, size)};
  bool bias_turned = false;
  if (p.bias_input) {
    const Tensor& constant = desc.constants[*p.bias_input];
    const TensorDesc& bias = desc.inputs[*p.bias_input];
    AttentionOperand o = p.bias;
    ElementType bias_type = bias.type;
    if (constant.empty()) {
      spec.arguments.push_back(Argument::input(*p.bias_input, size_of(bias_type)));
    } else {
      bias_type = ElementType::f32;
      bias_turned = turned > 0;
      const int64_t padded = ceil_div(p.queries, std::max<int64_t>(turned, 1)) * turned;
      TensorDesc packed = TensorDesc::row_major(bias_type, constant.shape());
      if (bias_turned) {
        Shape shape = constant.shape();
        while (shape.size() < 2) shape.insert(shape.begin(), 1);
        const size_t rank = shape.size();
        std::swap(shape[rank - 1], shape[rank - 2]);
        shape[rank - 1] = padded;
        packed = TensorDesc::row_major(bias_type, shape);
      }
      o = operand(packed, p.batch.size());
      if (bias_turned) std::swap(o.row, o.column);
      spec.arguments.push_back(Argument::packed(plan.packed.size(), sizeof(float)));
      plan.packed.push_back([constant, bias_turned, padded] {
        return to_bytes(bias_turned ? turned_bias(constant, padded) : constant.to_floats(),
                        ElementType::f32);
      });
    }
    set(o, args.b0, args.b1, args.b2, args.b3, args.b_row);
    args.b_key = to_int(o.column);
    spec.defines.emplace_back("BIAS_T", storage_name(bias_type));
  }
  spec.defines.emplace_back("TURNED", bias_turned ? "1" : "0");
  if (p.mask_input) {
    spec.arguments.push_back(Argument::input(*p.mask_input, 1));
    set(p.mask, args.m0, args.m1, args.m2, args.m3, args.m_row);
    args.m_key = to_int(p.mask.column);
  }
  spec.arguments.push_back(Argument::output(0, size));
  spec.arguments.push_back(Argument::value(args));
  spec.local = local;
  spec.global = {static_cast<size_t>(p.heads() * args.blocks) * local[0], local[1], local[2]};
  return spec;
}

std::vector<OpDef> attention_ops() {
  OpDef attention;
  attention.type = "Attention";
  attention.opsets = {1};
  attention.infer_shapes = infer_shapes;
  attention.evaluate = evaluate;
  attention.families = {&attention_mma_family(), &attention_rows_family(),
                        &attention_tiles_family()};
  attention.layout = LayoutRule::any_to_rows;
  return {std::move(attention)};
}

}  // namespace clinfer
