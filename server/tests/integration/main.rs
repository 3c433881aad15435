//! The server as its callers meet it: the real program in a folder of its own, asked over HTTP.

mod concurrent;
mod create;
mod input;
mod names;
mod support;
