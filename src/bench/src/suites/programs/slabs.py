"""A three-dimensional FFT by mpi4py-fft, there and back, whose alltoallw exchanges blocks of derived types.

usage: slabs.py POINTS ROUNDS"""
import sys
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
import numpy as np

points, rounds = int(sys.argv[1]), int(sys.argv[2])
fft = PFFT(MPI.COMM_WORLD, (points,) * 3, dtype=complex, grid=(-1,))
first = np.random.default_rng(MPI.COMM_WORLD.Get_rank()).standard_normal(fft.forward.input_array.shape)
field, waves = newDistArray(fft, False), newDistArray(fft, True)
field[:] = first
for _ in range(rounds):
    fft.forward(field, waves)
    fft.backward(waves, field)
if not np.allclose(field, first):
    sys.exit("the transform and its inverse do not agree")
