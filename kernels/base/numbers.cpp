// Parses numbers by the locale "C".
#include "kernels/base/numbers.h"

#include <locale.h>
#include <stdlib.h>

namespace clinfer {

double number_at(const char* text, char** end) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(text, end, plain);
}

}  // namespace clinfer
