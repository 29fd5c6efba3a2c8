//! Posting messages, matching their ends, and waiting for them.

use super::{End, Pending, Place, Runner};
use crate::algorithm::program::Message;
use crate::algorithm::symbolic::geometry::{Delivery, Fault, Wrong};

impl Runner<'_> {
    pub(super) fn post(
        &mut self,
        rank: usize,
        request: u32,
        peer: usize,
        message: Message,
        receives: bool,
    ) -> Result<(), Fault> {
        if peer >= self.ranks.len() || peer == rank {
            return self.fault(rank, Wrong::Peer);
        }
        match self.ranks[rank].requests.get(request as usize) {
            Some(None) => {}
            _ => return self.fault(rank, Wrong::Request),
        }
        let places = self.places(rank, message)?;
        let empty = |place: &Place| place.len == 0;
        if !places.is_empty() && places.iter().all(empty) {
            return Ok(());
        }
        let contents = if receives {
            self.check_writable_all(rank, message)?;
            Vec::new()
        } else {
            self.read(rank, &places)?
        };
        for place in &places {
            let cell = &mut self.ranks[rank].cells[place.cell];
            let busy = cell.written_by > 0 || (receives && cell.read_by > 0);
            if receives {
                cell.content = None;
                cell.written_by += 1;
            } else {
                cell.read_by += 1;
            }
            if busy {
                return self.fault(rank, Wrong::InUse);
            }
        }
        let state = &mut self.ranks[rank];
        let leaves_at = state.clock.max(state.out_free);
        if !receives {
            state.out_free = leaves_at + 1;
        }
        let pending = Pending {
            message,
            receives,
            done_at: (!receives && self.delivery == Delivery::Buffered).then_some(leaves_at),
            brought: Vec::new(),
            heard: [0; 4],
        };
        self.ranks[rank].requests[request as usize] = Some(pending);
        if !receives {
            self.world.messages[rank] += 1;
            self.world.elements[rank] += self.elements(&contents);
        }
        let heard = self.ranks[rank].heard;
        let end = End {
            request,
            leaves_at,
            contents,
            heard,
        };
        let pair = if receives { (peer, rank) } else { (rank, peer) };
        let ends = if receives {
            &mut self.receives
        } else {
            &mut self.sends
        };
        ends.entry(pair).or_default().push_back(end);
        self.match_pair(pair)
    }

    fn release(&mut self, rank: usize, places: &[Place], receives: bool) {
        for place in places {
            let cell = &mut self.ranks[rank].cells[place.cell];
            if receives {
                cell.written_by -= 1;
            } else {
                cell.read_by -= 1;
            }
        }
    }

    fn match_pair(&mut self, pair: (usize, usize)) -> Result<(), Fault> {
        let (from, to) = pair;
        let sends = self.sends.entry(pair).or_default();
        let receives = self.receives.entry(pair).or_default();
        if sends.is_empty() || receives.is_empty() {
            return Ok(());
        }
        let (Some(send), Some(receive)) = (sends.pop_front(), receives.pop_front()) else {
            return Ok(());
        };
        let busy = &mut self.ranks[to].in_busy;
        let arrived = (send.leaves_at + 1..).find(|&unit| busy.insert(unit));
        if let Some(pending) = &mut self.ranks[from].requests[send.request as usize]
            && self.delivery != Delivery::Buffered
        {
            pending.done_at = Some(send.leaves_at + 1);
        }
        self.ready.extend([from, to]);
        match &mut self.ranks[to].requests[receive.request as usize] {
            Some(pending) => {
                pending.done_at = arrived;
                pending.brought = send.contents;
                pending.heard = send.heard;
                Ok(())
            }
            None => self.fault(to, Wrong::Request),
        }
    }

    pub(super) fn wait(&mut self, rank: usize, request: u32) -> Result<(), Fault> {
        let Some(slot) = self.ranks[rank].requests.get_mut(request as usize) else {
            return self.fault(rank, Wrong::Request);
        };
        let Some(pending) = slot.take() else {
            return Ok(());
        };
        let places = self.places(rank, pending.message)?;
        self.release(rank, &places, pending.receives);
        let clock = &mut self.ranks[rank].clock;
        *clock = (*clock).max(pending.done_at.unwrap_or(0));
        if !pending.receives {
            return Ok(());
        }
        self.check_writable_all(rank, pending.message)?;
        for (ours, theirs) in self.ranks[rank].heard.iter_mut().zip(pending.heard) {
            *ours |= theirs;
        }
        let mut brought = pending.brought.into_iter();
        for place in places {
            if place.len == 0 {
                continue;
            }
            match brought.next() {
                None => return self.fault(rank, Wrong::Length),
                Some(content) if self.misfit(place, &content) => {
                    return self.fault(rank, Wrong::Length);
                }
                Some(content) => self.ranks[rank].cells[place.cell].content = Some(content),
            }
        }
        match brought.next() {
            Some(_) => self.fault(rank, Wrong::Length),
            None => Ok(()),
        }
    }
}
