// A model as read, with its graph: what CompiledModel starts from.
#pragma once

#include "engine/engine.h"
#include "engine/graph/graph.h"
#include "engine/ir/custom_layers.h"

namespace clinfer {

class ReadModel final : public Model {
 public:
  ReadModel(const std::string& path, const InputShapes& shapes, const CustomLayers& custom);
  // As Model::read_bytes().
  ReadModel(std::span<const std::byte> model, std::span<const std::byte> weights,
            const std::string& name, const InputShapes& shapes, const CustomLayers& custom);

  // `model` with another graph.
  ReadModel(const Model& model, std::unique_ptr<Graph> graph);
  // Adds to rt_info() and to notes().
  void say(const std::string& key, const std::string& value, const std::string& note) {
    rt_info_[key] = value;
    notes_.push_back(note);
  }

  const std::string& path() const override { return path_; }
  bool is_from_memory() const override { return from_memory_; }
  const std::string& name() const override { return graph_->name; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  const std::map<std::string, std::string>& rt_info() const override { return rt_info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const std::string& output_op(size_t i) const override;
  const std::map<std::string, std::string>& output_op_attributes(size_t i) const override;

  const Graph& graph() const override { return *graph_; }
  const std::vector<std::string>& files() const { return files_; }  // the model was read from

 private:
  template <typename Read>
  void take(Read&& model);
  void finish(const InputShapes& shapes);

  std::string path_;
  bool from_memory_ = false;
  std::vector<std::string> files_;
  std::unique_ptr<Graph> graph_;
  std::map<std::string, std::string> rt_info_;
  std::vector<std::string> notes_;
  std::vector<Port> inputs_, outputs_;
};

// The name of a part of a model is the model's, this, and the part's number.
inline constexpr const char* kPartName = " subgraph";
// The model for messages and names of drawings: its file's name without folder and extension, since converters
// give all models the same name inside, and which part it is.
std::string title_of(const Model& model);
// The beginning of the names of drawings in a folder: the title, with a number where the folder has got
// drawings of another file of that name from this process.
std::string drawing_name(const Model& model, const std::string& folder);

// Inputs and outputs of a graph as ports.
std::vector<Port> input_ports(const Graph& graph);
std::vector<Port> output_ports(const Graph& graph);

// Gives the inputs these shapes, one each, and infers all others anew. Throws Error{bad_argument}
// for a shape of another rank, Error{unsupported} where the model does not allow it.
void reshape(Graph& graph, const std::vector<Shape>& shapes);
// reshape() by the names that a user gives; other inputs keep their shapes.
void set_input_shapes(Graph& graph, const InputShapes& wanted);
// The first dimension of the first picture, else of the first input that has dimensions; 1 where
// there is none.
int64_t batch_of(const Graph& graph);
// Gives every input the batch size `batch`, in its first dimension of the size that the batch has
// now (the first one of pictures, the second one of sequences [T, N]), and infers all shapes anew.
// Throws Error{unsupported} where the model does not allow it.
void set_batch(Graph& graph, int64_t batch);

}  // namespace clinfer
