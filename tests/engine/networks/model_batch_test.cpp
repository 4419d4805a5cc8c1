// Open models with several images an inference: each image gets what it gets alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "engine/engine.h"
#include "engine/ir/ir_reader.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/runtime/model.h"
#include "tests/devices.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> models() {
  const char* shared = std::getenv("CLINFER_SHARED");
  const fs::path folder = fs::path(shared ? shared : "") / "data/models";
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    found.push_back(entry.path() / (entry.path().filename().string() + ".xml"));
  std::sort(found.begin(), found.end());
  return found;
}

// The dimension in which two shapes differ.
size_t batch_axis(const Shape& alone, const Shape& together) {
  for (size_t d = 0; d < alone.size(); ++d)
    if (alone[d] != together[d]) return d;
  return 0;
}

// Copies part `k` of `whole` along `axis`, to it or from it.
template <typename Copy>
void each_block(Shape whole, size_t axis, size_t parts, size_t k, Copy&& copy) {
  size_t outer = 1, inner = 1;
  for (size_t d = 0; d < whole.size(); ++d)
    (d < axis ? outer : inner) *= static_cast<size_t>(whole[d]);
  const size_t block = inner / parts;
  for (size_t o = 0; o < outer; ++o) copy(o * inner + k * block, o * block, block);
}

// Boxes of one image, without their image number.
std::vector<float> boxes_of(const Tensor& rows, float image) {
  std::vector<float> boxes;
  for (int64_t i = 0; i + 7 <= rows.elements() && rows.data<float>()[i] >= 0; i += 7)
    if (rows.data<float>()[i] == image)
      boxes.insert(boxes.end(), rows.data<float>() + i + 1, rows.data<float>() + i + 7);
  return boxes;
}

// Sums come in another order in another kernel, and a value may fall on the other side of a step.
void expect_close(const std::vector<float>& got, const std::vector<float>& wanted, bool quantised,
                  bool half) {
  ASSERT_EQ(got.size(), wanted.size());
  double largest = 1, dot = 0, a = 0, b = 0, worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(wanted[i]));
    worst = std::max<double>(worst, std::fabs(got[i] - wanted[i]));
    dot += static_cast<double>(got[i]) * wanted[i];
    a += static_cast<double>(got[i]) * got[i];
    b += static_cast<double>(wanted[i]) * wanted[i];
  }
  if (quantised)
    EXPECT_GE(dot, 0.995 * std::sqrt(a * b));
  else
    EXPECT_LE(worst, (half ? 1e-2 : 1e-3) * largest);
}

std::vector<float> floats(const Tensor& tensor) { return tensor.to_floats(); }

void check_batches(const fs::path& xml, std::initializer_list<unsigned> batches) {
  const auto model = Model::read(xml.string());
  const bool quantised = xml.string().find("INT8") != std::string::npos ||
                         xml.string().find("int8") != std::string::npos ||
                         xml.string().find("quant") != std::string::npos;
  Config config;
  const auto alone = CompiledModel::compile(model, config);
  const bool half = alone->precision() == Precision::f16;
  const unsigned most = std::max(batches);
  std::vector<std::vector<Tensor>> inputs(most), results(most);
  const auto request = alone->create_request();
  for (unsigned k = 0; k < most; ++k) {
    for (size_t i = 0; i < alone->inputs().size(); ++i) {
      const Port& port = alone->inputs()[i];
      // Sequence marks, as of number plates, are the same for all.
      inputs[k].push_back(
          port.shape.size() < 4
              ? Tensor::of(port.type, port.shape,
                           std::vector<float>(static_cast<size_t>(count(port.shape)), 1.f))
              : test::random_tensor(port.shape, 0, 1, 10 * k + static_cast<unsigned>(i)));
      request->set_input(i, inputs[k].back());
    }
    request->start();
    request->wait();
    for (size_t i = 0; i < alone->outputs().size(); ++i) results[k].push_back(request->output(i));
  }
  for (const unsigned batch : batches) {
    SCOPED_TRACE("batch " + std::to_string(batch));
    config.batch = batch;
    config.partial_batches = true;
    const auto together = CompiledModel::compile(model, config);
    const auto several = together->create_request();
    for (size_t i = 0; i < together->inputs().size(); ++i) {
      const Port& port = together->inputs()[i];
      Tensor all = Tensor::allocate(ElementType::f32, port.shape);
      const size_t axis = batch_axis(alone->inputs()[i].shape, port.shape);
      for (unsigned k = 0; k < batch; ++k) {
        const std::vector<float> one = floats(inputs[k][i]);
        each_block(port.shape, axis, batch, k, [&](size_t to, size_t from, size_t n) {
          std::copy_n(one.begin() + static_cast<std::ptrdiff_t>(from), n,
                      all.mutable_data<float>() + to);
        });
      }
      several->set_input(i, all.convert(port.type));
    }
    several->start();
    several->wait();
    for (size_t i = 0; i < together->outputs().size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      const Tensor& all = several->output(i);
      for (unsigned k = 0; k < batch; ++k) {
        SCOPED_TRACE("image " + std::to_string(k));
        if (model->output_op(i) == "DetectionOutput") {
          expect_close(boxes_of(all, static_cast<float>(k)), boxes_of(results[k][i], 0), false,
                       half);
          continue;
        }
        ASSERT_EQ(all.elements(), batch * results[k][i].elements());
        std::vector<float> one(static_cast<size_t>(results[k][i].elements()));
        const std::vector<float> values = floats(all);
        each_block(all.shape(), batch_axis(results[k][i].shape(), all.shape()), batch, k,
                   [&](size_t from, size_t to, size_t n) {
                     std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), n,
                                 one.begin() + static_cast<std::ptrdiff_t>(to));
                   });
        expect_close(one, floats(results[k][i]), quantised, half);
      }
    }
    // A part of the batch: the same bits.
    std::vector<Tensor> whole;
    for (size_t i = 0; i < together->outputs().size(); ++i) whole.push_back(several->output(i));
    for (unsigned images = 1; images < batch; ++images) {
      SCOPED_TRACE(std::to_string(images) + " images");
      several->start(images);
      several->wait();
      for (size_t i = 0; i < whole.size(); ++i) {
        const Tensor& some = several->output(i);
        SCOPED_TRACE("output " + std::to_string(i));
        if (model->output_op(i) == "DetectionOutput") {
          for (unsigned k = 0; k < images; ++k)
            EXPECT_EQ(boxes_of(some, static_cast<float>(k)),
                      boxes_of(whole[i], static_cast<float>(k)));
          continue;
        }
        if (batch_axis(results[0][i].shape(), whole[i].shape()) != 0) continue;
        const size_t bytes = whole[i].bytes() / batch * images;
        ASSERT_LE(bytes, some.bytes());
        EXPECT_EQ(std::memcmp(some.raw(), whole[i].raw(), bytes), 0);
      }
    }
  }
}

// Without a device: every model compiles at every batch, to outputs that hold as much more.
TEST(ModelBatch, ShapesOfAllModels) {
  if (models().empty()) GTEST_SKIP() << "there are no models";
  const DeviceTraits traits = test::cpu_with_dot_products();
  for (const fs::path& xml : models()) {
    SCOPED_TRACE(xml.stem().string());
    const IrModel model = read_ir(xml.string());
    const std::vector<Port> alone = output_ports(*model.graph);
    for (const int64_t batch : {3, 8}) {
      auto graph = model.graph->clone();
      try {
        set_batch(*graph, batch);
        const std::vector<Port> together = output_ports(*graph);
        for (size_t i = 0; i < alone.size(); ++i)
          EXPECT_EQ(count(together[i].shape), batch * count(alone[i].shape)) << "output " << i;
        run_passes(*graph, {traits, ElementType::f32});
        make_plan(std::move(graph), traits);
      } catch (const Error& error) {
        ADD_FAILURE() << "batch " << batch << ": " << error.what();
      }
    }
  }
}

TEST(ModelBatch, ImagesOfSmallModels) {
  size_t seen = 0;
  for (const fs::path& xml : models())
    for (const char* small : {"open-closed-eye-0001_FP32", "resnet8-cifar10",
                              "landmarks-regression-retail-0009_FP16-INT8"})
      if (xml.stem() == small) {
        SCOPED_TRACE(small);
        check_batches(xml, {3});
        ++seen;
      }
  if (seen == 0) GTEST_SKIP() << "there are no models";
}

// In the suite `long`; CLINFER_MODEL picks models by a part of their names.
TEST(DeviceConformanceBatch, ImagesOfAllModels) {
  const char* part = std::getenv("CLINFER_MODEL");
  if (models().empty()) GTEST_SKIP() << "there are no models";
  for (const fs::path& xml : models()) {
    if (part && xml.string().find(part) == std::string::npos) continue;
    SCOPED_TRACE(xml.stem().string());
    try {
      check_batches(xml, {3, 8});
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace clinfer
