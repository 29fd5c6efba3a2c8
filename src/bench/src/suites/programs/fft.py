"""A three-dimensional FFT on slabs, there and back: planes are transformed, transposed by alltoall, then lines.

usage: fft.py POINTS ROUNDS"""
import sys
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
n, rounds, size = int(sys.argv[1]), int(sys.argv[2]), comm.Get_size()
slab = n // size
rng = np.random.default_rng(comm.Get_rank())
first = rng.standard_normal((slab, n, n)).astype(complex)


def transposed(here, back):
    """Exchanges slabs of the first axis for slabs of the second one, or back."""
    blocks = here.reshape(slab, size, slab, n).transpose(1, 0, 2, 3)
    if back:
        blocks = here.reshape(size, slab, slab, n)
    send = np.ascontiguousarray(blocks)
    recv = np.empty_like(send)
    comm.Alltoall(send, recv)
    if back:
        return np.ascontiguousarray(recv.transpose(1, 0, 2, 3)).reshape(slab, n, n)
    return recv.reshape(n, slab, n)


field = first
for _ in range(rounds):
    lines = np.fft.fft(transposed(np.fft.fft2(field), False), axis=0)
    field = np.fft.ifft2(transposed(np.fft.ifft(lines, axis=0), True))
    norm = comm.allreduce(float(np.sum(np.abs(field) ** 2)))
if not np.allclose(field, first):
    sys.exit("the transform and its inverse do not agree")
