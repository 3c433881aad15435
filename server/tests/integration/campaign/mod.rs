//! The real program, killed and starved: what was accepted happens once, and nothing is left running.

mod disk;
mod histories;
mod orphans;

use crate::history::Dice;
use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::Path,
};

/// Dice from `KEYTURN_CAMPAIGN_SEED`, or fresh ones.
fn thrown() -> Dice {
    let seed = std::env::var("KEYTURN_CAMPAIGN_SEED").ok();
    let seed = seed.map_or_else(|| RandomState::new().build_hasher().finish(), |text| text.parse().unwrap());
    eprintln!("KEYTURN_CAMPAIGN_SEED={seed} plays these throws again");
    Dice(seed)
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
