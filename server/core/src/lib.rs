//! Everything that is true of Keyturn without HTTP.
//!
//! [`Portal`] is the single door: the browser's pages, the API and (later) events enter by it and get the same promises.
//! Data goes one way: caller, service, store (one commit for intent and run), worker, provisioner, store (outcome);
//! answers come back by reading the store.

pub mod answer;
pub mod caller;
pub mod catalog;
pub mod clock;
pub mod error;
mod guard;
mod hidden;
pub mod keys;
mod mapping;
pub mod outbound;
pub mod provisioner;
pub mod secret;
pub mod service;
pub mod settings;
mod settled;
pub mod signature;
pub mod store;
#[cfg(test)]
mod testing;
mod throttle;
mod worker;
pub mod zone;

pub use answer::{Answer, AnswerKind, Answered};
pub use caller::{Caller, Credential};
pub use error::{Error, Result};
pub use service::{Parts, Portal};
