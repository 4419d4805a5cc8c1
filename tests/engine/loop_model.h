// A small model with a loop, as text.
#pragma once

#include <string>

namespace clinfer::test {

// A TensorIterator that sums up the rows of [3,2]; `change` replaces a part of the text.
inline std::string loop_model(const std::string& part = "", const std::string& change = "") {
  const auto port = [](int id, const char* dims) {
    return "<port id='" + std::to_string(id) + "' precision='FP32'>" + dims + "</port>";
  };
  const std::string row = "<dim>1</dim><dim>2</dim>", all = "<dim>3</dim><dim>2</dim>";
  const auto parameter = [&](int id, const std::string& shape, const std::string& dims) {
    return "<layer id='" + std::to_string(id) + "' name='p" + std::to_string(id) +
           "' type='Parameter' version='opset1'><data shape='" + shape +
           "' element_type='f32'/><output>" + port(0, dims.c_str()) + "</output></layer>";
  };
  const auto result = [&](int id, const std::string& dims) {
    return "<layer id='" + std::to_string(id) +
           "' name='r' type='Result' version='opset1'><input>" + port(0, dims.c_str()) +
           "</input></layer>";
  };
  std::string text =
      "<net name='n' version='11'><layers>" + parameter(0, "3,2", all) + parameter(1, "1,2", row) +
      "<layer id='2' name='loop' type='TensorIterator' version='opset1'><port_map>"
      "<input external_port_id='0' internal_layer_id='0' axis='0' start='0' end='-1' stride='1' "
      "part_size='1'/><input external_port_id='1' internal_layer_id='1'/>"
      "<output external_port_id='2' internal_layer_id='3'/></port_map>"
      "<back_edges><edge from-layer='3' to-layer='1'/></back_edges>"
      "<input>" +
      port(0, all.c_str()) + port(1, row.c_str()) + "</input><output>" + port(2, row.c_str()) +
      "</output><body><layers>" + parameter(0, "1,2", row) + parameter(1, "1,2", row) +
      "<layer id='2' name='sum' type='Add' version='opset1'><input>" + port(0, row.c_str()) +
      port(1, row.c_str()) + "</input><output>" + port(2, row.c_str()) + "</output></layer>" +
      result(3, row) +
      "</layers><edges><edge from-layer='0' from-port='0' to-layer='2' to-port='0'/><edge "
      "from-layer='1' from-port='0' to-layer='2' to-port='1'/><edge from-layer='2' from-port='2' "
      "to-layer='3' to-port='0'/></edges></body></layer>" +
      result(3, row) +
      "</layers><edges><edge from-layer='0' from-port='0' to-layer='2' to-port='0'/><edge "
      "from-layer='1' from-port='0' to-layer='2' to-port='1'/><edge from-layer='2' from-port='2' "
      "to-layer='3' to-port='0'/></edges></net>";
  if (!part.empty()) text.replace(text.find(part), part.size(), change);
  return text;
}

}  // namespace clinfer::test
