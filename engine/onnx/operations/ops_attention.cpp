// Translates multi-head attention, as ONNX and ONNX Runtime's optimiser write it, and rotary
// position embeddings.
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/onnx/op_table.h"
#include "kernels/expand.h"

namespace clinfer {

namespace {

// Returns [batch, length, heads * size] as [batch, heads, length, size].
Edge in_heads(OnnxNode& n, const Edge& e, int64_t heads) {
  if (heads < 1 || n.dim(e, -1) % heads != 0)
    bad_node(std::to_string(n.dim(e, -1)) + " values do not make " + std::to_string(heads) +
             " heads");
  return n.transpose(n.reshape(e, {0, 0, heads, n.dim(e, -1) / heads}), {0, 2, 1, 3});
}

// Returns [batch, heads, length, size] as [batch, length, heads * size].
Edge joined_heads(OnnxNode& n, const Edge& e) {
  const Shape shape = n.shape(e, 4);
  return n.reshape(n.transpose(e, {0, 2, 1, 3}), {0, 0, shape[1] * shape[3]});
}

// Repeats heads of keys or values that several heads of queries share.
Edge repeated_heads(OnnxNode& n, const Edge& e, int64_t heads) {
  const Shape shape = n.shape(e, 4);
  if (shape[1] == heads) return e;
  if (shape[1] < 1 || heads % shape[1] != 0)
    bad_node(std::to_string(heads) + " heads do not share " + std::to_string(shape[1]));
  const int64_t each = heads / shape[1];
  const Edge wide = n.op("Broadcast", 3, {n.unsqueeze(e, {2}), n.ints({1, 1, each, 1, 1})},
                         {{"mode", "bidirectional"}});
  return n.reshape(wide, {0, heads, shape[2], shape[3]});
}

constexpr float kNever = std::numeric_limits<float>::lowest();

// Returns a mask of booleans as numbers that are 0 where it is true; converts masks of numbers to
// f32.
Edge as_numbers(OnnxNode& n, const Edge& mask) {
  if (n.type(mask) != ElementType::boolean) return n.convert(mask, ElementType::f32);
  return n.op("Select", 1, {mask, n.number(0), n.number(kNever)});
}

// Returns the numbers 0 to count - 1.
Edge counted(OnnxNode& n, int64_t count) {
  std::vector<int64_t> numbers = index_list(count);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return n.ints(numbers);
}

// Returns a mask that is 0 where a query sees a key by their positions: later keys are hidden, and
// with a window also those that are too far away. `before` is the number of keys before the first
// query, one number or one for each image.
Edge position_mask(OnnxNode& n, int64_t queries, int64_t keys, const Edge& before) {
  const Edge key = counted(n, keys),
             query = n.add(n.reshape_to(counted(n, queries), n.ints({queries, 1})), before);
  Edge hidden;
  const auto hide = [&](const char* comparison, const Edge& limit) {
    const Edge more = n.op(comparison, 1, {key, limit});
    hidden = hidden.node ? n.op("LogicalOr", 1, {hidden, more}) : more;
  };
  const int64_t left = n.int_of("left_window_size", -1), right = n.int_of("right_window_size", -1);
  if (n.int_of("is_causal", 0)) hide("Greater", query);
  if (right >= 0) hide("Greater", n.add(query, n.integer(right)));
  if (left >= 0) hide("Less", n.subtract(query, n.integer(left)));
  return hidden.node ? n.op("Select", 1, {hidden, n.number(kNever), n.number(0)}) : hidden;
}

// Extends a mask for fewer keys than there are; the added keys are hidden.
Edge filled_mask(OnnxNode& n, const Edge& mask, int64_t keys) {
  const int64_t missing = keys - n.dim(mask, -1), rank = n.rank(mask);
  if (missing <= 0) return mask;
  std::vector<int64_t> begin(static_cast<size_t>(rank), 0), end(begin);
  end.back() = missing;
  return n.op("Pad", 12, {mask, n.ints(begin), n.ints(end), n.number(kNever)},
              {{"pad_mode", "constant"}});
}

// Returns a mask that hides the keys of each image that are padding.
Edge padding_mask(OnnxNode& n, const Edge& lengths, int64_t keys) {
  const Edge length = n.reshape_to(n.convert(lengths, ElementType::i64), n.ints({-1, 1, 1, 1}));
  const Edge hidden = n.op("GreaterEqual", 1, {counted(n, keys), length});
  return n.op("Select", 1, {hidden, n.number(kNever), n.number(0)});
}

// Sets the weights of queries that see no key at all to 0.
Edge zeroed_rows(OnnxNode& n, const Edge& weights, const Edge& mask) {
  const Edge best = n.reduce("ReduceMax", mask, {n.rank(mask) - 1});
  const Edge sees = n.op("Greater", 1, {best, n.number(kNever / 2)});
  return n.op("Select", 1, {sees, weights, n.number(0)});
}

void attention(OnnxNode& n) {
  const bool flat = n.rank(n.in(0)) == 3;
  Edge q = n.in(0), k = n.in(1), v = n.in(2);
  if (flat) {
    q = in_heads(n, q, n.int_of("q_num_heads"));
    k = in_heads(n, k, n.int_of("kv_num_heads"));
    v = in_heads(n, v, n.int_of("kv_num_heads"));
  }
  int64_t before = 0;
  if (n.has(4)) {
    before = n.dim(n.in(4), 2);
    k = n.concat({n.in(4), k}, 2);
    v = n.concat({n.in(5), v}, 2);
  }
  n.out(1, k);
  n.out(2, v);
  const Shape query = n.shape(q, 4);
  const int64_t heads = query[1], keys = n.dim(k, 2);
  const float scale =
      n.float_of("scale", 1 / std::sqrt(static_cast<float>(std::max<int64_t>(query[3], 1))));
  Edge scores = n.multiply(n.matmul(q, repeated_heads(n, k, heads), false, true), n.number(scale));
  const int64_t mode = n.int_of("qk_matmul_output_mode", 0);
  if (mode == 0) n.out(3, scores);
  const float cap = n.float_of("softcap", 0.f);
  const auto soft_cap = [&] {
    if (cap > 0)
      scores = n.multiply(n.op("Tanh", 1, {n.divide(scores, n.number(cap))}), n.number(cap));
  };
  soft_cap();
  if (mode == 1) n.out(3, scores);
  Edge mask;
  const auto compose = [&](const Edge& more) {
    if (more.node)
      mask = mask.node ? n.op("Maximum", 1, {n.add(mask, more), n.number(kNever)}) : more;
  };
  if (n.has(3)) compose(filled_mask(n, as_numbers(n, n.in(3)), keys));
  Edge first = n.integer(before);
  if (n.has(6)) {
    compose(padding_mask(n, n.in(6), keys));
    first = n.subtract(n.reshape_to(n.convert(n.in(6), ElementType::i64), n.ints({-1, 1, 1, 1})),
                       n.integer(query[2]));
  }
  compose(position_mask(n, query[2], keys, first));
  if (mask.node) scores = n.add(scores, mask);
  if (mode == 2 && n.wants(3))
    n.out(3, n.op("Select", 1,
                  {n.op("Less", 1, {scores, n.number(kNever / 2)}),
                   n.number(-std::numeric_limits<float>::infinity()), scores}));
  Edge weights = n.softmax(scores, 3);
  const bool may_see_nothing = n.has(6) || (n.has(3) && n.type(n.in(3)) == ElementType::boolean);
  if (may_see_nothing) weights = zeroed_rows(n, weights, mask);
  if (mode == 3) n.out(3, weights);
  const Edge y = n.matmul(weights, repeated_heads(n, v, heads));
  n.out(flat ? joined_heads(n, y) : y);
}

// ---- com.microsoft ------------------------------------------------------------------------------

void refuse(OnnxNode& n, std::initializer_list<size_t> inputs) {
  for (size_t i : inputs)
    if (n.has(i)) unsupported_node("its input " + std::to_string(i) + " is not supported");
}

Edge attended(OnnxNode& n, const Edge& q, const Edge& k, const Edge& v, const Edge& bias) {
  const Shape query = n.shape(q, 4);
  float scale = n.float_of("scale", 0.f);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(std::max<int64_t>(query[3], 1)));
  Edge scores = n.multiply(n.matmul(q, k, false, true), n.number(scale));
  if (bias.node) scores = n.add(scores, bias);
  if (n.int_of("unidirectional", 0)) unsupported_node("unidirectional=1 is not supported");
  return joined_heads(n, n.matmul(n.softmax(scores, 3), v));
}

// Inputs: query, key, value, bias, key padding mask, attention bias, past key, past value.
void multi_head_attention(OnnxNode& n) {
  refuse(n, {4, 6, 7, 8, 9});
  if (!n.has(1) || !n.has(2) || n.rank(n.in(0)) != 3 || n.rank(n.in(1)) != 3)
    unsupported_node("packed inputs are not supported");
  const int64_t heads = n.int_of("num_heads");
  Edge parts[3] = {n.in(0), n.in(1), n.in(2)};
  int64_t at = 0;
  for (Edge& part : parts) {
    const int64_t size = n.dim(part, -1);
    if (n.has(3)) part = n.add(part, n.slice(n.in(3), 0, at, at + size));
    at += size;
    part = in_heads(n, part, heads);
  }
  n.out(attended(n, parts[0], parts[1], parts[2], n.has(5) ? n.in(5) : Edge{}));
}

// Inputs: input, weights of queries, keys and values, bias, mask, past, attention bias.
void packed_attention(OnnxNode& n) {
  refuse(n, {3, 4, 6});
  if (n.has_attribute("qkv_hidden_sizes")) unsupported_node("qkv_hidden_sizes is not supported");
  Edge all = n.matmul(n.in(0), n.in(1));
  if (n.has(2)) all = n.add(all, n.in(2));
  const std::vector<Edge> parts = n.split(all, n.rank(all) - 1, 3);
  const int64_t heads = n.int_of("num_heads");
  n.out(attended(n, in_heads(n, parts[0], heads), in_heads(n, parts[1], heads),
                 in_heads(n, parts[2], heads), n.has(5) ? n.in(5) : Edge{}));
}

// ---- rotary positions ---------------------------------------------------------------------------

// x has the shape [batch, heads, length, size] or [batch, length, heads * size].
void rotary_embedding(OnnxNode& n) {
  Edge x = n.in(0);
  const bool flat = n.rank(x) == 3, interleaved = n.int_of("interleaved", 0) != 0;
  if (flat) x = in_heads(n, x, n.int_of("num_heads"));
  const int64_t size = n.dim(x, 3);
  int64_t turned = n.int_of("rotary_embedding_dim", 0);
  if (turned == 0) turned = size;
  if (turned < 2 || turned > size || turned % 2) bad_node("rotary_embedding_dim does not fit");
  const auto cache = [&](size_t i) {
    Edge e = n.in(i);
    if (n.has(3)) e = n.gather(e, n.in(3), 0);  // rows by position: [batch, length, half]
    e = n.unsqueeze(e, {n.rank(e) == 3 ? 1 : 0});
    return n.dim(e, -1) == turned / 2 ? e : n.slice(e, n.rank(e) - 1, 0, turned / 2);
  };
  const Edge cosine = cache(1), sine = cache(2);
  const Edge part = turned == size ? x : n.slice(x, 3, 0, turned);
  Edge a, b;
  if (interleaved) {
    a = n.slice(part, 3, 0, turned, 2);
    b = n.slice(part, 3, 1, turned, 2);
  } else {
    a = n.slice(part, 3, 0, turned / 2);
    b = n.slice(part, 3, turned / 2, turned);
  }
  const Edge real = n.subtract(n.multiply(cosine, a), n.multiply(sine, b)),
             imaginary = n.add(n.multiply(sine, a), n.multiply(cosine, b));
  Edge y;
  if (interleaved) {
    y = n.concat({n.unsqueeze(real, {4}), n.unsqueeze(imaginary, {4})}, 4);
    y = n.reshape(y, {0, 0, 0, turned});
  } else {
    y = n.concat({real, imaginary}, 3);
  }
  if (turned != size) y = n.concat({y, n.slice(x, 3, turned, size)}, 3);
  n.out(flat ? joined_heads(n, y) : y);
}

}  // namespace

std::vector<OnnxOp> onnx_attention_ops() {
  return {{"Attention", attention},
          {"RotaryEmbedding", rotary_embedding},
          {"Attention", packed_attention, kMicrosoft},
          {"MultiHeadAttention", multi_head_attention, kMicrosoft}};
}

}  // namespace clinfer
