#include "etlz/wrapper.hpp"

#include "etlz/backend/backend.hpp"

#include <algorithm>
#include <cstring>

namespace etwrelog::etlz {
namespace {

constexpr std::uint8_t kWrapperMagic[8] = {'E', 'T', 'L', 'Z', 'w', 'r', 'p', '1'};
constexpr std::size_t kKept = static_cast<std::size_t>(Recipe::kept);
static_assert(kKept + 1 == kRecipeStreams, "the last, packed apart");

} // namespace

void write_wrapper_head(std::span<const WrappedTrace> traces, std::vector<std::uint8_t> &out) {
  std::vector<std::uint8_t> list;
  put_varint(list, traces.size());
  for (const WrappedTrace &trace : traces) {
    put_varint(list, trace.archive_size);
    put_varint(list, trace.original_size);
    put_varint(list, trace.name.size());
    list.insert(list.end(), trace.name.begin(), trace.name.end());
  }
  std::uint8_t head[kWrapperHeadSize];
  std::memcpy(head, kWrapperMagic, 8);
  store(head + 8, std::uint64_t{list.size()});
  store(head + 16, hash64(list));
  seal(head, kWrapperHeadSize);
  out.insert(out.end(), std::begin(head), std::end(head));
  out.insert(out.end(), list.begin(), list.end());
}

Result<WrapperHead> read_wrapper_head(Bytes bytes) {
  if (bytes.size() < kWrapperHeadSize || std::memcmp(bytes.data(), kWrapperMagic, 8) != 0)
    return corrupt("what wrapped the traces does not start here");
  if (!sealed(bytes, kWrapperHeadSize)) return corrupt("head of the wrapper: checksum mismatch");
  const WrapperHead head{load<std::uint64_t>(bytes.data() + 8), load<std::uint64_t>(bytes.data() + 16)};
  if (head.list_size > kMostWrapperList) return corrupt("head of the wrapper: impossible size");
  return head;
}

Result<std::vector<WrappedTrace>> read_wrapper_list(const WrapperHead &head, Bytes bytes) {
  if (bytes.size() != head.list_size || hash64(bytes) != head.list_hash)
    return corrupt("list of the wrapped traces: checksum mismatch");
  InStream in(bytes);
  const std::uint64_t count = get_varint(in);
  if (count == 0 || count > kMostWrappedTraces)
    return corrupt("list of the wrapped traces: impossible number");
  std::vector<WrappedTrace> traces(static_cast<std::size_t>(count));
  for (WrappedTrace &trace : traces) {
    trace.archive_size = get_varint(in);
    trace.original_size = get_varint(in);
    const std::uint64_t length = get_varint(in);
    if (length > bytes.size()) return corrupt("list of the wrapped traces: impossible name");
    const Bytes name = in.get(static_cast<std::size_t>(length));
    trace.name.assign(name.begin(), name.end());
  }
  if (in.overrun() || !in.at_end()) return corrupt("list of the wrapped traces: impossible size");
  return traces;
}

ChunkHead read_chunk_head(const std::uint8_t *bytes) {
  return {load<std::uint64_t>(bytes), load<std::uint64_t>(bytes + 8)};
}

struct ChunkCoder::State {
  Backend corrections, kept; // apart: the streams of both live at a time
  std::vector<Bytes> streams;
  std::vector<std::uint8_t> packed;
};

ChunkCoder::ChunkCoder() : state_(std::make_unique<State>()) {}
ChunkCoder::~ChunkCoder() = default;

void ChunkCoder::pack(const std::array<Bytes, kRecipeStreams> &streams, Level level,
                      std::vector<std::uint8_t> &out) {
  const std::size_t before = out.size();
  out.resize(before + kChunkHeadSize);
  state_->packed.clear();
  state_->corrections.pack(std::span(streams).first(kKept), Level::max, state_->packed);
  put_varint(out, state_->packed.size());
  out.insert(out.end(), state_->packed.begin(), state_->packed.end());
  state_->kept.pack(std::span(streams).last(1), level, out);
  const Bytes chunk = Bytes(out).subspan(before + kChunkHeadSize);
  store(out.data() + before, std::uint64_t{chunk.size()});
  store(out.data() + before + 8, hash64(chunk));
}

bool ChunkCoder::unpack(Bytes chunk, std::array<Bytes, kRecipeStreams> &streams) {
  InStream in(chunk);
  const std::uint64_t size = get_varint(in);
  if (size > chunk.size()) return false;
  const Bytes corrections = in.get(static_cast<std::size_t>(size));
  if (in.overrun() || corrections.size() != size) return false;
  const Bytes kept = in.rest();
  if (!state_->corrections.unpack(corrections, kMostChunk, state_->streams) ||
      state_->streams.size() != kKept)
    return false;
  std::ranges::copy(state_->streams, streams.begin());
  if (!state_->kept.unpack(kept, kMostChunk, state_->streams) || state_->streams.size() != 1) return false;
  streams[kKept] = state_->streams.front();
  return true;
}

} // namespace etwrelog::etlz
