//! The real program, killed and starved: what was accepted happens once, and nothing is left running.

mod disk;
mod histories;
mod orphans;

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::Path,
};

/// Randomness that can be played again.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    /// From `KEYTURN_CAMPAIGN_SEED`, or fresh ones.
    fn thrown() -> Self {
        let seed = std::env::var("KEYTURN_CAMPAIGN_SEED").ok();
        let seed =
            seed.map_or_else(|| RandomState::new().build_hasher().finish(), |text| text.parse().unwrap());
        eprintln!("KEYTURN_CAMPAIGN_SEED={seed} plays these throws again");
        Self(seed)
    }

    /// Others, of the same throw.
    fn of(&self, who: u64) -> Self {
        let mut other = Self(self.0 ^ who.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        other.next();
        other
    }

    /// The next number, by `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The processes that an offering of the portal in this folder started: their environment names the folder.
fn programs_of(home: &Path) -> Vec<u32> {
    let mark = home.to_str().unwrap().as_bytes();
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|id: &u32| *id != std::process::id())
        .filter(|id| {
            // One that ended in between has no environment.
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|at| at == mark)
        })
        .collect()
}
