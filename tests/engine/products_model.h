// A model that computes long.
#pragma once

#include <string>

#include "tests/engine/test_files.h"

namespace clinfer::test {

// A chain of `products` products of square matrices with `side` rows, each by the input: few bytes,
// much work. Returns the path of the model's XML.
inline std::string products_model(const TemporaryFolder& folder, int side, int products) {
  const std::string size = std::to_string(side),
                    dims = "<dim>1</dim><dim>" + size + "</dim><dim>" + size + "</dim>";
  std::string layers, edges;
  const auto port = [&](int id) {
    return "<port id=\"" + std::to_string(id) + "\" precision=\"FP32\">" + dims + "</port>";
  };
  layers = R"(<layer id="0" name="in" type="Parameter" version="opset1">)"
           R"(<data element_type="f32" shape="1,)" +
           size + "," + size + R"("/><output>)" + port(0) + "</output></layer>";
  for (int i = 1; i <= products; ++i) {
    const std::string id = std::to_string(i);
    layers += "<layer id=\"" + id + "\" name=\"product" + id +
              R"(" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/>)"
              "<input>" +
              port(0) + port(1) + "</input><output>" + port(2) + "</output></layer>";
    const std::string before = std::to_string(i - 1), from = i == 1 ? "0" : "2";
    edges += "<edge from-layer=\"" + before + "\" from-port=\"" + from + "\" to-layer=\"" + id +
             "\" to-port=\"0\"/><edge from-layer=\"0\" from-port=\"0\" to-layer=\"" + id +
             "\" to-port=\"1\"/>";
  }
  const std::string last = std::to_string(products), id = std::to_string(products + 1);
  layers += "<layer id=\"" + id + R"(" name="out" type="Result" version="opset1"><input>)" +
            port(0) + "</input></layer>";
  edges +=
      "<edge from-layer=\"" + last + "\" from-port=\"2\" to-layer=\"" + id + "\" to-port=\"0\"/>";
  folder.write("products.bin", "");
  return folder.write("products.xml", "<net name=\"products\" version=\"11\"><layers>" + layers +
                                          "</layers><edges>" + edges + "</edges></net>");
}

}  // namespace clinfer::test
