//! A slice through the mesh as tiles, one per block that the plane cuts: what a rank sends to the one that paints.

use crate::shape::BlockShape;

use super::BlockView;

/// A plane through the unit cube and how finely it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// The axis that it is normal to.
    pub axis: usize,
    /// Where it cuts that axis: 0 to 1.
    pub position: f64,
    /// Pixels along each edge of the cube.
    pub pixels: u32,
}

/// The part of the picture that one block covers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// First pixel and number of pixels, along the faster and the slower axis of the plane.
    pub first: [u32; 2],
    pub size: [u32; 2],
    pub level: u8,
    pub owner: u32,
    /// One value per pixel, the faster axis fastest.
    pub values: Vec<f32>,
}

/// The tiles of a rank's blocks.
///
/// Shape:  `var` is the variable that is shown.
pub fn render(
    plane: Plane,
    shape: BlockShape,
    roots: [u32; 3],
    var: usize,
    blocks: &[BlockView<'_>],
) -> Vec<Tile> {
    blocks
        .iter()
        .filter_map(|block| tile(plane, shape, roots, var, block))
        .collect()
}

fn tile(
    plane: Plane,
    shape: BlockShape,
    roots: [u32; 3],
    var: usize,
    block: &BlockView<'_>,
) -> Option<Tile> {
    let (lower, upper) = (block.leaf.lower(roots), block.leaf.upper(roots));
    let axis = plane.axis;
    let is_last = upper[axis] == 1.0 && plane.position >= 1.0;
    if !(lower[axis]..upper[axis]).contains(&plane.position) && !is_last {
        return None;
    }
    // A pixel belongs to the block that holds its centre, so tiles of any mesh cover the picture exactly once.
    let pixel = |at: f64| (at * f64::from(plane.pixels) - 0.5).ceil().max(0.0) as u32;
    let across = crate::leaf::tangents(axis);
    let first = across.map(|t| pixel(lower[t]));
    let end = across.map(|t| pixel(upper[t]));
    let size = [end[0] - first[0], end[1] - first[1]];
    let cell = |axis: usize, at: f64| {
        let n = shape.cells[axis];
        let inside = (at - lower[axis]) / (upper[axis] - lower[axis]) * n as f64;
        (inside as usize).min(n - 1) + shape.ghosts
    };
    let mut at = [0; 3];
    at[axis] = cell(axis, plane.position);
    let centre = |pixel: u32| (f64::from(pixel) + 0.5) / f64::from(plane.pixels);
    let mut values = Vec::with_capacity((size[0] * size[1]) as usize);
    for b in first[1]..end[1] {
        at[across[1]] = cell(across[1], centre(b));
        for a in first[0]..end[0] {
            at[across[0]] = cell(across[0], centre(a));
            values.push(block.cells[shape.index(var, at[0], at[1], at[2])] as f32);
        }
    }
    Some(Tile {
        first,
        size,
        level: block.leaf.level,
        owner: block.owner,
        values,
    })
}

const HEADER_BYTES: usize = 21;

/// Tiles as bytes, to be sent.
pub fn encode(tiles: &[Tile]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for tile in tiles {
        let words = [
            tile.first[0],
            tile.first[1],
            tile.size[0],
            tile.size[1],
            tile.owner,
        ];
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.push(tile.level);
        tile.values
            .iter()
            .for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    bytes
}

/// Inverse of [`encode`]; `None` for bytes that are not whole tiles.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<Tile>> {
    let mut tiles = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let (words, level) = header.as_chunks::<4>();
        let [x, y, width, height, owner] = <[[u8; 4]; 5]>::try_from(words)
            .ok()?
            .map(u32::from_le_bytes);
        let n = (width as usize)
            .checked_mul(height as usize)?
            .checked_mul(4)?;
        let (values, later) = rest.split_at_checked(n)?;
        let values = values
            .as_chunks::<4>()
            .0
            .iter()
            .map(|value| f32::from_le_bytes(*value))
            .collect();
        tiles.push(Tile {
            first: [x, y],
            size: [width, height],
            level: level[0],
            owner,
            values,
        });
        bytes = later;
    }
    Some(tiles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Leaf;

    const SHAPE: BlockShape = BlockShape {
        cells: [4, 4, 4],
        ghosts: 1,
        n_vars: 1,
    };

    /// Root grid 3 x 1 x 1, the middle root split.
    fn leaves() -> Vec<Leaf> {
        let root = |x: u32| Leaf {
            level: 0,
            at: [x, 0, 0],
        };
        [root(0), root(2)]
            .into_iter()
            .chain((0..8).map(|octant| root(1).child(octant)))
            .collect()
    }

    #[test]
    fn tiles_of_all_blocks_cover_the_picture_exactly_once() {
        let cells = vec![1.0; SHAPE.block_len()];
        let blocks: Vec<BlockView<'_>> = leaves()
            .into_iter()
            .map(|leaf| BlockView {
                leaf,
                owner: 0,
                cells: &cells,
            })
            .collect();
        for axis in 0..3 {
            for position in [0.0, 0.4, 0.5, 1.0] {
                for pixels in [7, 64, 100] {
                    let mut covered = vec![0; (pixels * pixels) as usize];
                    for tile in render(
                        Plane {
                            axis,
                            position,
                            pixels,
                        },
                        SHAPE,
                        [3, 1, 1],
                        0,
                        &blocks,
                    ) {
                        assert_eq!(tile.values.len(), (tile.size[0] * tile.size[1]) as usize);
                        for y in tile.first[1]..tile.first[1] + tile.size[1] {
                            for x in tile.first[0]..tile.first[0] + tile.size[0] {
                                covered[(y * pixels + x) as usize] += 1;
                            }
                        }
                    }
                    assert!(
                        covered.iter().all(|&times| times == 1),
                        "axis {axis} at {position}, {pixels} pixels"
                    );
                }
            }
        }
    }

    #[test]
    fn a_pixel_shows_the_cell_under_its_centre() {
        let mut cells = vec![f64::NAN; SHAPE.block_len()];
        for (z, y, x) in
            (0..4).flat_map(|z| (0..4).flat_map(move |y| (0..4).map(move |x| (z, y, x))))
        {
            cells[SHAPE.index(0, x + 1, y + 1, z + 1)] = (100 * z + 10 * y + x) as f64;
        }
        let block = BlockView {
            leaf: Leaf {
                level: 0,
                at: [0; 3],
            },
            owner: 5,
            cells: &cells,
        };
        let plane = Plane {
            axis: 1,
            position: 0.6,
            pixels: 8,
        };
        let tiles = render(plane, SHAPE, [1, 1, 1], 0, &[block]);
        assert_eq!((tiles.len(), tiles[0].owner), (1, 5));
        assert_eq!(tiles[0].values[0], 20.0);
        assert_eq!(tiles[0].values[8 * 7 + 2], 321.0);
    }

    #[test]
    fn tiles_survive_being_sent_and_damage_is_seen() {
        let tile = Tile {
            first: [3, 4],
            size: [2, 1],
            level: 2,
            owner: 9,
            values: vec![1.5, f32::MIN],
        };
        let tiles = vec![tile.clone(), Tile { owner: 1, ..tile }];
        let bytes = encode(&tiles);
        assert_eq!(decode(&bytes), Some(tiles));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(decode(&[]), Some(Vec::new()));
    }
}
