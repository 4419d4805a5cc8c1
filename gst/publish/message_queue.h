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
// process loses nothing; a power cut may lose what the system had not written yet. Confirmed lines are
// taken out of the file now and then, so that it is at most half as large again as what is not
// confirmed, or 16 KiB larger.
class Journal {
 public:
  // Makes the folder and the files, or opens those of an earlier run. Throws Error{io,
  // bad_argument} that names the folder.
  Journal(const std::string& folder, const std::string& name);

  // Lines of an earlier run that were not confirmed, and where each ends.
  std::vector<std::pair<std::string, uint64_t>> read();
  // Returns where the line ends, counting from the first line of this run. Throws Error{io}, or
  // Error{out_of_memory} when the disk is full; the line is not in the file then.
  uint64_t append(const std::string& line);
  // The message that ends here, and all before it, need not be kept. Throws Error{io} when the file
  // cannot be changed; the message is sent again after a restart then.
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
  uint64_t not_before_ = 0;           // a position: the file could not be written anew
  uint64_t removed_ = 0;              // bytes taken out at the file's beginning in this run
  bool torn_ = false;                 // the file ends in half a line, after `size_`
};

// push() by one thread, take() and confirm() by another; the rest by any.
class MessageQueue {
 public:
  // size: messages; journal: null: in memory only.
  MessageQueue(size_t size, QueuePolicy policy, std::unique_ptr<Journal> journal);

  // False: interrupted while there was no room. The message may hold no line breaks. Where the
  // journal cannot be written the message is kept in memory only: see take_problem().
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
  // Says why the journal cannot be written, to be told; "": nothing new. It is tried again with
  // each message, and told again only after it could be written.
  std::string take_problem();

 private:
  struct Entry {
    Message message;
    uint64_t end = 0;  // in the journal; 0: it is not there
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const size_t limit_;
  const QueuePolicy policy_;
  // Runs `use`; false where the journal's file fails.
  template <typename Use>
  bool with_journal(Use&& use);

  std::unique_ptr<Journal> journal_;
  bool failing_ = false;  // the journal, at its last use
  std::string problem_;   // not told yet
  std::deque<Entry> entries_;
  uint64_t last_ = 0, dropped_ = 0;
  bool interrupted_ = false;
};

}  // namespace clinfer
