// Opens and creates files, and tells which users could have put them there. Each file that the
// product trusts or writes is opened or made through these functions. They follow a path step by
// step, by descriptors, so that nobody can exchange a part of it meanwhile. They follow links of
// this user and of root only, since another user's may lead anywhere. All throw Error{io} in one
// line that says what, where and what to do. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace clinfer {

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

// ---- Files that the user named ------------------------------------------------------------------

// Opens a file, FIFO, terminal or device for writing. Creates a missing file, with `mode` without
// the bits of the umask. `flags`: O_APPEND, O_TRUNC, O_EXCL, O_NONBLOCK, O_RDWR; the descriptor is
// closed on exec. Refuses links of other users. In folders where everyone may make files, also
// refuses files that another user put there (except the folder's owner) or that have a second name.
// Never empties a file that it refuses. With O_NONBLOCK, returns an empty descriptor for a FIFO
// that has no reader yet.
Descriptor open_output(const std::string& path, int flags, mode_t mode = 0666);

// Creates a folder and its parents, with `mode` without the bits of the umask. They may belong to
// others.
void make_folders(const std::string& path, mode_t mode = 0777);

// Returns the file to which `path` refers after following links; it need not exist.
std::string resolve_links(const std::string& path);

enum class Last { as_it_is, followed };  // what to do with a link at the end of a path

// A name in an open folder, by which files are made, opened and renamed there (openat() and the
// like). `path` is free of links, for messages.
struct FilePlace {
  Descriptor folder;  // opened with O_PATH
  std::string name, path;
  bool is_of_proc = false;  // a link such as /proc/self/fd/1, which only the system can follow
};
FilePlace find_place(const std::string& path, Last last);

// ---- Folders and files that are trusted ---------------------------------------------------------

// Creates a folder for this user alone (0700, parents too) unless it exists, and checks that nobody
// else can change its content or put another folder in its place. Returns why that cannot be
// assured, or ""; never throws.
std::string own_folder_problem(const std::string& path);

// Reports users besides this one and root who could change what an existing folder holds or put
// another folder in its place: its owner and mode count, those of every folder above it up to the
// root, and the owners of links on the way. "/a/b belongs to user 1000"; "" if there are none.
std::string who_else_writes(const std::string& folder);

// Reports users besides this one and root who could write to an open file, which must be a regular
// file.
std::string who_else_writes(const std::string& name, const Descriptor& file);

// Reports the same for a program that is to run: for the file, and for everything on the path to
// it. The owner of `running`, a file whose code runs in this process already, counts as this user.
std::string who_else_replaces(const std::string& file, const std::string& running = "");

// Returns why code in an existing folder cannot be run, for example on a file system mounted
// noexec; "" if it can.
std::string no_execution_in(const std::string& folder);

// Makes a folder with an unpredictable name for this user alone, in the first of `parents` that
// allows it. Returns "" if none does. The caller removes the folder.
std::string make_unguessable_folder(const std::vector<std::string>& parents);

}  // namespace clinfer
