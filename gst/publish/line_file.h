// Appends lines to a file, a FIFO or standard output. Lines stay whole even if others write there,
// too, and after a full disk. Files are rotated if wanted, and begun anew if somebody moved or
// removed them. A reader who leaves causes no signal, and all waits can be interrupted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "kernels/base/system/files.h"

namespace clinfer {

struct LineFileSettings {
  std::string path = "-";  // "-" is standard output
  bool append = false;     // false: the file is emptied first, unless another process writes to it
  uint64_t rotate_size = 0;  // in bytes: a file that would exceed it is set aside; 0: never
  std::chrono::seconds rotate_interval{0};  // a file of this age is set aside; 0: never
  // How long lines may wait; 0: they are written at once.
  std::chrono::milliseconds flush_interval{0};
};

// Writes lines to a file, FIFO or standard output. One thread writes; any thread may call
// interrupt() and resume().
class LineFile {
 public:
  // Takes a notice for the user that is no error, on the calling thread.
  using Notice = std::function<void(const std::string&)>;

  // Opens the file. A FIFO is opened with the first line, since that waits for a reader. Throws
  // Error{not_found or bad_argument or io}, which names the path.
  LineFile(LineFileSettings settings, Notice notice);
  // Writes the lines that still wait, and gives a reader half a second for that. A notice tells
  // what is lost.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Adds a line of JSON without its line break. Returns false if interrupted; the line then waits
  // for the next call. Throws Error{io} if the line, or lines before it that were waiting, cannot
  // be written; a regular file then ends in a whole line.
  bool write(std::string_view line);
  // Writes the lines that wait. Returns false if interrupted.
  bool flush();

  void interrupt();  // makes write() and flush() return false until resume()
  void resume() { interrupted_ = false; }

 private:
  void open();
  void take(Descriptor file);
  // Opens the file by the user's name, but not through links that others planted. Returns an empty
  // descriptor for a FIFO without a reader.
  Descriptor open_named() const;
  bool open_fifo();
  void rotate();
  void begin_anew();
  bool is_moved() const;
  void end_half_line();
  void lock_again();
  bool write_out(std::unique_lock<std::mutex>& lock);
  void write_last(std::unique_lock<std::mutex>& lock);
  size_t lines_waiting() const;
  void throw_problem();
  bool write_waiting(std::unique_lock<std::mutex>& lock);
  bool take_turn(std::unique_lock<std::mutex>& lock);
  void end_turn();
  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  void flush_in_time();
  [[noreturn]] void fail(const std::string& what, int code,
                         SourcePlace place = SourcePlace::here()) const;

  LineFileSettings settings_;
  Notice notice_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> interrupted_ = false;
  bool stopping_ = false, writing_ = false;
  int file_ = -1;  // that of `opened_file_`, or standard output
  Descriptor opened_file_;
  bool is_regular_ = false, is_fifo_ = false;
  uint64_t size_ = 0;
  std::chrono::steady_clock::time_point opened_, first_waiting_, looked_;
  std::string waiting_;
  std::exception_ptr problem_;  // of a flush for which no caller waited
  size_t untold_ = 0;           // number of lines lost by it, until a caller got the problem
  std::thread flusher_;         // exists with a flush interval
};

}  // namespace clinfer
