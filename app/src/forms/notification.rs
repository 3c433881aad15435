//! Where a team is told, as a form shows it, and the way back to what the API takes.

use super::outgoing::Values;
use domain::notification::{NotificationEvent, NotificationView};
use serde_json::{Value, json};

/// The field that chooses an event.
#[must_use]
pub fn field_of(event: NotificationEvent) -> String {
    format!("event.{event}")
}

/// The fields of one that is there.
#[must_use]
pub fn values(notification: &NotificationView) -> Values {
    let mut values = chosen(&notification.events);
    values.insert("label".to_owned(), notification.label.clone());
    values.insert("url".to_owned(), notification.url.clone());
    values
}

/// These events as a form that holds nothing else.
#[must_use]
pub fn chosen(events: &[NotificationEvent]) -> Values {
    events.iter().map(|event| (field_of(*event), "on".to_owned())).collect()
}

/// What a form describes, as the API takes it.
#[must_use]
pub fn body(values: &Values) -> Value {
    let text = |name: &str| values.get(name).map(String::as_str).unwrap_or_default();
    let chosen =
        NotificationEvent::CHOICES.into_iter().filter(|event| values.contains_key(&field_of(*event)));
    json!({ "label": text("label"), "url": text("url"), "events": chosen.collect::<Vec<_>>() })
}
