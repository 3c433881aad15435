//! What the pages about a team's notifications show.

use super::Answer;
use crate::context::{Flash, FormState};
use domain::{
    notification::{NotificationDeliveryView, NotificationView},
    view::Page,
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Where a team is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationsPage {
    /// The addresses, newest first, each with why the newest of what is to be sent there has not arrived.
    pub rows: Vec<(NotificationView, Option<String>)>,
    /// The form that makes one: as it was sent, or as it begins.
    pub form: FormState,
    /// Whether the person may see those of the whole portal.
    pub admin: bool,
    /// What the last form post has to say.
    pub flash: Flash,
}

/// Where a team is told of what happens to its requests.
#[server(prefix = "/rpc", endpoint = "notifications")]
pub async fn notifications(
    /// The team; `-` for the whole portal.
    team: String,
) -> Answer<NotificationsPage> {
    use super::asked;
    use crate::forms::notification::chosen;
    use domain::notification::NotificationEvent;

    let (asking, caller) = asked::caller()?;
    let portal = &asking.portal;
    let mut rows = Vec::new();
    for notification in portal.notifications(&caller, &team).await.map_err(asked::refusal)? {
        let id = notification.id.to_string();
        let newest = portal.notification_deliveries(&caller, &team, &id, 1, None).await;
        let newest = newest.map_err(asked::refusal)?.results.pop();
        let failing = newest.and_then(|mut delivery| delivery.attempts.pop()?.error);
        rows.push((notification, failing));
    }
    let mut form = asked::form(&asking, &caller)?;
    if form.values.is_empty() {
        form.values = chosen(&[NotificationEvent::Failed, NotificationEvent::Unknown]);
    }
    Ok(NotificationsPage {
        rows,
        form,
        admin: caller.is_admin(),
        flash: use_context::<Flash>().unwrap_or_default(),
    })
}

/// One address with what was sent there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationPage {
    /// The address.
    pub notification: NotificationView,
    /// What was and is to be sent there, each with the key of the form that sends it again.
    pub deliveries: Page<(NotificationDeliveryView, String)>,
    /// The form that changes it: as it was sent, or as it begins.
    pub form: FormState,
    /// The keys of the forms that switch, rotate, try out and remove it.
    pub keys: [String; 4],
    /// What the last form post has to say.
    pub flash: Flash,
}

/// One address where a team is told.
#[server(prefix = "/rpc", endpoint = "notification")]
pub async fn notification(
    /// The team; `-` for the whole portal.
    team: String,
    /// The ID.
    id: String,
    /// Where the page of deliveries begins.
    cursor: Option<String>,
) -> Answer<NotificationPage> {
    use super::asked;
    use crate::forms::notification::values;

    let (asking, caller) = asked::caller()?;
    let mut form = asked::form(&asking, &caller)?;
    let portal = &asking.portal;
    let notification = portal.notification(&caller, &team, &id).await.map_err(asked::refusal)?;
    let sent = portal.notification_deliveries(&caller, &team, &id, 25, cursor.as_deref());
    let Page { results, total, total_is, next } = sent.await.map_err(asked::refusal)?;
    if form.values.is_empty() {
        form.values = values(&notification);
    }
    let keyed = results.into_iter().map(|delivery| (delivery, portal.new_submission_key()));
    Ok(NotificationPage {
        notification,
        deliveries: Page { results: keyed.collect(), total, total_is, next },
        form,
        keys: std::array::from_fn(|_| portal.new_submission_key()),
        flash: use_context::<Flash>().unwrap_or_default(),
    })
}
