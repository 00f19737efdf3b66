#!/bin/sh
# Run the tests whose numbers depend on arithmetic as other machines would: test-portable.sh [part]
#
# First with the kernels, torch, its libraries and numpy's held to older instruction sets, on one
# thread and on two. Then with every rounding of torch's moved by up to a unit in the last place,
# by ten seeds (tests/rounding.py): another maker's library sums in an order that no switch gives.
# "part" is three minutes of it: the quick tests, the oldest instructions, one seed.
set -eu
cd "$(dirname "$0")/.."

run() { # what it is; options of pytest
    printf '\n== %s\n' "$1"
    shift
    .venv/bin/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile "$@"
}

avx2() { # threads; options of pytest
    UNROLLED_KERNELS=avx2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 \
        MKL_ENABLE_INSTRUCTIONS=AVX2 MKL_CBWR=AVX2 OPENBLAS_CORETYPE=Haswell \
        OMP_NUM_THREADS=$1 run "AVX2, threads: $1" -m "$2"
}

oldest() { # kernels; threads; options of pytest
    UNROLLED_KERNELS=$1 ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 \
        MKL_ENABLE_INSTRUCTIONS=SSE4_2 MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Nehalem \
        OMP_NUM_THREADS=$2 run "the oldest instructions, kernels: $1, threads: $2" -m "$3"
}

rounding() { run "other roundings, seed $1" --rounding "$1" -m "$2"; }

has() { UNROLLED_KERNELS=$1 .venv/bin/python -c 'import unrolled.native' 2> /dev/null; }

old=none
! has portable || old=portable
if [ "${1-}" = part ]; then
    quick='arithmetic and not trains and not slow'
    oldest $old 1 "$quick"
    rounding 1 "$quick"
    exit
fi
for threads in 1 2; do
    ! has avx2 || avx2 $threads arithmetic
    oldest $old $threads arithmetic
done
oldest none 1 arithmetic
for seed in 1 2 3 4 5 6 7 8 9 10; do rounding $seed arithmetic; done
