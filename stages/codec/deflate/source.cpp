#include "codec/deflate/source.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <cstring>

namespace etwrelog::codec::deflate {
namespace {

constexpr std::size_t kContentPiece = 1u << 20, kBitPiece = 128u << 10; // at most

} // namespace

Content::Content(Fetch fetch, std::uint64_t size) : fetch_(std::move(fetch)), size_(size) {}

bool Content::load(std::uint64_t at) {
  if (error_ || at > size_) return false;
  const std::uint64_t begin = at - std::min<std::uint64_t>(at, kWindow);
  if (begin >= begin_ && begin < end_) {
    std::memmove(bytes_.data(), byte(begin), static_cast<std::size_t>(end_ - begin));
  } else {
    end_ = begin;
  }
  begin_ = begin;
  const auto have = static_cast<std::size_t>(end_ - begin_);
  const auto want = static_cast<std::size_t>(
      std::min<std::uint64_t>(size_ - end_, std::max<std::uint64_t>(piece_, at + kAhead - end_)));
  piece_ = std::min(4 * piece_, kContentPiece);
  if (bytes_.size() < have + want) bytes_.resize(have + want);
  Result<std::size_t> got = fetch_(end_, MutableBytes(bytes_).subspan(have, want));
  if (got && *got == want) {
    end_ += want;
    return true;
  }
  error_ = got ? Error(base::corrupt("the content ends too early").at(end_ + *got)) : std::move(got).error();
  return false;
}

BitReader::BitReader(Fetch fetch, std::uint64_t at) : fetch_(std::move(fetch)), at_(at) {}

void BitReader::more() {
  while (held_ <= 56) {
    if (next_ == chunk_end_) {
      if (error_) return;
      chunk_.resize(piece_);
      piece_ = std::min(4 * piece_, kBitPiece);
      Result<std::size_t> got = fetch_(at_, chunk_);
      if (!got) {
        error_ = std::move(got).error();
        return;
      }
      if (*got == 0) return;
      at_ += *got;
      next_ = 0;
      chunk_end_ = *got;
    }
    hold_ |= std::uint64_t{chunk_[next_++]} << held_;
    held_ += 8;
  }
}

void SymbolTable::make(const Code &code) {
  entries_.assign(std::size_t{1} << code.longest, 0);
  mask_ = entries_.size() - 1;
  for (std::size_t symbol = 0; symbol < code.lengths.size(); ++symbol) {
    const unsigned length = code.lengths[symbol];
    if (length == 0) continue;
    const auto entry = static_cast<std::uint16_t>(symbol << 4 | length);
    for (std::size_t at = code.bits[symbol]; at < entries_.size(); at += std::size_t{1} << length)
      entries_[at] = entry;
  }
}

} // namespace etwrelog::codec::deflate
