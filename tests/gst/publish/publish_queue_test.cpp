// The path from clpublish to a broker: the queue, its journal, and the sender, with a broker
// that fails as the test says. tests/gst/publish/brokers.py has real ones.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "gst/publish/sender.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> texts(const std::vector<Message>& messages) {
  std::vector<std::string> all;
  for (const Message& message : messages) all.push_back(*message.text);
  return all;
}

class Folder {
 public:
  Folder() : path_(testing::TempDir() + "queue-" + std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::unique_ptr<Journal> journal() const { return std::make_unique<Journal>(path_, "q"); }
  std::string file() const { return path_ + "/q.queue"; }

 private:
  std::string path_;
};

using Texts = std::vector<std::string>;

TEST(MessageQueue, KeepsTheOrderUntilConfirmed) {
  MessageQueue queue(10, QueuePolicy::block, nullptr);
  for (const char* text : {"a", "b", "c"}) EXPECT_TRUE(queue.push(text));
  EXPECT_EQ(texts(queue.take(2, 0ms)), (Texts{"a", "b"}));
  EXPECT_EQ(texts(queue.take(2, 0ms)), (Texts{"a", "b"})) << "nobody confirmed them";
  queue.confirm(2);
  EXPECT_EQ(texts(queue.take(9, 0ms)), (Texts{"c"}));
  EXPECT_FALSE(queue.wait_until_empty(10ms));
  queue.confirm(3);
  EXPECT_TRUE(queue.wait_until_empty(0ms));
}

TEST(MessageQueue, AFullOneBlocksUntilThereIsRoomOrAnInterruption) {
  MessageQueue queue(2, QueuePolicy::block, nullptr);
  queue.push("a");
  queue.push("b");
  std::thread confirm([&] {
    std::this_thread::sleep_for(50ms);
    queue.confirm(1);
  });
  EXPECT_TRUE(queue.push("c"));
  confirm.join();
  EXPECT_EQ(texts(queue.take(9, 0ms)), (Texts{"b", "c"}));
  std::thread interrupt([&] {
    std::this_thread::sleep_for(50ms);
    queue.interrupt();
  });
  EXPECT_FALSE(queue.push("d"));
  interrupt.join();
  EXPECT_EQ(queue.dropped(), 0u);
}

TEST(MessageQueue, OrDropsTheOldest) {
  for (const bool kept : {false, true}) {
    Folder folder;
    {
      MessageQueue queue(2, QueuePolicy::drop_oldest, kept ? folder.journal() : nullptr);
      for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(queue.push(text));
      EXPECT_EQ(texts(queue.take(9, 0ms)), (Texts{"c", "d"}));
      EXPECT_EQ(queue.dropped(), 2u);
      // One that was dropped while it was under way may be confirmed.
      queue.confirm(1);
      EXPECT_EQ(queue.size(), 2u);
    }
    if (!kept) continue;
    MessageQueue again(9, QueuePolicy::block, folder.journal());
    EXPECT_EQ(texts(again.take(9, 0ms)), (Texts{"c", "d"}));
  }
}

TEST(Journal, KeepsWhatIsNotConfirmed) {
  Folder folder;
  {
    MessageQueue queue(100, QueuePolicy::block, folder.journal());
    for (int i = 0; i < 10; ++i) queue.push("{\"n\":" + std::to_string(i) + "}");
    queue.confirm(4);
  }
  struct stat facts {};
  ASSERT_EQ(stat(folder.file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u) << "messages are nobody else's";
  {
    MessageQueue queue(100, QueuePolicy::block, folder.journal());
    const auto left = texts(queue.take(100, 0ms));
    ASSERT_EQ(left.size(), 6u);
    EXPECT_EQ(left[0], "{\"n\":4}");
    EXPECT_EQ(left[5], "{\"n\":9}");
    queue.push("new");
    queue.confirm(6);
  }
  MessageQueue queue(100, QueuePolicy::block, folder.journal());
  EXPECT_EQ(texts(queue.take(100, 0ms)), (Texts{"new"}));
}

TEST(Journal, SurvivesWhatAKillLeaves) {
  Folder folder;
  {
    MessageQueue queue(100, QueuePolicy::block, folder.journal());
    queue.push("first");
    queue.push("second");
  }
  std::ofstream(folder.file(), std::ios::app) << "half a li";
  {
    MessageQueue queue(100, QueuePolicy::block, folder.journal());
    EXPECT_EQ(texts(queue.take(9, 0ms)), (Texts{"first", "second"}));
    queue.push("third");
  }
  // A position that cannot be ours: rather twice than not at all.
  for (const char* position : {"99999999999999999999", "3", "-1", "x", ""}) {
    std::ofstream(folder.file() + ".position", std::ios::trunc) << position;
    MessageQueue queue(100, QueuePolicy::block, folder.journal());
    EXPECT_EQ(texts(queue.take(9, 0ms)), (Texts{"first", "second", "third"})) << position;
  }
}

uint64_t lines_in(const std::string& path) {
  std::ifstream file(path);
  return static_cast<uint64_t>(
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

// The file obeys the queue's size, and after a kill at any time the queue has what is not confirmed.
TEST(Journal, DoesNotOutgrowTheQueue) {
  for (const size_t size : {20u, 500u}) {
    Folder folder;
    const std::string rest(190, 'x');
    uint64_t most = 0;
    for (int run = 0; run < 3; ++run) {
      MessageQueue queue(size, QueuePolicy::drop_oldest, folder.journal());
      for (int i = 0; i < 3000; ++i) {
        ASSERT_TRUE(queue.push(std::to_string(run * 3000 + i) + " " + rest));
        if (i % 100 == 0) most = std::max(most, lines_in(folder.file()));
      }
      EXPECT_EQ(queue.take_problem(), "");
    }
    EXPECT_LT(most, size * 3 / 2 + 100);
    MessageQueue queue(size, QueuePolicy::drop_oldest, folder.journal());
    const auto left = texts(queue.take(10000, 0ms));
    ASSERT_EQ(left.size(), size);
    for (size_t i = 0; i < size; ++i)
      EXPECT_EQ(left[i], std::to_string(9000 - size + i) + " " + rest) << i;
    EXPECT_FALSE(std::filesystem::exists(folder.file() + ".new"));
  }
}

TEST(Journal, GivesItsPlaceOnTheDiskBack) {
  Folder folder;
  MessageQueue queue(1000, QueuePolicy::block, folder.journal());
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(queue.push(std::string(1000, 'x')));
    queue.confirm(i);
  }
  EXPECT_LT(std::filesystem::file_size(folder.file()), 20'000u);
}

// Neither a signal nor an error: the message stays in memory, and it is said once.
TEST(Journal, ADiskThatIsFullIsSaidOnce) {
  Folder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  {
    MessageQueue queue(1000, QueuePolicy::block, folder.journal());
    const rlimit small{5000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.push(std::string(90, 'a'))) << i;
    EXPECT_NE(queue.take_problem().find("kept in memory only"), std::string::npos);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(queue.size(), 100u);
    EXPECT_TRUE(queue.push(std::string(90, 'b')));
    EXPECT_EQ(queue.take_problem(), "") << "it was told already, and is over";
  }
  MessageQueue queue(1000, QueuePolicy::block, folder.journal());
  const auto left = texts(queue.take(1000, 0ms));
  ASSERT_GT(left.size(), 40u);
  for (size_t i = 0; i < left.size(); ++i)
    EXPECT_EQ(left[i], std::string(90, i + 1 < left.size() ? 'a' : 'b')) << "whole lines only";
}

TEST(Journal, RefusesASecondPublisherAndAFolderOfOthers) {
  Folder folder;
  const auto first = folder.journal();
  EXPECT_THROW(folder.journal(), Error);
  const std::string shared = testing::TempDir() + "shared-queue";
  std::filesystem::create_directory(shared);
  chmod(shared.c_str(), 0777);
  EXPECT_THROW(Journal(shared, "q"), Error);
  std::filesystem::remove_all(shared);
}

// Takes messages until it fails, at random places, and remembers what it has.
class Flaky final : public Broker {
 public:
  explicit Flaky(std::vector<std::string>* has, unsigned seed) : has_(has), random_(seed) {}
  void connect() override {
    if (random_() % 3 == 0) throw Error{ErrorCode::io, "no answer"};
  }
  void deliver(std::span<const Message> messages, const std::function<void(uint64_t)>& delivered,
               const std::atomic<bool>&) override {
    for (const Message& message : messages) {
      if (random_() % 150 == 0) throw Error{ErrorCode::io, "gone"};
      has_->push_back(*message.text);
      // It has the message, but cannot say so any more.
      if (random_() % 150 == 0) throw Error{ErrorCode::io, "gone"};
      delivered(message.number);
    }
  }

 private:
  std::vector<std::string>* has_;
  std::mt19937 random_;
};

TEST(Sender, DeliversAllInOrderWhateverTheBrokerDoes) {
  for (const unsigned seed : {1u, 2u}) {
    std::vector<std::string> has;
    constexpr int kCount = 500;
    SenderStats stats;
    {
      Sender sender(std::make_unique<Flaky>(&has, seed),
                    std::make_unique<MessageQueue>(100, QueuePolicy::block, nullptr),
                    [](const std::string&) {});
      for (int i = 0; i < kCount; ++i) ASSERT_TRUE(sender.publish(std::to_string(i)));
      ASSERT_TRUE(sender.finish());
      stats = sender.stats();
    }
    EXPECT_EQ(stats.sent, static_cast<uint64_t>(kCount));
    EXPECT_EQ(stats.dropped, 0u);
    EXPECT_GT(stats.losses, 0u);
    int next = 0;
    for (const std::string& text : has)
      if (text == std::to_string(next))
        ++next;
      else
        EXPECT_LT(std::stoi(text), next) << "out of order";
    EXPECT_EQ(next, kCount);
  }
}

TEST(Sender, StopsAtOnceWhenTheBrokerIsAway) {
  class Away final : public Broker {
    void connect() override { throw Error{ErrorCode::io, "no answer"}; }
    void deliver(std::span<const Message>, const std::function<void(uint64_t)>&,
                 const std::atomic<bool>&) override {}
  };
  std::atomic<int> notices = 0;
  const auto begin = std::chrono::steady_clock::now();
  {
    Sender sender(std::make_unique<Away>(),
                  std::make_unique<MessageQueue>(1000, QueuePolicy::block, nullptr),
                  [&](const std::string&) { ++notices; });
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(sender.publish("x")) << "nothing blocks";
    std::this_thread::sleep_for(500ms);
  }
  EXPECT_EQ(notices, 1) << "said once";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);  // 1 s on an idle machine
}

TEST(BrokerAddress, IsReadOrRefused) {
  EXPECT_EQ(parse_address("host", 1883).port, 1883);
  EXPECT_EQ(parse_address("mqtts://broker.example:8884", 1).scheme, "mqtts");
  EXPECT_EQ(parse_address("mqtts://broker.example:8884/", 1).port, 8884);
  EXPECT_EQ(parse_address("[::1]:77", 1).host, "::1");
  EXPECT_EQ(parse_address("[::1]", 5).port, 5);
  for (const char* wrong : {"", ":1", "host:0", "host:65536", "host:1.5", "host:x", "a b",
                            "redis://user:secret@host", "host\n", "mqtt://", "h;rm -rf"})
    EXPECT_THROW(parse_address(wrong, 1), Error) << wrong;
  try {
    parse_address("redis://user:secret@host", 1);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
  }
}

TEST(Credentials, AreReadFromAFileOfThisUser) {
  const std::string path = testing::TempDir() + "credentials";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  };
  write("# broker\r\nusername=camera\r\npassword=a=b c\r\n", 0600);
  const Credentials known = read_credentials(path);
  EXPECT_EQ(known.user, "camera");
  EXPECT_EQ(known.password, "a=b c");
  EXPECT_FALSE(known.others_read);
  write("password=x", 0644);
  EXPECT_TRUE(read_credentials(path).others_read);
  write("secret", 0600);
  try {
    read_credentials(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
  }
  EXPECT_THROW(read_credentials("/no/such/file"), Error);
  EXPECT_THROW(read_credentials("/dev/zero"), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace clinfer
