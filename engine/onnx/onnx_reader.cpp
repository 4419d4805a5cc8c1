// Reads the whole model: checks what is supported, adds inputs with their shapes, nodes and
// results, and reads metadata.
#include "engine/onnx/onnx_reader.h"

#include <algorithm>
#include <set>

#include "engine/ir/input_shapes.h"
#include "engine/ir/ir_text.h"
#include "engine/onnx/graph_reader.h"
#include "engine/onnx/metadata.h"
#include "engine/onnx/op_table.h"
#include "kernels/base/text.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

constexpr size_t kMostNamed = 200;  // limit of operations in one message about unsupported ones

// ---- what is not supported ----------------------------------------------------------------------

// Visits all nodes, including those of bodies and of called functions.
class Survey {
 public:
  Survey(const onnx::ModelProto& model, const OnnxFunctions& functions, const CustomLayers* custom)
      : functions_(functions), custom_(custom) {
    std::map<std::string, int> opsets;
    for (const auto& import : model.opset_import())
      opsets[import.domain()] = static_cast<int>(import.version());
    walk(model.graph().node(), opsets);
  }

  // Throws an error that lists the missing operations, if there are any.
  void refuse() const {
    if (missing_.empty()) return;
    std::string list;
    size_t named = 0;
    for (const auto& [op, where] : missing_) {
      if (++named > kMostNamed) break;
      list += (list.empty() ? "" : ", ") + op + where.text +
              (where.count > 1 ? " and " + std::to_string(where.count - 1) + " more" : "") + ")";
    }
    if (missing_.size() > kMostNamed)
      list += " and " + std::to_string(missing_.size() - kMostNamed) + " more";
    unsupported_node(std::to_string(missing_.size()) +
                     (missing_.size() == 1 ? " operation is" : " operations are") +
                     " not supported: " + list +
                     " (an OpenCL kernel of yours can compute them: config-file, CONFIG_FILE)");
  }

 private:
  struct Where {
    std::string text;
    size_t count = 0;
  };

  template <typename Nodes>
  void walk(const Nodes& nodes, const std::map<std::string, int>& opsets) {
    for (const onnx::NodeProto& node : nodes) {
      if (custom_ && custom_->find(node.op_type())) continue;
      if (const auto* function = functions_.find(node)) {
        if (seen_.insert(function).second) {
          std::map<std::string, int> own;
          for (const auto& import : function->opset_import())
            own[import.domain()] = static_cast<int>(import.version());
          walk(function->node(), own);
        }
      } else if (!(is_own_domain(node.domain()) && is_control(node.op_type())) &&
                 !find_onnx_op(node.domain(), node.op_type())) {
        Where& where = missing_[printable(node.op_type())];
        if (where.count++ == 0) {
          const auto opset = opsets.find(node.domain());
          where.text =
              " (" + (node.domain().empty() ? "" : printable(node.domain()) + " ") + "opset " +
              (opset == opsets.end() ? "not stated" : std::to_string(opset->second)) + ", node \"" +
              printable(node.name().empty() && node.output_size() ? node.output(0) : node.name()) +
              "\"";
        }
      }
      for (const onnx::AttributeProto& a : node.attribute()) {
        if (a.has_g()) walk(a.g().node(), opsets);
        for (const onnx::GraphProto& g : a.graphs()) walk(g.node(), opsets);
      }
    }
  }

  const OnnxFunctions& functions_;
  const CustomLayers* const custom_;  // or null
  std::map<std::string, Where> missing_;
  std::set<const onnx::FunctionProto*> seen_;
};

// ---- inputs -------------------------------------------------------------------------------------

StatedInput stated_input(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type())
    unsupported_node("input \"" + printable(info.name()) +
                     "\" is no tensor; sequences, maps and optional values are not supported");
  const auto& tensor = info.type().tensor_type();
  if (!tensor.has_shape())
    unsupported_node("input \"" + printable(info.name()) +
                     "\" states no shape, not even how many dimensions it has");
  StatedInput input{printable(info.name()), {info.name()}, "", {}};
  for (const auto& dim : tensor.shape().dim())
    input.shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : kDynamic);
  return input;
}

// Sets the channels of pictures whose axes are all open by the convolution that takes them, perhaps
// after operations that leave the axes or put the channels before height and width.
void fill_channels(const onnx::GraphProto& graph, std::vector<StatedInput>& inputs) {
  static const auto& kLeaveAxes = *new const std::set<std::string>{
      "Add", "BatchNormalization", "Cast", "Div", "Identity", "Mul", "Sub"};
  std::map<std::string, const onnx::TensorProto*> weights;
  for (const auto& tensor : graph.initializer()) weights[tensor.name()] = &tensor;
  const auto ints = [](const onnx::NodeProto& node, const char* name) {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == name)
        return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    return std::vector<int64_t>();
  };
  for (StatedInput& input : inputs) {
    Shape& shape = input.shape;
    if (shape.size() != 4 || std::count(shape.begin() + 1, shape.end(), kDynamic) != 3) continue;
    // The axis of the input that is the second one of each value.
    std::map<std::string, size_t> axes = {{input.tensor_names.front(), 1}};
    for (const onnx::NodeProto& node : graph.node()) {
      const auto from = node.input_size() ? axes.find(node.input(0)) : axes.end();
      if (from == axes.end() || node.output_size() == 0) continue;
      const size_t axis = from->second;
      if (kLeaveAxes.contains(node.op_type()))
        axes[node.output(0)] = axis;
      else if (node.op_type() == "Transpose" && axis == 1 &&
               ints(node, "perm") == std::vector<int64_t>{0, 3, 1, 2})
        axes[node.output(0)] = 3;
      const auto found = node.op_type() == "Conv" && node.input_size() > 1
                             ? weights.find(node.input(1))
                             : weights.end();
      if (found == weights.end() || found->second->dims_size() != 4) continue;
      const int64_t channels = found->second->dims(1);
      if (channels == 1 || channels == 3) shape[axis] = channels;  // of a picture
      break;
    }
  }
}

// The height of text lines for PP-OCR from version 3 on, whose files hold their dictionary.
constexpr int64_t kHeightOfText = 48;

// Sets the height of an input for text lines that is open in height and width, if the model holds
// its dictionary.
void fill_text_height(std::vector<StatedInput>& inputs, const InputShapes& wanted,
                      const std::map<std::string, std::string>& info,
                      std::vector<std::string>& notes) {
  if (!wanted.open_width || !wanted.empty() || !has_dictionary(info)) return;
  for (StatedInput& input : inputs) {
    Shape& shape = input.shape;
    if (shape.size() != 4 || shape[2] != kDynamic || shape[3] != kDynamic) continue;
    shape[2] = kHeightOfText;
    notes.push_back("input \"" + input.name + "\": the open height is " +
                    std::to_string(kHeightOfText) +
                    ", as PP-OCR takes lines of text, unless reshape=?xHEIGHT (--reshape) says "
                    "otherwise");
  }
}

// Sets height and width of a picture that is open in both to the size that the model was exported
// for.
void fill_picture(std::vector<StatedInput>& inputs, const InputShapes& wanted,
                  const std::map<std::string, std::string>& info, std::vector<std::string>& notes) {
  const auto size = picture_size(info);
  if (!size || !wanted.empty()) return;
  for (StatedInput& input : inputs) {
    Shape& shape = input.shape;
    if (shape.size() != 4 || shape[2] != kDynamic || shape[3] != kDynamic) continue;
    shape[2] = size->first;
    shape[3] = size->second;
    notes.push_back(
        "input \"" + input.name + "\": the open size is taken as " + std::to_string(size->second) +
        "x" + std::to_string(size->first) +
        ", as the model's metadata say, unless reshape=WIDTHxHEIGHT (--reshape) says otherwise");
  }
}

// Returns the number of nodes in a list, and in the graphs inside of them.
int64_t stated_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  int64_t count = nodes.size();
  for (const onnx::NodeProto& node : nodes)
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) count += stated_nodes(attribute.g().node());
      for (const onnx::GraphProto& graph : attribute.graphs()) count += stated_nodes(graph.node());
    }
  return count;
}

// ---- the model ----------------------------------------------------------------------------------

class Reader {
 public:
  // `path` has the meaning that OnnxTensors defines.
  Reader(const std::shared_ptr<const onnx::ModelProto>& proto, const std::string& path,
         const CustomLayers* custom)
      : proto_(*proto), functions_(*proto), tensors_(proto, path), custom_(custom) {}

  OnnxModel read(const InputShapes& wanted) {
    check_opset();
    Survey(proto_, functions_, custom_).refuse();
    OnnxModel model;
    model.rt_info = onnx_info(proto_);
    int64_t stated = stated_nodes(proto_.graph().node());
    for (const auto& function : proto_.functions()) stated += stated_nodes(function.node());
    IterationLimit limit(IterationLimit::kToInferShapes + IterationLimit::kForEachStated * stated);
    GraphWriter writer;
    writer.graph().name = proto_.graph().name();
    GraphReader reader(writer, tensors_, functions_, nullptr);
    if (custom_ && !custom_->empty()) reader.use_custom(*custom_);
    reader.import_opsets(proto_.opset_import());
    add_inputs(writer, reader, wanted, model);
    reader.read(proto_.graph());
    add_results(writer, reader);
    model.graph = writer.finish();
    for (const auto& [file, weights] : tensors_.files()) model.files.push_back(file);
    return model;
  }

 private:
  void check_opset() const {
    for (const auto& import : proto_.opset_import())
      if (is_own_domain(import.domain()) &&
          (import.version() < kLeastOpset || import.version() > kMostOpset))
        unsupported_node("opset " + std::to_string(import.version()) +
                         " of ONNX's operations is not supported, " + std::to_string(kLeastOpset) +
                         " to " + std::to_string(kMostOpset) + " are");
    if (proto_.opset_import().empty() && proto_.ir_version() >= 3) bad_node("states no opset");
  }

  void add_inputs(GraphWriter& writer, GraphReader& reader, const InputShapes& wanted,
                  OnnxModel& model) {
    std::set<std::string> initialised;
    for (const auto& tensor : proto_.graph().initializer()) initialised.insert(tensor.name());
    for (const auto& tensor : proto_.graph().sparse_initializer())
      initialised.insert(tensor.values().name());
    std::vector<const onnx::ValueInfoProto*> infos;
    std::vector<StatedInput> stated;
    for (const onnx::ValueInfoProto& info : proto_.graph().input()) {
      // Files before IR version 4 list weights as inputs.
      if (initialised.contains(info.name())) continue;
      infos.push_back(&info);
      stated.push_back(stated_input(info));
    }
    const std::vector<StatedInput> as_stated = stated;
    fill_channels(proto_.graph(), stated);
    fill_picture(stated, wanted, model.rt_info, model.notes);
    fill_text_height(stated, wanted, model.rt_info, model.notes);
    const std::vector<Shape> shapes = fill_open(stated, wanted, model.notes);
    const std::optional<size_t> text = text_among(stated, wanted);
    for (size_t i = 0; i < infos.size(); ++i) {
      const std::string& name = infos[i]->name();
      const ElementType type = onnx_type(infos[i]->type().tensor_type().elem_type());
      const Edge edge = writer.parameter(name, type, shapes[i]);
      edge.node->attributes.set("element_type", std::string(name_of(type)));
      if (i == text) edge.node->attributes.set(kOpenWidth, "true");
      note_open_shape(*edge.node, as_stated[i].shape);
      edge.node->outputs[0].names = {name};
      const Float8Format* float8 = float8_of(infos[i]->type().tensor_type().elem_type());
      reader.define(name, float8 ? writer.to_float8(name, edge, *float8, true) : edge);
    }
  }

  void add_results(GraphWriter& writer, GraphReader& reader) {
    if (proto_.graph().output().empty()) bad_node("has no outputs, so nothing to compute");
    for (const onnx::ValueInfoProto& info : proto_.graph().output()) {
      const Edge edge = reader.edge(info.name());
      auto& names = edge.node->outputs[edge.port].names;
      if (std::find(names.begin(), names.end(), info.name()) == names.end())
        names.push_back(info.name());
      // A node with one output gets the result's name, which users know.
      if (edge.node->outputs.size() == 1 && !edge.node->is("Parameter"))
        edge.node->name = info.name();
      writer.result(info.name(), edge);
    }
  }

  const onnx::ModelProto& proto_;
  OnnxFunctions functions_;
  OnnxTensors tensors_;
  const CustomLayers* const custom_;  // or null
};

// Replaces invalid UTF-8, which a file may hold and which GStreamer, JSON and drawing functions do
// not take.
void make_text_valid(OnnxModel& model) {
  model.graph->name = valid_utf8(model.graph->name);
  for (const auto& node : model.graph->nodes()) {
    node->name = valid_utf8(node->name);
    for (NodeOutput& output : node->outputs)
      for (std::string& name : output.names) name = valid_utf8(name);
  }
  std::map<std::string, std::string> info;
  for (const auto& [key, value] : model.rt_info) info.emplace(valid_utf8(key), valid_utf8(value));
  model.rt_info = std::move(info);
}

OnnxModel read(const ByteSource& file, const std::string& path, const std::string& where,
               const InputShapes& wanted, const CustomLayers* custom) {
  try {
    OnnxModel model = Reader(parse_onnx(file), path, custom).read(wanted);
    make_text_valid(model);
    return model;
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what(), error.place());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, where + ": not enough memory to read the model");
  }
}

}  // namespace

OnnxModel read_onnx(const std::string& path, const InputShapes& wanted,
                    const CustomLayers* custom) {
  return read(open_file(path), path, path, wanted, custom);
}

OnnxModel read_onnx(std::span<const std::byte> bytes, const std::string& where,
                    const InputShapes& wanted, const CustomLayers* custom) {
  const ByteSource source{"the model", bytes.size(), [bytes](size_t offset, auto to) {
                            std::copy_n(bytes.data() + offset, to.size(), to.data());
                          }};
  return read(source, "", where, wanted, custom);
}

}  // namespace clinfer
