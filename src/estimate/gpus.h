#pragma once
#include <string>
#include <vector>

#include "estimate/machine_model.h"

namespace jigsaw::inline estimate {

/// Machines of GPUs that are known, "h100" first: attained rates, from NVIDIA's data sheets. Of products
/// about half of the dense peaks of tensor cores, and three quarters of those in plain float32; of memory and
/// NVLink four fifths, of PCIe, by which those without NVLink are connected, about 20 GB/s in generation 4
/// and 40 in generation 5. Nodes and networks are usual ones.
const std::vector<MachineModel>& known_gpus();

/// The machine of a GPU by the name that its driver gives it, "NVIDIA H100 80GB HBM3". One that is not known
/// is taken for "h100"; its name then says so. A slice of one (MIG) has its part.
MachineModel gpu_machine(const std::string& driver_name);

/// That of the GPUs which this process sees, of which its own stands for all. Where NVLink does not connect
/// it to all others they are taken to be connected by PCIe.
MachineModel machine_of_gpus_here();

}  // namespace jigsaw::inline estimate
