// Ways to look at a model's outputs: all of them as they are stated, with a batch axis where they
// lack one, and without those that explain the others.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/decoder.h"

namespace clinfer {

// The outputs of a model with more are not compared with each other: the time would grow with their
// square.
constexpr size_t kMostCompared = 64;

// outputs: the places of the outputs among the model's; facts: theirs alone, in that order.
struct Reading {
  std::vector<size_t> outputs;
  ModelFacts facts;
};

// `facts` with those outputs alone, in the order of `wanted`.
ModelFacts with_outputs(const ModelFacts& facts, const std::vector<size_t>& wanted);

// The first is of all outputs as they are stated, but those of auxiliary heads by their names.
// Outputs that are alike but for a number in their names are in the order of the numbers.
std::vector<Reading> readings_of(const ModelFacts& facts);

// Readings that leave out one map or vector each, of a model with 2 to 16 outputs.
std::vector<Reading> readings_without_one(const Reading& reading);

// The outputs of these names, which may be names of their tensors. Throws Error{bad_argument} where
// the model has none of a name.
Reading reading_of(const ModelFacts& facts, const std::vector<std::string>& names);

// Returns whether an output is a vector or map that explains an answer: of OpenVINO's training
// extensions, or by its name.
bool explains(const OutputFacts& output);

// Returns whether its name says that an output is a step to the results, not one: raw boxes,
// outputs of an encoder, of an auxiliary head.
bool is_called_a_step(const OutputFacts& output);

// Hands the outputs of a reading of a model with `all` outputs to its decoder.
Decode decode_of(const Reading& reading, size_t all, Decode decode);

}  // namespace clinfer
