// Preloaded: a process has at most $FAIL_THREADS threads beside its first, then pthread_create()
// gives EAGAIN, as under a limit of the user's processes.
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const char* most = std::getenv("FAIL_THREADS")) {
    long threads = -3;  // ".", "..", the first thread
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) std::abort();
    while (readdir(tasks) != nullptr) ++threads;
    closedir(tasks);
    if (threads >= std::atol(most)) return EAGAIN;
  }
  return create(thread, attributes, start, argument);
}
