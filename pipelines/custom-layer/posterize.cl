// Posterize: rounds each value of a picture to one of LEVELS steps from 0 to 1. One work-item a value.
__kernel void posterize(const __global INPUT0_TYPE* input, __global OUTPUT0_TYPE* output) {
  const uint x = get_global_id(0);
  const uint y = get_global_id(1);
  const uint b = get_global_id(2) / INPUT0_DIMS[1];
  const uint f = get_global_id(2) % INPUT0_DIMS[1];
  // Pitches count elements, in the order batch, feature (channel), y, x.
  const uint from = b * INPUT0_PITCHES[0] + f * INPUT0_PITCHES[1] + y * INPUT0_PITCHES[2] +
                    x * INPUT0_PITCHES[3] + INPUT0_OFFSET;
  const uint to = b * OUTPUT0_PITCHES[0] + f * OUTPUT0_PITCHES[1] + y * OUTPUT0_PITCHES[2] +
                  x * OUTPUT0_PITCHES[3] + OUTPUT0_OFFSET;
  const float value = clamp((float)input[from], 0.0f, 1.0f);
  output[to] = (OUTPUT0_TYPE)(rint(value * (LEVELS - 1)) / (LEVELS - 1));
}
