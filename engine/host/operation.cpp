// Element functions and all other operations on the host, and the threads of an inference.
#include "engine/host/operation.h"

#include <algorithm>

#include "engine/plan/work.h"
#include "kernels/base/system/threads.h"
#include "kernels/tail.h"

namespace clinfer::host {

namespace {

constexpr int64_t kPart = 1 << 16;    // elements in a part
constexpr double kElementRate = 5e8;  // of one core through a tail, in elements per second
// Elements, or multiply-adds, per second of reference code, which is written for clarity and not
// for speed.
constexpr double kPlainRate = 1e8;

// Computes the output in parts and applies the tail to each.
void apply_in_parts(const Work& work, const Tail& tail, std::span<const Tensor> inputs,
                    std::span<Tensor> outputs, const std::function<void(int64_t, int64_t)>& make) {
  float* out = outputs[0].mutable_data<float>();
  float* kept = tail.kept(outputs);
  const int64_t elements = outputs[0].elements();
  work.for_each((elements + kPart - 1) / kPart, [&](int64_t part) {
    const int64_t begin = part * kPart, end = std::min(elements, begin + kPart);
    make(begin, end);
    tail.apply(inputs, out, kept, begin, end);
  });
}

class Elementwise final : public Operation {
 public:
  // `desc` has the operation's own function in front of its tail.
  Elementwise(const OpDesc& desc, size_t main) : main_(main), tail_(desc) {
    seconds = static_cast<double>(desc.outputs[0].elements()) *
              static_cast<double>(desc.tail.size()) / kElementRate;
  }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const float* data = inputs[main_].data<float>();
    float* out = outputs[0].mutable_data<float>();
    apply_in_parts(work, tail_, inputs, outputs, [&](int64_t begin, int64_t end) {
      std::copy(data + begin, data + end, out + begin);
    });
  }

 private:
  const size_t main_;
  const Tail tail_;
};

class Plain final : public Operation {
 public:
  Plain(const OpDef& def, const OpDesc& desc) : def_(def), desc_(desc), tail_(desc) {
    double elements = 0;
    for (const auto* tensors : {&desc.inputs, &desc.outputs})
      for (const TensorDesc& tensor : *tensors) elements += static_cast<double>(tensor.elements());
    if (!def.view) seconds = (elements + multiply_adds(desc)) / kPlainRate;
  }
  void run(const Work& work, std::span<const Tensor> inputs,
           std::span<Tensor> outputs) const override {
    const size_t own = outputs.size() - (tail_.keeps() ? 1 : 0);
    if (std::ranges::all_of(outputs.first(own), [](const Tensor& t) { return t.elements() == 0; }))
      return;
    def_.evaluate(desc_, inputs.first(desc_.own_inputs), outputs.first(own));
    if (!tail_.empty()) apply_in_parts(work, tail_, inputs, outputs, [](int64_t, int64_t) {});
  }

 private:
  const OpDef& def_;
  const OpDesc desc_;
  const Tail tail_;
};

}  // namespace

void Work::for_each(int64_t n, const std::function<void(int64_t)>& f) const {
  if (n <= 1 || threads <= 1) {
    for (int64_t i = 0; i < n; ++i) {
      may_go_on();
      f(i);
    }
    return;
  }
  parallel_for(static_cast<size_t>(n), threads, [&](size_t i) {
    may_go_on();
    f(static_cast<int64_t>(i));
  });
}

std::unique_ptr<Operation> make_elementwise(const OpDef& def, const OpDesc& desc) {
  if (!def.as_tail || desc.outputs.empty() || !is_float(desc.outputs[0].type)) return nullptr;
  for (size_t main = 0; main < desc.own_inputs; ++main) {
    const TensorDesc& input = desc.inputs[main];
    if (!is_float(input.type) || input.shape != desc.outputs[0].shape) continue;
    OpDesc own = desc;
    own.tail.clear();
    const TailSteps steps = def.as_tail(own, static_cast<int>(main));
    // Skips functions with constants that only as_tail() knows, because the node has no inputs for
    // them.
    if (steps.steps.empty() || !steps.constants.empty()) continue;
    own.tail = steps.steps;
    own.tail.insert(own.tail.end(), desc.tail.begin(), desc.tail.end());
    return std::make_unique<Elementwise>(own, main);
  }
  return nullptr;
}

std::unique_ptr<Operation> make_plain(const OpDef& def, const OpDesc& desc) {
  return def.evaluate ? std::make_unique<Plain>(def, desc) : nullptr;
}

}  // namespace clinfer::host
