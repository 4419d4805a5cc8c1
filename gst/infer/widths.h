// The few widths that a text recogniser with an open width is compiled for.
#pragma once

#include <vector>

namespace clinfer {

// The widths for a network that is `base` wide by itself, ascending: half of it, itself, and its
// double three times, in multiples of 32.
std::vector<int> bucket_widths(int base);

// The narrowest of `widths` in which a line of `width` x `height` pixels fits at the network's
// height; the widest where none does.
int bucket_for(const std::vector<int>& widths, int network_height, int width, int height);

}  // namespace clinfer
