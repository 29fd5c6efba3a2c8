use super::*;
use crate::curve::LEVEL_MAX;
use crate::generate::Random;

/// A run whose policy is its makespan, with costs on four ranks and up to 2 % of noise.
struct Simulated<'c> {
    balancer: Balancer<f64>,
    costs: &'c [f64],
    makespan: f64,
    noise: f64,
    /// How often costs are shared with all, and the policy is asked.
    counts: [u32; 2],
}

impl Balanced for Simulated<'_> {
    type Policy = f64;
    type Error = PlacementError;

    fn balancer(&mut self) -> &mut Balancer<f64> {
        &mut self.balancer
    }

    fn loads(&mut self, _: u64) -> Result<Loads, PlacementError> {
        let ideal = self.costs.iter().sum::<f64>() / 4.0 * self.noise;
        Ok(Loads {
            makespan: self.makespan * self.noise,
            ideal,
            least: ideal,
        })
    }

    fn observe(&mut self, _: u64) -> Result<(), PlacementError> {
        self.counts[0] += 1;
        Ok(())
    }

    fn loads_of(&mut self, step: u64, owners: Option<&[u32]>) -> Result<Loads, PlacementError> {
        let mut loads = self.loads(step)?;
        if owners.is_some() {
            loads.makespan = self.balancer.policy * self.noise;
        }
        let problem = Problem::new(self.costs, 4)?;
        loads.least = lower_bound_of(&problem, loads.makespan) * self.noise;
        Ok(loads)
    }

    fn propose(&mut self, _: u64) -> Result<Proposal, PlacementError> {
        self.counts[1] += 1;
        Ok(Proposal {
            owners: Vec::new(),
            seconds: 0.5,
        })
    }

    fn prices(&mut self, proposal: &Proposal) -> [f64; 2] {
        [proposal.seconds, 3.0]
    }
}

/// Follows a run of 1,000 steps whose mesh changes every 100, the last one too; gives how often costs are shared with
/// all, the policy is asked, and blocks move.
fn follow(costs: &[f64], present: f64, policy: impl Fn(u64) -> f64) -> [u32; 3] {
    let (mut random, mut moved) = (Random::new(5), 0);
    let mut run = Simulated {
        balancer: Balancer::new(policy(0), 100.0, 0).with_triggers(vec![Trigger::BreakEven]),
        costs,
        makespan: present,
        noise: 1.0,
        counts: [0; 2],
    };
    for step in 1..=1000 {
        if policy(step) != run.balancer.policy {
            run.balancer.use_policy(policy(step));
        }
        let changed = step % 100 == 0;
        if changed {
            run.makespan = present;
        }
        run.noise = 1.0 + 0.02 * random.unit();
        if run.balance_after(step, changed).unwrap().is_some() {
            run.makespan = run.balancer.policy;
            moved += 1;
        }
    }
    [run.counts[0], run.counts[1], moved]
}

#[test]
fn break_even_asks_nobody_where_whole_blocks_allow_nothing_better() {
    // Nine equal blocks: some rank has three, whatever the mean says.
    assert_eq!(follow(&[1.0; 9], 3.0, |_| 3.0), [11, 0, 0]);
}

#[test]
fn break_even_asks_once_for_each_mesh_where_the_policy_cannot_do_what_the_bound_allows() {
    // The bound is 4; the policy always answers 4.4, which is not worth moving from 4.42.
    assert_eq!(follow(&[1.0; 16], 4.42, |_| 4.4), [11, 11, 0]);
}

#[test]
fn break_even_moves_once_for_each_mesh_where_it_pays() {
    assert_eq!(follow(&[1.0; 16], 6.0, |_| 4.0), [11, 11, 11]);
}

#[test]
fn another_policy_is_asked_although_the_one_before_was_refused() {
    // In the middle of the sixth mesh a better one comes: it is asked there, and once for each mesh from then on.
    let better = |step| if step < 550 { 4.4 } else { 4.0 };
    assert_eq!(follow(&[1.0; 16], 4.42, better), [12, 12, 6]);
}

#[test]
fn others_ask_by_steps_the_mesh_or_loads() {
    let with = |trigger| Balancer::new((), 1.0, 10).with_triggers(vec![trigger]);
    let loads = Loads {
        makespan: 1.3,
        ideal: 1.0,
        least: 1.0,
    };
    assert!(!with(Trigger::Never).is_due(99, true, loads));
    let mut every = with(Trigger::Every(5));
    assert!(!every.is_due(14, true, loads) && every.is_due(15, false, loads));
    every.placed(15);
    assert!(!every.is_due(19, true, loads) && every.is_due(20, false, loads));
    assert!(with(Trigger::MeshChange).is_due(11, true, Loads::default()));
    assert!(with(Trigger::Imbalance(0.2)).is_due(11, false, loads));
    let quiet = [Trigger::Never, Trigger::Every(5), Trigger::MeshChange];
    assert!(quiet.iter().all(|&trigger| !with(trigger).weighs_loads()));
}

#[test]
fn a_placement_that_is_demanded_is_made_once_whatever_the_trigger_says() {
    let by = |trigger| {
        let mut balancer = Balancer::new((), 9.0, 0);
        balancer.use_triggers(vec![trigger]);
        balancer
    };
    for mut balancer in [Trigger::Never, Trigger::BreakEven, Trigger::Every(9)].map(by) {
        assert!(!balancer.is_due(1, false, Loads::default()));
        balancer.demand();
        assert!(balancer.is_due(1, false, Loads::default()));
        balancer.placed(1);
        assert!(!balancer.is_due(2, false, Loads::default()));
    }
}

#[test]
fn a_known_problem_is_placed_by_the_policy_of_the_moment_within_the_limit() {
    let costs = [4.0, 1.0, 1.0, 1.0, 1.0, 4.0];
    let present = [0, 0, 0, 1, 1, 1];
    let problem = || {
        let problem = Problem::new(&costs, 3).unwrap();
        problem.with_owners(&present).unwrap()
    };
    let one = MigrationLimit {
        blocks_max: Some(1),
        ..MigrationLimit::default()
    };
    let policy = |name: &str| name.parse::<Policy>().unwrap();
    let mut balancer =
        Balancer::new(policy("contiguous"), 9.0, 0).with_triggers(vec![Trigger::Every(2)]);
    let step = |balancer: &mut Balancer, at| {
        let placed = balancer.step(at, false, problem(), Prices::default());
        placed.unwrap().map(|proposal| proposal.owners)
    };
    assert_eq!(step(&mut balancer, 1), None);
    assert_eq!(step(&mut balancer, 2), Some(vec![0, 0, 1, 1, 2, 2]));
    balancer.use_policy(policy("lpt"));
    assert_eq!(step(&mut balancer, 3), None);
    let by_lpt = step(&mut balancer, 4).unwrap();
    assert_eq!(makespan(&problem(), &by_lpt), 4.0);
    let limited = step(&mut balancer.with_limit(one), 6).unwrap();
    let moved = limited.iter().zip(&present).filter(|(a, b)| a != b).count();
    assert_eq!(moved, 1);
    let unowned = Problem::new(&costs, 3).unwrap();
    let refused = Balancer::new(policy("lpt"), 9.0, 0).step(1, true, unowned, Prices::default());
    assert!(refused.is_err(), "there are no present owners");
}

/// Where one rank of four takes four times as long, costs are measured in each step, and blocks placed where loads differ.
#[test]
fn costs_and_owners_come_to_rest_where_one_rank_is_slow() {
    let truth: Vec<f64> = (0..64u64).map(|i| 1.0 + (i % 7) as f64 / 3.0).collect();
    let exact = Problem::new(&truth, 4).and_then(|p| p.with_speeds(&[1.0, 0.25, 1.0, 1.0]));
    let exact = exact.unwrap();
    let of_rank = |rank: u32| 1.0 / exact.speed(rank);
    let octant = |i: u64| Octant::new(i as u32, 0, 0, LEVEL_MAX);
    let octants: Vec<Octant> = (0..64).map(octant).collect();
    let costs = Costs::new(Smoothing::default(), 3, &octants).unwrap();
    let policy: Policy = "lpt-swap".parse().unwrap();
    let mut balancer = Balancer::new(policy, 1.0, 0)
        .with_costs(costs)
        .with_triggers(vec![Trigger::Imbalance(0.1)]);
    let mut owners: Vec<u32> = (0..64).map(|i| i / 16).collect();
    for step in 1..=20u64 {
        // Up to 2 % of noise.
        let noise = |i: u64| 1.0 + 0.02 * ((step * 64 + i) * 7919 % 97) as f64 / 97.0;
        let time = |i: usize| truth[i] * of_rank(owners[i]) * noise(i as u64);
        let times: Vec<f64> = (0..64).map(time).collect();
        let references = [0u32, 1, 2, 3].map(|rank| of_rank(rank) * noise(rank.into()));
        balancer.observe_on(&owners, &times, &references).unwrap();
        let costs = balancer.costs(owners.len());
        let near = |(cost, truth): (&f64, &f64)| (cost / truth - 1.0).abs() < 0.03;
        assert!(costs.iter().zip(&truth).all(near), "step {step}: {costs:?}");
        let speeds = balancer.speeds().expect("one rank is slow").to_vec();
        let problem = Problem::new(&costs, 4).and_then(|p| p.with_speeds(&speeds));
        let problem = problem.and_then(|p| p.with_owners(&owners)).unwrap();
        let placed = balancer.step(step, false, problem, Prices::default());
        let placed = placed.unwrap();
        assert_eq!(placed.is_some(), step == 1, "step {step}");
        owners = placed.map_or(owners, |proposal| proposal.owners);
        let loads = Loads::new(&exact, &owners);
        assert!(loads.makespan < 1.1 * loads.ideal, "step {step}: {loads:?}");
    }
}
