// VA displays of the software driver. The VADisplayContext is that of va_backend.h, which
// vaGetDisplayDRM() and its like fill in the same way.
#include "tests/rig/display.h"

#include <unistd.h>
#include <va/va_backend.h>

#include <array>
#include <mutex>

#include "tests/rig/rig.h"

namespace {

int is_valid(VADisplayContextP display) {
  return display != nullptr && display->pDriverContext != nullptr;
}

void destroy(VADisplayContextP display) {
  std::free(display->pDriverContext);
  std::free(display);
}

VAStatus driver_name(VADisplayContextP, char** name) {
  *name = strdup("clinfer_rig");
  return VA_STATUS_SUCCESS;
}

#if CLINFER_VA_HAS_DRIVER_NAMES
VAStatus driver_names(VADisplayContextP context, char** names, unsigned* count) {
  if (*count == 0) return VA_STATUS_ERROR_INVALID_PARAMETER;
  *count = 1;
  return driver_name(context, names);
}
#endif

void print_error(void*, const char* text) { std::fprintf(stderr, "libva: %s", text); }
void print_nothing(void*, const char*) {}

VADisplay make_display() {
  auto* display = static_cast<VADisplayContextP>(std::calloc(1, sizeof(VADisplayContext)));
  auto* driver = static_cast<VADriverContextP>(std::calloc(1, sizeof(VADriverContext)));
  display->vadpy_magic = VA_DISPLAY_MAGIC;
  display->vaIsValid = is_valid;
  display->vaDestroy = destroy;
#if CLINFER_VA_HAS_DRIVER_NAMES
  display->vaGetDriverNames = driver_names;  // libva asks for nothing else where it has this
#else
  display->vaGetDriverName = driver_name;
#endif
  display->error_callback = print_error;
  display->info_callback = print_nothing;
  display->pDriverContext = driver;
  driver->pDisplayContext = display;
  driver->display_type = VA_DISPLAY_DRM_RENDERNODES;
  driver->error_callback = [](VADriverContextP, const char* text) { print_error(nullptr, text); };
  driver->info_callback = [](VADriverContextP, const char*) {};
  int major = 0, minor = 0;
  if (vaInitialize(display, &major, &minor) == VA_STATUS_SUCCESS) return display;
  vaTerminate(display);
  return nullptr;
}

// One of a process: counters are the driver's, displays those of all pipelines.
class Displays {
 public:
  VADisplay get(unsigned number) {
    const std::lock_guard lock(mutex_);
    if (number >= all_.size()) return nullptr;
    if (all_[number] == nullptr) all_[number] = make_display();
    return all_[number];
  }
  ~Displays() {
    RigVaCounters n{};
    for (VADisplay display : all_) {
      if (display == nullptr) continue;
      const auto read = rig_function<RigReadVaCounters>(display, "rig_va_counters");
      read(&n);
    }
    if (std::getenv("RIG_REPORT") != nullptr)
      std::fprintf(stderr,
                   "rig va: surfaces=%ld alive=%ld frame-maps=%ld frame-gets=%ld maps=%ld puts=%ld "
                   "syncs=%ld exports=%ld "
                   "misuse=%ld\n",
                   n.surfaces_created, n.surfaces_alive, n.frame_maps, n.frame_gets, n.maps, n.puts,
                   n.syncs, n.exports, n.misuse);
    for (VADisplay display : all_)
      if (display != nullptr) vaTerminate(display);
    if (n.misuse != 0 || n.surfaces_alive != 0) _exit(70);
  }

 private:
  std::mutex mutex_;
  std::array<VADisplay, 4> all_{};
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void* rig_va_display(unsigned number) {
  static Displays displays;
  return displays.get(number);
}
