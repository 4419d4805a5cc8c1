// The widths for which a text recogniser with an open width is compiled.
#pragma once

#include <vector>

namespace clinfer {

// Returns the widths for a network whose own width is `base` (a multiple of 32), ascending: half of
// it, itself, one and a half, two, three, four, six and eight times, in multiples of 32.
std::vector<int> bucket_widths(int base);

// Returns the narrowest of `widths` that holds a line of `width` x `height` pixels at the network's
// height, squeezed by at most a tenth; the widest if none does.
int bucket_for(const std::vector<int>& widths, int network_height, int width, int height);

}  // namespace clinfer
