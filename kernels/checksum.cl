// Computes sums of a memory's words: work-item i of n takes every n-th word from word i on, and
// writes one sum. Two memories that differ in one word have different sums, because a sum is a
// bijection of each of its words; the rotation keeps two changes of one bit from cancelling each
// other. GROUP is the size of the work-group. `size`: words of each work-item, and the number of
// work-items that have one more.
WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(uint, in), OUT(uint, out), const int4 size) {
  const size_t item = get_global_id(0), items = get_global_size(0);
  const int words = size.x + ((int)item < size.y);
  uint sum = 0;
  for (int i = 0; i < words; ++i) sum = rotate((sum ^ AT(in)[item + i * items]) * 0x9E3779B1u, 15u);
  AT(out)[item] = sum;
}
