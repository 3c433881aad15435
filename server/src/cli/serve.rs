//! `keyturn serve`: opens the portal, listens, and stops in good order.

use super::report::{Failure, Said, line};
use crate::{
    config::{self, Config},
    http::{
        self,
        listen::{self, Limits},
        state::AppState,
    },
    open::{self, For},
};
use leptos::config::LeptosOptions;
use serde_json::json;
use std::{future::Future, net::SocketAddr, time::Duration};
use tokio::{net::TcpListener, signal::unix, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long open exchanges may take to end after the signal to stop.
const LAST_EXCHANGES: Duration = Duration::from_secs(10);
/// How long guarded work may take to end after that.
const LAST_WORK: Duration = Duration::from_secs(5);
/// How long runs may take to be given back after that.
const LAST_RUNS: Duration = Duration::from_secs(15);

pub(super) async fn run(config: &Config, as_json: bool) -> Result<Said, Failure> {
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        Failure::plain(format!("KEYTURN_LISTEN: {} cannot be listened on: {error}", config.listen))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::plain(error.to_string()))?;
    // Only now is it known where callbacks find this server; whoever calls already waits until it serves.
    let portal = open::open(config, For::Serving(address)).await?;
    portal.store().bound_waits(portal.now(), config.lease).await.map_err(portal::Error::from)?;
    let stopping = CancellationToken::new();
    let https = config.public_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    let site = config::site_root();
    if !site.join("pkg").is_dir() {
        tracing::warn!(
            "no site folder beside the program: pages come without style and script; the API is whole"
        );
    }
    let state = AppState::new(portal.clone(), leptos(&site), stopping.clone(), https);
    let router = http::router(state.clone(), &site);

    let signal = stop_signal()?;
    let stop_runs = CancellationToken::new();
    let background = tokio::spawn({
        let (portal, stop) = (portal.clone(), stop_runs.clone());
        async move { portal.run_background(stop).await }
    });
    let serving = tokio::spawn(listen::serve(listener, router, Limits::default(), stopping.clone()));
    announce(config, &portal, address, as_json).await?;

    let mut background = background;
    let failed = tokio::select! {
        () = signal => None,
        ended = &mut background => Some(format!("the background work ended by itself: {ended:?}")),
    };
    tracing::info!("stopping");
    stopping.cancel();
    let _ = timeout(LAST_EXCHANGES, serving).await;
    state.guarded_work.close();
    let _ = timeout(LAST_WORK, state.guarded_work.wait()).await;
    stop_runs.cancel();
    if let Some(why) = failed {
        return Err(Failure::plain(why));
    }
    if timeout(LAST_RUNS, background).await.is_err() {
        tracing::warn!("runs did not stop in time; their leases will end");
    }
    Ok(Said::nothing())
}

/// Tells where the portal is, and until it has an administrator, how to make one.
async fn announce(
    config: &Config,
    portal: &portal::Portal,
    address: SocketAddr,
    as_json: bool,
) -> Result<(), Failure> {
    let base = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let link = portal.set_up_link().await?.map(|link| format!("{base}/setup?link={link}"));
    if as_json {
        line(&json!({ "address": base, "listen": address.to_string(), "setup": link }).to_string());
    } else {
        line(&format!("Keyturn listens on http://{address}"));
        if config.public_url.is_some() {
            line(&format!("People and callbacks reach it at {base}"));
        }
        if let Some(link) = link {
            line(&format!("Set it up, once, at {link}"));
        }
    }
    if config.clock_offset_millis != 0 {
        tracing::warn!(
            millis = config.clock_offset_millis,
            "KEYTURN_CLOCK_OFFSET shifts this server's clock"
        );
    }
    Ok(())
}

/// Waits for a signal to stop. Asked for before anything is announced, so that none is missed.
fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let listen = |kind| {
        unix::signal(kind).map_err(|error| Failure::plain(format!("signals cannot be heard: {error}")))
    };
    let (mut terminate, mut interrupt) =
        (listen(unix::SignalKind::terminate())?, listen(unix::SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// How pages find the browser's half. Names are fixed at build time, so a program started by hand finds the same.
fn leptos(site: &std::path::Path) -> LeptosOptions {
    let env = if cfg!(debug_assertions) { leptos::config::Env::DEV } else { leptos::config::Env::PROD };
    LeptosOptions::builder()
        .output_name("keyturn")
        .site_root(site.to_string_lossy().into_owned())
        .site_pkg_dir("pkg")
        .env(env)
        .build()
}
