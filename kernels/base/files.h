// Writes files atomically. All files except streams are written through these functions; where they lie,
// and who may have put what there, is the matter of paths.h. They throw Error{io}, which states the failed
// operation, the file, the cause, and what to do about it.
#pragma once

#include <sys/types.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/paths.h"

namespace clinfer {

// write(2) that raises no signal, whatever the application does with SIGPIPE and SIGXFSZ: a reader who
// left is EPIPE, and a file that would exceed the user's limit EFBIG.
ssize_t write_quietly(int file, const void* data, size_t size);

// The system's text for an errno, with advice if there is any: "No space left on device (free some,
// or name another folder)".
std::string system_reason(int error);

// The message of an exception of any type, in one line. For an error of the system that a library
// threw, with advice.
std::string explain(const std::exception& error);

// A file with an unpredictable name in the folder of `path`. replace() renames it to `path`
// atomically; without that, the destructor deletes it. An existing `path` is neither opened nor, if
// it is a link, followed. The new file is accessible to no more users than the old one. Not
// thread-safe.
class NewFile {
 public:
  // `mode`, less the process's umask, applies if `path` does not exist yet.
  explicit NewFile(const std::string& path, mode_t mode = 0666);
  explicit NewFile(FilePlace place, mode_t mode = 0666);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  void flush();  // to the disk
  void replace();

 private:
  [[noreturn]] void fail(int error, SourcePlace place = SourcePlace::here()) const;
  FilePlace place_;
  std::string name_;
  Descriptor file_;
};

// The names of what is in a folder, without "." and ".."; none where it cannot be read. The standard
// library's directory_iterator ends the process where memory runs out.
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
