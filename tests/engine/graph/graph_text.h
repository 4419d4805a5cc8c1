// A short text form of graphs, in which tests of passes state what goes in and what comes out.
#pragma once

#include <memory>
#include <string>

#include "engine/graph/graph.h"

namespace clinfer::test {

// One line a node; a name is given once and then used:
//   x = parameter f32[1,3,8,8]
//   w = random[4,3,1,1]                        f32 between -1 and 1
//   s = f32[] 0.5                              a constant; its values in order
//   y = Convolution-1(x, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
//   a, b = Split-1(y, axis) num_splits=2
//   result a
// Blank lines and blanks at either end do not matter. Throws Error{bad_argument} that names the line.
std::unique_ptr<Graph> graph_of(const std::string& text);

// The operations and results in order, without the layers' names:
//   a = Convolution(in0, f32[4,3,1,1]) + add(f32[1,4,1,1]) + relu
//   result a
// Operations are called a, b, c, ...; parameters in0, in1, ...; `a.1` is the second output. Constants
// of up to four elements are given by their values, larger ones by their shape. Steps of a tail come
// with the operands they read.
std::string text_of(const Graph& graph);

}  // namespace clinfer::test
