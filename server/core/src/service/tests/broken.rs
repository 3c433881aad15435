//! The checker of histories sees what it is there to see: a promise that is broken on purpose is found out, and a sound
//! portal passes the same plan.
//!
//! What breaks is the database under the portal (by triggers) or the test's own workers, never the portal itself: there
//! is no code in it that could be switched on.

mod field;
mod hands;
#[path = "../../../../tests/history/mod.rs"]
mod history;

use history::{Promise, check};

/// The promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None.
    Sound,
    /// Keys are not unique: each submission is the first with its own.
    NoUniqueKeys,
    /// The claim is written after the transaction of the request, and some servers end in between.
    ClaimApart,
    /// The write of a worker that lost its lease counts.
    NoFence,
}

/// Plans that are tried with every fault.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The promises that are broken under a fault, for a seed.
async fn broken(seed: u64, fault: Fault) -> Vec<Promise> {
    let found = check(&field::history(seed, fault).await);
    assert!(fault != Fault::Sound || found.is_empty(), "seed {seed}: {found:#?}");
    let mut promises: Vec<Promise> = found.into_iter().map(|violation| violation.promise).collect();
    promises.sort_unstable();
    promises.dedup();
    println!("{fault:?}, seed {seed}: {promises:?}");
    promises
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sound_portal_breaks_no_promise() {
    for seed in SEEDS {
        assert_eq!(broken(seed, Fault::Sound).await, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_that_are_not_unique_are_found_out() {
    for seed in SEEDS {
        assert!(broken(seed, Fault::NoUniqueKeys).await.contains(&Promise::FirstOnce));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_outside_of_the_transaction_is_found_out() {
    for seed in SEEDS {
        assert!(broken(seed, Fault::ClaimApart).await.contains(&Promise::OneRequest));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fence_that_is_ignored_is_found_out() {
    for seed in SEEDS {
        assert!(broken(seed, Fault::NoFence).await.contains(&Promise::RightEnd));
    }
}
