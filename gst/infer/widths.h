// The few widths that a text recogniser with an open width is compiled for.
#pragma once

#include <vector>

namespace clinfer {

// The widths for a network that is `base` wide by itself (a multiple of 32), ascending: half of it,
// itself, one and a half, two, three, four, six and eight times, in multiples of 32.
std::vector<int> bucket_widths(int base);

// The narrowest of `widths` that holds a line of `width` x `height` pixels at the network's height,
// squeezed by a tenth at most; the widest where none does.
int bucket_for(const std::vector<int>& widths, int network_height, int width, int height);

}  // namespace clinfer
