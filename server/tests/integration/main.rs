//! The server as its callers meet it: the real program in a folder of its own, asked over HTTP.

#![expect(clippy::unwrap_used, reason = "a test ends where what it needs is not there")]

mod approvals;
mod auth;
mod campaign;
mod change_forms;
mod changes;
mod changes_at_work;
mod claims;
mod clocks;
mod clocks_apart;
mod commands;
mod composite;
mod concurrent;
mod create;
mod doors;
mod dry_run;
mod duplicates;
mod elsewhere;
mod events;
mod forms;
mod guard;
mod hidden;
#[path = "../history/mod.rs"]
mod history;
mod hooks;
mod input;
mod interrupted;
mod keyed;
mod lifecycle;
mod lists;
mod managed_forms;
mod names;
mod notifications;
mod postgres;
mod quotas;
mod readme;
mod routes;
mod search;
mod secrets;
mod support;
mod tokens;
