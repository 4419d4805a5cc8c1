// Reads protobuf's wire format: counts the messages, then parses them.
#include "engine/onnx/model_proto.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <climits>
#include <span>

#include "kernels/base/error.h"

namespace clinfer {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Limit; the largest networks have some 100,000.
constexpr int64_t kMostMessages = int64_t{1} << 21;
constexpr int kDeepestMessage = 64;  // nesting of messages

// Kinds of messages; all but `leaf` hold other messages.
enum class Kind { model, graph, function, node, attribute, leaf };

// Returns the kind of message that a field holds; `leaf` for a message without further messages and
// for other fields.
Kind kind_of(Kind parent, int field) {
  switch (parent) {
    case Kind::model:
      return field == 7 ? Kind::graph : field == 25 ? Kind::function : Kind::leaf;
    case Kind::graph:
      return field == 1 ? Kind::node : Kind::leaf;
    case Kind::function:
      return field == 7 ? Kind::node : field == 11 ? Kind::attribute : Kind::leaf;
    case Kind::node:
      return field == 5 ? Kind::attribute : Kind::leaf;
    case Kind::attribute:
      return field == 6 || field == 11 ? Kind::graph : Kind::leaf;
    case Kind::leaf:
      break;
  }
  return Kind::leaf;
}

// Counts the messages; returns false if the bytes are no such message. Also counts strings and
// lists of numbers as messages, since they are few.
bool count_messages(CodedInputStream& in, Kind kind, int depth, int64_t& messages) {
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size) || size > INT_MAX) return false;
    if (++messages > kMostMessages)
      throw Error(ErrorCode::unsupported, "has more than " + std::to_string(kMostMessages) +
                                              " nodes, attributes and names");
    const Kind inner = kind_of(kind, WireFormatLite::GetTagFieldNumber(tag));
    if (inner == Kind::leaf) {
      if (!in.Skip(static_cast<int>(size))) return false;
      continue;
    }
    if (depth >= kDeepestMessage)
      throw Error(ErrorCode::unsupported, "its graphs are nested too deeply");
    const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(size));
    const bool whole = count_messages(in, inner, depth + 1, messages) && in.ConsumedEntireMessage();
    in.PopLimit(limit);
    if (!whole) return false;
  }
  return true;
}

// Adapts a ByteSource to protobuf's stream.
class SourceStream final : public google::protobuf::io::CopyingInputStream {
 public:
  explicit SourceStream(const ByteSource& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    const size_t count = std::min(static_cast<size_t>(size), file_.size - at_);
    file_.read(at_, {static_cast<std::byte*>(buffer), count});
    at_ += count;
    return static_cast<int>(count);
  }

 private:
  const ByteSource& file_;
  size_t at_ = 0;
};

constexpr int kBlock = 1 << 16;

}  // namespace

std::shared_ptr<const onnx::ModelProto> parse_onnx(const ByteSource& file) {
  const auto damaged = [] {
    return Error(ErrorCode::bad_model, "not an ONNX model, or a damaged one");
  };
  if (file.size == 0) throw Error(ErrorCode::bad_model, "the file is empty");
  if (file.size > INT_MAX)
    throw Error(ErrorCode::unsupported,
                "has more than 2 GiB; such a model keeps its weights in a file of their own "
                "(external data)");
  {
    SourceStream source(file);
    google::protobuf::io::CopyingInputStreamAdaptor stream(&source, kBlock);
    CodedInputStream in(&stream);
    in.SetTotalBytesLimit(INT_MAX);
    int64_t messages = 0;
    if (!count_messages(in, Kind::model, 0, messages) || !in.ConsumedEntireMessage())
      throw damaged();
  }
  SourceStream source(file);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&source, kBlock);
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(kDeepestMessage + 8);
  auto model = std::make_shared<onnx::ModelProto>();
  if (!model->ParseFromCodedStream(&in) || !in.ConsumedEntireMessage()) throw damaged();
  if (!model->has_graph())
    throw Error(ErrorCode::bad_model, "not an ONNX model: there is no graph in it");
  return model;
}

}  // namespace clinfer
