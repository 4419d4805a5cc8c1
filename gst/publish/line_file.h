// Lines appended to a file, a FIFO or standard output: whole lines even if others write there, too, and
// after a full disk; rotated when wanted; begun anew where somebody moved or removed the file; without a
// signal when a reader leaves and without a wait that cannot be interrupted.
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

#include "kernels/base/files.h"

namespace clinfer {

struct LineFileSettings {
  std::string path = "-";    // "-": standard output
  bool append = false;       // else the file is emptied first, unless another process writes to it
  uint64_t rotate_size = 0;  // bytes; a file that would grow beyond is set aside; 0: never
  std::chrono::seconds rotate_interval{0};      // a file of this age is set aside; 0: never
  std::chrono::milliseconds flush_interval{0};  // lines wait for this long; 0: written at once
};

// Writes lines to a file, FIFO or standard output. One thread writes; interrupt() and resume() may
// be called from any.
class LineFile {
 public:
  // A notice for the user that is no error; from the calling thread.
  using Notice = std::function<void(const std::string&)>;

  // Opens the file. A FIFO is opened when the first line is there, since that waits for a reader.
  // Throws Error{not_found or bad_argument or io} that names the path.
  LineFile(LineFileSettings settings, Notice notice);
  // Writes what still waits, and gives a reader half a second for it. A notice says what is lost.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Adds a line (without its break): JSON. False: interrupted, the line waits for the next call. Throws
  // Error{io} when it cannot be written, or lines before it that were waiting could not; a regular file
  // ends in a whole line then.
  bool write(std::string_view line);
  // Writes what waits. False: interrupted.
  bool flush();

  void interrupt();  // write() and flush() return false until resume()
  void resume() { interrupted_ = false; }

 private:
  void open();
  void take(Descriptor file);
  // Opens the file by the user's name, but not through what others planted. Empty: a FIFO that
  // nobody reads yet.
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
  int file_ = -1;  // as `opened_file_`, or standard output
  Descriptor opened_file_;
  bool is_regular_ = false, is_fifo_ = false;
  uint64_t size_ = 0;
  std::chrono::steady_clock::time_point opened_, first_waiting_, looked_;
  std::string waiting_;
  std::exception_ptr problem_;  // of a flush that no caller waited for
  size_t untold_ = 0;           // lines that it lost, until a caller got the problem
  std::thread flusher_;         // with a flush interval
};

}  // namespace clinfer
