//! The checker of histories sees what it is there to see: a promise that is broken on purpose is found out, and a sound
//! portal passes the same plan; on both databases.
//!
//! What breaks is the database under the portal (by triggers), the test's own workers or a door of the test's own before
//! the portal, never the portal itself: there is no code in it that could be switched on.

mod faults;
mod field;
mod hands;
#[path = "../../../../tests/history/mod.rs"]
mod history;

use crate::{
    provisioner::fake::Fake,
    testing::{Ground, House, Plan, vm},
};
use faults::Fault;
use history::{Promise, check};

/// Plans that are tried with every fault on SQLite, and on PostgreSQL the first of them.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The promises that are broken under a fault, for a seed.
async fn broken(ground: Ground, seed: u64, fault: Fault) -> Vec<Promise> {
    let found = check(&field::history(ground, seed, fault).await);
    assert!(fault != Fault::Sound || found.is_empty(), "seed {seed}: {found:#?}");
    let mut promises: Vec<Promise> = found.into_iter().map(|violation| violation.promise).collect();
    promises.sort_unstable();
    promises.dedup();
    println!("{fault:?}, seed {seed}: {promises:?}");
    promises
}

/// A fault that breaks a promise, on each database.
macro_rules! found_out {
    ($($test:ident: $fault:ident breaks $promise:ident)*) => {
        $(mod $test {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn on_sqlite() {
                for seed in SEEDS {
                    let broken = broken(Ground::sqlite(), seed, Fault::$fault).await;
                    assert!(broken.contains(&Promise::$promise), "seed {seed}: {broken:?}");
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn on_postgres() {
                let broken = broken(Ground::postgres(), SEEDS[0], Fault::$fault).await;
                assert!(broken.contains(&Promise::$promise), "{broken:?}");
            }
        })*
    };
}

found_out! {
    keys_that_are_not_unique_are_found_out: NoUniqueKeys breaks FirstOnce
    a_claim_outside_of_the_transaction_is_found_out: ClaimApart breaks OneRequest
    a_fence_that_is_ignored_is_found_out: NoFence breaks RightEnd
    a_version_that_is_asked_for_before_the_key_is_found_out: VersionFirst breaks HonestRepeat
    a_retention_that_counts_from_the_first_arrival_is_found_out: KeptFromArrival breaks HonestRepeat
    a_name_that_is_given_up_too_early_is_found_out: NameEarly breaks OneLife
    an_answer_that_is_altered_is_found_out: OtherAnswer breaks SameAnswer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sound_portal_breaks_no_promise() {
    for seed in SEEDS {
        assert_eq!(broken(Ground::sqlite(), seed, Fault::Sound).await, []);
        assert_eq!(broken(Ground::postgres(), seed, Fault::Sound).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_unique_index_the_guard_lets_nothing_through() {
    for ground in [Ground::sqlite(), Ground::postgres()] {
        let fake = Fake::default();
        let mut house = House::build_on(ground, Plan::of(fake.clone())).await;
        house.ground.execute("DROP INDEX claim_scope").await;
        house.work();
        for key in ["k", "k", "other"] {
            house.send(key, &vm("one")).await.unwrap_err();
        }
        for table in ["request", "resource", "claim", "run"] {
            let left = house.ground.number(&format!("SELECT count(*) FROM {table}")).await;
            assert_eq!(left, Some(0), "{table} on {:?}", house.ground);
        }
        assert!(fake.ledger().is_empty());
    }
}
