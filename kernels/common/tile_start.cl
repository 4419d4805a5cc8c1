// Computes values that are equal for all tiles of a work-item, and the position of the first pixel,
// which advances along rows, slices and images.
const int run = a.merged ? a.kw * a.in_channels : a.in_channels, runs = a.merged ? 1 : a.kw;
const int inside_y = a.ih - (a.kh - 1) * a.dh, inside_x = a.iw - (a.kw - 1) * a.dw;
const int pixel = min(first * TILE_P, a.pixels - 1);
int x = pixel % a.ow, y = pixel / a.ow, n = y / a.oh;
y -= n * a.oh;
#if DEPTH
const int inside_z = a.id - (a.kd - 1) * a.dd;
int z = n % a.od;
n /= a.od;
#endif
