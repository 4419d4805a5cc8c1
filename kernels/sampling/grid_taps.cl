// The pixels around a point. Defines:
//   TAPS     pixels per dimension: 1 nearest, 2 linear, 4 cubic
//   PADDING  0 zeros, 1 border, 2 reflection
//   ALIGN    1: -1 and 1 are the centres of the corners
// Returns the pixel that index i of `size` reads; -1 for none.
int FN(placed)(int i, int size) {
  if (i >= 0 && i < size) return i;
#if PADDING == 0
  return -1;
#elif PADDING == 1
  return clamp(i, 0, size - 1);
#else
  if (size == 1) return 0;
  const int period = ALIGN ? 2 * (size - 1) : 2 * size;
  i = (i % period + period) % period;
  return i < size ? i : (ALIGN ? period : period - 1) - i;
#endif
}

void FN(taps)(float coordinate, int size, int* at, float* share) {
#if ALIGN
  float place = (coordinate + 1) / 2 * (size - 1);
#else
  float place = ((coordinate + 1) * size - 1) / 2;
#endif
  const float far_out = 1 << 24;
  place = place > -far_out ? fmin(place, far_out) : -far_out;
#if TAPS == 1
  at[0] = FN(placed)((int)rint(place), size);
  share[0] = 1;
#else
  const int first = (int)floor(place);
  const float t = place - first;
#if TAPS == 2
  share[0] = 1 - t;
  share[1] = t;
#else
  const float a = -0.75f, s = 1 - t;
  share[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
  share[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  share[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
  share[3] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
#endif
  for (int k = 0; k < TAPS; ++k) at[k] = FN(placed)(first + k - (TAPS == 4), size);
#endif
}
