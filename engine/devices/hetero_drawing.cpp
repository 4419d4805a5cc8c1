// Draws graphs in Graphviz's format, with colours.
#include "engine/devices/hetero_drawing.h"

#include <functional>
#include <iterator>

#include "kernels/base/numbers.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

// Colours in Graphviz's notation, light enough for black text.
constexpr const char* kColors[] = {"#FFC405", "#20F608", "#F1F290", "#C405FF", "#BCFF05",
                                   "#05FFC4", "#FFC7A0", "#5DA1E7", "#DC8484", "#E7A15D",
                                   "#8FBC8F", "#D8BFD8", "#B0C4DE", "#EEE8AA"};

// The text below a node and the index of its colour; without a text the node gets neither.
struct Mark {
  std::string text;
  size_t color = 0;
};

std::string draw(const Graph& graph, const std::function<Mark(const Node&)>& mark_of) {
  PlainStream dot;
  dot << "digraph \"" << quoted_line(graph.name)
      << "\" {\n  node [shape=box, fontname=\"sans\"];\n";
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant")) continue;
    const Mark mark = mark_of(*node);
    dot << "  n" << node->id << " [label=\"" << quoted_line(printable(node->name)) << "\\n"
        << quoted_line(printable(node->type));
    if (mark.text.empty())
      dot << "\", shape=ellipse";
    else
      dot << "\\n"
          << mark.text << "\", style=filled, fillcolor=\""
          << kColors[mark.color % std::size(kColors)] << "\"";
    dot << "];\n";
    for (const Edge& input : node->inputs)
      if (!input.node->is("Constant"))
        dot << "  n" << input.node->id << " -> n" << node->id << ";\n";
  }
  dot << "}\n";
  return dot.str();
}

}  // namespace

std::string draw_affinities(const Graph& graph, const Affinities& affinities,
                            const std::vector<std::string>& devices) {
  return draw(graph, [&](const Node& node) -> Mark {
    const auto found = affinities.find(&node);
    if (found == affinities.end()) return {};
    return {"device=" + devices[found->second], found->second};
  });
}

std::string draw_parts(const Graph& graph, const Partition& partition,
                       const std::vector<std::string>& devices) {
  return draw(graph, [&](const Node& node) -> Mark {
    const auto found = partition.part_of.find(&node);
    if (found == partition.part_of.end()) return {};
    return {"subgraph=" + std::to_string(found->second) +
                "\\ndevice=" + devices[partition.parts[found->second].device],
            found->second};
  });
}

}  // namespace clinfer
