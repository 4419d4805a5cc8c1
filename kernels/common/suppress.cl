// Processes a sorted list and keeps the boxes that no better one suppresses. LOCAL boxes at a time
// are compared with those found so far and with each other, which gives a bit for each pair. A box
// is kept once all better ones that would suppress it are known to be suppressed themselves.
// The including kernel defines:
//   list       its local memory
//   LISTED(i)  key i of the list, of `listed` keys
//   keys       room in global memory for the keys that are kept; may hold the list itself
//   most       maximum number of boxes to keep
//   places     room in global memory for the boxes that are kept
//   BOX(key)   the box as float4
//   SUPPRESSES(key, box, better key, better box)
//   GAP        distance of the edges of boxes that just share nothing
//   NEED(box)  see FN(need)
// Leaves `found` keys and boxes.
#define BIT(i) (0x80000000u >> (i))
#define BEFORE(i) (~(0xffffffffu >> (i)))  // the bits before bit i
const int slot = (int)get_local_id(0);
__local float4* const near_boxes = list->space.near.boxes;
__local ulong* const near_keys = list->space.near.keys;
__local float* const needs = list->space.near.needs;
__local uint* const bits = list->space.near.bits;
__local uint* const kept = list->space.near.kept;
__local uint* const beaten = list->space.near.beaten;
__local int* const open = list->space.near.open;
int found = 0, first = 0;
do {
  const bool exists = first + slot < listed;
  const ulong key = exists ? LISTED(first + slot) : 0;
  float4 box = 0.0f;
  if (exists) box = BOX(key);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);  // the list may be in the same memory
  near_keys[slot] = key;
  near_boxes[slot] = box;
  needs[slot] = NEED(box);
  if (slot < LOCAL / 32) kept[slot] = beaten[slot] = 0;
  open[0] = open[1] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  bool undecided = exists;
  for (int i = 0; i < found && undecided; ++i)
    undecided = !SUPPRESSES(key, box, keys[i], places[i]);
  if (exists && !undecided) atomic_or(&beaten[slot / 32], BIT(slot % 32));
  barrier(CLK_LOCAL_MEM_FENCE);

  // A word has a bit for each of 32 boxes that may suppress a box. The words about the first 32
  // boxes come first, for all boxes, then those about the next 32, which only boxes from there on
  // need.
  const int count_near = (clamp(listed - first, 0, LOCAL) + 31) / 32 * 32;
  int word = 0, length = count_near, at = slot;  // position in the words of 32 boxes
  for (int i = slot; length > 0; i += LOCAL) {
    while (length > 0 && at >= length) {
      at -= length;
      length -= 32;
      ++word;
    }
    if (length > 0) {
      const int begin = word * 32;
      const ulong own_key = near_keys[begin + at];
      const float4 own = near_boxes[begin + at];
      const float need = needs[begin + at];
      uint close = 0;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const float4 other = near_boxes[begin + j];
        const float width = fmin(own.z, other.z) - fmax(own.x, other.x) - GAP;
        const float height = fmin(own.w, other.w) - fmax(own.y, other.y) - GAP;
        close |= fmax(width, 0.0f) * height < need + needs[begin + j] ? 0 : BIT(j);
      }
      close &= ~beaten[word];
      if (at < 32) close &= BEFORE(at);
      uint hits = 0;
      while (close != 0) {
        const int j = (int)clz(close);
        close &= ~BIT(j);
        if (SUPPRESSES(own_key, own, near_keys[begin + j], near_boxes[begin + j])) hits |= BIT(j);
      }
      bits[i] = hits;
    }
    at += LOCAL;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

#define WORD_AT(word) ((word)*count_near - 16 * (word) * ((word) + 1) + slot)
  uint words = 0;  // those that are not 0
  if (undecided)
    for (int i = 0; i <= slot / 32; ++i)
      if (bits[WORD_AT(i)] != 0) words |= BIT(i);
  int turn = 0, more;
  do {
    bool beats = false, waits = false;
    if (undecided)
      for (uint rest = words; rest != 0;) {
        const int i = (int)clz(rest);
        const uint better = bits[WORD_AT(i)];
        beats |= (better & kept[i]) != 0;
        waits |= (better & ~beaten[i]) != 0;
        rest &= ~BIT(i);
      }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (undecided && (beats || !waits)) {
      atomic_or(beats ? &beaten[slot / 32] : &kept[slot / 32], BIT(slot % 32));
      undecided = false;
    }
    if (undecided) open[turn] = 1;
    open[1 - turn] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    more = open[turn];
    turn = 1 - turn;
  } while (more != 0);

  int place = found, sum = found;
  for (int i = 0; i < LOCAL / 32; ++i) {
    const int number = (int)popcount(kept[i]);
    place += i < slot / 32 ? number : 0;
    sum += number;
  }
  place += (int)popcount(kept[slot / 32] & BEFORE(slot % 32));
  if ((kept[slot / 32] & BIT(slot % 32)) != 0 && place < most) {
    keys[place] = key;
    places[place] = box;
  }
  found = min(most, sum);
  first += LOCAL;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
} while (first < listed && found < most);
