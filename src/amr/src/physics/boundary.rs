//! Ghost cells at the faces of the domain.

use crate::leaf::tangents;
use crate::shape::BlockShape;

/// What lies beyond a face of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The gas flows out: ghosts repeat the last cell.
    Outflow,
    /// A wall: ghosts mirror the cells, the normal momentum with its sign turned. Nothing flows through.
    Reflecting,
}

/// Fills the ghosts of a block beyond one of its faces, edges and corners excepted.
///
/// Shape:  `face` is 0 to 5: -x, +x, -y, +y, -z, +z.
pub fn fill(shape: BlockShape, face: usize, boundary: Boundary, block: &mut [f64]) {
    let (axis, g) = (face / 2, shape.ghosts);
    let (n, [t1, t2]) = (shape.cells[axis], tangents(axis));
    for var in 0..shape.n_vars {
        let sign = if boundary == Boundary::Reflecting && var == 1 + axis {
            -1.0
        } else {
            1.0
        };
        for layer in 0..g {
            let depth = if boundary == Boundary::Outflow {
                0
            } else {
                layer
            };
            let (ghost, source) = if face.is_multiple_of(2) {
                (g - 1 - layer, g + depth)
            } else {
                (g + n + layer, g + n - 1 - depth)
            };
            for b in g..g + shape.cells[t2] {
                for a in g..g + shape.cells[t1] {
                    let place = |along: usize| {
                        let mut at = [0; 3];
                        (at[axis], at[t1], at[t2]) = (along, a, b);
                        shape.index(var, at[0], at[1], at[2])
                    };
                    block[place(ghost)] = sign * block[place(source)];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_mirror_cells_and_open_faces_repeat_the_last_one() {
        let shape = BlockShape {
            cells: [4, 6, 4],
            ghosts: 2,
            n_vars: 5,
        };
        for face in 0..6 {
            let axis = face / 2;
            let mut block: Vec<f64> = (0..shape.block_len()).map(|place| place as f64).collect();
            let cells = block.clone();
            let read = |block: &[f64], var: usize, along: usize| {
                let mut at = [3; 3];
                at[axis] = along;
                block[shape.index(var, at[0], at[1], at[2])]
            };
            let n = shape.cells[axis];
            let (first, second, in_first, in_second) = if face.is_multiple_of(2) {
                (1, 0, 2, 3)
            } else {
                (n + 2, n + 3, n + 1, n)
            };
            fill(shape, face, Boundary::Reflecting, &mut block);
            for var in 0..5 {
                let sign = if var == 1 + axis { -1.0 } else { 1.0 };
                assert_eq!(read(&block, var, first), sign * read(&cells, var, in_first));
                assert_eq!(
                    read(&block, var, second),
                    sign * read(&cells, var, in_second)
                );
            }
            fill(shape, face, Boundary::Outflow, &mut block);
            for var in 0..5 {
                assert_eq!(read(&block, var, first), read(&cells, var, in_first));
                assert_eq!(read(&block, var, second), read(&cells, var, in_first));
            }
        }
    }
}
