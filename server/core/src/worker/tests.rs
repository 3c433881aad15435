//! The worker's promises, kept over a real database through the portal's own door.

mod cancel;
mod changes;
mod composite;
mod doubt;
mod elsewhere;
mod endings;
mod leases;
mod notify;
mod outputs;
mod recovery;
