//! Levers that a program asks about: `colltune_choose` and `colltune_done`, which `colltune.h` finds at run time.
//!
//! A rank of each communicator decides, the one with the lowest rank in the world, and the others take its arm: see
//! [`colltune_core::levers::accord`]. Where not all members ask, or they do not ask alike, the first arm runs on all that
//! come, and stays. Epochs are measured where the deciding rank is rank 0 of the world, which writes the ledger.

mod talk;
mod talked;

use std::ffi::{CStr, c_char, c_double, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use colltune_core::decide::Switch;
use colltune_core::environment;
use colltune_core::levers::accord::{Tree, Words};
use colltune_core::levers::asked::{ARMS_MAX, Epoch, size_class};
use colltune_core::levers::watched::Watched;
use colltune_core::levers::{self, LEVERS_MAX, learned};
use colltune_core::request::Mode;
use colltune_core::roster::{self, hash_bytes};
use colltune_core::select::{key, word};
use colltune_core::settings::Reproducible;

use crate::abi::Comm;
use crate::clock;
use crate::communicator::State;
use crate::fence;
use crate::lever::{Lever, Running, Team};
use crate::members;
use crate::switch::switch;
use crate::tune::Tuner;
use crate::warn::say;
use talk::{About, Talk};
use talked::{Talked, next_talk, talked};

const NAME_BYTES_MAX: usize = 256;
/// What a lever holds beside its name and arms, and a member of its communicator.
const BYTES_OF_LEVER: u64 = 512;
const BYTES_OF_MEMBER: u64 = 4;
/// After so many questions without an end of an epoch the program hears of it.
const UNMEASURED: u64 = 3;
/// So long after an epoch was written the next one is.
const WRITE_EVERY_NS: u64 = 600_000_000_000;

/// Arms that this rank has drawn for others: communicators may live for one epoch each.
static DRAWN: AtomicU64 = AtomicU64::new(0);

/// The arm of a lever to use from now on, as `colltune.h` says.
///
/// # Safety
/// `lever` is a text that ends with 0, `arms` has `n_arms` of them, and `comm` is valid, as the header demands.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colltune_choose(
    comm: Comm,
    lever: *const c_char,
    n_arms: c_int,
    arms: *const *const c_char,
    size: c_double,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((name, arms)) = (unsafe { read(lever, n_arms, arms) }) else {
        return 0;
    };
    let arm = match fence::armed().filter(|tuner| takes_part(tuner)) {
        // SAFETY: the communicator is valid, and this call is a collective one on it.
        Some(tuner) => unsafe { tuner.choose(comm, &name, &arms, size) },
        None => told(&name, &arms),
    };
    arm as c_int
}

/// The epoch since the last `colltune_choose` of the lever is over, as `colltune.h` says.
///
/// # Safety
/// As for [`colltune_choose`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colltune_done(comm: Comm, lever: *const c_char, work: c_double) {
    let tuner = fence::armed().filter(|tuner| takes_part(tuner));
    // SAFETY: the caller's promise.
    if let (Some(tuner), Some(name)) = (tuner, unsafe { text(lever) }) {
        // SAFETY: as above.
        unsafe { tuner.done(comm, &name, work) };
    }
}

/// The name and the arms; `None` where there is nothing to choose.
///
/// # Safety
/// As for [`colltune_choose`].
unsafe fn read(
    lever: *const c_char,
    n_arms: c_int,
    arms: *const *const c_char,
) -> Option<(String, Vec<String>)> {
    let n_arms = usize::try_from(n_arms).ok().filter(|n_arms| *n_arms > 1)?;
    if arms.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { text(lever) }?;
    if name.contains('=') || name.trim() != name {
        static SAID: AtomicBool = AtomicBool::new(false);
        say_once(&SAID, || {
            format!(
                "the lever \"{name}\" has = in its name, or white space around it: the first arm runs; give it another name"
            )
        });
        return None;
    }
    if n_arms > ARMS_MAX {
        static SAID: AtomicBool = AtomicBool::new(false);
        say_once(&SAID, || {
            format!(
                "the lever {name} has {n_arms} arms, and at most {ARMS_MAX} can be told apart: the first one runs; name those \
                 that differ most"
            )
        });
        return None;
    }
    // SAFETY: there are as many pointers.
    let arms = unsafe { std::slice::from_raw_parts(arms, n_arms) };
    // SAFETY: each is a text or null.
    let arms: Option<Vec<String>> = arms.iter().map(|arm| unsafe { text(*arm) }).collect();
    Some((name, arms?))
}

/// # Safety
/// It ends with 0, or is null.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    (text.len() <= NAME_BYTES_MAX).then(|| text.into_owned())
}

/// Whether the members of communicators can agree at all; the same on all ranks.
fn takes_part(tuner: &Tuner) -> bool {
    tuner.messages.comm().is_some()
        && !tuner.tolerates_deaths
        && match tuner.rules.terms.mode {
            Mode::Off => false,
            Mode::Exploit | Mode::Tables => !tuner.rules.terms.levers.is_empty(),
            Mode::Explore | Mode::Record => true,
        }
}

/// The arm that `COLLTUNE_LEVERS` names; else the first one.
fn told(name: &str, arms: &[String]) -> usize {
    named(name, arms).unwrap_or(0)
}

fn named(name: &str, arms: &[String]) -> Option<usize> {
    let told = std::env::var(environment::LEVERS).ok()?;
    let told = levers::parse(&told).remove(name)?;
    let place = arms.iter().position(|arm| *arm == told);
    if place.is_none() {
        static SAID: AtomicBool = AtomicBool::new(false);
        say_once(&SAID, || {
            format!(
                "{} names the arm {told} of the lever {name}, which has {}: the first one runs",
                environment::LEVERS,
                arms.join(", ")
            )
        });
    }
    Some(place.unwrap_or(0))
}

fn say_once(said: &AtomicBool, sentence: impl FnOnce() -> String) {
    if crate::world::rank_in_environment() == 0 && !said.swap(true, Ordering::Relaxed) {
        say(&sentence());
    }
}

/// What members ask, as words of which each is the largest that any of them has.
fn largest(words: &mut Words, said: &Words) {
    for (word, said) in words.iter_mut().zip(said) {
        *word = (*word).max(*said);
    }
}

/// What members say of an epoch: whether it is none, its time, and their work, of which the sum counts.
fn together(words: &mut Words, said: &Words) {
    let [is_none, ns, work, _] = words;
    *is_none |= said[0];
    *ns = (*ns).max(said[1]);
    *work = (f64::from_bits(*work) + f64::from_bits(said[2])).to_bits();
}

/// Sizes' classes as words, in their order.
const CLASS_0: u64 = 1 << 32;

impl Tuner {
    /// # Safety
    /// The communicator is valid, and no other collective on it is under way.
    unsafe fn choose(&self, comm: Comm, name: &str, arms: &[String], size: f64) -> usize {
        // SAFETY: the caller's promise.
        let Some(mut found) = (unsafe { self.registry.find(comm) }) else {
            return told(name, arms);
        };
        let state = found.state();
        let Some((team, lever)) = self.lever(state, name, arms) else {
            return told(name, arms);
        };
        if talked(lever.identity, |talked| talked.is_refused) {
            return told(name, arms);
        }
        lever.asked += 1;
        if lever.arms != arms {
            lever.arms = arms.to_vec();
            lever.watching = None;
        }
        let hash = arms.iter().fold(arms.len() as u64, |hash, arm| {
            hash_bytes(hash, arm.as_bytes())
        });
        let class = CLASS_0.saturating_add_signed(size_class(size).into());
        // With several threads two talks of the same members could take each other's messages.
        let is_failing = lever.is_failing || self.thread_multiple;
        let own = [is_failing.into(), hash, !hash, class];
        let talk = Talk::new(
            self,
            team,
            (lever.identity, next_talk(lever.identity)),
            About::Choice,
        );
        let mut class = size_class(size);
        let mut is_watched = false;
        let agreed = talk.agree(own, largest, |[failing, most, not_least, of_all]| {
            class = (of_all as i64 - CLASS_0 as i64) as i32;
            let alike = failing == 0 && most == !not_least;
            alike.then(|| {
                let (arm, watched) = self.decide(team, lever, arms, class);
                is_watched = watched;
                arm as u32
            })
        });
        let Some(arm) = agreed else {
            talked(lever.identity, |talked| talked.is_refused = true);
            if team.tree.above.is_none() {
                self.say_refused(name);
            }
            return told(name, arms);
        };
        if lever.running.is_some() && lever.asked == UNMEASURED {
            static SAID: AtomicBool = AtomicBool::new(false);
            say_once(&SAID, || {
                format!(
                    "the program asks about the lever {name} and never calls colltune_done, so nothing is learned of it"
                )
            });
        }
        lever.running = Some(Running {
            arm: arm as usize,
            class,
            is_watched,
            began: clock::ticks(),
        });
        (arm as usize).min(arms.len() - 1)
    }

    /// The arm of the next epoch, for all members, and whether it comes of a watch.
    fn decide(&self, team: &Team, lever: &mut Lever, arms: &[String], class: i32) -> (usize, bool) {
        let terms = &self.rules.terms;
        if let Some(arm) = named(&lever.name, arms) {
            return (arm, false);
        }
        if switch() == Switch::Off {
            return (0, false);
        }
        let known = learned::nearest(&terms.levers, &team.place(&lever.name, class));
        // An epoch that is not recorded is not worth trying, and a user who wants the same bits wants one arm.
        let varies = team.world_ranks[0] == 0 && terms.settings.reproducible == Reproducible::Off;
        let key = key(terms.seed, team.identity, lever.identity);
        let best = learned::best(known, arms);
        match terms.mode {
            Mode::Explore if varies => {
                let number = DRAWN.fetch_add(1, Ordering::Relaxed);
                let random = (word(key, number) >> 11) as f64 / (1u64 << 53) as f64;
                (learned::drawn(known, arms, random), false)
            }
            Mode::Exploit | Mode::Tables if varies && best > 0 => {
                let is_left = |talked: &mut Talked| {
                    let is_it = |(of, arm): &(i32, String)| *of == class && *arm == arms[best];
                    talked.left.iter().any(is_it)
                };
                if talked(lever.identity, is_left) {
                    return (0, false);
                }
                let gain = known.map_or(1.0, |known| known.gain()[0]);
                let watched = || Watched::new(key, terms.settings.watch, gain);
                (lever.watched(class, best, watched), true)
            }
            Mode::Explore | Mode::Exploit | Mode::Tables => (best, false),
            Mode::Record | Mode::Off => (0, false),
        }
    }

    /// # Safety
    /// As for [`Tuner::choose`].
    unsafe fn done(&self, comm: Comm, name: &str, work: f64) {
        let now = clock::ticks();
        // SAFETY: the caller's promise.
        let Some(mut found) = (unsafe { self.registry.find(comm) }) else {
            return;
        };
        let levers = &mut found.state().levers;
        let lever = levers.known.iter_mut().find(|lever| lever.name == name);
        let lever = levers.team.as_ref().zip(lever);
        let identity = lever.as_ref().map(|(_, lever)| lever.identity);
        let is_refused = identity.is_some_and(|of| talked(of, |talked| talked.is_refused));
        if is_refused || levers.is_refused {
            return;
        }
        let running = lever.and_then(|(team, lever)| {
            let running = lever.running.take()?;
            Some((team, lever, running))
        });
        let Some((team, lever, running)) = running else {
            static SAID: AtomicBool = AtomicBool::new(false);
            say_once(&SAID, || {
                format!(
                    "colltune_done came for the lever {name} without colltune_choose before it; it is no epoch"
                )
            });
            return;
        };
        // Only epochs of teams that rank 0 leads are kept.
        if team.world_ranks[0] != 0 {
            return;
        }
        let is_work = work.is_finite() && work >= 0.0;
        let own_ns = self.clock.span_ns(now.wrapping_sub(running.began));
        let own = [(!is_work).into(), own_ns, work.to_bits(), 0];
        let talk = Talk::new(
            self,
            team,
            (lever.identity, next_talk(lever.identity)),
            About::End,
        );
        let Some(all) = talk.gather(own, together) else {
            lever.is_failing = true;
            return;
        };
        if team.tree.above.is_none() {
            self.keep_epoch(team, lever, &running, all);
        }
    }

    /// Rank 0 keeps an epoch for the ledger.
    fn keep_epoch(&self, team: &Team, lever: &mut Lever, running: &Running, all: Words) {
        let [is_none, ns, work, _] = all;
        let epoch = Epoch {
            arm: running.arm as u16,
            seconds: ns as f64 / 1e9,
            work: f64::from_bits(work),
        };
        let time = (is_none == 0).then(|| epoch.seconds / epoch.work);
        self.watch_epoch(lever, running, time);
        let Some(account) = &self.account else {
            return;
        };
        let place = team.place(&lever.name, running.class);
        let kept = match is_none {
            0 => account.epoch(&place, &lever.arms, epoch),
            _ => None,
        };
        let Some(all) = kept else {
            static SAID: AtomicBool = AtomicBool::new(false);
            say_once(&SAID, || {
                format!(
                    "an epoch of the lever {} has no work that can be compared: it is passed to colltune_done, on every rank, \
                     as a number above 0",
                    lever.name
                )
            });
            return;
        };
        let now_ns = clock::monotonic_ns();
        if all.is_power_of_two() || now_ns.saturating_sub(lever.written_ns) > WRITE_EVERY_NS {
            lever.written_ns = now_ns;
            let names = (&*self.job, &*self.library);
            account.goes_on(&self.world, &self.rules.terms, names);
        }
    }

    /// Leaves an arm that is slower than the first one.
    fn watch_epoch(&self, lever: &mut Lever, running: &Running, time: Option<f64>) {
        let watching = lever.watching.as_mut().filter(|_| running.is_watched);
        let Some(watching) = watching else {
            return;
        };
        if !watching.watched.end(time) {
            return;
        }
        let best = lever.arms.get(watching.best).cloned().unwrap_or_default();
        say(&format!(
            "the lever {}: {best}, which was learned to be fastest, takes longer in this job than {}, which runs from here on \
             where the size is of the same power of two; `colltune tune` or jobs in explore learn anew",
            lever.name, lever.arms[0]
        ));
        let class = watching.class;
        talked(lever.identity, |talked| talked.left.push((class, best)));
    }

    fn say_refused(&self, name: &str) {
        say(&format!(
            "the lever {name} stays at its first arm on a communicator, since its ranks do not all ask about it with the same \
             arms, or one of them did not come within mismatch_timeout"
        ));
    }

    /// A lever of a communicator, which is known from its first question on; `None` where there are too many, or its
    /// members are not all of this world.
    fn lever<'a>(
        &self,
        state: &'a mut State,
        name: &str,
        arms: &[String],
    ) -> Option<(&'a Team, &'a mut Lever)> {
        let comm = state.comm;
        let levers = &mut state.levers;
        if levers.team.is_none() && !levers.is_refused {
            // Between two groups no rank could decide for both.
            levers.team = (state.n_ranks > 0).then(|| self.team(comm)).flatten();
            levers.is_refused = levers.team.is_none();
        }
        let team = levers.team.as_ref()?;
        let known = levers.known.iter().position(|lever| lever.name == name);
        let place = match known {
            Some(place) => place,
            None if levers.known.len() < LEVERS_MAX => {
                let words = arms.iter().map(|arm| arm.len() as u64 + 24).sum::<u64>();
                let members = BYTES_OF_MEMBER * team.world_ranks.len() as u64;
                let more = BYTES_OF_LEVER + words + members;
                levers.known.push(Lever {
                    name: name.to_owned(),
                    identity: hash_bytes(team.identity, name.as_bytes()),
                    arms: arms.to_vec(),
                    asked: 0,
                    is_failing: !levers.memory.resize(levers.memory.bytes() + more),
                    running: None,
                    watching: None,
                    written_ns: clock::monotonic_ns(),
                });
                levers.known.len() - 1
            }
            None => return None,
        };
        Some((team, &mut levers.known[place]))
    }

    fn team(&self, comm: Comm) -> Option<Team> {
        let mut world_ranks = members::world_ranks_alone(self, comm)?;
        world_ranks.sort_unstable();
        let own = world_ranks.binary_search(&(self.rank as c_int)).ok()?;
        let nodes: Option<Vec<u32>> = world_ranks
            .iter()
            .map(|&rank| members::node_of(self, rank))
            .collect();
        let (nodes, ppn) = roster::extent(&roster::number_nodes(nodes?.into_iter().map(u64::from)));
        let identity = world_ranks
            .iter()
            .fold(5, |hash, rank| hash_bytes(hash, &rank.to_le_bytes()));
        Some(Team {
            tree: Tree::binomial(own, world_ranks.len()),
            world_ranks,
            identity,
            nodes,
            ppn,
        })
    }
}
