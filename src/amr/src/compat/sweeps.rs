//! How often miniAMR sweeps each level before its marks settle.
//!
//! A rank of miniAMR knows the marks of its own blocks, and of blocks beyond a face on another rank
//! what the last message said. After each sweep the ranks add up their changes; if there were any, they
//! exchange marks and sweep once more. A change counts as well where only the picture of a neighbour is
//! behind, because its mark rose by word of its parent after it was sent. So the number of sweeps depends
//! on who owns what, and on the order of messages. Every rank follows here what all of them know.
//!
//! Its marks may lag behind those of [`crate::refine::settle`] where siblings lie on several ranks; the
//! mesh follows the latter.

use rustc_hash::FxHashMap;

use crate::leaf::{FACES, opposite};
use crate::mesh::{Mesh, Neighbour};
use crate::refine::Mark;

/// Sweeps of a level: those for leaves that split, and those for leaves that stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweeps {
    pub by_splits: usize,
    pub by_stays: usize,
}

/// The sweeps of each level from 0 to the grid's depth, those without leaves included.
///
/// `wants` is what each leaf wants for itself, as [`crate::refine::first_marks`] takes it.
pub fn count(mesh: &Mesh, wants: impl Fn(usize) -> Mark) -> Vec<Sweeps> {
    follow(mesh, wants).0
}

/// The sweeps and the marks that they end with.
fn follow(mesh: &Mesh, wants: impl Fn(usize) -> Mark) -> (Vec<Sweeps>, Vec<Mark>) {
    let mut known = Known::at_start(mesh);
    known.mark(wants);
    known.tell_neighbours();
    known.tell_parents();
    known.tell_children();
    let depth = usize::from(mesh.grid.depth);
    let mut by_level = vec![Vec::new(); depth + 1];
    for (i, leaf) in mesh.leaves().iter().enumerate() {
        by_level[usize::from(leaf.level)].push(i);
    }
    let mut sweeps = vec![Sweeps::default(); depth + 1];
    for level in (0..=depth).rev() {
        let of_level = &by_level[level];
        loop {
            sweeps[level].by_splits += 1;
            if !known.sweep_by_splits(of_level) {
                break;
            }
            known.raise_as_told();
            known.tell_neighbours();
            known.tell_children();
            known.tell_parents();
        }
        loop {
            sweeps[level].by_stays += 1;
            if !known.sweep_by_stays(of_level) {
                break;
            }
            known.raise_as_told();
            known.tell_neighbours();
            known.tell_parents();
            known.tell_children();
        }
    }
    (sweeps, known.marks)
}

/// What the ranks know, each about its own.
struct Known<'a> {
    mesh: &'a Mesh,
    /// Of each leaf, on its owner.
    marks: Vec<Mark>,
    /// What the owner of a leaf thinks of what lies beyond each face on another rank.
    beyond: Vec<[Mark; FACES]>,
    families: Vec<Family>,
    /// The family of each leaf, none for roots.
    of: Vec<Option<u32>>,
}

/// The children of an inner block, as the rank that keeps it knows them.
struct Family {
    home: u32,
    /// `Join` while nothing speaks against it.
    mark: Mark,
    /// Those of the children that are leaves.
    leaves: Vec<u32>,
    has_inner: bool,
}

impl<'a> Known<'a> {
    /// Every leaf may be joined, unless a sibling that its parent's rank keeps is split.
    fn at_start(mesh: &'a Mesh) -> Known<'a> {
        let n = mesh.len();
        let homes = mesh.homes().expect("kept under --compat");
        let mut known = Known {
            mesh,
            marks: vec![Mark::Join; n],
            beyond: vec![[Mark::Join; FACES]; n],
            families: Vec::with_capacity(homes.len()),
            of: Vec::with_capacity(n),
        };
        let mut places: FxHashMap<u64, u32> = FxHashMap::default();
        for (&block, &home) in homes {
            places.insert(block, known.families.len() as u32);
            known.families.push(Family {
                home,
                mark: Mark::Join,
                leaves: Vec::with_capacity(8),
                has_inner: false,
            });
        }
        for (i, leaf) in mesh.leaves().iter().enumerate() {
            let family = leaf.parent().map(|parent| places[&parent.packed()]);
            known.of.push(family);
            if let Some(family) = family {
                known.families[family as usize].leaves.push(i as u32);
            }
        }
        for (&block, &home) in homes {
            let inner = crate::leaf::Leaf::from_packed(block).expect("a block's word");
            let Some(parent) = inner.parent() else {
                continue;
            };
            let family = places[&parent.packed()] as usize;
            known.families[family].has_inner = true;
            if known.families[family].home == home {
                known.hold(family);
            }
        }
        known
    }

    /// A family cannot be joined: says whether that is news to a leaf on the rank that keeps it.
    fn hold(&mut self, family: usize) -> bool {
        let Family { home, leaves, .. } = &self.families[family];
        let mut news = false;
        for &leaf in leaves {
            let mark = &mut self.marks[leaf as usize];
            if *mark == Mark::Join && self.mesh.owners()[leaf as usize] == *home {
                *mark = Mark::Stay;
                news = true;
            }
        }
        self.families[family].mark = Mark::Stay;
        news
    }

    /// The family of a leaf, where the leaf's own rank keeps it.
    fn family_at_home(&self, i: usize) -> Option<usize> {
        let family = self.of[i]? as usize;
        (self.families[family].home == self.mesh.owners()[i]).then_some(family)
    }

    fn hold_at_home(&mut self, i: usize) -> bool {
        match self.family_at_home(i) {
            Some(family) => self.hold(family),
            None => false,
        }
    }

    fn mark(&mut self, wants: impl Fn(usize) -> Mark) {
        let depth = self.mesh.grid.depth;
        for i in 0..self.mesh.len() {
            let level = self.mesh.leaves()[i].level;
            let wanted = wants(i).max(self.marks[i]);
            let stays = match wanted {
                Mark::Split => level == depth,
                Mark::Stay => true,
                Mark::Join => false,
            };
            if stays {
                self.marks[i] = Mark::Stay;
                self.hold_at_home(i);
            } else if wanted == Mark::Join && level == 0 {
                self.marks[i] = Mark::Stay;
            } else {
                self.marks[i] = wanted;
            }
        }
    }

    /// The leaves that touch `face` of leaf `i` from another rank.
    fn abroad(&self, i: usize, face: usize) -> impl Iterator<Item = usize> + use<'_> {
        let owners = self.mesh.owners();
        let beyond: [Option<usize>; 4] = match self.mesh.neighbour(i, face) {
            Neighbour::Boundary => [None; 4],
            Neighbour::Same(j) | Neighbour::Coarser(j) => [Some(j), None, None, None],
            Neighbour::Finer(quad) => quad.map(Some),
        };
        let abroad = move |&j: &usize| owners[j] != owners[i];
        beyond.into_iter().flatten().filter(abroad)
    }

    /// Leaves tell their marks to those that touch them.
    fn tell_neighbours(&mut self) {
        for i in 0..self.mesh.len() {
            for face in 0..FACES {
                let finer = matches!(self.mesh.neighbour(i, face), Neighbour::Finer(_));
                let mut known = self.beyond[i][face];
                for j in self.abroad(i, face) {
                    known = known.max(match self.marks[j] {
                        Mark::Split if finer => Mark::Stay,
                        mark => mark,
                    });
                }
                self.beyond[i][face] = known;
            }
        }
    }

    /// Leaves tell the blocks that touch them what they have to be, and those follow.
    fn raise_as_told(&mut self) {
        for i in 0..self.mesh.len() {
            for face in 0..FACES {
                let told = self.abroad(i, face).map(|j| {
                    // A coarser leaf touches all four of a quad with the face opposite.
                    self.beyond[j][opposite(face)]
                });
                let Some(told) = told.max().filter(|&told| told > self.marks[i]) else {
                    continue;
                };
                self.marks[i] = told;
                self.hold_at_home(i);
            }
        }
    }

    /// Children elsewhere tell the rank that keeps their parent whether they may be joined.
    fn tell_parents(&mut self) {
        let told: Vec<usize> = (0..self.families.len())
            .filter(|&family| {
                let Family { home, leaves, .. } = &self.families[family];
                let stays = |&i: &u32| {
                    let i = i as usize;
                    self.mesh.owners()[i] != *home && self.marks[i] > Mark::Join
                };
                self.families[family].has_inner || leaves.iter().any(stays)
            })
            .collect();
        for family in told {
            self.hold(family);
        }
    }

    /// The ranks that keep parents tell the children elsewhere that they cannot be joined.
    fn tell_children(&mut self) {
        for family in self.families.iter().filter(|f| f.mark > Mark::Join) {
            for &i in &family.leaves {
                let mark = &mut self.marks[i as usize];
                *mark = (*mark).max(Mark::Stay);
            }
        }
    }

    /// Leaves that split hold those of their level and split coarser ones; finer neighbours hold a leaf.
    fn sweep_by_splits(&mut self, of_level: &[usize]) -> bool {
        let mut changed = false;
        for &i in of_level {
            match self.marks[i] {
                Mark::Split => changed |= self.split(i),
                Mark::Join => {
                    let finer = |face| matches!(self.mesh.neighbour(i, face), Neighbour::Finer(_));
                    if (0..FACES).any(finer) {
                        self.marks[i] = Mark::Stay;
                        self.hold_at_home(i);
                        changed = true;
                    }
                }
                Mark::Stay => {}
            }
        }
        changed
    }

    fn split(&mut self, i: usize) -> bool {
        let mut changed = self.hold_at_home(i);
        for face in 0..FACES {
            changed |= match self.mesh.neighbour(i, face) {
                Neighbour::Same(j) => self.raise(i, face, j, Mark::Stay),
                Neighbour::Coarser(j) => self.raise(i, face, j, Mark::Split),
                _ => false,
            };
        }
        changed
    }

    /// Leaves that stay hold coarser neighbours.
    fn sweep_by_stays(&mut self, of_level: &[usize]) -> bool {
        let mut changed = false;
        for &i in of_level {
            if self.marks[i] != Mark::Stay {
                continue;
            }
            for face in 0..FACES {
                if let Neighbour::Coarser(j) = self.mesh.neighbour(i, face) {
                    changed |= self.raise(i, face, j, Mark::Stay);
                }
            }
        }
        changed
    }

    /// Leaf `j` beyond `face` of `i` has to be `mark` at least: at once, or once its owner has the message.
    fn raise(&mut self, i: usize, face: usize, j: usize, mark: Mark) -> bool {
        if self.mesh.owners()[j] != self.mesh.owners()[i] {
            let known = &mut self.beyond[i][face];
            let news = *known < mark;
            *known = (*known).max(mark);
            return news;
        }
        if self.marks[j] >= mark {
            return false;
        }
        self.marks[j] = mark;
        if mark == Mark::Stay {
            self.hold_at_home(j);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use colltune_placement::generate::Random;

    use super::*;
    use crate::leaf::Grid;
    use crate::refine::{apply, first_marks, settle};

    fn wishes(mesh: &Mesh, random: &mut Random) -> Vec<Mark> {
        let n = mesh.len();
        let marks = [Mark::Join, Mark::Join, Mark::Join, Mark::Stay, Mark::Split];
        (0..n).map(|_| marks[random.below(5)]).collect()
    }

    fn on_one_rank(mesh: &Mesh) -> Mesh {
        let homes = mesh.homes().expect("kept").keys();
        Mesh::new(
            mesh.grid,
            mesh.leaves().to_vec(),
            vec![0; mesh.len()],
            Some(homes.map(|&block| (block, 0)).collect()),
        )
    }

    #[test]
    fn one_rank_marks_as_the_mesh_does_and_several_never_further() {
        let grid = Grid {
            roots: [2, 1, 2],
            depth: 4,
            periodic: false,
        };
        let mut random = Random::new(1);
        let mut n_more = 0;
        for n_ranks in (1..=8).cycle().take(120) {
            let mut mesh = Mesh::roots_with_homes(grid, vec![0; 4]);
            for _ in 0..5 {
                let owners = (0..mesh.len()).map(|_| random.below(n_ranks) as u32);
                mesh.place_on(owners.collect());
                let wants = wishes(&mesh, &mut random);
                let mut marks = first_marks(&mesh, |i| wants[i]);
                settle(&mesh, &mut marks);
                let (sweeps, told) = follow(&mesh, |i| wants[i]);
                assert!(told.iter().zip(&marks).all(|(told, mark)| told <= mark));
                if n_ranks == 1 {
                    assert_eq!(told, marks);
                }
                n_more += usize::from(sweeps != count(&on_one_rank(&mesh), |i| wants[i]));
                mesh = apply(&mesh, &marks).0;
            }
        }
        assert!(n_more > 0, "no picture of a neighbour was ever behind");
    }
}
