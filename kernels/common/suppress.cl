// Processes a sorted list, 32 boxes at a time, and keeps the boxes that no better one suppresses.
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
int found = 0, first = 0;
do {
  if (slot < 32) {
    list->near_keys[slot] = 0;
    list->near_boxes[slot] = 0.0f;
    if (first + slot < listed) {
      list->near_keys[slot] = keys[first + slot];
      list->near_boxes[slot] = BOX(list->near_keys[slot]);
    }
    list->beats[slot] = 0;
    list->beaten = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const ulong key = list->near_keys[candidate];
  const float4 box = list->near_boxes[candidate];
  bool hit = false;
  for (int i = lane; i < found; i += LANES) hit |= SUPPRESSES(key, box, keys[i], places[i]);
  if (hit) atomic_or(&list->beaten, BIT(candidate));
  for (int i = lane; i < candidate; i += LANES)
    if (SUPPRESSES(key, box, list->near_keys[i], list->near_boxes[i]))
      atomic_or(&list->beats[i], BIT(candidate));
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (slot < 32) {
    uint left = ~list->beaten & (uint)(0xffffffff00000000ul >> clamp(listed - first, 0, 32));
    for (int i = 0; i < 32; ++i) left &= ~(left & BIT(i) ? list->beats[i] : 0);
    const int place = found + (int)popcount(left & ~(0xffffffffu >> slot));
    if ((left & BIT(slot)) != 0 && place < most) {
      keys[place] = list->near_keys[slot];
      places[place] = list->near_boxes[slot];
    }
    list->found = min(most, found + (int)popcount(left));
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  found = list->found;
  first += 32;
} while (first < listed && found < most);
