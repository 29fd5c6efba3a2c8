"""A three-dimensional FFT by mpi4py-fft, there and back, whose alltoallw exchanges blocks of derived types.

usage: slabs.py POINTS ROUNDS [GRID]; GRID is slabs, or how many processes cut each of the first two axes, as in 2x4"""
import sys
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
import numpy as np

points, rounds = int(sys.argv[1]), int(sys.argv[2])
cut = sys.argv[3] if len(sys.argv) > 3 else "slabs"
grid = (-1,) if cut == "slabs" else tuple(int(n) for n in cut.split("x")) + (1,)
fft = PFFT(MPI.COMM_WORLD, (points,) * 3, dtype=complex, grid=grid)
first = np.random.default_rng(MPI.COMM_WORLD.Get_rank()).standard_normal(fft.forward.input_array.shape)
field, waves = newDistArray(fft, False), newDistArray(fft, True)
field[:] = first
for _ in range(rounds):
    fft.forward(field, waves)
    fft.backward(waves, field)
if not np.allclose(field, first):
    sys.exit("the transform and its inverse do not agree")
