#include "read/headers_ahead.hpp"

#include <algorithm>

namespace etwrelog::read {
namespace {

constexpr std::uint64_t kLong = 4096;     // buffers: below, a thread costs more than it saves
constexpr std::uint64_t kMost = 1u << 18; // headers to keep: 18 MiB
constexpr std::size_t kMostThreads = 8;

} // namespace

HeadersAhead::HeadersAhead(const Input &input, std::uint32_t size, unsigned threads)
    : input_(input), size_(size) {
  const std::uint64_t buffers = size < format::kBufferHeaderSize ? 0 : input.size() / size;
  const std::size_t others = std::min<std::size_t>(threads, kMostThreads) - (threads > 0 ? 1 : 0);
  if (others == 0 || buffers < kLong) return;
  // The caller's thread walks from the beginning. It looks at all headers, and so reads fewer: two for three.
  const std::uint64_t each = std::min(buffers * 3 / (3 * others + 2), kMost / others);
  for (std::size_t i = 0; i < others; ++i) {
    auto stretch = std::make_unique<Stretch>();
    stretch->first = buffers - each * (others - i);
    stretch->headers.resize(each);
    stretches_.push_back(std::move(stretch));
  }
  threads_ = base::start_threads(others, [this] {
    const std::size_t own = next_.fetch_add(1, std::memory_order_relaxed);
    read_stretch(*stretches_[own]);
  });
}

HeadersAhead::~HeadersAhead() {
  give_up();
}

void HeadersAhead::read_stretch(Stretch &stretch) const {
  for (std::size_t i = 0; i < stretch.headers.size(); ++i) {
    if (given_up_.load(std::memory_order_relaxed)) return;
    Header &header = stretch.headers[i];
    try {
      const Result<std::size_t> got = input_.read_at((stretch.first + i) * size_, header);
      if (!got || *got != header.size()) return;
    } catch (...) { // of a caller's input; the walk will meet it too, and say so
      return;
    }
    stretch.read.store(i + 1, std::memory_order_release);
  }
}

const HeadersAhead::Header *HeadersAhead::find(std::uint64_t offset) const {
  if (stretches_.empty() || offset % size_ != 0) return nullptr;
  const std::uint64_t number = offset / size_;
  for (const auto &stretch : stretches_) {
    if (number < stretch->first || number - stretch->first >= stretch->headers.size()) continue;
    const auto i = static_cast<std::size_t>(number - stretch->first);
    return i < stretch->read.load(std::memory_order_acquire) ? &stretch->headers[i] : nullptr;
  }
  return nullptr;
}

} // namespace etwrelog::read
