#include "codec/deflate/format.hpp"

#include <algorithm>
#include <bit>

namespace etwrelog::codec::deflate {
namespace {

Code fixed(std::initializer_list<std::pair<unsigned, unsigned>> stretches) {
  Code code;
  for (const auto &[count, length] : stretches)
    code.lengths.insert(code.lengths.end(), count, static_cast<std::uint8_t>(length));
  static_cast<void>(code.make());
  return code;
}

} // namespace

unsigned length_symbol(unsigned length) {
  static constexpr auto kSymbols = [] {
    std::array<std::uint16_t, kUnusualLength + 1> table{};
    for (unsigned i = 0; i < kLengths.size(); ++i)
      for (unsigned n = kLengths[i].first; n <= kLongest; ++n)
        table[n] = static_cast<std::uint16_t>(257 + i);
    table[kUnusualLength] = 284;
    return table;
  }();
  return kSymbols[length];
}

unsigned distance_symbol(unsigned distance) {
  const unsigned n = distance - 1;
  if (n < 4) return n;
  const auto width = static_cast<unsigned>(std::bit_width(n));
  return 2 * (width - 1) + ((n >> (width - 2)) & 1);
}

bool Code::make() {
  std::array<std::uint32_t, kLongestCode + 2> count{};
  longest = 0;
  for (const std::uint8_t length : lengths) {
    if (length > kLongestCode) return false;
    ++count[length];
    longest = std::max<unsigned>(longest, length);
  }
  count[0] = 0;
  std::array<std::uint32_t, kLongestCode + 2> next{};
  std::uint32_t code = 0;
  for (unsigned length = 1; length <= kLongestCode; ++length) {
    code = (code + count[length - 1]) << 1;
    next[length] = code;
    if (code + count[length] > 1u << length) return false;
  }
  bits.assign(lengths.size(), 0);
  for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    const unsigned length = lengths[symbol];
    if (length == 0) continue;
    const std::uint32_t value = next[length]++;
    std::uint32_t turned = 0;
    for (unsigned i = 0; i < length; ++i)
      turned |= ((value >> i) & 1) << (length - 1 - i);
    bits[symbol] = static_cast<std::uint16_t>(turned);
  }
  return true;
}

const Code &fixed_literals() {
  static const Code code = fixed({{144, 8}, {112, 9}, {24, 7}, {8, 8}}); // the last two are never used
  return code;
}
const Code &fixed_distances() {
  static const Code code = fixed({{32, 5}}); // as above
  return code;
}

bool take_codes(Bytes &head, Code &literals, Code &distances) {
  if (head.size() < 3) return false;
  const unsigned literal_count = head[0] + 257u, distance_count = head[1] + 1u, lengths = head[2] + 4u;
  if (literal_count > kLiteralSymbols || distance_count > kDistanceSymbols || lengths > kLengthSymbols ||
      head.size() < 3 + lengths)
    return false;
  Code of_lengths;
  of_lengths.lengths.assign(kLengthSymbols, 0);
  for (unsigned i = 0; i < lengths; ++i) {
    if (head[3 + i] > 7) return false;
    of_lengths.lengths[kLengthOrder[i]] = head[3 + i];
  }
  if (!of_lengths.make()) return false;
  std::size_t at = 3 + lengths;
  std::vector<std::uint8_t> all;
  const unsigned wanted = literal_count + distance_count;
  while (all.size() < wanted) {
    if (at == head.size()) return false;
    const unsigned symbol = head[at++];
    if (symbol >= kLengthSymbols || of_lengths.lengths[symbol] == 0) return false;
    if (symbol < 16) {
      all.push_back(static_cast<std::uint8_t>(symbol));
      continue;
    }
    if (at == head.size() || head[at] >= 1u << repeat_bits(symbol)) return false;
    const unsigned count = head[at++] + (symbol == 18 ? 11u : 3u);
    if (symbol == 16 && all.empty()) return false;
    if (count > wanted - all.size()) return false;
    all.insert(all.end(), count, symbol == 16 ? all.back() : std::uint8_t{0});
  }
  head = head.subspan(at);
  const auto middle = all.begin() + literal_count;
  literals.lengths.assign(all.begin(), middle);
  distances.lengths.assign(middle, all.end());
  return literals.make() && distances.make() && literals.lengths[kEndOfBlock] != 0;
}

} // namespace etwrelog::codec::deflate
