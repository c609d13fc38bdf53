#include "etlz/model/encode.hpp"

namespace etwrelog::etlz {

template class ModelCore<Way::to_streams>;
template class EncoderFor<Way::to_streams>;

} // namespace etwrelog::etlz
