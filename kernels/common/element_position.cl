// Computes the position n, c, z, y, x of this work-item's element in an output with CHANNELS
// channels. With CHANNELS_INNER neighbouring work-items compute neighbouring channels, else
// neighbouring pixels.
int rest = get_global_id(0);
if (rest >= a.elements) return;
#if CHANNELS_INNER
const int c = rest % CHANNELS;
rest /= CHANNELS;
#endif
const int x = rest % a.ow;
rest /= a.ow;
const int y = rest % a.oh;
rest /= a.oh;
const int z = rest % a.od;
rest /= a.od;
#if CHANNELS_INNER
const int n = rest;
#else
const int c = rest % CHANNELS, n = rest / CHANNELS;
#endif
