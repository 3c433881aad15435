//! The log, on standard error: for people by default, or an object a line for a collector.

use crate::config::{Config, LogFormat};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// Begins to log as the settings say. A second call changes nothing.
pub(crate) fn begin(config: &Config) {
    let quiet = Targets::new()
        // A session cookie that nobody knows any more is an everyday thing, not a warning.
        .with_target("tower_sessions", LevelFilter::ERROR)
        // PostgreSQL's remarks on what is there already.
        .with_target("sqlx::postgres::notice", LevelFilter::WARN)
        .with_target("tower_sessions_core", LevelFilter::ERROR);
    let wanted: Targets =
        config.log.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let filter = quiet
        .clone()
        .with_targets(wanted.clone())
        .with_default(wanted.default_level().unwrap_or(LevelFilter::OFF));
    // Where the log's own disk is full, lines are lost; complaining about that on the same disk would end the task.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false);
    let lines = match config.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // The filter is that of the whole log and not of its one layer: a layer's own filter remembers, by thread, what a
    // library asked whether it would be written, and then leaves out the next line instead. Fails only where a log has
    // begun already.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}
