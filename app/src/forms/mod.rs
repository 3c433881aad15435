//! The guarded form: one request ID for each opened form, retries that keep it, and honest words about what is known.
//!
//! What happens next is decided in `machine`, without a browser; `driver` carries it out in one.

mod browser;
mod conflict;
mod driver;
pub mod fields;
pub mod hook;
mod kept;
pub mod machine;
mod notes;
pub mod notification;
pub mod outgoing;
pub mod parts;
mod pattern;
pub mod reply;
pub mod subject;
pub mod view;

pub use view::RequestForm;
