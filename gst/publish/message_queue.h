// Messages on their way to a broker, in order. With a journal they survive the process: a message is
// in the file before push() returns, until it is confirmed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/base/files.h"

namespace clinfer {

enum class QueuePolicy { block, drop_oldest };

struct Message {
  uint64_t number = 0;  // counts up from 1
  std::shared_ptr<const std::string> text;
};

// Lines in a file, and how many bytes of it are confirmed. For one thread at a time. A kill of the
// process loses nothing; a power cut may lose what the system had not written yet.
class Journal {
 public:
  // Makes the folder and the files, or opens those of an earlier run. Throws Error{io,
  // bad_argument} that names the folder.
  Journal(const std::string& folder, const std::string& name);

  // Lines of an earlier run that were not confirmed, and where each ends.
  std::vector<std::pair<std::string, uint64_t>> read();
  // Returns where the line ends. Throws Error{io}, or Error{out_of_memory} when the disk is full.
  uint64_t append(const std::string& line);
  // The message that ends here, and all before it, need not be kept.
  void confirm(uint64_t end);

 private:
  [[noreturn]] void fail(const std::string& what, int code,
                         SourcePlace place = SourcePlace::here()) const;
  void write_position();
  void start_again();

  std::string folder_, path_;
  Descriptor file_, position_file_;
  uint64_t size_ = 0, position_ = 0;
};

// push() by one thread, take() and confirm() by another; the rest by any.
class MessageQueue {
 public:
  // size: messages; journal: null: in memory only.
  MessageQueue(size_t size, QueuePolicy policy, std::unique_ptr<Journal> journal);

  // False: interrupted while there was no room. The message may hold no line breaks.
  bool push(std::string text);
  // The oldest messages, at most so many; waits for one until `most_wait` is over.
  std::vector<Message> take(size_t most, std::chrono::milliseconds most_wait);
  // All messages up to this number are with the broker.
  void confirm(uint64_t number);
  // Waits until all are confirmed; false: the time is over, or interrupted.
  bool wait_until_empty(std::chrono::milliseconds most_wait);
  void interrupt();  // push() and the waits return until resume()
  void resume();
  bool is_interrupted() const;

  size_t size() const;
  uint64_t dropped() const;
  bool is_kept() const { return journal_ != nullptr; }

 private:
  struct Entry {
    Message message;
    uint64_t end = 0;  // in the journal
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const size_t limit_;
  const QueuePolicy policy_;
  std::unique_ptr<Journal> journal_;
  std::deque<Entry> entries_;
  uint64_t last_ = 0, dropped_ = 0;
  bool interrupted_ = false;
};

}  // namespace clinfer
