// Plans of models, without a device: for each file its kernels, the operations on the host, and
// with --layers one line per layer with the key of its tuning record. networks.py compares those of
// an ONNX file and of the same network as OpenVINO IR. With --operations it prints the ONNX
// operations that are supported, as docs/operations.md lists them.
#include <cstdio>
#include <map>
#include <string>

#include "engine/onnx/op_table.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/runtime/model.h"
#include "kernels/base/error.h"
#include "tests/devices.h"
#include "tuning/op_key.h"

namespace {

using namespace clinfer;

void print_plan(const std::string& path, const InputShapes& shapes, bool layers) {
  const auto model = Model::read(path, shapes);
  auto graph = dynamic_cast<const ReadModel&>(*model).graph().clone();
  const DeviceTraits traits = test::cpu_with_dot_products();
  run_passes(*graph, {traits, ElementType::f32});
  const Plan plan = make_plan(std::move(graph), traits);
  size_t on_host = 0;
  for (const Step& step : plan.steps) on_host += step.on_host;
  std::printf("%s\t%zu\t%zu\n", path.c_str(), plan.kernel_count(), on_host);
  if (!layers) return;
  for (const Step& step : plan.steps)
    std::printf("  %s\t%s\t%s\n", step.on_host ? "host" : step.family->name.c_str(),
                op_key(step.desc).c_str(), step.node->name.c_str());
}

void print_operations() {
  std::map<std::string, std::string> lists;  // by domain
  for (const OnnxOp* op : onnx_ops()) {
    std::string& list = lists[std::string(op->domain)];
    list += (list.empty() ? "" : ", ") + std::string(op->type);
  }
  std::string text = lists[""] + "; If, Loop, Scan";
  for (const auto& [domain, list] : lists)
    if (!domain.empty()) text += "; of `" + domain + "`: " + list;
  std::printf("%s\n", text.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  bool layers = false, failed = false;
  InputShapes shapes;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--operations") {
      print_operations();
    } else if (argument == "--layers") {
      layers = true;
    } else if (argument.starts_with("--reshape=")) {
      shapes.add(argument.substr(10));
    } else {
      try {
        print_plan(argument, shapes, layers);
      } catch (const std::exception& error) {
        std::printf("%s\terror\t%s\n", argument.c_str(), error.what());
        failed = true;
      }
    }
  }
  return failed;
}
