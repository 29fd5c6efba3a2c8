"""As caller.c, in Python: mpi4py's call on buffers."""

import sys
from time import perf_counter_ns

import numpy
from mpi4py import MPI

blocks, calls = int(sys.argv[1]), int(sys.argv[2])
send, recv = numpy.ones(1), numpy.zeros(1)
allreduce = MPI.COMM_SELF.Allreduce
for block in range(blocks + 1):
    start = perf_counter_ns()
    for _ in range(calls):
        allreduce(send, recv)
    end = perf_counter_ns()
    if block > 0:
        print((end - start) / calls)
