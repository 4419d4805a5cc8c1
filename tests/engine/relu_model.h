// A model that computes max(x, 0) of an input of a shape, in f32.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/base/tensor.h"
#include "tests/temporary_folder.h"

namespace clinfer::test {

inline std::filesystem::path relu_model(const TemporaryFolder& folder, const Shape& shape) {
  std::string dims, list;
  for (const int64_t d : shape) {
    dims += "<dim>" + std::to_string(d) + "</dim>";
    list += (list.empty() ? "" : ",") + std::to_string(d);
  }
  const std::string in = R"(<input><port id="0">)" + dims + "</port></input>";
  const auto layer = [](const char* id, const char* name, const char* type,
                        const std::string& rest) {
    return std::string("<layer id=\"") + id + "\" name=\"" + name + "\" type=\"" + type +
           "\" version=\"opset1\">" + rest + "</layer>";
  };
  const auto out = [&](const char* port) {
    return std::string("<output><port id=\"") + port + "\" precision=\"FP32\">" + dims +
           "</port></output>";
  };
  return folder.write(
      "relu.xml",
      R"(<net name="relu" version="11"><layers>)" +
          layer("0", "in", "Parameter",
                R"(<data element_type="f32" shape=")" + list + "\"/>" + out("0")) +
          layer("1", "relu", "ReLU", in + out("1")) + layer("2", "out", "Result", in) +
          R"(</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>)"
          R"(<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)");
}

}  // namespace clinfer::test
