//! When one run places anew: its trigger, with what the trigger has to remember from step to step.

use crate::trigger::{MeshLife, Prospect, Situation, Trigger};

/// The decision of a run, step after step. All ranks that are told the same decide the same.
#[derive(Debug, Clone)]
pub struct Balancer {
    trigger: Trigger,
    life: MeshLife,
    placed_at: u64,
    mesh_since: u64,
    /// Seconds that placing took when it was last asked for.
    placing: f64,
    /// What was not worth it on this mesh: a makespan over the ideal one, and seconds of moving.
    refused: [f64; 2],
}

/// Measured loads differ by as much from step to step: for less nobody is asked again on the same mesh.
const NOISE: f64 = 1.01;

/// How loaded the ranks are, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loads {
    /// Of the rank that takes longest.
    pub makespan: f64,
    /// What each rank would take if the work could be cut anywhere.
    pub ideal: f64,
    /// What no placement is known to beat; at least `ideal`.
    pub least: f64,
}

impl Balancer {
    /// Of a run that begins, or goes on, after `step`.
    pub fn new(trigger: Trigger, life: MeshLife, step: u64) -> Self {
        Balancer {
            trigger,
            life,
            placed_at: step,
            mesh_since: step,
            placing: 0.0,
            refused: [0.0; 2],
        }
    }

    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Whether it has to be told loads; others than these decide by steps and the mesh.
    pub fn weighs_loads(&self) -> bool {
        matches!(self.trigger, Trigger::Imbalance(_) | Trigger::BreakEven)
    }

    /// The mesh has changed in `step`, and with it what is possible.
    pub fn mesh_changed(&mut self, step: u64) {
        self.life.ended(step - self.mesh_since);
        self.mesh_since = step;
        self.refused = [0.0; 2];
    }

    /// Blocks have been placed in `step`.
    pub fn placed(&mut self, step: u64) {
        self.placed_at = step;
    }

    /// Whether a policy has to be asked after `step`. With `break-even` it then has to be [judged](Balancer::pays).
    pub fn asks(&self, step: u64, mesh_changed: bool, loads: Loads) -> bool {
        let [refused, migrating] = self.refused;
        let prospect = Prospect {
            makespan: loads.least.max(NOISE * refused * loads.ideal),
            steps_left: self.steps_left(step),
            placing: self.placing,
            migrating,
        };
        self.trigger.is_due(&Situation {
            steps_since_placed: step - self.placed_at,
            mesh_changed,
            makespan: loads.makespan,
            mean: loads.ideal,
            prospect: Some(prospect),
        })
    }

    /// That no placement is better than these loads say is remembered until the mesh changes.
    pub fn refuse(&mut self, loads: Loads) {
        if loads.ideal > 0.0 {
            self.refused[0] = self.refused[0].max(loads.least / loads.ideal);
        }
    }

    /// Whether going to a placement of this makespan is worth it after `step`: placing took so many seconds, and moving
    /// will. A refusal is remembered.
    pub fn pays(&mut self, step: u64, loads: Loads, makespan: f64, took: [f64; 2]) -> bool {
        let [placing, migrating] = took;
        self.placing = placing;
        let prospect = Prospect {
            makespan,
            steps_left: self.steps_left(step),
            placing,
            migrating,
        };
        let pays = prospect.gain(loads.makespan) > 0.0;
        if !pays {
            let least = makespan.max(loads.least);
            self.refuse(Loads { least, ..loads });
            self.refused[1] = migrating;
        }
        pays
    }

    fn steps_left(&self, step: u64) -> f64 {
        self.life.steps_left(step - self.mesh_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::lower_bound;
    use crate::generate::Random;

    /// Follows a run of `steps` steps whose mesh changes every `life` steps, the last one too, and has these costs on four ranks, up to 2 %
    /// of noise; gives how often costs are told to all, the policy is asked, and blocks move.
    fn follow(costs: &[f64], present: f64, best: f64, steps: u64, life: u64) -> [u32; 3] {
        let mut balancer = Balancer::new(Trigger::BreakEven, MeshLife::new(life as f64, 0.3), 0);
        let mut random = Random::new(5);
        let mut counts = [0; 3];
        let total: f64 = costs.iter().sum();
        let mut makespan = present;
        for step in 1..=steps {
            if step % life == 0 {
                balancer.mesh_changed(step);
                makespan = present;
            }
            let noise = 1.0 + 0.02 * random.unit();
            let mut loads = Loads {
                makespan: makespan * noise,
                ideal: total / 4.0 * noise,
                least: total / 4.0 * noise,
            };
            if !balancer.asks(step, step % life == 0, loads) {
                continue;
            }
            counts[0] += 1;
            loads.least = lower_bound(costs, 4, loads.makespan) * noise;
            if !balancer.asks(step, step % life == 0, loads) {
                balancer.refuse(loads);
                continue;
            }
            counts[1] += 1;
            if balancer.pays(step, loads, best * noise, [0.5, 3.0]) {
                counts[2] += 1;
                makespan = best;
                balancer.placed(step);
            }
        }
        counts
    }

    #[test]
    fn break_even_asks_nobody_where_whole_blocks_allow_nothing_better() {
        // Nine equal blocks: some rank has three, whatever the mean says.
        assert_eq!(follow(&[1.0; 9], 3.0, 3.0, 1000, 100), [11, 0, 0]);
    }

    #[test]
    fn break_even_asks_once_for_each_mesh_where_the_policy_cannot_do_what_the_bound_allows() {
        // The bound is 4; the policy always answers 4.4, which is not worth moving from 4.42.
        let costs = [1.0; 16];
        let [told, asked, moved] = follow(&costs, 4.42, 4.4, 1000, 100);
        assert_eq!([told, asked, moved], [11, 11, 0]);
    }

    #[test]
    fn break_even_moves_once_for_each_mesh_where_it_pays() {
        let [_, asked, moved] = follow(&[1.0; 16], 6.0, 4.0, 1000, 100);
        assert_eq!((moved, asked), (11, 11));
    }

    #[test]
    fn others_ask_by_steps_the_mesh_or_loads() {
        let with = |trigger| Balancer::new(trigger, MeshLife::new(1.0, 0.3), 10);
        let loads = Loads {
            makespan: 1.3,
            ideal: 1.0,
            least: 1.0,
        };
        assert!(!with(Trigger::Never).asks(99, true, loads));
        let mut every = with(Trigger::Every(5));
        assert!(!every.asks(14, true, loads) && every.asks(15, false, loads));
        every.placed(15);
        assert!(!every.asks(19, true, loads) && every.asks(20, false, loads));
        assert!(with(Trigger::MeshChange).asks(11, true, Loads::default()));
        assert!(with(Trigger::Imbalance(0.2)).asks(11, false, loads));
        let quiet = [Trigger::Never, Trigger::Every(5), Trigger::MeshChange];
        assert!(quiet.iter().all(|&trigger| !with(trigger).weighs_loads()));
    }
}
