// Appends lines to a file, a FIFO or standard output.
#include "gst/publish/line_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <optional>

#include "kernels/base/error.h"
#include "kernels/base/system/threads.h"

namespace clinfer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostWaiting = 1 << 20;  // in bytes
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kShortWait = std::chrono::milliseconds(1);
constexpr auto kLookForFile = std::chrono::seconds(1);
// How long a reader is waited for when the element stops.
constexpr auto kReaderWait = std::chrono::milliseconds(500);

// Returns the lock that all publishers of the process share.
std::mutex& turn_of_standard_output() {
  static std::mutex turn;
  return turn;
}

bool rotates(const LineFileSettings& settings) {
  return settings.rotate_size > 0 || settings.rotate_interval.count() > 0;
}

// Returns whether a line without its line break is complete: a JSON object up to its last brace.
bool is_whole_object(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && depth > 0 && --depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

// Returns the bytes of a file after its last line break; nothing if it cannot be read.
std::optional<std::string> last_part(int file) {
  const Descriptor reader(
      ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!reader || fstat(reader.get(), &facts) != 0) return {};
  std::string part;
  for (off_t end = facts.st_size; end > 0;) {
    char block[4096];
    const off_t begin = std::max<off_t>(end - static_cast<off_t>(sizeof block), 0);
    const ssize_t count = pread(reader.get(), block, static_cast<size_t>(end - begin), begin);
    if (count != end - begin) return {};
    const std::string_view text(block, static_cast<size_t>(count));
    const size_t line = text.rfind('\n');
    part.insert(0, text.substr(line == std::string_view::npos ? 0 : line + 1));
    if (line != std::string_view::npos) break;
    end = begin;
  }
  return part;
}

}  // namespace

void LineFile::fail(const std::string& what, int code, SourcePlace place) const {
  const std::string where =
      settings_.path == "-" ? "standard output" : "file-path " + settings_.path;
  throw Error{ErrorCode::io, where + " " + what + ": " + system_reason(code), place};
}

LineFile::LineFile(LineFileSettings settings, Notice notice)
    : settings_(std::move(settings)), notice_(std::move(notice)) {
  open();
  if (settings_.flush_interval.count() > 0) flusher_ = start_thread([this] { flush_in_time(); });
}

LineFile::~LineFile() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    interrupted_ = false;
  }
  wake_.notify_all();
  if (flusher_.joinable()) flusher_.join();
  std::unique_lock lock(mutex_);
  try {
    write_last(lock);
  } catch (const std::exception&) {
    // There is no memory to report it.
  }
}

// Writes lines that still wait, because the stream did not reach its end.
void LineFile::write_last(std::unique_lock<std::mutex>& lock) {
  std::string why = "nobody reads them";
  auto lost = lines_waiting();
  try {
    const auto until = Clock::now() + kReaderWait;
    while (file_ >= 0 && !write_out(lock) && Clock::now() < until) wake_.wait_for(lock, kShortWait);
    lost = lines_waiting();
    if (problem_) std::rethrow_exception(problem_);
  } catch (const Error& error) {
    why = error.what();
  }
  if (lost += untold_; lost != 0)
    notice_("lines of results that are not written at the end: " + std::to_string(lost) + " (" +
            why + ")");
}

size_t LineFile::lines_waiting() const {
  return static_cast<size_t>(std::count(waiting_.begin(), waiting_.end(), '\n'));
}

void LineFile::take(Descriptor file) {
  opened_file_ = std::move(file);
  file_ = opened_file_.get();
}

Descriptor LineFile::open_named() const {
  try {
    return open_output(settings_.path, O_APPEND | O_NONBLOCK);
  } catch (const Error& error) {
    throw Error{error.code(), std::string("file-path ") + error.what(), error.place()};
  }
}

void LineFile::open() {
  struct stat facts {};
  if (settings_.path == "-") {
    file_ = STDOUT_FILENO;
    if (fstat(file_, &facts) != 0) fail("cannot be written", errno);
    // The shell opened this file, so that others write to it as well, at one common position.
  } else {
    if (stat(settings_.path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode)) {
      is_fifo_ = true;  // opened with the first line
    } else {
      take(open_named());
      if (fstat(file_, &facts) != 0) fail("cannot be written", errno);
      is_regular_ = S_ISREG(facts.st_mode);
    }
  }
  const bool is_rotated = rotates(settings_);
  if (is_rotated && !is_regular_)
    throw Error{ErrorCode::bad_argument,
                "file-path " + settings_.path +
                    " is no regular file, which rotate-size and rotate-interval need"};
  opened_ = looked_ = Clock::now();
  if (!is_regular_) return;
  // A publisher holds a shared lock, and an exclusive one while it rotates the file.
  const bool alone = flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (!alone && (is_rotated || flock(file_, LOCK_SH | LOCK_NB) != 0)) {
    throw Error{ErrorCode::bad_argument,
                "file-path " + settings_.path +
                    " is being written by another publisher, and a file that is rotated needs one "
                    "publisher of its own"};
  }
  if (alone) {
    if (!settings_.append && ftruncate(file_, 0) != 0) fail("cannot be emptied", errno);
    end_half_line();
    lock_again();
  } else if (!settings_.append) {
    notice_("file-path " + settings_.path +
            " is being written by another publisher: it is not emptied, and the lines of both are "
            "in it");
  }
  if (fstat(file_, &facts) == 0) size_ = static_cast<uint64_t>(facts.st_size);
}

// Returns false if there is no reader yet.
bool LineFile::open_fifo() {
  take(open_named());
  return file_ >= 0;
}

void LineFile::rotate() {
  // Makes names that sort by time: FILE.20261126-101500, with a number if the name is taken.
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(stamp, sizeof stamp, ".%Y%m%d-%H%M%S", &parts);
  std::string aside = settings_.path + stamp;
  for (int number = 2; access(aside.c_str(), F_OK) == 0; ++number)
    aside = settings_.path + stamp + "-" + std::to_string(number);
  if (!is_moved() && rename(settings_.path.c_str(), aside.c_str()) != 0)
    fail("cannot be set aside", errno);
  begin_anew();
}

// Returns whether the file was moved or removed, as logrotate does.
bool LineFile::is_moved() const {
  struct stat named {
  }, own{};
  return stat(settings_.path.c_str(), &named) != 0 || fstat(file_, &own) != 0 ||
         named.st_dev != own.st_dev || named.st_ino != own.st_ino;
}

void LineFile::begin_anew() {
  take(open_named());
  struct stat facts {};
  if (fstat(file_, &facts) != 0) fail("cannot be written", errno);
  if (!S_ISREG(facts.st_mode))
    throw Error{ErrorCode::bad_argument, "file-path " + settings_.path +
                                             " was a file, and somebody put something else there"};
  lock_again();
  size_ = static_cast<uint64_t>(facts.st_size);
  opened_ = looked_ = Clock::now();
}

void LineFile::lock_again() { flock(file_, (rotates(settings_) ? LOCK_EX : LOCK_SH) | LOCK_NB); }

// Ends half a line, from a full disk or a process that was killed, which would otherwise be joined
// to the next line. For a file that nobody else writes.
void LineFile::end_half_line() {
  const std::optional<std::string> part = last_part(file_);
  if (!part || part->empty()) return;
  struct stat facts {};
  if (part->front() != '{' || is_whole_object(*part)) {
    if (write_quietly(file_, "\n", 1) != 1) fail("cannot be written", errno);
  } else if (fstat(file_, &facts) == 0 &&
             ftruncate(file_, facts.st_size - static_cast<off_t>(part->size())) == 0) {
    notice_("file-path " + settings_.path + " ended in half a line, which is cut off");
  }
}

// Waits until a pipe takes more. Returns false if interrupted.
bool LineFile::wait_for_room(std::unique_lock<std::mutex>& lock) {
  bool told = false;
  while (!interrupted_) {
    if (file_ < 0 && !open_fifo()) {
      if (stopping_) return false;
      if (!told)
        notice_("file-path " + settings_.path + " is a FIFO that nobody reads yet: waiting");
      told = true;
      wake_.wait_for(lock, kLook);
      continue;
    }
    pollfd room{file_, POLLOUT, 0};
    const int ready = poll(&room, 1, 0);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail("cannot be written", errno);
    if (stopping_) return false;
    wake_.wait_for(lock, kLook);
  }
  return false;
}

// Takes the turn to write: a pipe takes a long line in several writes, and no other writer's bytes
// may come between them. Regular files need no turns, as each write appends at once. Returns false
// if interrupted.
bool LineFile::take_turn(std::unique_lock<std::mutex>& lock) {
  const auto taken = [this] {
    return file_ == STDOUT_FILENO ? turn_of_standard_output().try_lock()
                                  : flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  };
  while (!taken()) {
    if (interrupted_ || stopping_) return false;
    wake_.wait_for(lock, kShortWait);
  }
  return true;
}

void LineFile::end_turn() {
  if (file_ == STDOUT_FILENO)
    turn_of_standard_output().unlock();
  else
    flock(file_, LOCK_UN);
}

bool LineFile::write_out(std::unique_lock<std::mutex>& lock) {
  // Waiting releases the lock, so that the other thread may write here.
  while (writing_) {
    if (interrupted_) return false;
    wake_.wait_for(lock, kLook);
  }
  if (waiting_.empty()) return true;
  writing_ = true;
  struct Done {
    LineFile* self;
    bool has_turn = false;
    ~Done() {
      if (has_turn) self->end_turn();
      self->writing_ = false;
    }
  } done{this};
  if (!is_regular_) {
    if (!wait_for_room(lock) || !take_turn(lock)) return false;
    done.has_turn = true;
  }
  return write_waiting(lock);
}

bool LineFile::write_waiting(std::unique_lock<std::mutex>& lock) {
  // Pipes that are ready accept PIPE_BUF bytes without blocking.
  const size_t most = is_regular_ ? std::string::npos : PIPE_BUF;
  while (!waiting_.empty()) {
    // The written part of a line cannot be taken back, so the rest is written first in the next
    // call.
    if (!is_regular_ && !wait_for_room(lock)) return false;
    const ssize_t written = write_quietly(file_, waiting_.data(), std::min(waiting_.size(), most));
    if (written >= 0) {
      waiting_.erase(0, static_cast<size_t>(written));
      size_ += static_cast<uint64_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      const int code = errno;
      waiting_.clear();
      if (is_regular_ && flock(file_, LOCK_EX | LOCK_NB) == 0) {
        end_half_line();
        lock_again();
      }
      if (code == EPIPE) fail("has no reader any more", code);
      // Is reported as RESOURCE_NO_SPACE_LEFT.
      if (code == ENOSPC || code == EDQUOT)
        throw Error{ErrorCode::out_of_memory, "no space left for the results"};
      fail("cannot be written", code);
    }
  }
  return true;
}

bool LineFile::write(std::string_view line) {
  std::unique_lock lock(mutex_);
  throw_problem();
  if (interrupted_) return false;
  if (is_regular_) {
    const uint64_t size = size_ + waiting_.size();
    const bool large =
        settings_.rotate_size > 0 && size > 0 && size + line.size() + 1 > settings_.rotate_size;
    const bool old = settings_.rotate_interval.count() > 0 &&
                     Clock::now() - opened_ >= settings_.rotate_interval;
    if ((large || old) && write_out(lock) && size_ > 0) rotate();
    if (Clock::now() - looked_ >= kLookForFile) {
      looked_ = Clock::now();
      if (is_moved() && write_out(lock)) {
        begin_anew();
        notice_("file-path " + settings_.path + " was moved or removed: a new file is begun");
      }
    }
  }
  if (waiting_.empty()) first_waiting_ = Clock::now();
  // Reserves memory first, so that a line is added completely or not at all.
  if (const size_t size = waiting_.size() + line.size() + 1; size > waiting_.capacity())
    waiting_.reserve(std::max(size, 2 * waiting_.capacity()));
  waiting_.append(line).push_back('\n');
  if (settings_.flush_interval.count() > 0 && waiting_.size() < kMostWaiting) {
    wake_.notify_all();
    return true;
  }
  return write_out(lock);
}

bool LineFile::flush() {
  std::unique_lock lock(mutex_);
  throw_problem();
  return write_out(lock);
}

void LineFile::throw_problem() {
  if (!problem_) return;
  untold_ = 0;
  std::rethrow_exception(problem_);
}

void LineFile::interrupt() {
  interrupted_ = true;
  wake_.notify_all();
}

void LineFile::flush_in_time() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty() || interrupted_ || problem_) {
      wake_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    const auto due = first_waiting_ + settings_.flush_interval;
    if (Clock::now() < due) {
      wake_.wait_until(lock, due);
      continue;
    }
    const size_t lines = lines_waiting();
    try {
      write_out(lock);
    } catch (...) {
      problem_ = std::current_exception();
      untold_ = lines;
    }
  }
}

}  // namespace clinfer
