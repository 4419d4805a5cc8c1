// A Kafka cluster of three brokers in memory, of librdkafka's own, for tests/gst/publish/brokers.py. Writes
// its addresses to standard output, takes "down" and "up" from standard input, ends with it.
// Usage: kafka_cluster TOPIC
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  constexpr int kBrokers = 3, kPartitions = 4;
  char why[256];
  rd_kafka_t* owner = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
  rd_kafka_mock_cluster_t* cluster =
      owner != nullptr ? rd_kafka_mock_cluster_new(owner, kBrokers) : nullptr;
  if (cluster == nullptr || argc != 2 ||
      rd_kafka_mock_topic_create(cluster, argv[1], kPartitions, kBrokers) !=
          RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::fprintf(stderr, "no cluster\n"), 1;
  std::printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr)
    for (int broker = 1; broker <= kBrokers; ++broker) {
      if (std::string(line) == "down\n") rd_kafka_mock_broker_set_down(cluster, broker);
      if (std::string(line) == "up\n") rd_kafka_mock_broker_set_up(cluster, broker);
    }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(owner);
}
