// Replacements of system functions in the test program: they fail where a fault is
// armed. Allocations are those by operator new, files and threads those of this project's code and
// of the C++ library.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/faults/points.h"

namespace {

bool file_fails(const void* caller, int error) {
  if (fault_in_driver() || !fault_of_project(caller) || !fault_strikes(kFile)) return false;
  errno = error;
  return true;
}

struct Start {
  void* (*work)(void*);
  void* argument;
  bool of_driver;
};

void* run_thread(void* raw) {
  const Start start = *static_cast<Start*>(raw);
  std::free(raw);
  if (start.of_driver) fault_set_driver_thread();
  return start.work(start.argument);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)

void* operator new(size_t bytes) {
  void* memory = fault_strikes(kAllocation) ? nullptr : std::malloc(bytes ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  if (fault_strikes(kAllocation) ||
      posix_memalign(&memory, static_cast<size_t>(alignment), bytes) != 0)
    throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
// Sanitizers bring these of their own, whose memory operator delete below must not free.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {

int fault_of_project(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return 0;
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&fault_of_project), &own);
  return info.dli_fbase == own.dli_fbase || std::strstr(info.dli_fname, "clinfer.so") ||
         std::strstr(info.dli_fname, "libstdc++");
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                   void* argument) {
  using Real = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!fault_in_driver() && fault_of_project(CALLER) && fault_strikes(kThread)) return EAGAIN;
  auto* start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr) return EAGAIN;
  *start = {work, argument, fault_in_driver() != 0};
  const int status = real(thread, attributes, run_thread, start);
  if (status != 0) std::free(start);
  return status;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (file_fails(CALLER, EMFILE)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (file_fails(CALLER, EMFILE)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

ssize_t read(int file, void* to, size_t bytes) {
  return file_fails(CALLER, EIO) ? -1 : syscall(SYS_read, file, to, bytes);
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  return file_fails(CALLER, EIO) ? -1 : syscall(SYS_pread64, file, to, bytes, offset);
}

ssize_t write(int file, const void* from, size_t bytes) {
  return file_fails(CALLER, ENOSPC) ? -1 : syscall(SYS_write, file, from, bytes);
}

int fsync(int file) {
  return file_fails(CALLER, EIO) ? -1 : static_cast<int>(syscall(SYS_fsync, file));
}

int rename(const char* from, const char* to) noexcept {
  return file_fails(CALLER, EACCES)
             ? -1
             : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return file_fails(CALLER, EROFS) ? -1
                                   : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
}
