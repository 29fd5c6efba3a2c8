//! Which variants the members of a communicator have made ready, for which messages.

use std::collections::HashMap;

/// What the ranks agree on before a variant's first call with a size class, and with a root where that matters: that all
/// of them have what it needs, or that none runs it there.
#[derive(Clone, Debug, Default)]
pub struct Rooms {
    /// By variant, of the root that was asked for last.
    last: Vec<Classes>,
    /// By variant and root.
    all: HashMap<(u16, u32), Classes>,
}

/// The calls that are made ready together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub variant: u16,
    /// 0 where there is none, or where it makes no difference.
    pub root: u32,
    pub bytes: u64,
}

/// Size classes as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    root: u32,
    ready: u64,
    failed: u64,
}

impl Class {
    /// The size class: the number of bits of the size.
    fn bit(self) -> u64 {
        1 << ((u64::BITS - self.bytes.leading_zeros()) & 63)
    }
}

impl Rooms {
    /// What was agreed for a class of calls; `None` where the ranks have yet to.
    #[inline]
    pub fn known(&mut self, class: Class) -> Option<bool> {
        match self.last.get(usize::from(class.variant)) {
            Some(last) if last.root == class.root && last.ready & class.bit() != 0 => Some(true),
            _ => self.look_up(class),
        }
    }

    #[cold]
    fn look_up(&mut self, class: Class) -> Option<bool> {
        let known = *self.all.get(&(class.variant, class.root))?;
        // Without memory it is found here all the same.
        if let Some(last) = self.last.get_mut(usize::from(class.variant)) {
            *last = known;
        }
        let Classes { ready, failed, .. } = known;
        ((ready | failed) & class.bit() != 0).then_some(ready & class.bit() != 0)
    }

    /// Whether there is memory to note what is agreed for a class.
    pub fn reserve(&mut self, class: Class) -> bool {
        let missing = (usize::from(class.variant) + 1).saturating_sub(self.last.len());
        self.all.try_reserve(1).is_ok() && self.last.try_reserve(missing).is_ok()
    }

    /// Keeps what was agreed, for which there is memory.
    pub fn agree(&mut self, class: Class, ready: bool) {
        let Class { variant, root, .. } = class;
        let fresh = Classes {
            root,
            ..Classes::default()
        };
        let of_root = self.all.entry((variant, root)).or_insert(fresh);
        match ready {
            true => of_root.ready |= class.bit(),
            false => of_root.failed |= class.bit(),
        }
        let place = usize::from(variant);
        if self.last.len() <= place {
            self.last.resize(place + 1, Classes::default());
        }
        self.last[place] = *of_root;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_and_size_class_is_agreed_on_once() {
        let mut rooms = Rooms::default();
        let class = |root, bytes| Class {
            variant: 3,
            root,
            bytes,
        };
        assert_eq!(rooms.known(class(0, 100)), None);
        rooms.agree(class(0, 100), true);
        assert_eq!(
            rooms.known(class(0, 127)),
            Some(true),
            "of the same length in bits"
        );
        assert_eq!(rooms.known(class(0, 128)), None);
        assert_eq!(rooms.known(class(5, 100)), None);
        rooms.agree(class(5, 100), false);
        assert_eq!(rooms.known(class(5, 100)), Some(false));
        assert_eq!(rooms.known(class(0, 100)), Some(true), "roots come back");
        let other = Class {
            variant: 2,
            ..class(0, 100)
        };
        assert_eq!(rooms.known(other), None);
        assert_eq!(rooms.known(class(0, u64::MAX)), None);
    }
}
