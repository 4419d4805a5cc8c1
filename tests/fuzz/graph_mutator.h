// Structure-aware mutations of a model: valid XML with hostile attributes, shapes, edges and
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace clinfer {

// A model as one piece, as fuzzers want it: the xml, a byte 0, the weights.
struct FuzzModel {
  std::string xml, weights;
  static FuzzModel split(std::string_view input);
  std::string joined() const;
};

// Changes the model in one to four places that `seed` picks: attributes, dimensions, edges (also to
// cycles), operations, opsets, element types, overlapping constants, values of constants, ports of
// loops. Where shapes change with that, the shapes stated after them are changed as well, so that
// the model gets as far as it can. Text that is no XML is left alone.
FuzzModel mutated(FuzzModel model, unsigned seed);

// Uses a model as a program does before it has a device: reads it, and compiles it for a CPU and a
// GPU. Ends the process if an error is not one printable line; the sanitizers report other faults.
void compile_fuzz_model(const FuzzModel& model);

}  // namespace clinfer
