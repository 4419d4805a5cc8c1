// One input of the fuzzer of custom layers: the XML file, a byte 0, the text that all its sources
// have. Shared by the fuzz target and the replay of its corpus.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/ir/custom_layers.h"
#include "engine/ir/ir_reader.h"
#include "engine/ocl/compiler/programs.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "tests/devices.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

// A network of a layer "Mine" with a constant second input, and one that the engine has itself; both
// have the attributes that defines of the seeds ask for.
inline constexpr std::string_view kNetOfCustomLayers = R"(<net name="n" version="11"><layers>
<layer id="0" name="in" type="Parameter" version="opset1"><data shape="2,3,4,5" element_type="f32"/>
 <output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></output></layer>
<layer id="1" name="bias" type="Const" version="opset1"><data element_type="f32" shape="1,3" offset="0" size="12"/>
 <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output></layer>
<layer id="2" name="mine" type="Mine" version="mine"><data count="3" slope="0.5" sizes="2,-3" weights="1e30,nan" text="a;b\c"/>
 <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port>
  <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
 <output><port id="2" precision="FP32"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></output></layer>
<layer id="3" name="elu" type="Elu" version="opset1"><data alpha="0.5"/>
 <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></input>
 <output><port id="1" precision="FP32"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></output></layer>
<layer id="4" name="out" type="Result" version="opset1"><input><port id="0"><dim>2</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
</edges></net>)";

// Reads the description, and makes the programs of a network that it computes. Gives whether it was
// taken. Ends the process if an error is not one printable line; whatever else is wrong, the
// sanitizers tell.
inline bool read_custom_layers_fuzz_input(std::string_view input) {
  const std::string_view xml = input.substr(0, input.find('\0'));
  const std::string sources(input.substr(std::min(input.size(), xml.size() + 1)));
  try {
    CustomLayers layers;
    layers.add(xml, "input.xml", [&](const std::string&) { return sources; });
    constexpr std::array<float, 3> kBias{1, 2, 3};
    const IrModel model =
        read_ir(kNetOfCustomLayers, std::as_bytes(std::span(kBias)), "net", {}, &layers);
    const DeviceTraits traits = test::cpu_with_dot_products();
    run_passes(*model.graph, {traits, ElementType::f32});
    const Plan plan = make_plan(model.graph->clone(), traits);
    for (const Step& step : plan.steps)
      for (const KernelSpec& launch : step.kernels.launches)
        ocl::program_source(ocl::instantiate(launch));
    return true;
  } catch (const Error& error) {
    must_be_one_line(error);
    return false;
  }
}

}  // namespace clinfer
