// Checks and strided copies shared by the operations that move data.
#include "kernels/shape_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace clinfer {

void fail_model(const std::string& what, SourcePlace place) {
  throw Error(ErrorCode::bad_model, what, place);
}
void fail_unsupported(const std::string& what, SourcePlace place) {
  throw Error(ErrorCode::unsupported, what, place);
}

std::vector<int> opset_range(int first, int last) {
  std::vector<int> versions;
  for (int i = first; i <= last; ++i) versions.push_back(i);
  return versions;
}

void check_inputs(const ShapeContext& context, size_t least, size_t most) {
  const size_t n = context.inputs.size();
  if (n < least || n > most)
    fail_model("takes " + std::to_string(least) +
               (most > least ? " to " + std::to_string(most) : "") + " inputs, has " +
               std::to_string(n));
}

void check_rank(const Shape& shape, size_t least, size_t most, const char* what) {
  if (shape.size() < least || shape.size() > most)
    fail_model(std::string(what) + " has the shape " + to_string(shape) + ", it must have " +
               std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") +
               " dimensions");
}

size_t checked_axis(int64_t axis, size_t rank, const char* what) {
  const int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    fail_model(std::string(what) + " " + std::to_string(axis) + " is out of range for " +
               std::to_string(rank) + " dimensions");
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0) fail_model("a dimension is negative");
  if (__builtin_mul_overflow(a, b, &product) || product > std::numeric_limits<int32_t>::max())
    fail_unsupported("a tensor of more than 2^31 - 1 elements");
  return product;
}

int64_t checked_count(const Shape& shape) {
  int64_t product = 1;
  bool none = false;
  for (int64_t dim : shape) {
    if (dim < 0) fail_model("a dimension is negative in " + to_string(shape));
    none |= dim == 0;
    product = checked_product(product, std::max<int64_t>(dim, 1));
  }
  return none ? 0 : product;
}

std::vector<int64_t> constant_ints(const ShapeContext& context, size_t i, const char* what) {
  if (!has_input(context, i))
    fail_model(std::string("has no input ") + std::to_string(i) + " (" + what + ")");
  const ValueInfo& input = context.inputs[i];
  if (is_float(input.type))
    fail_model(std::string(what) + " must be integers, not " + std::string(name_of(input.type)));
  check_rank(input.shape, 0, 1, what);
  if (input.value.empty())
    fail_unsupported(std::string(what) + " (input " + std::to_string(i) + ") must be constant");
  return input.value.to_ints();
}

int64_t constant_int(const ShapeContext& context, size_t i, const char* what) {
  const std::vector<int64_t> values = constant_ints(context, i, what);
  if (values.size() != 1)
    fail_model(std::string(what) + " must be one number, has " + std::to_string(values.size()));
  return values[0];
}

int64_t one_int(const Tensor& tensor, const char* what) {
  if (tensor.empty() || tensor.elements() < 1) fail_model(std::string(what) + " is empty");
  return Tensor::view(tensor.type(), {}, tensor.raw(), nullptr).to_ints()[0];
}

float one_float(const Tensor& tensor, const char* what) {
  if (tensor.empty() || tensor.elements() < 1) fail_model(std::string(what) + " is empty");
  return Tensor::view(tensor.type(), {}, tensor.raw(), nullptr).to_floats()[0];
}

namespace {

struct Loop {
  int64_t size, from, to;
};

template <typename T>
void copy_loops(const std::vector<Loop>& loops, const T* from, T* to) {
  if (loops.empty()) {
    *to = *from;
    return;
  }
  const Loop inner = loops.back();
  std::vector<int64_t> index(loops.size(), 0);
  for (;;) {
    if (inner.from == 1 && inner.to == 1)
      std::memcpy(to, from, static_cast<size_t>(inner.size) * sizeof(T));
    else
      for (int64_t i = 0; i < inner.size; ++i) to[i * inner.to] = from[i * inner.from];
    size_t d = loops.size() - 1;
    for (; d > 0; --d) {
      const Loop& loop = loops[d - 1];
      from += loop.from;
      to += loop.to;
      if (++index[d - 1] < loop.size) break;
      from -= loop.from * loop.size;
      to -= loop.to * loop.size;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace

void copy_strided(size_t element_size, const Shape& shape, const void* from,
                  const Shape& from_strides, void* to, const Shape& to_strides) {
  if (count(shape) == 0) return;
  std::vector<Loop> loops;  // adjacent dimensions that are contiguous on both sides are merged
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const Loop loop{shape[d], from_strides[d], to_strides[d]};
    if (!loops.empty() && loops.back().from == loop.from * loop.size &&
        loops.back().to == loop.to * loop.size)
      loops.back() = {loops.back().size * loop.size, loop.from, loop.to};
    else
      loops.push_back(loop);
  }
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    copy_loops(loops, static_cast<const T*>(from), static_cast<T*>(to));
  };
  switch (element_size) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    default:
      return run(uint64_t{});
  }
}

void copy_view(const Tensor& from, const TensorDesc& view, Tensor& to) {
  const size_t size = size_of(from.type());
  copy_strided(size, view.shape,
               static_cast<const std::byte*>(from.raw()) + view.offset * static_cast<int64_t>(size),
               view.strides, to.raw_mutable(), row_major_strides(view.shape));
}

void copy_all(const Tensor& from, Tensor& to) {
  if (from.bytes() != to.bytes())
    throw Error(ErrorCode::bad_argument,
                "cannot copy " + to_string(from.shape()) + " to " + to_string(to.shape()));
  if (from.bytes()) std::memcpy(to.raw_mutable(), from.raw(), from.bytes());
}

ElementType parse_type(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(ElementType::boolean); ++i)
    if (name_of(static_cast<ElementType>(i)) == name) return static_cast<ElementType>(i);
  fail_unsupported("element type \"" + name + "\" is not known");
}

ElementType index_type(const Attributes& attributes, const char* name, ElementType otherwise) {
  const ElementType type = parse_type(attributes.get_string(name, std::string(name_of(otherwise))));
  if (type != ElementType::i32 && type != ElementType::i64)
    fail_model("attribute " + std::string(name) + " must be i32 or i64");
  return type;
}

Tensor trim_unused_rows(const Tensor& filled) {
  if (filled.shape().size() != 2) return filled;
  const int64_t columns = filled.shape()[1];
  int64_t rows = filled.shape()[0];
  with_number(filled.type(), [&](auto zero) {
    using T = decltype(zero);
    const T* values = filled.data<T>();
    while (rows > 0 && values[(rows - 1) * columns] == static_cast<T>(-1)) --rows;
  });
  auto shared = std::make_shared<const Tensor>(filled);
  return Tensor::view(filled.type(), {rows, columns}, filled.raw(), shared);
}

float positive_epsilon(const Attributes& attributes, const char* name) {
  const double epsilon = attributes.get_float(name);
  if (!(epsilon >= 0) || !std::isfinite(epsilon))
    fail_model(std::string("attribute ") + name + " is impossible");
  return static_cast<float>(epsilon);
}

}  // namespace clinfer
