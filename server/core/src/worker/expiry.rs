//! Ends of resources: what a run writes down of one, and telling of those that are near.
//!
//! The portal removes nothing by itself when an end comes; it tells whoever wants to be told, once for each end.

use super::carry_out::{Attempt, cut};
use crate::{service::Inner, store::StoreError};
use domain::{action::Kind, expiry::Expiry, view::Object};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How many are told of in one transaction.
const AT_ONCE: u32 = 100;
/// How often one looks when there was nothing more to tell of.
const EVERY: Duration = Duration::from_secs(5);
/// How long one rests between two batches.
const PAUSE: Duration = Duration::from_millis(50);

/// Tells of resources whose end is near, until `shutdown`.
pub(super) async fn watch(portal: Arc<Inner>, shutdown: CancellationToken) {
    loop {
        let told = portal.store.tell_of_ends(portal.clock.now(), AT_ONCE).await;
        let pause = match told {
            Ok(told) if told >= u64::from(AT_ONCE) => PAUSE,
            Ok(_) => EVERY,
            Err(error) => {
                tracing::warn!(%error, "nobody is told of resources that end soon; it is tried again");
                EVERY
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl Attempt<'_> {
    /// When what this run made or changed ends. Where that should be known and is not, the history says why.
    pub(super) async fn expiry(&self, outputs: &Object) -> Result<Option<Expiry>, StoreError> {
        let Some(rule) = &self.offering.expiry else { return Ok(None) };
        let view = &self.run.request.view;
        let parameters = match self.kind() {
            Kind::Delete => return Ok(None),
            Kind::Create => &view.parameters,
            Kind::Update | Kind::Action => {
                view.desired.as_ref().unwrap_or(&self.run.resource.view.parameters)
            }
        };
        match rule.of(outputs, parameters) {
            Ok(expiry) => Ok(Some(expiry)),
            Err(why) => {
                self.step("expiry", &cut(&format!("it is not known when it ends: {why}"))).await?;
                Ok(None)
            }
        }
    }
}
