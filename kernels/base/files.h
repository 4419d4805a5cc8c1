// Writes files atomically and checks that other users cannot change a folder. All files except
// streams are written through these functions. They throw Error{io}, which states the failed
// operation, the file, the cause, and what to do about it.
#pragma once

#include <sys/types.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"

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

// Owns a file descriptor and closes it; -1 if opening failed.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A file with an unpredictable name in the folder of `path`. replace() renames it to `path`
// atomically; without that, the destructor deletes it. An existing `path` is neither opened nor, if
// it is a link, followed. The new file is accessible to no more users than the old one. Not
// thread-safe.
class NewFile {
 public:
  // `mode`, less the process's umask, applies if `path` does not exist yet.
  explicit NewFile(std::string path, mode_t mode = 0666);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  void flush();  // to the disk
  void replace();

 private:
  [[noreturn]] void fail(int error, SourcePlace place = SourcePlace::here()) const;
  std::string path_, name_;
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

// Like replace_file(), for a file that the user named: replaces the target of a link, and writes to
// pipes, terminals and devices directly.
void write_named_file(const std::string& path, std::span<const std::string_view> parts);

// The file that `path` refers to after following links; it need not exist.
std::string resolve_links(const std::string& path);

// Creates a folder and its parents, with `mode` less the umask.
void make_folders(const std::string& path, mode_t mode = 0777);

// Reports users besides this one and root who could write into an existing folder: "/a/b belongs to
// user 1000"; "" if there are none. A user who can only replace the whole folder by another one
// cannot forge its files, provided that the caller checks the files as well.
std::string who_else_writes(const std::string& folder);

// Reports users besides this one and root who could write to an open file, which must be a regular
// file.
std::string who_else_writes(const std::string& name, const Descriptor& file);

}  // namespace clinfer
