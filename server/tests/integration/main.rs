//! The server as its callers meet it: the real program in a folder of its own, asked over HTTP.

mod auth;
mod commands;
mod concurrent;
mod create;
mod events;
mod forms;
mod input;
mod lifecycle;
mod names;
mod routes;
mod support;
mod tokens;
