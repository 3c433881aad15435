//! Browser sessions: a cookie that names a row in the portal's database. The row holds who logged in, and for one page
//! what a plain form post has to say on the page that follows it, sealed.

use super::{
    problem::{Refusal, Result},
    state::AppState,
};
use app::context::EntryState;
use axum::http::request::Parts;
use domain::{id::PrincipalId, problem::ProblemKind};
use portal::{Caller, Portal, store::StoreError};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{net::IpAddr, time::Duration};
use tower_sessions::{
    Expiry, Session, SessionManagerLayer, SessionStore,
    cookie::{SameSite, time::OffsetDateTime},
    session::{Id, Record},
    session_store,
};

/// The cookie's name.
pub(crate) const COOKIE: &str = "keyturn_session";
/// How long a session lasts without being used.
const LENGTH: Duration = Duration::from_hours(12);
/// How often use makes it last longer; each time is a write.
const REFRESH_MILLIS: i64 = 3_600_000;

const PRINCIPAL: &str = "principal";
const SEEN: &str = "seen";

/// The layer that gives every call its session, read only when somebody asks for it.
pub(crate) fn layer(portal: Portal, https: bool) -> SessionManagerLayer<Rows> {
    let length = tower_sessions::cookie::time::Duration::try_from(LENGTH).unwrap_or_default();
    SessionManagerLayer::new(Rows { portal })
        .with_name(COOKIE)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(https)
        .with_expiry(Expiry::OnInactivity(length))
}

/// The session of a call.
pub(crate) fn of(parts: &Parts) -> Option<&Session> {
    parts.extensions.get::<Session>()
}

/// Who is logged in, if anybody is.
pub(crate) async fn caller(
    state: &AppState,
    session: Option<&Session>,
    from: Option<IpAddr>,
) -> Result<Option<Caller>> {
    let Some(session) = session else { return Ok(None) };
    let Some(principal) = session.get::<PrincipalId>(PRINCIPAL).await.map_err(unavailable)? else {
        return Ok(None);
    };
    let caller = match state.portal.caller(principal, from).await {
        Ok(caller) => caller,
        Err(error) if error.kind == ProblemKind::NotAuthenticated => return Ok(None),
        Err(error) => return Err(Refusal(error)),
    };
    let now = state.portal.now().millis();
    let seen = session.get::<i64>(SEEN).await.map_err(unavailable)?.unwrap_or(0);
    if now - seen > REFRESH_MILLIS {
        session.insert(SEEN, now).await.map_err(unavailable)?;
    }
    Ok(Some(caller))
}

/// Makes the session this caller's, under a fresh ID, so that an ID planted before the login is worth nothing.
pub(crate) async fn log_in(state: &AppState, session: &Session, caller: &Caller) -> Result<()> {
    session.cycle_id().await.map_err(unavailable)?;
    // What waited for the login has been told.
    session.remove::<String>(EntryState::NAME).await.map_err(unavailable)?;
    session.insert(PRINCIPAL, caller.id).await.map_err(unavailable)?;
    session.insert(SEEN, state.portal.now().millis()).await.map_err(unavailable)
}

/// Ends the session.
pub(crate) async fn log_out(session: &Session) -> Result<()> {
    session.flush().await.map_err(unavailable)
}

/// What is kept for the page at one address.
#[derive(Serialize, Deserialize)]
struct Waiting<T> {
    path: String,
    value: T,
}

/// Something that a form post has to say on the page that follows it.
pub(crate) trait ForNextPage: Serialize + DeserializeOwned {
    /// Its name in the session, and the purpose it is sealed for.
    const NAME: &'static str;
}

impl ForNextPage for app::context::FormState {
    const NAME: &'static str = "form";
}
impl ForNextPage for EntryState {
    const NAME: &'static str = "entry";
}
impl ForNextPage for app::context::Flash {
    const NAME: &'static str = "flash";
}

/// Keeps `value` for the next look at the page at `path`.
pub(crate) async fn keep<T: ForNextPage>(
    state: &AppState,
    session: &Session,
    path: &str,
    value: T,
) -> Result<()> {
    let waiting = Waiting { path: path.to_owned(), value };
    let plain = serde_json::to_vec(&waiting).map_err(|error| Refusal(portal::Error::internal(error)))?;
    let sealed = super::hex::encode(&state.portal.seal(T::NAME, &plain)?);
    session.insert(T::NAME, sealed).await.map_err(unavailable)
}

/// What waits for the page at `path`. It goes on waiting: until it is taken, until something else is kept, or with the
/// session.
pub(crate) async fn look<T: ForNextPage>(
    state: &AppState,
    session: &Session,
    path: &str,
) -> Result<Option<T>> {
    let sealed = session.get::<String>(T::NAME).await.map_err(unavailable)?;
    let waiting = sealed.and_then(|sealed| opened::<T>(state, &sealed));
    Ok(waiting.filter(|waiting| waiting.path == path).map(|waiting| waiting.value))
}

fn opened<T: ForNextPage>(state: &AppState, sealed: &str) -> Option<Waiting<T>> {
    let plain = state.portal.unseal(T::NAME, &super::hex::decode(sealed)?)?;
    serde_json::from_slice(&plain).ok()
}

/// Takes what waits for the page at `path`, once.
pub(crate) async fn take<T: ForNextPage>(
    state: &AppState,
    session: &Session,
    path: &str,
) -> Result<Option<T>> {
    let Some(sealed) = session.get::<String>(T::NAME).await.map_err(unavailable)? else {
        return Ok(None);
    };
    let waiting = opened::<T>(state, &sealed);
    if waiting.as_ref().is_some_and(|waiting| waiting.path != path) {
        return Ok(None);
    }
    session.remove::<String>(T::NAME).await.map_err(unavailable)?;
    Ok(waiting.map(|waiting| waiting.value))
}

#[expect(clippy::needless_pass_by_value, reason = "made to be given to map_err")]
fn unavailable(error: tower_sessions::session::Error) -> Refusal {
    let context = Some(error.to_string());
    let told = portal::Error::new(
        ProblemKind::StoreUnavailable,
        "The portal cannot read or write sessions at present.",
    );
    Refusal(portal::Error { context, ..told })
}

/// Sessions as rows of the portal's database.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    portal: Portal,
}

/// The name of a session's row: a digest, so that who reads the database cannot take a session over.
fn row(id: &Id) -> String {
    super::hex::encode(&portal::secret::token_digest(&id.to_string()))
}

impl Rows {
    async fn write(&self, record: &Record, fresh: bool) -> session_store::Result<bool> {
        let data = serde_json::to_vec(&record.data)
            .map_err(|error| session_store::Error::Encode(error.to_string()))?;
        // By the portal's clock, by which the row is also judged and swept.
        let ends = self.portal.now().plus(LENGTH);
        self.portal.store().save_session(&row(&record.id), data, ends, fresh).await.map_err(backend)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made to be given to map_err")]
fn backend(error: StoreError) -> session_store::Error {
    session_store::Error::Backend(error.to_string())
}

#[async_trait::async_trait]
impl SessionStore for Rows {
    async fn create(&self, record: &mut Record) -> session_store::Result<()> {
        while !self.write(record, true).await? {
            record.id = Id::default();
        }
        Ok(())
    }

    async fn save(&self, record: &Record) -> session_store::Result<()> {
        self.write(record, false).await.map(|_| ())
    }

    async fn load(&self, id: &Id) -> session_store::Result<Option<Record>> {
        let Some(data) = self.portal.store().session(&row(id), self.portal.now()).await.map_err(backend)?
        else {
            return Ok(None);
        };
        let data =
            serde_json::from_slice(&data).map_err(|error| session_store::Error::Decode(error.to_string()))?;
        // The row's own end was checked where it was read; nobody reads this one.
        Ok(Some(Record { id: *id, data, expiry_date: OffsetDateTime::UNIX_EPOCH }))
    }

    async fn delete(&self, id: &Id) -> session_store::Result<()> {
        self.portal.store().delete_session(&row(id)).await.map_err(backend)
    }
}
