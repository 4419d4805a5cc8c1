// Writes files atomically. All files except streams are written through these functions; paths.h
// decides where they may lie and who may have put them there. Functions throw Error{io}, which
// states the failed operation, the file, the cause, and what to do about it.
#pragma once

#include <sys/types.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/system/paths.h"

namespace clinfer {

// Calls write(2) without raising signals, whatever the application does with SIGPIPE and SIGXFSZ: a
// reader who left gives EPIPE, and a file that would exceed the user's limit EFBIG.
ssize_t write_quietly(int file, const void* data, size_t size);

// Returns the system's text for an errno, with advice if there is any: "No space left on device
// (free some, or name another folder)".
std::string system_reason(int error);

// Returns the message of an exception of any type in one line, with advice if it is a system error
// that a library threw.
std::string explain(const std::exception& error);

// A file with an unpredictable name in the folder of `path`. replace() renames it to `path`
// atomically; without that, the destructor deletes it. An existing `path` is neither opened nor, if
// it is a link, followed. The new file is accessible to no more users than the old one. Not
// thread-safe.
class NewFile {
 public:
  // `mode`, without the bits of the process's umask, applies if `path` does not exist yet.
  explicit NewFile(const std::string& path, mode_t mode = 0666);
  explicit NewFile(FilePlace place, mode_t mode = 0666);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  void flush();  // writes to the disk
  void replace();

 private:
  [[noreturn]] void fail(int error, SourcePlace place = SourcePlace::here()) const;
  FilePlace place_;
  std::string name_;
  Descriptor file_;
};

// Returns the names of a folder's entries, without "." and ".."; none if it cannot be read. (The
// standard library's directory_iterator ends the process if memory runs out.)
std::vector<std::string> names_in(const std::string& folder);

// Deletes the files of processes that died between creating a NewFile and replace(). Files of
// running processes stay; a lock identifies them.
void remove_abandoned_files(const std::string& folder);

// Atomically replaces the content of `path` by the concatenated `parts`.
void replace_file(const std::string& path, std::span<const std::string_view> parts);

// Works as replace_file() does, for a file that the user named: replaces the target of a link, and
// writes to pipes, terminals and devices directly.
void write_named_file(const std::string& path, std::span<const std::string_view> parts);

}  // namespace clinfer
