//! Messages between ranks of different nodes: the k-th that one sends another is the k-th that this one receives of it.

use std::collections::HashMap;

use super::memory::{Buffers, Content, Found};
use crate::node::stage::At;

/// All messages of the calls.
#[derive(Default)]
pub struct Network {
    channels: HashMap<(usize, usize), Channel>,
}

#[derive(Default)]
struct Channel {
    /// What was sent.
    sent: Vec<Vec<Content>>,
    /// How long what is received may be.
    awaited: Vec<u64>,
}

/// An end of a message: the ranks, which of their messages it is, and where its units lie.
#[derive(Clone, Copy)]
struct End {
    channel: (usize, usize),
    index: usize,
    at: At,
    units: u64,
}

struct Receive {
    end: End,
    /// Units that are received before.
    before: u64,
    /// Whether they are in place.
    delivered: bool,
}

/// The messages of a rank in a call.
#[derive(Default)]
pub struct Posted {
    sends: Vec<End>,
    receives: Vec<Receive>,
    received: u64,
}

impl Network {
    /// The number of a message that is sent.
    pub fn sends(&mut self, channel: (usize, usize), contents: Vec<Content>) -> usize {
        let sent = &mut self.channels.entry(channel).or_default().sent;
        sent.push(contents);
        sent.len() - 1
    }

    /// The number of a message of so many units that is awaited.
    pub fn awaits(&mut self, channel: (usize, usize), units: u64) -> usize {
        let awaited = &mut self.channels.entry(channel).or_default().awaited;
        awaited.push(units);
        awaited.len() - 1
    }

    /// What was sent as a message of a number.
    pub fn sent(&self, channel: (usize, usize), index: usize) -> Option<&[Content]> {
        let sent = self.channels[&channel].sent.get(index);
        sent.map(Vec::as_slice)
    }

    /// A send ends once its message is awaited.
    pub fn is_awaited(&self, channel: (usize, usize), index: usize) -> bool {
        self.channels[&channel].awaited.len() > index
    }

    pub fn send(
        &mut self,
        posted: &mut Posted,
        buffers: &mut Buffers,
        channel: (usize, usize),
        (at, units): (At, u64),
    ) -> Found<()> {
        let contents = (0..units).map(|unit| buffers.take(at, unit));
        let index = self.sends(channel, contents.collect::<Found<_>>()?);
        buffers.send(at, units);
        posted.sends.push(End {
            channel,
            index,
            at,
            units,
        });
        Ok(())
    }

    pub fn receive(
        &mut self,
        posted: &mut Posted,
        buffers: &mut Buffers,
        channel: (usize, usize),
        (at, units): (At, u64),
    ) -> Found<()> {
        buffers.awaits(at, units);
        if !posted.sends.is_empty() {
            return Err("a receive is posted behind a send".to_owned());
        }
        let end = End {
            channel,
            index: self.awaits(channel, units),
            at,
            units,
        };
        let before = posted.received;
        posted.receives.push(Receive {
            end,
            before,
            delivered: false,
        });
        posted.received += units;
        Ok(())
    }

    /// Puts in place what has been sent, of the first so many receives.
    fn deliver_first(
        &self,
        posted: &mut Posted,
        buffers: &mut Buffers,
        receives: usize,
    ) -> Found<()> {
        let open = &mut posted.receives[..receives];
        for receive in open.iter_mut().filter(|receive| !receive.delivered) {
            let end = receive.end;
            let Some(contents) = self.sent(end.channel, end.index) else {
                continue;
            };
            if contents.len() as u64 != end.units {
                let (from, to) = end.channel;
                return Err(format!(
                    "rank {from} sends rank {to} {} units, which awaits {}",
                    contents.len(),
                    end.units
                ));
            }
            buffers.arrive(end.at, contents)?;
            receive.delivered = true;
        }
        Ok(())
    }

    /// Puts in place all that has been sent.
    pub fn deliver(&self, posted: &mut Posted, buffers: &mut Buffers) -> Found<()> {
        self.deliver_first(posted, buffers, posted.receives.len())
    }

    /// Ends the receives of the first so many units, if they can end; whether they did.
    pub fn arrive(&self, posted: &mut Posted, buffers: &mut Buffers, units: u64) -> Found<bool> {
        let wanted = posted
            .receives
            .partition_point(|receive| receive.before < units);
        let has_come = |receive: &Receive| {
            let end = receive.end;
            self.sent(end.channel, end.index).is_some()
        };
        if !posted.receives[..wanted].iter().all(has_come) {
            return Ok(false);
        }
        self.deliver_first(posted, buffers, wanted)?;
        Ok(true)
    }

    /// Ends all messages, if they can end; whether they did. A send ends once it is received.
    pub fn finish(&self, posted: &mut Posted, buffers: &mut Buffers) -> Found<bool> {
        let taken = |end: &End| self.is_awaited(end.channel, end.index);
        if !self.arrive(posted, buffers, u64::MAX)? || !posted.sends.iter().all(taken) {
            return Ok(false);
        }
        for end in &posted.sends {
            buffers.release(end.at, end.units);
        }
        *posted = Posted::default();
        Ok(true)
    }
}
