// Networks for element tests, written to a temporary folder, whose answers are known for each
// frame.
#pragma once

#include <string>

#include "tests/temporary_folder.h"

namespace clinfer::testing_models {

// A folder that goes with everything in it at the end of the program.
const TemporaryFolder& folder();

// [1,3,16,16] (BGR) -> Reshape -> MatMul -> [1,3] "color": the largest is the channel with the
// highest mean. Path of the .xml.
std::string color_model();
// As above, under another name and with a side of `side` pixels.
std::string color_model(const std::string& name, int side);

// [1,1,16,16] (gray) -> AvgPool -> [1,1,4,4]: the mean brightness of each of 4x4 blocks. Path of
// the .xml.
std::string blocks_model();

// Writes `text` to a file in the folder and gives its path.
std::string write_file(const std::string& name, const std::string& text);

// Path of the .xml of a network that gives back its picture, [1,CHANNELS,HEIGHT,WIDTH].
std::string same_picture(int channels, int height, int width);

}  // namespace clinfer::testing_models
