//! The guard's promises, kept over a real database through the portal's own door.

mod approvals;
mod broken;
mod callbacks;
mod catalog_change;
mod changes;
mod dry_run;
mod duplicates;
mod ends;
mod hidden;
mod history;
mod hooks;
mod keys;
mod lineage;
mod quotas;
mod refusals;
mod rehearsal;
mod repeats;
mod retention;
mod views;
mod waiting;
