//! From settings to an open portal: the folder, the key, the database, the catalog.

use crate::config::{Config, Database};
use portal::{
    Parts, Portal,
    catalog::Catalog,
    clock::{Ids, SystemClock, SystemIds},
    keys::Keys,
    outbound::Outbound,
    provisioner::exec::Site,
    settings::{GuardSettings, Settings},
    store::{Store, StoreError, postgres::Postgres, sqlite::Sqlite},
};
use std::{fs, net::SocketAddr, os::unix::fs::DirBuilderExt, path::Path, sync::Arc, time::Duration};

/// Why a portal did not open: the setting that is concerned, and what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {why}")]
pub(crate) struct OpenFailure {
    pub(crate) setting: &'static str,
    pub(crate) why: String,
}

/// What a portal is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// For serving at this address, which is the one that was bound: the settings may leave the port to the system.
    Serving(SocketAddr),
    /// For a command that makes people and tokens only, without what can be requested.
    ACommand,
}

const DATABASE: &str = "KEYTURN_DATABASE_URL";
const KEY_FILE: &str = "KEYTURN_SECRET_KEY_FILE";

/// How often the clock is set by the database's.
const SET_AGAIN: Duration = Duration::from_mins(1);
/// From how many milliseconds on it is told that the clocks differ.
const FAR_APART: u64 = 2_000;

/// Opens the portal, making its folder, key and database where there are none yet.
pub(crate) async fn open(config: &Config, opened_for: For) -> Result<Portal, OpenFailure> {
    let ids: Arc<dyn Ids> = Arc::new(SystemIds);
    let clock = Arc::new(SystemClock::shifted(config.clock_offset_millis));
    private_folder(config.database.folder(), DATABASE)?;
    if let (Database::Sqlite(_), Some(folder)) = (&config.database, config.secret_key_file.parent()) {
        private_folder(folder, KEY_FILE)?;
    }
    let keys = keys(config, ids.as_ref())?;
    let store = store(config).await?;
    set(&clock, store.as_ref())
        .await
        .map_err(|error| OpenFailure { setting: DATABASE, why: format!("{}: {error}", config.database) })?;
    if let For::Serving(_) = opened_for {
        tokio::spawn(keep_set(Arc::clone(&clock), Arc::clone(&store)));
    }
    let (catalog, address) = match opened_for {
        For::Serving(address) => (catalog(config)?, address),
        For::ACommand => (Catalog::default(), config.listen),
    };
    let settings = Settings {
        guard: GuardSettings {
            retention: config.guard_retention,
            tombstones: config.guard_tombstones,
            longest_retry: config.guard_longest_retry,
            wait: config.guard_wait,
        },
        workers: config.workers,
        lease: config.lease,
    };
    let outbound = Outbound::new(config.outbound_allow.clone()).map_err(|why| OpenFailure {
        setting: "KEYTURN_OUTBOUND_ALLOW",
        why: format!("the machine's certificate authorities cannot be read: {why}"),
    })?;
    let public_url = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let parts = Parts { store, catalog, keys, clock, ids, outbound, public_url, settings };
    Portal::open(parts).await.map_err(|error| match error.to_string().split_once(": ") {
        Some(("KEYTURN_GUARD_RETENTION", why)) => {
            OpenFailure { setting: "KEYTURN_GUARD_RETENTION", why: why.to_owned() }
        }
        Some((KEY_FILE, why)) => OpenFailure { setting: KEY_FILE, why: why.to_owned() },
        _ => OpenFailure { setting: DATABASE, why: error.to_string() },
    })
}

/// Sets the clock by the database's, where several servers share that; whether they do.
async fn set(clock: &SystemClock, store: &dyn Store) -> Result<bool, StoreError> {
    let ahead = clock.set_by(|| store.time()).await?;
    if let Some(ahead) = ahead.filter(|ahead| ahead.unsigned_abs() > FAR_APART) {
        tracing::warn!(
            millis = ahead,
            "this machine's clock is not that of the database, which is the one that counts; it stands this much behind it"
        );
    }
    Ok(ahead.is_some())
}

/// Keeps the clock set.
async fn keep_set(clock: Arc<SystemClock>, store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(SET_AGAIN).await;
        match set(&clock, store.as_ref()).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "the clock is not set by the database's at this time"),
        }
    }
}

/// Reads the catalog; the sample one is written beside the database first.
fn catalog(config: &Config) -> Result<Catalog, OpenFailure> {
    let failure = |why: String| OpenFailure { setting: "KEYTURN_CATALOG", why };
    let data = config.database.folder();
    let site =
        Site::of_this_binary(data).map_err(|error| failure(format!("no place for programs: {error}")))?;
    let folder = match &config.catalog {
        Some(folder) => folder.clone(),
        None => Catalog::sample(data)
            .map_err(|error| failure(format!("the sample catalog cannot be written: {error}")))?,
    };
    if !folder.is_dir() {
        return Err(failure(format!("there is no folder {}", folder.display())));
    }
    let catalog = Catalog::load(&folder, &site);
    for broken in catalog.broken() {
        for mistake in &broken.mistakes {
            tracing::warn!(offering = broken.id, %mistake, "an offering is disabled");
        }
    }
    for offering in catalog.iter() {
        if let Some(why) = offering.provisioner.lacks() {
            tracing::warn!(offering = %offering.id, why, "requests of this offering will fail on this server");
        }
    }
    if catalog.iter().next().is_none() {
        tracing::warn!(
            folder = %folder.display(),
            "KEYTURN_CATALOG: nothing can be requested, since no folder in this one holds an offering.yaml that works"
        );
    }
    Ok(catalog)
}

/// Opens the database, which applies the migrations that it lacks.
async fn store(config: &Config) -> Result<Arc<dyn Store>, OpenFailure> {
    let opened: Result<Arc<dyn Store>, _> = match &config.database {
        Database::Sqlite(file) => Sqlite::open(file).await.map(|store| Arc::new(store) as _),
        Database::Postgres(address) => {
            Postgres::open(address.with_password()).await.map(|store| Arc::new(store) as _)
        }
    };
    opened.map_err(|error| OpenFailure { setting: DATABASE, why: format!("{}: {error}", config.database) })
}

fn keys(config: &Config, ids: &dyn Ids) -> Result<Keys, OpenFailure> {
    let file = &config.secret_key_file;
    let missing = match &config.database {
        // A fresh key beside an old database would open nothing that is sealed in it.
        Database::Sqlite(database) if database.exists() => {
            "is missing, and the database was made with it; put it back"
        }
        Database::Sqlite(_) => "",
        // Every server of a database needs the same, so none of them makes its own.
        Database::Postgres(_) => {
            "is missing; with PostgreSQL the key is supplied, the same file for every server: 64 hexadecimal digits, \
             as `openssl rand -hex 32` writes them"
        }
    };
    if !missing.is_empty() && !file.exists() {
        return Err(OpenFailure { setting: KEY_FILE, why: format!("{} {missing}", file.display()) });
    }
    Keys::read_or_make(file, ids)
        .map_err(|error| OpenFailure { setting: KEY_FILE, why: format!("{}: {error}", file.display()) })
}

fn private_folder(folder: &Path, setting: &'static str) -> Result<(), OpenFailure> {
    if folder.as_os_str().is_empty() || folder.exists() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| OpenFailure {
        setting,
        why: format!("the folder {} cannot be made: {error}", folder.display()),
    })
}
