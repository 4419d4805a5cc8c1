// Posts warnings that several threads may have reason for.
#include "gst/infer/stream/element_shared.h"

namespace clinfer {

void ElementShared::warn_of_copies(const std::string& why) {
  if (warned_of_copies_.exchange(true)) return;
  const MemoryKind* of_caps = kind;
  const std::string what =
      of_caps != nullptr ? std::string("frames in ") + of_caps->name : "VA surfaces";
  GST_ELEMENT_WARNING(element, RESOURCE, SETTINGS,
                      ("%s are copied through system memory: %s", what.c_str(), why.c_str()),
                      (nullptr));
}

void ElementShared::restart() {
  statistics.clear();
  unreadable.clear();
  renewed = true;
  live = asked_early = warned_of_copies_ = false;
  kind = nullptr;
}

}  // namespace clinfer
