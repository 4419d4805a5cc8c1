// Sums of the words of a memory, one by each work-item, which takes every so-many-th word: two memories that differ
// in one word have different sums. A sum is a bijection of each of its words, and the rotation keeps two
// changes of one bit from cancelling each other. Defines: GROUP, the size of the work-group.
// size: words of each work-item, and how many work-items have one more.
WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(uint, in), OUT(uint, out), const int4 size) {
  const size_t item = get_global_id(0), items = get_global_size(0);
  const int words = size.x + ((int)item < size.y);
  uint sum = 0;
  for (int i = 0; i < words; ++i) sum = rotate((sum ^ AT(in)[item + i * items]) * 0x9E3779B1u, 15u);
  AT(out)[item] = sum;
}
