//! What one rank could not do, made known to all of them.

use crate::ranks::Ranks;

/// What some rank has to complain of, the lowest one's words; every rank gets the same.
pub(super) fn agree(ranks: &dyn Ranks, complaint: Option<String>) -> Option<String> {
    let mut any = [i32::from(complaint.is_some())];
    ranks.agree_max(&mut any);
    if any == [0] {
        return None;
    }
    let all = ranks.allgather_bytes(complaint.unwrap_or_default().as_bytes());
    let first = all.into_iter().find(|text| !text.is_empty());
    Some(String::from_utf8_lossy(&first.unwrap_or_default()).into_owned())
}
