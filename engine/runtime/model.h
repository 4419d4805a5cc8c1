// A model as read, with its graph. CompiledModel starts from it.
#pragma once

#include "engine/engine.h"
#include "engine/graph/graph.h"
#include "engine/ir/custom_layers.h"

namespace clinfer {

class ReadModel final : public Model {
 public:
  ReadModel(const std::string& path, const InputShapes& shapes, const CustomLayers& custom);
  // Reads a model from memory as Model::read_bytes() does.
  ReadModel(std::span<const std::byte> model, std::span<const std::byte> weights,
            const std::string& name, const InputShapes& shapes, const CustomLayers& custom);

  // Copies `model` with another graph.
  ReadModel(const Model& model, std::unique_ptr<Graph> graph);
  // Adds an entry to rt_info() and a line to notes().
  void say(const std::string& key, const std::string& value, const std::string& note) {
    rt_info_[key] = value;
    notes_.push_back(note);
  }

  const std::string& path() const override { return path_; }
  bool is_from_memory() const override { return from_memory_; }
  const std::string& name() const override { return graph_->name; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  const std::vector<Port>& states() const override { return states_; }
  const std::map<std::string, std::string>& rt_info() const override { return rt_info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const std::string& output_op(size_t i) const override;
  const std::map<std::string, std::string>& output_op_attributes(size_t i) const override;

  const Graph& graph() const override { return *graph_; }
  const std::vector<std::string>& files() const { return files_; }  // that the model was read from

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
  std::vector<Port> inputs_, outputs_, states_;
};

// Parts of a model are named by the model's name, this, and the part's number.
inline constexpr const char* kPartName = " subgraph";
// Returns a model's title for messages and names of drawings: the file's name without folder and
// extension (converters give all models the same name inside), and the number of the part.
std::string title_of(const Model& model);
// Returns how names of drawings in a folder begin: with the title, and a number if this process has
// already drawn another file of that title into the folder.
std::string drawing_name(const Model& model, const std::string& folder);

// Inputs, outputs and states of a graph as ports.
std::vector<Port> input_ports(const Graph& graph);
std::vector<Port> output_ports(const Graph& graph);
std::vector<Port> state_ports(const Graph& graph);

// Sets the inputs' shapes, one for each input, and infers all others anew. Throws
// Error{bad_argument} for a shape of another rank, Error{unsupported} if the model does not allow
// it.
void reshape(Graph& graph, const std::vector<Shape>& shapes);
// Reshapes the inputs that a user named; the others keep their shapes.
void set_input_shapes(Graph& graph, const InputShapes& wanted);
// Returns the first dimension of the first picture, else of the first input that has dimensions; 1
// without such an input.
int64_t batch_of(const Graph& graph);
// Sets the batch size of every input and infers all shapes anew. The batch is the first dimension
// whose size is the present batch size: dimension 0 of pictures, dimension 1 of sequences [T, N].
// Throws Error{unsupported} if the model does not allow it, as models with states do not.
void set_batch(Graph& graph, int64_t batch);

}  // namespace clinfer
