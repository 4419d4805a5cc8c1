// A network of a picture with one layer on the device (negate) and one on the host (invert), whose
// three matrices are work for three threads.
#pragma once

#include "tests/temporary_folder.h"

namespace clinfer::test {

inline std::string host_layer_model(const TemporaryFolder& folder) {
  constexpr const char* kNet = R"(<net name="inverses" version="11"><layers>
<layer id="0" name="in" type="Parameter" version="opset1"><data element_type="f32" shape="1,3,64,64"/>
 <output><port id="0" precision="FP32">DIMS</port></output></layer>
<layer id="1" name="negate" type="Negative" version="opset1"><input><port id="0">DIMS</port></input>
 <output><port id="1" precision="FP32">DIMS</port></output></layer>
<layer id="2" name="invert" type="Inverse" version="opset14"><data adjoint="false"/>
 <input><port id="0">DIMS</port></input>
 <output><port id="1" precision="FP32">DIMS</port></output></layer>
<layer id="3" name="out" type="Result" version="opset1"><input><port id="0">DIMS</port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>)";
  const std::string word = "DIMS";
  std::string text = kNet;
  for (size_t at; (at = text.find(word)) != std::string::npos;)
    text.replace(at, word.size(), "<dim>1</dim><dim>3</dim><dim>64</dim><dim>64</dim>");
  folder.write("inverses.bin", "");
  return folder.write("inverses.xml", text);
}

}  // namespace clinfer::test
