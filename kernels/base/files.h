// Files that are written whole or not at all, and folders that only their owner can change. All
// writing of files but streams goes through here. Errors are Error{io}: what cannot be done with
// which file, why, and what to do about it.
#pragma once

#include <sys/types.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>

namespace clinfer {

// What the system says about an errno, with advice where there is any: "No space left on device
// (free some, or name another folder)".
std::string system_reason(int error);

// What an exception of any type says, in one line: where a library threw what the system refused,
// with what to do about it.
std::string explain(const std::exception& error);

// A descriptor that closes itself; -1 where opening failed.
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

// A file under a name that cannot be guessed in the folder of `path`. It vanishes unless replace()
// puts it in the place of `path` in one step. What `path` is before, a link included, is neither
// opened nor followed; the new file may be read and written by no more users than the old one. For
// one thread.
class NewFile {
 public:
  // `mode` counts where there is no file yet, less the process's umask.
  explicit NewFile(std::string path, mode_t mode = 0666);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  void flush();  // to the disk
  void replace();

 private:
  [[noreturn]] void fail(int error) const;
  std::string path_, name_;
  Descriptor file_;
};

// Files that processes left which died between making a NewFile and replace(). Those of living
// processes stay, they hold a lock.
void remove_abandoned_files(const std::string& folder);

// `parts` one after the other as the new content of `path`.
void replace_file(const std::string& path, std::span<const std::string_view> parts);

// The same for a file that the user named: where it is a link, what it leads to; pipes, terminals
// and devices are written as they are.
void write_named_file(const std::string& path, std::span<const std::string_view> parts);

// The file that `path` leads to, which need not be there.
std::string resolve_links(const std::string& path);

// Makes a folder and its parents, with `mode` less the umask.
void make_folders(const std::string& path, mode_t mode = 0777);

// Who could write into a folder that is there but this user and root: "/a/b belongs to user 1000".
// "": nobody. Who can only put another folder in its place cannot forge what is in it, provided
// that the files are looked at as well.
std::string who_else_writes(const std::string& folder);

// The same for an open file, which has to be a regular one.
std::string who_else_writes(const std::string& name, const Descriptor& file);

}  // namespace clinfer
