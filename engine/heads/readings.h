// Readings, which are selections of a model's outputs: all of them as stated, with a batch axis if
// they lack one, and without those that explain the others.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"

namespace clinfer {

// The largest number of outputs that are compared with each other, since the time grows with its
// square.
constexpr size_t kMostCompared = 64;

// `outputs`: indices into the model's outputs. `facts`: the facts with these outputs only, in that
// order.
struct Reading {
  std::vector<size_t> outputs;
  ModelFacts facts;
};

// Returns `facts` with these outputs only, in the order of `wanted`.
ModelFacts with_outputs(const ModelFacts& facts, const std::vector<size_t>& wanted);

// Returns the readings. The first one has all outputs as stated, except those whose names say that
// they belong to auxiliary heads. Outputs that differ only in a number in their names are sorted by
// the number.
std::vector<Reading> readings_of(const ModelFacts& facts);

// Returns readings that each leave out one map or vector, for a model with 2 to 16 outputs.
std::vector<Reading> readings_without_one(const Reading& reading);

// Returns the reading with the outputs of these names, which may be names of their tensors. Throws
// Error{bad_argument} if the model has no output of a name.
Reading reading_of(const ModelFacts& facts, const std::vector<std::string>& names);

// Returns whether an output is a vector or map that explains an answer: one of OpenVINO's training
// extensions, or by its name.
bool explains(const OutputFacts& output);

// Returns whether the output's name says that it is an intermediate and no result: raw boxes,
// outputs of an encoder, of an auxiliary head.
bool is_called_a_step(const OutputFacts& output);

// Returns a decoder for a model with `all` outputs that passes those of the reading on to `decode`.
Decode decode_of(const Reading& reading, size_t all, Decode decode);

}  // namespace clinfer
