#include "profile/marks.hpp"

namespace etwrelog::profile {

void Marks::append(std::span<const Mark> marks) {
  for (const Mark &mark : marks) {
    if (chunks_.empty() || chunks_.back().kinds.size() == kChunk) {
      if (!chunks_.empty()) {
        chunks_.back().others.shrink_to_fit();
        chunks_.back().blocks.shrink_to_fit();
      }
      chunks_.emplace_back().kinds.reserve(kChunk);
    }
    Chunk &chunk = chunks_.back();
    if (chunk.blocks.empty() || !continues(chunk.blocks.back(), mark)) {
      Block &block = chunk.blocks.emplace_back();
      block.base = mark.time;
      block.processor = mark.processor;
    }
    Block &block = chunk.blocks.back();
    if (mark.kind != Mark::kSubject)
      chunk.others.push_back({static_cast<std::uint32_t>(mark.time - block.base), mark.thread});
    else if (block.subjects++ == 0)
      block.first_subject = mark.thread;
    chunk.kinds.push_back(mark.kind);
    ++block.count;
  }
}

bool Marks::continues(const Block &block, const Mark &mark) {
  if (mark.processor != block.processor) return false;
  if (mark.kind == Mark::kSubject)
    return block.subjects == 0 || mark.thread == block.first_subject + block.subjects;
  const std::uint64_t behind = static_cast<std::uint64_t>(mark.time) - static_cast<std::uint64_t>(block.base);
  return mark.time >= block.base && behind <= 0xFFFF'FFFF;
}

std::size_t Marks::size() const {
  std::size_t sum = 0;
  for (const Chunk &chunk : chunks_)
    sum += chunk.kinds.size();
  return sum;
}

} // namespace etwrelog::profile
