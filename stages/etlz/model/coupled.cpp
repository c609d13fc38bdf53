// The model whose symbols all go through one coder.

#include "etlz/model/decode.hpp"
#include "etlz/model/encode.hpp"

namespace etwrelog::etlz {

template class ModelCore<Way::to_code>;
template class EncoderFor<Way::to_code>;
template class ModelCore<Way::from_code>;
template class DecoderFor<Way::from_code>;

} // namespace etwrelog::etlz
