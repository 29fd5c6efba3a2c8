//! Which variants the members of a communicator have made ready, for which messages.

use std::collections::HashMap;

/// What the ranks agree on before a variant's first call with a size class: that all of them have what it needs, or
/// that none runs it there. Most programs have one root. Where it matters and a second one comes, they agree on what
/// is enough for all, if the rank that needs the most needs about as much with any root. If the first fails all do.
#[derive(Clone, Debug, Default)]
pub struct Rooms {
    /// By variant, of the root that was asked for last.
    last: Vec<Classes>,
    /// By variant and root, or [`EVERY_ROOT`].
    all: HashMap<(u16, u32), Classes>,
}

/// Stands for all of them.
const EVERY_ROOT: u32 = u32::MAX;

/// The calls that are made ready together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub variant: u16,
    /// 0 where there is none, or where it makes no difference.
    pub root: u32,
    pub bytes: u64,
    /// Whether the rank that needs the most needs about as much with any root.
    pub any_root_is_alike: bool,
}

/// Size classes as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    root: u32,
    ready: u64,
    failed: u64,
    /// Ready with every root.
    ready_everywhere: u64,
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
            Some(last) if last.ready_everywhere & class.bit() != 0 => Some(true),
            _ => self.look_up(class),
        }
    }

    #[cold]
    fn look_up(&mut self, class: Class) -> Option<bool> {
        let of = |root| self.all.get(&(class.variant, root)).copied();
        let [own, every] = [class.root, EVERY_ROOT].map(|root| of(root).unwrap_or_default());
        let known = Classes {
            root: class.root,
            ready: own.ready | every.ready,
            failed: own.failed | every.failed,
            ready_everywhere: every.ready,
        };
        // Without memory it is found here all the same.
        if let Some(last) = self.last.get_mut(usize::from(class.variant)) {
            *last = known;
        }
        let Classes { ready, failed, .. } = known;
        ((ready | failed) & class.bit() != 0).then_some(ready & class.bit() != 0)
    }

    /// Whether what is agreed next for a class, of which nothing is known, is for every root: another one had its turn.
    pub fn is_for_every_root(&self, class: Class) -> bool {
        let is_met = |(&(variant, _), of): (&(u16, u32), &Classes)| {
            variant == class.variant && (of.ready | of.failed) & class.bit() != 0
        };
        class.any_root_is_alike && self.all.iter().any(is_met)
    }

    /// Whether there is memory to note what is agreed for a class.
    pub fn reserve(&mut self, class: Class) -> bool {
        let missing = (usize::from(class.variant) + 1).saturating_sub(self.last.len());
        self.all.try_reserve(1).is_ok() && self.last.try_reserve(missing).is_ok()
    }

    /// Keeps what was agreed, for which there is memory.
    pub fn agree(&mut self, class: Class, ready: bool) {
        let variant = class.variant;
        let is_hopeless = !ready && class.any_root_is_alike;
        let root = match is_hopeless || self.is_for_every_root(class) {
            true => EVERY_ROOT,
            false => class.root,
        };
        let of_root = self.all.entry((variant, root)).or_default();
        match ready {
            true => of_root.ready |= class.bit(),
            false => of_root.failed |= class.bit(),
        }
        let place = usize::from(variant);
        if self.last.len() <= place {
            self.last.resize(place + 1, Classes::default());
        }
        self.look_up(class);
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
            any_root_is_alike: false,
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

    #[test]
    fn a_second_root_is_agreed_on_for_all() {
        for ready in [true, false] {
            let mut rooms = Rooms::default();
            let class = |root, bytes| Class {
                variant: 3,
                root,
                bytes,
                any_root_is_alike: true,
            };
            for bytes in [100, 1000] {
                rooms.agree(class(7, bytes), true);
                assert_eq!(rooms.known(class(8, bytes)), None);
                rooms.agree(class(8, bytes), ready);
                for root in [0, 1, 8, 9, 1 << 20] {
                    assert_eq!(rooms.known(class(root, bytes)), Some(ready), "{root}");
                }
                assert_eq!(rooms.known(class(7, bytes)), Some(true));
            }
            assert_eq!(rooms.known(class(9, 1 << 20)), None);
        }
    }

    /// What a call runs does not change behind it.
    #[test]
    fn where_there_is_no_room_with_the_first_root_there_is_none_with_any() {
        let mut rooms = Rooms::default();
        let class = |root| Class {
            variant: 3,
            root,
            bytes: 100,
            any_root_is_alike: true,
        };
        rooms.agree(class(7), false);
        for root in [7, 0, 8, 7] {
            assert_eq!(rooms.known(class(root)), Some(false), "{root}");
        }
    }
}
