#include "stacks/stack_database.hpp"

#include "base/errors.hpp"
#include "base/sort_unique.hpp"

#include <zstd.h>

#include <algorithm>
#include <new>

namespace etwrelog {

std::string_view stack_kind_name(StackKind kind) {
  switch (kind) {
  case StackKind::walk_kernel: return "StackWalk, kernel";
  case StackKind::walk_user: return "StackWalk, user";
  case StackKind::reference_kernel: return "reference, kernel";
  case StackKind::reference_user: return "reference, user";
  case StackKind::item: return "extended item";
  case StackKind::clr: return ".NET stack event";
  case StackKind::count_: break;
  }
  return "";
}

namespace stacks {

namespace {

std::uint64_t zigzag(std::uint64_t value) {
  return (value << 1) ^ (0 - (value >> 63));
}

template <class T> void put(std::vector<std::uint8_t> &out, T value) {
  out.resize(out.size() + sizeof value);
  store(out.data() + out.size() - sizeof value, value);
}

// As planes: all lowest bytes, then all second bytes, and so on.
template <class T> void put_column(std::vector<std::uint8_t> &out, const std::vector<T> &values) {
  std::size_t at = out.size();
  out.resize(at + values.size() * sizeof(T));
  for (std::size_t plane = 0; plane < sizeof(T); ++plane)
    for (const T value : values)
      out[at++] = static_cast<std::uint8_t>(value >> (8 * plane));
}

// The addresses called from each address, latest first.
class CallLists {
public:
  // The list's entry moves to the front. kListLength: was not in it.
  std::size_t touch(std::uint32_t caller, std::uint32_t callee) {
    std::vector<std::uint32_t> &list = lists_[caller];
    const auto found = std::ranges::find(list, callee);
    const auto index = static_cast<std::size_t>(found - list.begin());
    if (found != list.end()) {
      std::rotate(list.begin(), found, found + 1);
      return index;
    }
    if (list.size() == kListLength) list.pop_back();
    list.insert(list.begin(), callee);
    return kListLength;
  }
  [[nodiscard]] const std::vector<std::uint32_t> &list(std::uint32_t caller) { return lists_[caller]; }

private:
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> lists_;
};

std::vector<std::uint8_t> encode_table(const StackTable &table, const StackOrder &order) {
  std::vector<std::uint64_t> frames, addresses;
  for (StackId n = 0; n < order.size(); ++n) {
    table.read(order.id(n), frames);
    addresses.insert(addresses.end(), frames.begin(), frames.end());
    if (addresses.size() > (std::size_t{1} << 22) && addresses.size() > 2 * addresses.capacity() / 3) {
      base::sort_unique(addresses); // keeps the memory near that of the distinct ones
    }
  }
  base::sort_unique(addresses);

  std::vector<std::uint8_t> scopes;
  std::vector<std::uint32_t> branches, lengths, codes, called;
  std::unordered_map<std::uint64_t, std::uint32_t> children; // node << 32 | rank -> node
  CallLists calls;
  std::uint32_t latest = 0;
  for (StackId n = 0; n < order.size(); ++n) {
    scopes.push_back(static_cast<std::uint8_t>(table.read(order.id(n), frames)));
    std::uint32_t node = 0, caller = kNoCaller, added = 0;
    bool branched = false;
    for (std::size_t i = frames.size(); i-- > 0;) {
      const auto rank =
          static_cast<std::uint32_t>(std::ranges::lower_bound(addresses, frames[i]) - addresses.begin());
      const std::uint64_t edge = std::uint64_t{node} << 32 | rank;
      if (!branched) {
        const auto child = children.find(edge);
        if (child != children.end()) {
          node = child->second;
          caller = rank;
          continue;
        }
        branched = true;
        branches.push_back(latest - node);
      }
      const std::size_t place = calls.touch(caller, rank);
      codes.push_back(place == kListLength ? 0 : static_cast<std::uint32_t>(place + 1));
      if (place == kListLength) called.push_back(rank);
      node = ++latest;
      children.emplace(edge, node);
      caller = rank;
      ++added;
    }
    if (!branched) branches.push_back(latest - node);
    lengths.push_back(added);
  }

  std::vector<std::uint8_t> out;
  put(out, kSectionTable);
  put(out, static_cast<std::uint32_t>(order.size()));
  put(out, static_cast<std::uint32_t>(addresses.size()));
  for (std::size_t i = addresses.size(); i-- > 1;)
    addresses[i] -= addresses[i - 1];
  put_column(out, addresses);
  put_column(out, scopes);
  put_column(out, branches);
  put_column(out, lengths);
  put(out, static_cast<std::uint32_t>(codes.size()));
  put_column(out, codes);
  put(out, static_cast<std::uint32_t>(called.size()));
  put_column(out, called);
  return out;
}

} // namespace

StackDatabaseWriter::StackDatabaseWriter(Sink sink, unsigned pointer_size, int level)
    : sink_(std::move(sink)), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
  if (context_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  content_.assign(std::begin(kDatabaseMagic), std::end(kDatabaseMagic));
  put(content_, kDatabaseVersion);
  put(content_, std::uint32_t{pointer_size});
}

StackDatabaseWriter::~StackDatabaseWriter() {
  ZSTD_freeCCtx(context_);
}

Result<void> StackDatabaseWriter::add(const StackReference &reference) {
  pending_.push_back(reference);
  return pending_.size() == kMaxReferences ? flush_references() : Result<void>();
}

Result<void> StackDatabaseWriter::flush_references() {
  std::vector<std::uint8_t> kinds, modes;
  std::vector<std::uint16_t> processors;
  std::vector<std::uint32_t> threads, process_ids, thread_ids, stacks;
  std::vector<std::uint64_t> times;
  for (const StackReference &r : pending_) {
    kinds.push_back(static_cast<std::uint8_t>(r.kind));
    processors.push_back(r.processor);
    StackPredictor::Processor &processor = predictor_.processor(r.processor);
    const auto [entry, fresh] =
        thread_numbers_.try_emplace(std::uint64_t{r.process_id} << 32 | r.thread_id,
                                    static_cast<std::uint32_t>(predictor_.threads.size()));
    const std::uint32_t number = entry->second;
    if (fresh) {
      predictor_.threads.push_back({r.process_id, r.thread_id, StackPredictor::kNone, 0});
      process_ids.push_back(r.process_id);
      thread_ids.push_back(r.thread_id);
    }
    threads.push_back(fresh ? 1 : number == processor.thread ? 0 : number + 2);
    StackPredictor::Thread &thread = predictor_.threads[number];
    const bool again = !fresh && r.event_time == thread.time;
    modes.push_back(again ? 1 : 0);
    if (!again)
      times.push_back(
          zigzag(static_cast<std::uint64_t>(r.event_time) - static_cast<std::uint64_t>(processor.time)));
    const bool is_new = r.stack == predictor_.stacks;
    stacks.push_back(is_new ? 1 : r.stack == predictor_.predicted(thread) ? 0 : r.stack + 2);
    if (is_new) ++predictor_.stacks;
    predictor_.followed(thread, r.stack);
    thread.time = r.event_time;
    processor = {number, r.event_time};
  }
  put(content_, kSectionReferences);
  put(content_, static_cast<std::uint32_t>(pending_.size()));
  put_column(content_, kinds);
  put_column(content_, processors);
  put_column(content_, threads);
  put_column(content_, modes);
  put(content_, static_cast<std::uint32_t>(process_ids.size()));
  put_column(content_, process_ids);
  put_column(content_, thread_ids);
  put(content_, static_cast<std::uint32_t>(times.size()));
  put_column(content_, times);
  put_column(content_, stacks);
  pending_.clear();
  Result<void> written = write(content_, false);
  content_.clear();
  return written;
}

Result<void> StackDatabaseWriter::finish(const StackTable &table, const StackOrder &order) {
  ETWRELOG_TRY(flush_references());
  std::vector<std::uint8_t> rest = encode_table(table, order);
  put(rest, kSectionEnd);
  put(rest, std::uint32_t{0});
  return write(rest, true);
}

Result<void> StackDatabaseWriter::write(Bytes content, bool last) {
  ZSTD_inBuffer in{content.data(), content.size(), 0};
  while (true) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const std::size_t left = ZSTD_compressStream2(context_, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0)
      return base::io_failure("zstd cannot compress the stack database").found(ZSTD_getErrorName(left));
    if (out.pos > 0) {
      size_ += out.pos;
      ETWRELOG_TRY(sink_(Bytes(out_).first(out.pos)));
    }
    if (last ? left == 0 : in.pos == in.size) return {};
  }
}

} // namespace stacks
} // namespace etwrelog
