// Runs ONNX models on given inputs, many in one process: for each folder named on standard input,
// model.onnx on 0.npy, 1.npy ... to out_0.npy ..., or the error to error.txt. With --device on the
// kernels of that device, else by the plain C++ versions.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "engine/engine.h"
#include "engine/graph/evaluate.h"
#include "engine/onnx/onnx_reader.h"
#include "engine/runtime/model.h"
#include "engine/tools/output/npy.h"

namespace {

using namespace clinfer;

std::vector<Tensor> read_inputs(const std::filesystem::path& folder) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; std::filesystem::exists(folder / (std::to_string(i) + ".npy")); ++i)
    inputs.push_back(read_npy((folder / (std::to_string(i) + ".npy")).string()));
  return inputs;
}

std::vector<Tensor> on_host(const std::string& path, const std::vector<Tensor>& inputs) {
  const OnnxModel model = read_onnx(path);
  return evaluate_graph(*model.graph, inputs);
}

std::vector<Tensor> on_device(const std::string& path, const std::vector<Tensor>& inputs,
                              const std::string& device) {
  Config config;
  config.device = device;
  config.precision = Precision::f32;
  const auto compiled = CompiledModel::compile(Model::read(path), config);
  const auto request = compiled->create_request();
  for (size_t i = 0; i < inputs.size(); ++i) request->set_input(i, inputs[i]);
  request->start();
  request->wait();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < compiled->outputs().size(); ++i) outputs.push_back(request->output(i));
  return outputs;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string device =
      count > 2 && std::string(arguments[1]) == "--device" ? arguments[2] : "";
  for (std::string line; std::getline(std::cin, line);) {
    const std::filesystem::path folder(line);
    const std::string path = (folder / "model.onnx").string();
    try {
      const std::vector<Tensor> inputs = read_inputs(folder);
      const std::vector<Tensor> outputs =
          device.empty() ? on_host(path, inputs) : on_device(path, inputs, device);
      for (size_t i = 0; i < outputs.size(); ++i)
        write_npy((folder / ("out_" + std::to_string(i) + ".npy")).string(), outputs[i]);
    } catch (const std::exception& error) {
      std::ofstream(folder / "error.txt") << error.what();
    }
  }
}
