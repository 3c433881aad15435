//! The rules of the portal, pure: what a key, a name, a label and a state are, when two submissions mean the same, and
//! the shapes in which the portal speaks of requests and resources. True for the browser and the server alike;
//! nothing in this room knows of databases, HTTP, processes or the time of day.

pub mod action;
pub mod approval;
pub mod backoff;
pub mod callback;
pub mod chain;
pub mod change;
pub mod command;
pub mod correlation;
pub mod duplicates;
pub mod etag;
pub mod expiry;
pub mod form;
pub mod hidden;
pub mod hook;
pub mod id;
pub mod json;
pub mod key;
pub mod label;
pub mod merge;
pub mod name;
pub mod notification;
pub mod plan;
pub mod problem;
pub mod quota;
pub mod role;
pub mod saved;
pub mod search;
pub mod state;
pub mod submission;
pub mod time;
pub mod view;
