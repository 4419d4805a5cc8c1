// Processes a sorted list and keeps the boxes that no better one suppresses. LOCAL boxes at a time
// are computed; 32 of them at a time are compared with those found so far and with each other.
// The including kernel defines:
//   list       its local memory
//   keys       the list, with `listed` keys
//   most       maximum number of boxes to keep
//   places     room in global memory for the boxes that are kept
//   BOX(key)   the box as float4
//   SUPPRESSES(key, box, better key, better box)
// Leaves `found` keys at the front of the list.
#define BIT(i) (0x80000000u >> (i))
#define LANES (LOCAL / 32)
const int candidate = (int)get_local_id(0) / LANES, lane = (int)get_local_id(0) % LANES;
const int slot = (int)get_local_id(0);
__local float4* const near_boxes = list->space.near.boxes;
__local ulong* const near_keys = list->space.near.keys;
int found = 0, first = 0, turn = 0;
if (slot < 32) {
  list->beats[0][slot] = 0;
  list->beating[0] = 0;
  list->beaten[0] = 0;
}
do {
  near_keys[slot] = 0;
  near_boxes[slot] = 0.0f;
  if (first + slot < listed) {
    near_keys[slot] = keys[first + slot];
    near_boxes[slot] = BOX(near_keys[slot]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int end = min(LOCAL, listed - first);
  int begin = 0;
  do {
    const ulong key = near_keys[begin + candidate];
    const float4 box = near_boxes[begin + candidate];
    bool hit = false;
    for (int i = lane; i < found; i += LANES) hit |= SUPPRESSES(key, box, keys[i], places[i]);
    if (hit) atomic_or(&list->beaten[turn], BIT(candidate));
    for (int i = lane; i < candidate; i += LANES)
      if (SUPPRESSES(key, box, near_keys[begin + i], near_boxes[begin + i])) {
        atomic_or(&list->beats[turn][i], BIT(candidate));
        atomic_or(&list->beating[turn], BIT(i));
      }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (slot < 32) {
      uint left = ~list->beaten[turn] & (uint)(0xffffffff00000000ul >> clamp(end - begin, 0, 32));
      for (uint rest = left & list->beating[turn]; rest != 0;) {
        const int i = (int)clz(rest);
        left &= ~list->beats[turn][i];
        rest &= left & ~BIT(i);
      }
      const int place = found + (int)popcount(left & ~(0xffffffffu >> slot));
      if ((left & BIT(slot)) != 0 && place < most) {
        keys[place] = near_keys[begin + slot];
        places[place] = near_boxes[begin + slot];
      }
      list->found = min(most, found + (int)popcount(left));
      list->beats[1 - turn][slot] = 0;
      list->beating[1 - turn] = 0;
      list->beaten[1 - turn] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    found = list->found;
    begin += 32;
    turn = 1 - turn;
  } while (begin < end && found < most);
  first += LOCAL;
} while (first < listed && found < most);
