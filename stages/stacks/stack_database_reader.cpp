#include "stacks/stack_database.hpp"

#include "base/errors.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

namespace etwrelog::stacks {

namespace {

Error damaged(std::string what) {
  return base::corrupt("stack database: " + std::move(what));
}

// Takes fields off the content; after the first that does not fit everything reads as nothing and ok() is
// false.
class Cursor {
public:
  explicit Cursor(Bytes content) : rest_(content) {}
  [[nodiscard]] bool ok() const { return ok_; }
  void fail() { ok_ = false; }

  template <class T> T number() {
    if (!ok_ || rest_.size() < sizeof(T)) {
      ok_ = false;
      return 0;
    }
    const T value = load<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  template <class T> std::vector<T> column(std::size_t count) {
    std::vector<T> values;
    if (!ok_ || rest_.size() / sizeof(T) < count) {
      ok_ = false;
      return values;
    }
    values.assign(count, 0);
    for (std::size_t plane = 0; plane < sizeof(T); ++plane)
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(values[i] | static_cast<T>(T{rest_[plane * count + i]} << (8 * plane)));
    rest_ = rest_.subspan(count * sizeof(T));
    return values;
  }

private:
  Bytes rest_;
  bool ok_ = true;
};

Result<std::vector<std::uint8_t>> decompress_all(Bytes file, std::uint64_t limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  std::vector<std::uint8_t> content;
  ZSTD_inBuffer in{file.data(), file.size(), 0};
  std::vector<std::uint8_t> piece(ZSTD_DStreamOutSize());
  while (true) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return damaged(ZSTD_getErrorName(left));
    if (content.size() + out.pos > limit) return damaged("the content is larger than allowed");
    content.insert(content.end(), piece.data(), piece.data() + out.pos);
    if (left == 0) break;
    if (in.pos == in.size && out.pos < out.size) return damaged("the file ends early");
  }
  if (in.pos != in.size) return damaged("bytes behind the end");
  return content;
}

void read_references(Cursor &in, std::uint32_t count, StackPredictor &predictor,
                     std::vector<StackReference> &out) {
  const auto kinds = in.column<std::uint8_t>(count);
  const auto processors = in.column<std::uint16_t>(count);
  const auto threads = in.column<std::uint32_t>(count);
  const auto modes = in.column<std::uint8_t>(count);
  const auto new_threads = in.number<std::uint32_t>();
  const auto process_ids = in.column<std::uint32_t>(new_threads),
             thread_ids = in.column<std::uint32_t>(new_threads);
  const auto time_count = in.number<std::uint32_t>();
  const auto times = in.column<std::uint64_t>(time_count);
  const auto stacks = in.column<std::uint32_t>(count);
  if (!in.ok()) return;
  std::size_t next_thread = 0, next_time = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    StackPredictor::Processor &processor = predictor.processor(processors[i]);
    std::uint32_t number = threads[i] >= 2 ? threads[i] - 2 : processor.thread;
    if (threads[i] == 1) {
      if (next_thread == new_threads) return in.fail();
      number = static_cast<std::uint32_t>(predictor.threads.size());
      predictor.threads.push_back(
          {process_ids[next_thread], thread_ids[next_thread], StackPredictor::kNone, 0});
      ++next_thread;
    }
    if (number >= predictor.threads.size() || kinds[i] >= kStackKinds || modes[i] > 1) return in.fail();
    StackPredictor::Thread &thread = predictor.threads[number];
    StackReference r;
    r.kind = static_cast<StackKind>(kinds[i]);
    r.processor = processors[i];
    r.process_id = thread.process_id;
    r.thread_id = thread.thread_id;
    r.event_time = thread.time;
    if (modes[i] == 0) {
      if (next_time == time_count) return in.fail();
      r.event_time = static_cast<std::int64_t>(static_cast<std::uint64_t>(processor.time) +
                                               ((times[next_time] >> 1) ^ (0 - (times[next_time] & 1))));
      ++next_time;
    }
    r.stack = stacks[i] >= 2   ? stacks[i] - 2
              : stacks[i] == 1 ? predictor.stacks
                               : predictor.predicted(thread);
    if (stacks[i] == 1) ++predictor.stacks;
    if (r.stack >= predictor.stacks) return in.fail();
    predictor.followed(thread, r.stack);
    thread.time = r.event_time;
    processor = {number, r.event_time};
    out.push_back(r);
  }
  if (next_thread != new_threads || next_time != time_count) in.fail();
}

void read_table(Cursor &in, std::uint32_t count, std::uint64_t limit, StackDatabase &out) {
  const auto address_count = in.number<std::uint32_t>();
  auto addresses = in.column<std::uint64_t>(address_count);
  out.scopes = in.column<std::uint8_t>(count);
  const auto branches = in.column<std::uint32_t>(count), lengths = in.column<std::uint32_t>(count);
  const auto node_count = in.number<std::uint32_t>();
  const auto codes = in.column<std::uint32_t>(node_count);
  const auto called_count = in.number<std::uint32_t>();
  const auto called = in.column<std::uint32_t>(called_count);
  if (!in.ok()) return;
  for (std::size_t i = 1; i < addresses.size(); ++i)
    addresses[i] += addresses[i - 1];

  struct Node {
    std::uint32_t parent, rank, depth;
  };
  std::vector<Node> nodes = {{0, kNoCaller, 0}};
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> lists;
  std::size_t next_code = 0, next_called = 0;
  std::uint64_t frames = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    if (branches[n] >= nodes.size() || lengths[n] > codes.size() - next_code) return in.fail();
    auto node = static_cast<std::uint32_t>(nodes.size() - 1 - branches[n]);
    for (std::uint32_t i = 0; i < lengths[n]; ++i) {
      std::vector<std::uint32_t> &list = lists[nodes[node].rank];
      const std::uint32_t code = codes[next_code++];
      std::uint32_t rank = 0;
      if (code == 0) {
        if (next_called == called_count || called[next_called] >= address_count) return in.fail();
        rank = called[next_called++];
        if (list.size() == kListLength) list.pop_back();
      } else {
        if (code > list.size()) return in.fail();
        rank = list[code - 1];
        list.erase(list.begin() + (code - 1));
      }
      list.insert(list.begin(), rank);
      nodes.push_back({node, rank, nodes[node].depth + 1});
      node = static_cast<std::uint32_t>(nodes.size() - 1);
    }
    frames += nodes[node].depth;
    if (frames > limit / sizeof(std::uint64_t)) return in.fail();
    std::vector<std::uint64_t> &stack = out.stacks.emplace_back();
    stack.reserve(nodes[node].depth);
    for (; node != 0; node = nodes[node].parent)
      stack.push_back(addresses[nodes[node].rank]);
  }
  if (next_code != node_count || next_called != called_count) in.fail();
}

} // namespace

Result<StackDatabase> read_stack_database(Bytes file, std::uint64_t limit) {
  ETWRELOG_TRY_LET(content, decompress_all(file, limit));
  Cursor in(content);
  const bool magic = in.number<std::uint64_t>() == load<std::uint64_t>(kDatabaseMagic);
  const auto version = in.number<std::uint32_t>();
  (void)in.number<std::uint32_t>();
  if (!in.ok() || !magic) return damaged("not one: the first bytes differ");
  if (version != kDatabaseVersion) return damaged("a version that this program does not know");
  StackDatabase out;
  StackPredictor predictor;
  bool table = false;
  while (true) {
    const auto type = in.number<std::uint32_t>();
    const auto count = in.number<std::uint32_t>();
    if (!in.ok() || type > kSectionTable || (type != kSectionEnd && table))
      return damaged("a section is wrong");
    if (type == kSectionEnd) break;
    if (type == kSectionReferences)
      read_references(in, count, predictor, out.references);
    else
      read_table(in, count, limit, out);
    table = type == kSectionTable;
    if (!in.ok()) return damaged(type == kSectionReferences ? "references are wrong" : "the table is wrong");
  }
  if (!table || predictor.stacks > out.stacks.size())
    return damaged("references to stacks that are not in the table");
  return out;
}

} // namespace etwrelog::stacks
