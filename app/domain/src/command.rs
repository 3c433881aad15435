//! The validated command: what a submission asks for, once everything that does not change its meaning is taken away.

use crate::{id::RequestId, json, label::Labels, name::Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Make a new resource.
    Create,
    /// Change what a resource is meant to be.
    Update,
    /// Remove a resource.
    Delete,
    /// Do with a resource what its offering defines.
    Act,
    /// Stop a request.
    Cancel,
    /// Open the next attempt of a request that failed.
    Retry,
    /// Decide about a request whose outcome is unknown.
    Resolve,
    /// Let a request be carried out that waits for that.
    Approve,
    /// Refuse to let it be carried out.
    Reject,
    /// Make an API token.
    TokenCreate,
    /// Revoke an API token.
    TokenRevoke,
    /// Make a hook.
    HookCreate,
    /// Change a hook.
    HookChange,
    /// Give a hook a new secret.
    HookRotate,
    /// End a hook's old secret.
    HookEndSecret,
    /// Remove a hook.
    HookRemove,
    /// Be told of what happens.
    NotificationCreate,
    /// Be told elsewhere or of something else.
    NotificationChange,
    /// Have notifications signed with another secret.
    NotificationRotate,
    /// Not be told any more.
    NotificationRemove,
    /// Send a notification that tells of nothing.
    NotificationPing,
    /// Send a notification again.
    NotificationResend,
}

impl Operation {
    /// The operation's word, as audits and histories show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Act => "act",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Resolve => "resolve",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::TokenCreate => "token_create",
            Self::TokenRevoke => "token_revoke",
            Self::HookCreate => "hook_create",
            Self::HookChange => "hook_change",
            Self::HookRotate => "hook_rotate",
            Self::HookEndSecret => "hook_end_secret",
            Self::HookRemove => "hook_remove",
            Self::NotificationCreate => "notification_create",
            Self::NotificationChange => "notification_change",
            Self::NotificationRotate => "notification_rotate",
            Self::NotificationRemove => "notification_remove",
            Self::NotificationPing => "notification_ping",
            Self::NotificationResend => "notification_resend",
        }
    }
}

/// A submission's meaning. Channel, path spelling, `If-Match`, `Prefer` and confirmations are not part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// What is to be done.
    pub operation: Operation,
    /// The request, token, hook or resource (`team/type/name`) it is done to, if there is one already.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The ID of the offering's action.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub action: Option<String>,
    /// The catalog entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offering: Option<Name>,
    /// The resource's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<Name>,
    /// Parameters after defaults, without nulls; of an update its patch, in which a null removes.
    pub parameters: Map<String, Value>,
    /// Labels as sent.
    pub labels: Labels,
    /// The correlation ID as sent; a generated one is not part of the meaning.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub correlation_id: Option<String>,
    /// The request that this one descends from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent_id: Option<RequestId>,
}

impl Command {
    /// A command on something that exists: a request, a token or a resource.
    #[must_use]
    pub fn on(operation: Operation, target: String, parameters: Map<String, Value>) -> Self {
        Self {
            operation,
            target: Some(target),
            action: None,
            offering: None,
            name: None,
            parameters,
            labels: Labels::default(),
            correlation_id: None,
            parent_id: None,
        }
    }

    /// The canonical bytes over which the fingerprint is taken (RFC 8785).
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        serde_json::to_value(self).map(|value| json::canonical(&value)).unwrap_or_default()
    }

    /// The names, never the values, of what differs from `other`, as `name`, `parameters.size`, `labels.env`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let (one, two) = (self.parts(), other.parts());
        let mut names: Vec<String> =
            one.keys().chain(two.keys()).filter(|name| one.get(*name) != two.get(*name)).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    fn parts(&self) -> Map<String, Value> {
        let mut parts = Map::new();
        let Ok(Value::Object(members)) = serde_json::to_value(self) else {
            return parts;
        };
        for (name, value) in members {
            match value {
                Value::Object(inner) => {
                    parts.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
                }
                other => {
                    parts.insert(name, other);
                }
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(parameters: &str) -> Command {
        let Value::Object(parameters) = json::read(parameters.as_bytes()).unwrap() else { panic!("object") };
        Command {
            name: Some(Name::parse("vm-one").unwrap()),
            ..Command::on(Operation::Create, "x".into(), parameters)
        }
    }

    #[test]
    fn differences_name_the_members_and_never_their_values() {
        let one = command(r#"{"size":"small","count":1}"#);
        let two = command(r#"{"size":"large-secret","count":1,"extra":true}"#);
        assert_eq!(one.differences(&two), ["parameters.extra", "parameters.size"]);
        assert!(one.differences(&one.clone()).is_empty());
    }

    #[test]
    fn the_meaning_holds_operation_target_and_name() {
        let one = command("{}");
        for other in [
            Command { operation: Operation::Retry, ..one.clone() },
            Command { target: Some("y".into()), ..one.clone() },
            Command { name: None, ..one.clone() },
            Command { correlation_id: Some("c".into()), ..one.clone() },
            Command { action: Some("restart".into()), ..one.clone() },
        ] {
            assert_ne!(one.canonical(), other.canonical());
        }
        assert_eq!(command(r#"{"a":1,"b":2}"#).canonical(), command(r#"{"b":2.0,"a":1}"#).canonical());
    }
}
