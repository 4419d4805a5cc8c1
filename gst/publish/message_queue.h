// A queue of messages for a broker, in order. With a journal they survive the process: a message is
// in the file from before push() returns until it is confirmed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/base/system/files.h"

namespace clinfer {

enum class QueuePolicy { block, drop_oldest };

struct Message {
  uint64_t number = 0;  // counts from 1
  std::shared_ptr<const std::string> text;
};

// Lines in a file, and how many bytes of it are confirmed. To be used by one thread at a time.
// Killing the process loses nothing; a power cut may lose what the system had not written yet.
// Confirmed lines are removed from the file now and then, so that it is at most half as large again
// as the rest, or 16 KiB larger.
class Journal {
 public:
  // Makes the folder and the files, or opens those of an earlier run. Throws Error{io,
  // bad_argument}, which names the folder.
  Journal(const std::string& folder, const std::string& name);

  // Returns lines of an earlier run that were not confirmed, and where each ends.
  std::vector<std::pair<std::string, uint64_t>> read();
  // Appends a line. Returns where it ends, counted from the first line of this run. Throws
  // Error{io}, or Error{out_of_memory} if the disk is full; the line is then not in the file.
  uint64_t append(const std::string& line);
  // Notes that the message that ends here, and all before it, need not be kept. Throws Error{io} if
  // the file cannot be changed; the message is then sent again after a restart.
  void confirm(uint64_t end);

 private:
  [[noreturn]] void fail(const std::string& what, int code,
                         SourcePlace place = SourcePlace::here()) const;
  void write_position(uint64_t position);
  void start_again();
  void compact();
  void copy_rest(const Descriptor& to) const;
  void cut_half_line();

  std::string folder_, path_;
  Descriptor file_, position_file_;
  uint64_t size_ = 0, position_ = 0;  // in the file
  // Position before which the file is not rewritten again, after a failure.
  uint64_t not_before_ = 0;
  uint64_t removed_ = 0;  // bytes removed from the file's beginning in this run
  bool torn_ = false;     // true if the file ends in half a line, after `size_`
};

// One thread calls push(), another one take() and confirm(); any thread may call the other
// functions.
class MessageQueue {
 public:
  // `size`: in messages. `journal`: null for memory only.
  MessageQueue(size_t size, QueuePolicy policy, std::unique_ptr<Journal> journal);

  // Appends a message, which must not contain line breaks. Blocks while there is no room; returns
  // false if interrupted. If the journal cannot be written, the message is kept in memory only: see
  // take_problem().
  bool push(std::string text);
  // Returns the oldest messages, at most `most`; waits for one until `most_wait` is over.
  std::vector<Message> take(size_t most, std::chrono::milliseconds most_wait);
  // Notes that the broker has all messages up to this number.
  void confirm(uint64_t number);
  // Waits until all messages are confirmed. Returns false if the time is over, or if interrupted.
  bool wait_until_empty(std::chrono::milliseconds most_wait);
  void interrupt();  // makes push() and the waits return, until resume()
  void resume();
  bool is_interrupted() const;

  size_t size() const;
  uint64_t dropped() const;
  bool is_kept() const { return journal_ != nullptr; }
  // Returns why the journal cannot be written, or "" if there is nothing new. Writing is tried
  // again with each message, and another problem is reported only after it has worked.
  std::string take_problem();

 private:
  struct Entry {
    Message message;
    uint64_t end = 0;  // in the journal; 0: the message is not there
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const size_t limit_;
  const QueuePolicy policy_;
  // Calls `use`. Returns false if the journal's file fails.
  template <typename Use>
  bool with_journal(Use&& use);

  std::unique_ptr<Journal> journal_;
  bool failing_ = false;  // true if the last use of the journal failed
  std::string problem_;   // not reported yet
  std::deque<Entry> entries_;
  uint64_t last_ = 0, dropped_ = 0;
  bool interrupted_ = false;
};

}  // namespace clinfer
