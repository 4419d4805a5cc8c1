// Stores whole models in the cache on disk.
#include "engine/compile/graph_cache.h"

#include <algorithm>

#include "engine/graph/states.h"
#include "engine/ocl/compiler/source_id.h"
#include "kernels/base/hash.h"
#include "kernels/base/log.h"

namespace clinfer {

namespace {

constexpr size_t kPoolAlignment = 64;  // of the pool, relative to the start of the entry

template <typename Stream, typename Ports>
void transfer_ports(Stream& stream, Ports& ports) {
  stream.list(ports, [&](auto& port) {
    stream.text(port.name);
    stream.choice(port.type, ElementType::boolean);
    stream.list(port.shape, [&](auto& size) { stream.number(size); });
    stream.list(port.tensor_names, [&](auto& name) { stream.text(name); });
    stream.number(port.any_size);
    stream.number(port.open_width);
    stream.list(port.open_shape, [&](auto& size) { stream.number(size); });
  });
}

// Describes everything that a pass may read of its context. All members are named, so that a new
// member does not compile until it is part of the key.
std::string text_of(const PassContext& context) {
  const auto& [traits, activations, unroll_loops, loops_on_device, is_body, expose_layers, integers,
               half_outputs, bf16_products] = context;
  const auto& [vendor, name, is_cpu, compute_units, max_work_group, local_memory, vector_width,
               fp16, dot, matrix, blocks_2d, bf16, no_amx, sub_groups, wgmma, grid_barrier, alone,
               ordered_sums] = traits;
  ByteWriter out;
  out.text(name);
  out.text(no_amx);
  for (const auto number :
       {uint64_t(activations),   uint64_t(unroll_loops),   uint64_t(loops_on_device),
        uint64_t(is_body),       uint64_t(expose_layers),  uint64_t(integers),
        uint64_t(half_outputs),  uint64_t(vendor),         uint64_t(is_cpu),
        uint64_t(compute_units), uint64_t(max_work_group), uint64_t(local_memory),
        uint64_t(vector_width),  uint64_t(fp16),           uint64_t(dot),
        uint64_t(matrix),        uint64_t(bf16),           uint64_t(sub_groups),
        uint64_t(wgmma),         uint64_t(grid_barrier),   uint64_t(alone),
        uint64_t(bf16_products), uint64_t(blocks_2d),      uint64_t(ordered_sums)})
    out.number(number);
  return out.bytes();
}

}  // namespace

std::vector<unsigned char> entry_bytes(const PassedGraph& passed, const KnownConstants& known) {
  ByteWriter out;
  ConstantPool pool;
  transfer_ports(out, passed.inputs);
  transfer_ports(out, passed.outputs);
  write_graph(out, *passed.graph, known, pool);
  ByteWriter size;
  size.number(uint64_t{out.bytes().size()});
  const size_t head = size.bytes().size(), end = head + out.bytes().size();
  const size_t pool_begin = (end + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment;
  std::vector<unsigned char> bytes(pool_begin + pool.bytes().size());
  const auto place = [&](const auto& part, size_t at) {
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  };
  place(size.bytes(), 0);
  place(out.bytes(), head);
  place(pool.bytes(), pool_begin);
  return bytes;
}

PassedGraph read_entry(std::vector<unsigned char> bytes, const KnownConstants& known) {
  const auto owner = std::make_shared<const std::vector<unsigned char>>(std::move(bytes));
  const std::string_view all(reinterpret_cast<const char*>(owner->data()), owner->size());
  ByteReader head(all);
  ByteReader in(head.take(head.size()));
  const size_t end = all.size() - head.left();
  const size_t pool =
      std::min(all.size(), (end + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment);
  PassedGraph passed;
  transfer_ports(in, passed.inputs);
  transfer_ports(in, passed.outputs);
  passed.graph = read_graph(in, known, {all.substr(pool), owner});
  ByteReader::check(in.left() == 0, "more than a graph");
  const auto own = [](const std::vector<Node*>& ends) {
    return static_cast<size_t>(
        std::ranges::count_if(ends, [](const Node* end) { return !belongs_to_state(*end); }));
  };
  ByteReader::check(own(passed.graph->parameters) == passed.inputs.size() &&
                        own(passed.graph->results) == passed.outputs.size(),
                    "the inputs and outputs");
  return passed;
}

GraphCache::GraphCache(std::shared_ptr<const Model> model, const ocl::ProgramCache& files,
                       uint64_t most_bytes)
    : model_(std::move(model)), files_(files), most_bytes_(most_bytes), known_(model_->graph()) {}

bool GraphCache::takes(const Model& model, const Config& config) {
  const CacheMode by_default =
      model.is_from_memory() ? CacheMode::optimize_size : CacheMode::optimize_speed;
  if (config.cache_mode.value_or(by_default) == CacheMode::optimize_size) return false;
  const Graph::Nodes& nodes = model.graph().nodes();
  return std::none_of(nodes.begin(), nodes.end(),
                      [](const auto& node) { return is_custom(*node); });
}

std::string GraphCache::key(const PassContext& context, int64_t batch) const {
  std::call_once(described_, [&] {
    ByteWriter out;
    ConstantPool none;
    write_graph(out, model_->graph(), known_, none);
    for (const Tensor& value : known_.all())
      out.number(hash_of({static_cast<const char*>(value.raw()), value.bytes()}));
    model_text_ = out.bytes();
  });
  return std::string("graph|") + kSourceId + "|" + __VERSION__ + "|" + std::to_string(batch) + "|" +
         text_of(context) + model_text_;
}

std::optional<PassedGraph> GraphCache::load(const PassContext& context, int64_t batch) const {
  auto bytes = files_.load(key(context, batch));
  if (!bytes) return {};
  try {
    PassedGraph passed = read_entry(std::move(*bytes), known_);
    log(LogArea::graph, LogLevel::info, [&] {
      return model_->path() + ": the compiled graph was in the cache, " +
             std::to_string(passed.graph->nodes().size()) + " nodes";
    });
    return passed;
  } catch (const Error& error) {
    log(LogArea::graph, LogLevel::warning, [&] {
      return model_->path() + ": the compiled graph in the cache is not used: " + error.what();
    });
    return {};
  }
}

void GraphCache::store(const PassContext& context, int64_t batch, const PassedGraph& passed) const {
  const std::vector<unsigned char> bytes = entry_bytes(passed, known_);
  // A larger entry would push out the programs of other models.
  if (bytes.size() > most_bytes_ / 4) {
    log(LogArea::graph, LogLevel::info, [&] {
      return model_->path() + ": the compiled graph takes " + std::to_string(bytes.size()) +
             " bytes, too many for the cache";
    });
    return;
  }
  files_.store(key(context, batch), bytes);
}

}  // namespace clinfer
