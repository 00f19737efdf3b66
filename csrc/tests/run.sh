#!/bin/sh
# Build and run the C++ tests under the sanitisers, in the folder given: run.sh FOLDER [ISA…]
#
# "arm" runs them on an emulated ARM, without sanitisers: for it g++-aarch64-linux-gnu and qemu-user must be there.
# The thread sanitiser cannot see OpenMP's own waiting, so that build goes without: there run_plan
# is serial, and the tests' own teams of threads are what it follows.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
mkdir -p "$folder"
export OMP_WAIT_POLICY=passive

build_and_run() { # name of the instruction set, its flags, the sanitiser's flags
    for test in simd letters recurrent chain memory tree; do
        program=$folder/$test-$1
        # shellcheck disable=SC2086 # flags are words
        ${CXX:-c++} -std=c++17 -O1 -g1 -Wall -Wextra -ffp-contract=fast -fno-math-errno \
            -fno-sanitize-recover=all -DUNROLLED_ISA="$1" $2 $3 \
            "$here/test_$test.cpp" "$here/../plan.cpp" "$here/../memory.cpp" -o "$program"
        ${RUNNER:-} "$program"
    done
}

memory="-fopenmp -fsanitize=address,undefined"
for isa in ${*:-portable native threads}; do
    case $isa in
    portable) build_and_run portable "" "$memory" ;;
    native) build_and_run native -march=native "$memory" ;;
    threads) build_and_run threads "" "-fsanitize=thread -Wno-unknown-pragmas" ;;
    arm) (CXX=aarch64-linux-gnu-g++ RUNNER=qemu-aarch64 && build_and_run arm "" "-fopenmp -static") ;;
    esac
done
