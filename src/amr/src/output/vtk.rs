//! VTK files that ParaView opens: one unstructured grid per rank, an index that joins them, and a time series.
//!
//! A mesh cell is a VTK voxel with the cell data `level`, `owner`, `block` and the fields asked for. Points are shared
//! inside a block only, so a rank needs to know nothing of others. Data are appended in binary; a file is written as a
//! stream, without a copy of it in memory. In bytes, per cell, with n cells along a block's edge: 53 + 24 (1 + 1/n)^3
//! and 8 for each field.
//!
//! ```text
//! mesh.pvd                      opens the whole run; one entry per step
//! mesh.000040.pvtu              the index of a step, written by rank 0
//! mesh.000040.0003.vtu          the blocks of rank 3
//! ```
//! Source: the VTK XML formats (UnstructuredGrid, PUnstructuredGrid, Collection), version 1.0 with 64-bit headers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::shape::BlockShape;

use super::publish::publish;
use super::{BlockView, OutputError};

const VOXEL: u8 = 11;
/// Corners of a voxel.
const CORNERS: usize = 8;

/// A run's VTK output: a folder, and the fields that are written.
#[derive(Clone, Debug)]
pub struct Vtk {
    pub folder: PathBuf,
    /// Name of a field, which needs no escape in XML, and the variable it shows.
    pub fields: Vec<(String, usize)>,
    pub shape: BlockShape,
    pub roots: [u32; 3],
}

/// One array of a file.
struct Array {
    name: String,
    kind: &'static str,
    components: usize,
    bytes: u64,
}

impl Vtk {
    /// Writes the blocks of one rank; a rank without blocks writes a file without cells.
    ///
    /// Errors: `OutputError`; nothing half-written is left.
    pub fn write_piece(
        &self,
        step: u64,
        rank: usize,
        blocks: &[BlockView<'_>],
    ) -> Result<(), OutputError> {
        publish(&self.folder.join(Vtk::piece(step, rank)), |file| {
            self.stream(file, blocks)
        })
    }

    /// Writes the index of a step: one rank does, after all have written their pieces.
    ///
    /// Errors: `OutputError`.
    pub fn write_index(&self, step: u64, n_ranks: usize) -> Result<(), OutputError> {
        publish(&self.folder.join(Vtk::index(step)), |file| {
            header(file, "PUnstructuredGrid")?;
            writeln!(file, "<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>")?;
            writeln!(
                file,
                "<PDataArray type=\"Float64\" NumberOfComponents=\"3\"/>\n</PPoints>\n<PCellData>"
            )?;
            for array in self.cell_data(0) {
                writeln!(
                    file,
                    "<PDataArray type=\"{}\" Name=\"{}\"/>",
                    array.kind, array.name
                )?;
            }
            writeln!(file, "</PCellData>")?;
            for rank in 0..n_ranks {
                writeln!(file, "<Piece Source=\"{}\"/>", Vtk::piece(step, rank))?;
            }
            writeln!(file, "</PUnstructuredGrid>\n</VTKFile>")
        })
    }

    /// Writes the time series anew, with every step that has an index: one rank does.
    ///
    /// Shape:  step and simulated time.
    /// Errors: `OutputError`.
    pub fn write_series(&self, steps: &[(u64, f64)]) -> Result<(), OutputError> {
        publish(&self.folder.join("mesh.pvd"), |file| {
            header(file, "Collection")?;
            writeln!(file, "<Collection>")?;
            for &(step, time) in steps {
                writeln!(
                    file,
                    "<DataSet timestep=\"{time}\" part=\"0\" file=\"{}\"/>",
                    Vtk::index(step)
                )?;
            }
            writeln!(file, "</Collection>\n</VTKFile>")
        })
    }

    fn index(step: u64) -> String {
        format!("mesh.{step:06}.pvtu")
    }

    fn piece(step: u64, rank: usize) -> String {
        format!("mesh.{step:06}.{rank:04}.vtu")
    }

    fn cell_data(&self, cells: u64) -> Vec<Array> {
        let array = |name: &str, kind, width| Array {
            name: name.to_owned(),
            kind,
            components: 1,
            bytes: width * cells,
        };
        let mut arrays = vec![
            array("level", "UInt8", 1),
            array("owner", "UInt32", 4),
            array("block", "UInt64", 8),
        ];
        arrays.extend(
            self.fields
                .iter()
                .map(|(name, _)| array(name, "Float64", 8)),
        );
        arrays
    }

    fn stream(&self, file: &mut BufWriter<File>, blocks: &[BlockView<'_>]) -> io::Result<()> {
        let points_per_block: usize = self.shape.cells.iter().map(|n| n + 1).product();
        let cells = (blocks.len() * self.shape.interior_cells()) as u64;
        let points = (blocks.len() * points_per_block) as u64;
        let array = |name: &str, kind, components, bytes| Array {
            name: name.to_owned(),
            kind,
            components,
            bytes,
        };
        let positions = array("points", "Float64", 3, 24 * points);
        let topology = [
            array("connectivity", "Int32", 1, 4 * CORNERS as u64 * cells),
            array("offsets", "Int32", 1, 4 * cells),
            array("types", "UInt8", 1, cells),
        ];
        if CORNERS as u64 * cells > i32::MAX as u64 || points > i32::MAX as u64 {
            return Err(io::Error::other(
                "a rank has more cells than a file with 32-bit indices holds",
            ));
        }
        header(file, "UnstructuredGrid")?;
        writeln!(file, "<UnstructuredGrid>")?;
        writeln!(
            file,
            "<Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\">"
        )?;
        let mut offset = 0;
        writeln!(file, "<Points>")?;
        declare(file, &positions, &mut offset)?;
        writeln!(file, "</Points>\n<Cells>")?;
        topology
            .iter()
            .try_for_each(|array| declare(file, array, &mut offset))?;
        writeln!(file, "</Cells>\n<CellData>")?;
        let cell_data = self.cell_data(cells);
        cell_data
            .iter()
            .try_for_each(|array| declare(file, array, &mut offset))?;
        writeln!(file, "</CellData>\n</Piece>\n</UnstructuredGrid>")?;
        write!(file, "<AppendedData encoding=\"raw\">\n_")?;

        file.write_all(&positions.bytes.to_le_bytes())?;
        blocks
            .iter()
            .try_for_each(|block| self.points(file, block))?;
        self.topology(file, &topology, blocks.len(), points_per_block)?;
        self.values(file, &cell_data, blocks)?;
        write!(file, "\n</AppendedData>\n</VTKFile>\n")
    }

    fn points(&self, file: &mut impl Write, block: &BlockView<'_>) -> io::Result<()> {
        let (lower, upper) = (block.leaf.lower(self.roots), block.leaf.upper(self.roots));
        let at = |axis: usize, point: usize| {
            let n = self.shape.cells[axis];
            // The last point is the neighbour's first one, to the bit.
            if point == n {
                upper[axis]
            } else {
                lower[axis] + (upper[axis] - lower[axis]) * point as f64 / n as f64
            }
        };
        let [nx, ny, nz] = self.shape.cells;
        for z in 0..=nz {
            for y in 0..=ny {
                for x in 0..=nx {
                    for position in [at(0, x), at(1, y), at(2, z)] {
                        file.write_all(&position.to_le_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn topology(
        &self,
        file: &mut impl Write,
        arrays: &[Array; 3],
        blocks: usize,
        points: usize,
    ) -> io::Result<()> {
        let [nx, ny, nz] = self.shape.cells;
        file.write_all(&arrays[0].bytes.to_le_bytes())?;
        for block in 0..blocks {
            for (z, y, x) in
                (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))))
            {
                for corner in 0..CORNERS {
                    let [dx, dy, dz] = [0, 1, 2].map(|axis| corner >> axis & 1);
                    let point = block * points + ((z + dz) * (ny + 1) + y + dy) * (nx + 1) + x + dx;
                    file.write_all(&(point as i32).to_le_bytes())?;
                }
            }
        }
        let cells = blocks * self.shape.interior_cells();
        file.write_all(&arrays[1].bytes.to_le_bytes())?;
        (1..=cells)
            .try_for_each(|cell| file.write_all(&((CORNERS * cell) as i32).to_le_bytes()))?;
        file.write_all(&arrays[2].bytes.to_le_bytes())?;
        (0..cells).try_for_each(|_| file.write_all(&[VOXEL]))
    }

    fn values(
        &self,
        file: &mut impl Write,
        arrays: &[Array],
        blocks: &[BlockView<'_>],
    ) -> io::Result<()> {
        let cells = self.shape.interior_cells();
        file.write_all(&arrays[0].bytes.to_le_bytes())?;
        for block in blocks {
            (0..cells).try_for_each(|_| file.write_all(&[block.leaf.level]))?;
        }
        file.write_all(&arrays[1].bytes.to_le_bytes())?;
        for block in blocks {
            (0..cells).try_for_each(|_| file.write_all(&block.owner.to_le_bytes()))?;
        }
        file.write_all(&arrays[2].bytes.to_le_bytes())?;
        for block in blocks {
            (0..cells).try_for_each(|_| file.write_all(&block.leaf.packed().to_le_bytes()))?;
        }
        for (array, (_, var)) in arrays[3..].iter().zip(&self.fields) {
            file.write_all(&array.bytes.to_le_bytes())?;
            for block in blocks {
                block
                    .interior(self.shape, *var)
                    .try_for_each(|value| file.write_all(&value.to_le_bytes()))?;
            }
        }
        Ok(())
    }
}

fn header(file: &mut impl Write, kind: &str) -> io::Result<()> {
    writeln!(file, "<?xml version=\"1.0\"?>")?;
    writeln!(
        file,
        "<VTKFile type=\"{kind}\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">"
    )
}

/// Names an array and where its data begin; each is preceded by its length in 8 bytes.
fn declare(file: &mut impl Write, array: &Array, offset: &mut u64) -> io::Result<()> {
    let Array {
        name,
        kind,
        components,
        bytes,
    } = array;
    writeln!(
        file,
        "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" \
         offset=\"{offset}\"/>"
    )?;
    *offset += 8 + bytes;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::leaf::Leaf;

    const SHAPE: BlockShape = BlockShape {
        cells: [4, 2, 2],
        ghosts: 1,
        n_vars: 2,
    };

    fn vtk(folder: &Path) -> Vtk {
        let fields = vec![("density".to_owned(), 0), ("energy".to_owned(), 1)];
        Vtk {
            folder: folder.to_owned(),
            fields,
            shape: SHAPE,
            roots: [2, 1, 1],
        }
    }

    #[test]
    fn a_piece_declares_exactly_the_bytes_that_it_appends() {
        let folder = tempfile::tempdir().expect("a folder");
        let cells: Vec<f64> = (0..SHAPE.block_len()).map(|place| place as f64).collect();
        let leaves = [
            Leaf {
                level: 0,
                at: [0; 3],
            },
            Leaf {
                level: 1,
                at: [2, 0, 1],
            },
        ];
        let blocks = leaves.map(|leaf| BlockView {
            leaf,
            owner: 3,
            cells: &cells,
        });
        vtk(folder.path())
            .write_piece(7, 3, &blocks)
            .expect("written");
        let bytes = std::fs::read(folder.path().join("mesh.000007.0003.vtu")).expect("there");
        let start = bytes
            .windows(2)
            .position(|pair| pair == b"\n_")
            .expect("appended data")
            + 2;
        let head = String::from_utf8_lossy(&bytes[..start]).into_owned();
        assert!(
            head.contains("Name=\"energy\"") && head.contains("NumberOfCells=\"32\""),
            "{head}"
        );
        let offsets = head
            .split("offset=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().expect("a number"));
        let offsets: Vec<usize> = offsets
            .map(|number| number.parse().expect("a number"))
            .collect();
        assert_eq!(offsets.len(), 9);
        for pair in offsets.windows(2) {
            let length =
                u64::from_le_bytes(bytes[start + pair[0]..][..8].try_into().expect("8 bytes"));
            assert_eq!(pair[0] + 8 + length as usize, pair[1]);
        }
        let last = start + offsets[8];
        let length = u64::from_le_bytes(bytes[last..][..8].try_into().expect("8 bytes")) as usize;
        assert_eq!(
            &bytes[last + 8 + length..],
            b"\n</AppendedData>\n</VTKFile>\n"
        );
        let first_value = f64::from_le_bytes(bytes[last + 8..][..8].try_into().expect("8 bytes"));
        assert_eq!(
            first_value,
            SHAPE.index(1, 1, 1, 1) as f64,
            "ghosts are left out"
        );
    }

    #[test]
    fn index_and_series_name_all_pieces_and_steps() {
        let folder = tempfile::tempdir().expect("a folder");
        let vtk = vtk(folder.path());
        vtk.write_index(7, 3).expect("written");
        vtk.write_series(&[(0, 0.0), (7, 0.25)]).expect("written");
        let index = std::fs::read_to_string(folder.path().join("mesh.000007.pvtu")).expect("there");
        for rank in 0..3 {
            assert!(
                index.contains(&format!("<Piece Source=\"mesh.000007.{rank:04}.vtu\"/>")),
                "{index}"
            );
        }
        let series = std::fs::read_to_string(folder.path().join("mesh.pvd")).expect("there");
        assert!(
            series.contains("timestep=\"0.25\" part=\"0\" file=\"mesh.000007.pvtu\""),
            "{series}"
        );
    }
}
