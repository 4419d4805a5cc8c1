// Implements the queue and its journal.
#include "gst/publish/message_queue.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

// The number of confirmed bytes at the start of the file from which on it is written anew without
// them, if the rest is not more than twice as much.
constexpr uint64_t kMostConfirmed = 16u << 10;
constexpr size_t kDigits = 20;
constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

}  // namespace

void Journal::fail(const std::string& what, int code, SourcePlace place) const {
  // Is reported as RESOURCE_NO_SPACE_LEFT.
  if (code == ENOSPC || code == EDQUOT)
    throw Error{ErrorCode::out_of_memory, "queue-dir " + folder_ + ": no space left for messages",
                place};
  throw Error{ErrorCode::io, "queue-dir " + folder_ + ": " + what + ": " + system_reason(code),
              place};
}

Journal::Journal(const std::string& folder, const std::string& name)
    : folder_(folder), path_(folder + "/" + name + ".queue") {
  // Makes the folder accessible to this user only, because messages show what cameras see.
  make_folders(folder, 0700);
  if (const std::string others = who_else_writes(folder); !others.empty())
    throw Error{ErrorCode::bad_argument, "queue-dir " + folder + ": " + others +
                                             ", who could forge messages; name a folder that only "
                                             "this user can change"};
  file_ = Descriptor(open(path_.c_str(), kFlags | O_APPEND, 0600));
  if (!file_) fail(path_ + " cannot be opened", errno);
  struct stat facts {
  }, named{};
  // The owner of the lock may have put another file there meanwhile.
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0 || fstat(file_.get(), &facts) != 0 ||
      stat(path_.c_str(), &named) != 0 || facts.st_ino != named.st_ino)
    throw Error{ErrorCode::bad_argument,
                "queue-dir " + folder +
                    " is in use by another publisher with the same method, address and topic; name "
                    "another folder"};
  position_file_ = Descriptor(open((path_ + ".position").c_str(), kFlags, 0600));
  if (!position_file_) fail(path_ + ".position cannot be opened", errno);
  size_ = static_cast<uint64_t>(facts.st_size);
  char digits[kDigits + 1] = {};
  if (pread(position_file_.get(), digits, kDigits, 0) > 0)
    position_ = std::strtoull(digits, nullptr, 10);
  // A position within a line is not ours: sends everything again rather than losing something.
  char before = 0;
  if (position_ > size_ ||
      (position_ > 0 &&
       (pread(file_.get(), &before, 1, static_cast<off_t>(position_ - 1)) != 1 || before != '\n')))
    position_ = 0;
}

std::vector<std::pair<std::string, uint64_t>> Journal::read() {
  std::vector<std::pair<std::string, uint64_t>> lines;
  std::string text(size_ - position_, '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t count =
        pread(file_.get(), text.data() + at, text.size() - at, static_cast<off_t>(position_ + at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(path_ + " cannot be read", count < 0 ? errno : EIO);
    at += static_cast<size_t>(count);
  }
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    lines.emplace_back(text.substr(start, end - start), position_ + end + 1);
    start = end + 1;
  }
  // The process was killed while it wrote the rest, which push() has not acknowledged.
  if (start < text.size()) {
    size_ = position_ + start;
    if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
      fail(path_ + " cannot be written", errno);
  }
  return lines;
}

// Cuts half a line, which would otherwise be taken for the beginning of the next one.
void Journal::cut_half_line() {
  torn_ = ftruncate(file_.get(), static_cast<off_t>(size_)) != 0;
  if (torn_) fail(path_ + " cannot be written", errno);
}

uint64_t Journal::append(const std::string& line) {
  if (torn_) cut_half_line();
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = write_quietly(file_.get(), text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int code = errno;
      if (at > 0) cut_half_line();
      fail(path_ + " cannot be written", code);
    }
    at += static_cast<size_t>(count);
  }
  size_ += text.size();
  return removed_ + size_;
}

void Journal::write_position(uint64_t position) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%020llu", static_cast<unsigned long long>(position));
  if (pwrite(position_file_.get(), digits, kDigits, 0) != static_cast<ssize_t>(kDigits))
    fail(path_ + ".position cannot be written", errno);
}

// Writes the position first, so that a kill in between sends something twice but loses nothing.
void Journal::start_again() {
  write_position(0);
  if (ftruncate(file_.get(), 0) != 0) fail(path_ + " cannot be emptied", errno);
  removed_ += size_;
  size_ = position_ = 0;
  torn_ = false;
}

// Copies the lines that are not confirmed to the end of another file.
void Journal::copy_rest(const Descriptor& to) const {
  std::string part(64u << 10, '\0');
  for (uint64_t at = position_; at < size_;) {
    const size_t most = std::min<uint64_t>(part.size(), size_ - at);
    const ssize_t count = pread(file_.get(), part.data(), most, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(path_ + " cannot be read", count < 0 ? errno : EIO);
    for (size_t done = 0; done < static_cast<size_t>(count);) {
      const ssize_t written =
          write_quietly(to.get(), part.data() + done, static_cast<size_t>(count) - done);
      if (written < 0 && errno != EINTR) fail(path_ + " cannot be written anew", errno);
      if (written > 0) done += static_cast<size_t>(written);
    }
    at += static_cast<uint64_t>(count);
  }
  // Syncs first: the name must not lead to a file that is empty after a power cut.
  if (fdatasync(to.get()) != 0) fail(path_ + " cannot be written anew", errno);
}

// Puts a file with the unconfirmed lines in place of this one.
void Journal::compact() {
  const std::string name = path_ + ".new";
  unlink(name.c_str());  // left by a process that was killed here
  Descriptor fresh(open(name.c_str(), kFlags | O_EXCL | O_APPEND, 0600));
  if (!fresh) fail(name + " cannot be opened", errno);
  try {
    if (flock(fresh.get(), LOCK_EX | LOCK_NB) != 0) fail(name + " cannot be locked", errno);
    copy_rest(fresh);
    write_position(0);  // written first, as in start_again()
    if (rename(name.c_str(), path_.c_str()) != 0) {
      const int code = errno;
      write_position(position_);
      fail(path_ + " cannot be replaced", code);
    }
  } catch (...) {
    unlink(name.c_str());
    not_before_ = 2 * position_;
    throw;
  }
  not_before_ = 0;
  file_ = std::move(fresh);
  removed_ += position_;
  size_ -= position_;
  position_ = 0;
  torn_ = false;
}

void Journal::confirm(uint64_t end) {
  position_ = end - removed_;
  if (position_ < std::max(kMostConfirmed, not_before_) || position_ < (size_ - position_) / 2)
    write_position(position_);
  else if (position_ == size_)
    start_again();
  else
    compact();
}

MessageQueue::MessageQueue(size_t size, QueuePolicy policy, std::unique_ptr<Journal> journal)
    : limit_(std::max<size_t>(size, 1)), policy_(policy), journal_(std::move(journal)) {
  if (journal_ == nullptr) return;
  for (auto& [line, end] : journal_->read())
    entries_.push_back({{++last_, std::make_shared<const std::string>(std::move(line))}, end});
}

template <typename Use>
bool MessageQueue::with_journal(Use&& use) {
  if (journal_ == nullptr) return true;
  try {
    use(*journal_);
    failing_ = false;
    return true;
  } catch (const Error& error) {
    if (!std::exchange(failing_, true))
      problem_ = std::string(error.what()) +
                 "; messages are kept in memory only until it can be "
                 "written";
    return false;
  }
}

std::string MessageQueue::take_problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

bool MessageQueue::push(std::string text) {
  std::unique_lock lock(mutex_);
  if (policy_ == QueuePolicy::block)
    changed_.wait(lock, [&] { return interrupted_ || entries_.size() < limit_; });
  if (interrupted_) return false;
  while (entries_.size() >= limit_) {
    if (const uint64_t end = entries_.front().end; end != 0)
      with_journal([&](Journal& journal) { journal.confirm(end); });
    entries_.pop_front();
    ++dropped_;
  }
  uint64_t end = 0;
  with_journal([&](Journal& journal) { end = journal.append(text); });
  entries_.push_back({{++last_, std::make_shared<const std::string>(std::move(text))}, end});
  changed_.notify_all();
  return true;
}

std::vector<Message> MessageQueue::take(size_t most, std::chrono::milliseconds most_wait) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most_wait, [&] { return interrupted_ || !entries_.empty(); });
  std::vector<Message> messages;
  for (size_t i = 0; i < std::min(most, entries_.size()); ++i)
    messages.push_back(entries_[i].message);
  return messages;
}

void MessageQueue::confirm(uint64_t number) {
  const std::lock_guard lock(mutex_);
  uint64_t end = 0;
  while (!entries_.empty() && entries_.front().message.number <= number) {
    end = std::max(end, entries_.front().end);
    entries_.pop_front();
  }
  if (end != 0) with_journal([&](Journal& journal) { journal.confirm(end); });
  changed_.notify_all();
}

bool MessageQueue::wait_until_empty(std::chrono::milliseconds most_wait) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most_wait, [&] { return interrupted_ || entries_.empty(); });
  return entries_.empty();
}

void MessageQueue::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void MessageQueue::resume() {
  const std::lock_guard lock(mutex_);
  interrupted_ = false;
}

bool MessageQueue::is_interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

size_t MessageQueue::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

uint64_t MessageQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace clinfer
