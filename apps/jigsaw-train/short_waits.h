#pragma once

namespace jigsaw {

/// Threads that wait for others of the program's loops look again and again for a while before they sleep. By
/// itself GNU's OpenMP does so for milliseconds, which makes small loops a little faster, and a process that
/// shares its cores with others many times slower, for it keeps them from the threads that it waits for.
/// Unless the user says how to wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or there is one thread alone, the
/// program begins anew with a short while, since the library reads that before main() is called.
///
/// Returns where nothing is to be changed, or nothing can be. Before anything else is done.
void shorten_waits(char** argv);

}  // namespace jigsaw
